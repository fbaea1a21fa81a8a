"""The judgement of one case in one lane: every expectation is right, weak, refused or wrong.

- *right*: what the corpus expects; where it expects an error, any error of our tree (no rows come back).
- *weak*: right rows, but more files kept than the reference keeps.
- *refused*: `UnsupportedFeature`, or a part of the API that does not exist yet.
- *wrong*: anything else; above all other rows, and exceptions that are not of our tree.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from ratchet import UPDATING

from alluvium.errors import AlluviumError, UnsupportedFeature
from conformance.cases import Case
from conformance.lanes import Lane, Missing
from conformance.rows import difference

#: Lanes that are not asked for the state of a table: it is the same code as `open`'s.
WITH_SPARK = ("spark", "connect")
OUTCOMES = ("right", "weak", "refused", "wrong")
#: Of a case with many versions or predicates, a lane with Spark is asked every so many, the first, the last and all
#: errors: what tells versions apart is the log, which `open` is asked about in full.
EVERY = 1 if UPDATING or os.environ.get("ALLUVIUM_EXPECTATIONS") == "all" else 4


@dataclass(frozen=True)
class Verdict:
    """How one expectation went; `name` is stable, since the ratchet keeps it."""

    lane: str
    case: str
    kind: str
    entry: str
    outcome: str
    note: str = ""

    @property
    def name(self) -> str:
        return " ".join(part for part in (self.lane, self.case, self.kind, self.entry) if part)


Check = Callable[[], "tuple[str, str]"]
RIGHT = ("right", "")


def judge(case: Case, lane: Lane) -> Iterator[Verdict]:
    """Every expectation of the case that the lane can be asked, judged; none of a disputed case."""
    if case.disputed:
        return
    for kind, entry, expected_error, check in _expectations(case, lane):
        outcome, note = _outcome(check, expected_error, lane)
        yield Verdict(lane.name, case.name, kind, entry, outcome, note)


def _outcome(check: Check, expected_error: str | None, lane: Lane) -> tuple[str, str]:
    try:
        outcome, note = check()
    except Missing as missing:
        return "refused", f"no {missing} yet"
    except AlluviumError as error:
        if expected_error is not None:
            return RIGHT
        refused = isinstance(error, UnsupportedFeature)
        return ("refused" if refused else "wrong"), f"{type(error).__name__} {error.code}: {error}"
    except Exception as error:  # noqa: BLE001 - whatever leaks out of the library is the finding
        return "wrong", f"foreign {type(error).__name__}: {str(error)[:500]}"
    if expected_error is not None:
        return "wrong", f"rows came back instead of {expected_error}"
    return outcome, note


def _asked(entries: Sequence[dict[str, Any]], lane: Lane) -> Iterator[tuple[int, dict[str, Any]]]:
    """The entries that a lane is asked about, with their places."""
    every, last = EVERY if lane.name in WITH_SPARK else 1, len(entries) - 1
    for place, entry in enumerate(entries):
        if place % every == 0 or place == last or entry.get("error"):
            yield place, entry


def _expectations(case: Case, lane: Lane) -> Iterator[tuple[str, str, str | None, Check]]:
    reads = [read for read in case.entries("read") if not (read.get("metadata_only") and lane.name in WITH_SPARK)]
    for _, read in _asked(reads, lane):
        yield "read", _moment(read), read.get("error"), lambda read=read: _check_read(case, lane, read)
    for _, cdf in _asked(case.entries("cdf"), lane):
        end = "latest" if cdf["end"] is None else cdf["end"]
        yield "cdf", f"{cdf['start']}..{end}", cdf.get("error"), lambda cdf=cdf: _check_changes(case, lane, cdf)
    for i, predicate in _asked(case.entries("predicates"), lane):
        yield "predicate", str(i), None, lambda predicate=predicate: _check_predicate(case, lane, predicate)
    for key, expected in (case.document.get("snapshot") or {}).items():
        if lane.name not in WITH_SPARK:
            yield key, "", None, lambda key=key, expected=expected: _check_snapshot(case, lane, key, expected)
    if case.document.get("row_ids"):
        yield "row_ids", "", None, lambda: _check_row_ids(case, lane)
    if case.document.get("schema"):
        yield "schema", "", None, lambda: _check_schema(case, lane)


def _at(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in ("version", "timestamp") if entry.get(key) is not None}


def _moment(read: dict[str, Any]) -> str:
    at = _at(read)
    return str(at.get("timestamp", f"v{at['version']}" if "version" in at else "latest"))


def _check_read(case: Case, lane: Lane, read: dict[str, Any]) -> tuple[str, str]:
    at = _at(read)
    problem = _state_problem(lane, read) if read.get("error") is None else None
    if problem is not None:
        return "wrong", problem
    if read.get("metadata_only"):
        return RIGHT
    if read.get("expected") is None and read.get("num_rows") is not None:
        count = lane.count(at)
        return RIGHT if count == read["num_rows"] else ("wrong", f"{count} rows instead of {read['num_rows']}")
    actual = lane.rows(at)
    return RIGHT if read.get("error") is not None else _compare(case, read["expected"], actual)


def _state_problem(lane: Lane, read: dict[str, Any]) -> str | None:
    state = lane.state(_at(read))
    if state is None:
        return None
    if read.get("resolved_version") not in (None, state.version):
        return f"version {state.version} instead of {read['resolved_version']}"
    paths = state.paths()
    if read.get("num_files") not in (None, len(paths)):
        return f"{len(paths)} files instead of {read['num_files']}"
    if read.get("files") is not None and sorted(paths) != sorted(read["files"]):
        return f"files {sorted(paths)[:5]} instead of {sorted(read['files'])[:5]}"
    return None


def _compare(case: Case, expected_file: str, actual: pa.Table, ignored: tuple[str, ...] = ()) -> tuple[str, str]:
    expected = pq.ParquetFile(case.folder / expected_file).read()
    sides = [side.drop_columns([name for name in ignored if name in side.column_names]) for side in (expected, actual)]
    problem = difference(*sides)
    return RIGHT if problem is None else ("wrong", problem)


def _check_changes(case: Case, lane: Lane, cdf: dict[str, Any]) -> tuple[str, str]:
    actual = lane.changes(cdf["start"], cdf["end"])
    if cdf.get("error") is not None:
        return RIGHT
    return _compare(case, cdf["expected"], actual, tuple(cdf.get("ignore_columns", ())))


def _check_predicate(case: Case, lane: Lane, predicate: dict[str, Any]) -> tuple[str, str]:
    text = predicate["predicate"]
    rows, kept = lane.matching(_at(predicate), text)
    if kept is not None and kept < predicate["files_with_matches"]:
        return "wrong", f"{text}: {kept} files kept, {predicate['files_with_matches']} hold matching rows"
    if rows != predicate["num_rows"]:
        return "wrong", f"{text}: {rows} rows instead of {predicate['num_rows']}"
    if kept is not None and kept > predicate["files_after_skipping"]:
        return "weak", f"{text}: {kept} files kept, the reference keeps {predicate['files_after_skipping']}"
    return RIGHT


def _check_snapshot(case: Case, lane: Lane, key: str, expected: dict[str, Any]) -> tuple[str, str]:
    actual = lane.snapshot(key)
    if key == "domains" and not case.name.startswith("ds44-"):
        # only the cases of delta-spark 4.4 list the domains of the system
        actual = {name: value for name, value in actual.items() if not name.startswith("delta.")}
    same = _parsed(actual) == _parsed(expected)
    return RIGHT if same else ("wrong", f"{actual} instead of {expected}")


def _parsed(values: dict[str, Any]) -> dict[str, Any]:
    """Configurations of domains are JSON texts, of which the values count."""
    return {name: json.loads(v) if isinstance(v, str) and v[:1] in "{[" else v for name, v in values.items()}


def _check_row_ids(case: Case, lane: Lane) -> tuple[str, str]:
    document = case.document["row_ids"]
    inner = {"row_id": "_row_id", "row_commit_version": "_row_commit_version"}
    try:
        actual = lane.row_ids()
    except AlluviumError as error:
        # before row tracking is known, its columns are unknown names
        return "refused", str(error)
    columns = [inner.get(name, name) for name in document["columns"]]
    rows = list(zip(*(actual.column(name).to_pylist() for name in columns), strict=True))
    same = sorted(rows, key=repr) == sorted(map(tuple, document["rows"]), key=repr)
    return RIGHT if same else ("wrong", f"row ids {sorted(rows, key=repr)[:5]}")


def _check_schema(case: Case, lane: Lane) -> tuple[str, str]:
    expected = [tuple(column) for column in case.document["schema"]]
    actual = lane.schema()
    if actual == expected:
        return RIGHT
    extra = [column for column in actual if column not in expected][:5]
    missing = [column for column in expected if column not in actual][:5]
    return "wrong", f"columns {extra} instead of {missing} ({len(actual)} of {len(expected)})"
