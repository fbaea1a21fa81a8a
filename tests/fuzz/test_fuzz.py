"""Random damage to the bytes of tables: right rows or an error of ours, never anything else, whatever happens.

`ALLUVIUM_FUZZ_SECONDS` runs longer than the default, `ALLUVIUM_FUZZ_SEED` begins at another case. A case is a number, and
the same number is the same case: `PYTHONPATH=src python tests/support/fuzz_child.py --first NUMBER --count 1`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from fuzz_child import WrongRows, read_everything
from fuzz_mutations import mutate
from fuzz_tables import TABLES, FuzzTable

CHILD = Path(__file__).resolve().parents[1] / "support" / "fuzz_child.py"
SECONDS = float(os.environ.get("ALLUVIUM_FUZZ_SECONDS", "20"))
SEED = int(os.environ.get("ALLUVIUM_FUZZ_SEED", "0"))
#: Beyond what the child takes to start and its own watchdog to strike.
GRACE_S = 90
SHOWN = 10


@dataclass
class Campaign:
    """What became of the cases."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def run_child(first: int, seconds: float, campaign: Campaign) -> int | None:
    """Runs cases until the time is over; gives where to go on if the child died, else None."""
    child = subprocess.run(
        [sys.executable, str(CHILD), "--first", str(first), "--seconds", str(seconds)],
        capture_output=True, text=True, timeout=seconds + GRACE_S, check=False,
    )  # fmt: skip
    pending: int | None = None
    for line in child.stdout.splitlines():
        result = json.loads(line)
        if "outcome" not in result:
            pending = result["case"]
            continue
        pending = None
        campaign.outcomes[result["outcome"]] += 1
        if result["outcome"].startswith("FOREIGN"):
            campaign.failures.append(f"case {result['case']} ({result['table']}): {'; '.join(result['told'])}")
    if child.returncode == 0:
        return None
    campaign.failures.append(f"case {pending}: the process ended with {child.returncode}\n{child.stderr[-3000:]}")
    return None if pending is None else pending + 1


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 2 * GRACE_S)
def test_damaged_tables_give_right_rows_or_our_errors() -> None:
    campaign = Campaign()
    end = time.monotonic() + SECONDS
    first: int | None = SEED
    while first is not None and time.monotonic() < end:
        first = run_child(first, end - time.monotonic(), campaign)
    assert not campaign.failures, (
        f"{len(campaign.failures)} failures; repeat one with tests/support/fuzz_child.py --first CASE --count 1\n"
        + "\n".join(campaign.failures[:SHOWN])
    )
    # A campaign that never reads rows, or never meets an error, tests nothing.
    assert campaign.outcomes["rows"] > 20, campaign.outcomes
    assert len(campaign.outcomes) > 5, campaign.outcomes


def written(table: FuzzTable, root: Path) -> str:
    for path, data in table.files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return str(root)


@pytest.mark.parametrize("number", range(len(TABLES)))
def test_the_tables_are_whole_before_they_are_damaged(number: int, tmp_path: Path) -> None:
    table = TABLES[number]()
    assert read_everything(table, written(table, tmp_path), Random(0), [], True) == "rows"


def test_the_judge_notices_wrong_rows(tmp_path: Path) -> None:
    table = TABLES[0]()
    table.ids = table.ever = frozenset({1})
    with pytest.raises(WrongRows):
        read_everything(table, written(table, tmp_path), Random(0), [], True)


def test_a_case_is_the_same_each_time() -> None:
    table = TABLES[2]()
    assert [mutate(table.files, Random(n)) for n in range(50)] == [mutate(table.files, Random(n)) for n in range(50)]
