"""Everything that reads bytes from outside, given seeds and some thousand changes of them: an answer or an error of ours.

The same targets run by coverage for as long as one likes: `make fuzz` (scripts/fuzz.py).
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from random import Random
from zlib import crc32

import pytest
from fuzz_paimon import TABLES, WrongRows, damaged, read_everything, run_case
from fuzz_targets import NAMES, make_target, mutated

#: Of all targets together, and of the cases of whole tables; `ALLUVIUM_FUZZ_SECONDS` is for longer runs.
SECONDS = float(os.environ.get("ALLUVIUM_FUZZ_SECONDS", "8"))
SEED = int(os.environ.get("ALLUVIUM_FUZZ_SEED", "0"))
#: A target plays no more than this, however quick it is.
MOST = 200
#: Targets none of whose seeds is read without an error would test nothing.
GOOD = {"ok", "rows", "read", "same", "otherwise"}


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", NAMES)
def test_changed_inputs_give_answers_or_our_errors(name: str) -> None:
    target = make_target(name)
    outcomes = {target.play(data) for data in target.seeds}
    random = Random(SEED + crc32(name.encode()))
    end = time.monotonic() + SECONDS * 0.7 / len(NAMES)
    for _ in range(MOST):
        if time.monotonic() > end:
            break
        data = mutated(random.choice(target.seeds), target.seeds, random)
        try:
            outcomes.add(target.play(data))
        except BaseException as error:
            error.add_note(f"{name} at {data!r}"[:4000]) if hasattr(error, "add_note") else print(name, data)
            raise
    assert outcomes & GOOD, outcomes


@pytest.mark.parametrize("number", range(len(TABLES)))
def test_the_tables_are_whole_before_they_are_damaged(number: int, tmp_path: Path) -> None:
    table = TABLES[number]()
    for path, data in table.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    assert read_everything(table, str(tmp_path), Random(0), []) == "rows"
    assert table.ids <= table.ever


def test_damaged_tables_of_paimon_give_right_rows_or_our_errors() -> None:
    tables = [make() for make in TABLES]
    end, case, outcomes = time.monotonic() + SECONDS * 0.3, SEED, set()
    while time.monotonic() < end or case < SEED + 14:
        outcome, told = run_case(case, tables)
        assert not outcome.startswith("FOREIGN"), f"case {case}: {'; '.join(told)}"
        outcomes.add(outcome)
        case += 1
    assert {"rows"} < outcomes


def test_the_judge_notices_wrong_rows(tmp_path: Path) -> None:
    table = TABLES[0]()
    for path, data in table.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    fewer = type(table)(table.name, table.files, frozenset({0}), frozenset({0}))
    for touched in ([], ["snapshot/LATEST"]):
        with pytest.raises(WrongRows):
            read_everything(fewer, str(tmp_path), Random(0), touched)


def test_a_case_is_the_same_each_time() -> None:
    files = TABLES[3]().files
    assert [damaged(files, Random(n)) for n in range(50)] == [damaged(files, Random(n)) for n in range(50)]
    target = make_target("ddl")
    assert [mutated(target.seeds[0], target.seeds, Random(n)) for n in range(50)] == [
        mutated(target.seeds[0], target.seeds, Random(n)) for n in range(50)
    ]


def test_the_watch_notices_files_and_processes() -> None:
    target = make_target("ddl")
    for act in (lambda: os.system("true"), lambda: Path("/etc/passwd").read_text(), lambda: os.remove("/nowhere/x")):
        spying = type(target)("spy", (), lambda data, act=act: act())
        with pytest.raises(BaseException, match=r"os\.system|open|os\.remove"):
            spying.play(b"")
