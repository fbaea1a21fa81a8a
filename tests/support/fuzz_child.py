"""Runs fuzz cases in a process of its own, whose memory and time are bounded.

`python tests/support/fuzz_child.py --first 123 --count 1` repeats case 123. Prints a JSON line before each case and one
after it; a case without its second line killed the process.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import resource
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

from fuzz_mutations import mutate
from fuzz_tables import TABLES, FuzzTable

import alluvium
from alluvium.api.delta.maintenance import check_table
from alluvium.errors import AlluviumError

#: Address space that a case may take beyond what the process has when it begins.
_MEMORY_BYTES = 3 << 30
#: After so many seconds a case hangs: the process ends with a trace of where.
_HANG_S = 30
_WHERE = ("id >= 12", "id between 3 and 24 and id <> 5", "id is null", "id in (1, 11, 21)")


class WrongRows(Exception):
    """Rows that no committed state has."""


def read_everything(table: FuzzTable, root: str, random: Random, touched: list[str], harmless: bool) -> str:
    """All that a reader does with a table; the code of the error, or `rows`."""
    outcome = "rows"
    for act in (lambda: _read(table, root, random, touched, harmless), lambda: check_table(root)):
        try:
            act()
        except AlluviumError as error:
            if harmless:
                raise WrongRows(f"an error where nothing can be wrong: {error}") from error
            str(error)
            outcome = error.code
    return outcome


def _read(table: FuzzTable, root: str, random: Random, touched: list[str], harmless: bool) -> None:
    t = alluvium.open(root)
    str(t.schema), t.schema.to_arrow(), t.properties, t.domains, t.txns
    where = random.choice(_WHERE)
    failures: list[AlluviumError] = []
    for act in (
        lambda: t.timestamp, t.files, lambda: t.files(where), t.history, lambda: t.to_arrow(where=where),
        lambda: alluvium.explain(root, where), lambda: t.changes(0), t.refresh, lambda: alluvium.open(root, version=1).files(),
        lambda: alluvium.open(root, timestamp="2023-11-14 22:13:20.002"),
    ):  # fmt: skip
        try:
            act()
        except AlluviumError as error:
            failures.append(error)
    rows = t.to_arrow()
    rows.validate(full=True)
    if "id" not in rows.schema.names or str(rows.schema.field("id").type) not in ("int64", "int32"):
        return
    ids = [i for i in rows["id"].to_pylist() if i is not None]
    if harmless and frozenset(ids) != table.ids:
        raise WrongRows(f"{sorted(ids)} instead of {sorted(table.ids)}")
    # Pages of Parquet have no checksums: who changes a value there is not found out.
    in_data = any("_delta_log" not in path and not path.endswith(".bin") for path in touched)
    if not in_data and not table.ever.issuperset(ids):
        raise WrongRows(f"ids that nobody wrote: {sorted(set(ids) - table.ever)[:10]}")


def run_case(case: int, tables: list[FuzzTable]) -> tuple[str, list[str]]:
    """One case: the same for the same number."""
    random = Random(case)
    table = tables[case % len(tables)]
    files, told, touched = mutate(table.files, random)
    # What is only a hint, or only checked on demand, must never change an answer.
    harmless = all(path.endswith(("_last_checkpoint", ".crc")) and not told_one.startswith(("swap", "double"))
                   for path, told_one in zip(touched, told, strict=True))  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        for path, data in files.items():
            target = Path(root, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        try:
            return read_everything(table, root, random, touched, harmless), told
        except Exception as error:
            return f"FOREIGN {type(error).__name__}", [*told, traceback.format_exc()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--count", type=int, default=1 << 60)
    parser.add_argument("--seconds", type=float, default=1e9)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = [make() for make in TABLES]
    own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (own + _MEMORY_BYTES, own + _MEMORY_BYTES))
    end = time.monotonic() + asked.seconds
    for case in range(asked.first, asked.first + asked.count):
        if time.monotonic() > end:
            break
        print(json.dumps({"case": case}), flush=True)
        faulthandler.dump_traceback_later(_HANG_S, exit=True)
        started = time.monotonic()
        outcome, told = run_case(case, tables)
        faulthandler.cancel_dump_traceback_later()
        took = round(time.monotonic() - started, 3)
        print(
            json.dumps(
                {"case": case, "table": tables[case % len(tables)].name, "outcome": outcome, "told": told, "s": took}
            ),
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
