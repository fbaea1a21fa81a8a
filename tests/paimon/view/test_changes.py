"""States and changes of random histories, beside a dict of rows; and which snapshots a range of changes names."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paimon_tables import HandWritten

import alluvium
from alluvium.errors import AlluviumError, InvalidRequest, NotFound
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.view.changes import PLACES, change_mode, difference, kind_names, packed, resolve_range
from alluvium.storage.open import open_store

Row = dict[str, Any]
SCHEMA = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64()), ("s", pa.string())])
ROWS = st.tuples(
    st.one_of(st.none(), st.integers(0, 3)), st.one_of(st.none(), st.sampled_from(["", "a", "b"])), st.booleans()
)
COMMITS = st.lists(st.dictionaries(st.integers(0, 6), ROWS, min_size=1, max_size=4), min_size=1, max_size=6)
WHERE: list[tuple[str, Any]] = [
    ("k < 3", lambda r: r["k"] < 3),
    ("k = 5", lambda r: r["k"] == 5),
    ("v >= 2", lambda r: r["v"] is not None and r["v"] >= 2),
    ("s IS NULL OR k IN (0, 6)", lambda r: r["s"] is None or r["k"] in (0, 6)),
    ("NOT (v = 1)", lambda r: r["v"] is not None and r["v"] != 1),
]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp())
    yield place
    shutil.rmtree(place)


def merged(state: dict[int, Row], key: int, row: Row, deletes: bool, engine: str) -> None:
    if engine == "partial-update":
        known = state.get(key, {"k": key, "v": None, "s": None})
        state[key] = {name: known[name] if value is None else value for name, value in row.items()}
    elif engine == "aggregation":
        known = state.get(key, {"k": key, "v": None, "s": None})
        total = [x for x in (known["v"], row["v"]) if x is not None]
        state[key] = {
            "k": key,
            "v": sum(total) if total else None,
            "s": row["s"] if row["s"] is not None else known["s"],
        }
    elif deletes:
        state.pop(key, None)
    else:
        state[key] = row


OPTIONS = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {
        "merge-engine": "aggregation", "fields.v.aggregate-function": "sum",
        "fields.s.aggregate-function": "last_non_null_value",
    },
}  # fmt: skip


def shown(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: repr(sorted(row.items(), key=lambda pair: pair[0])))


@pytest.mark.long
@settings(max_examples=12, derandomize=True)
@given(commits=COMMITS, engine=st.sampled_from(list(OPTIONS)), data=st.data())
def test_every_state_and_what_came_between(folder: Path, commits: list[Any], engine: str, data: st.DataObject) -> None:
    place = Path(tempfile.mkdtemp(dir=folder)) / "t"
    table = HandWritten(place, SCHEMA, ["k"], **OPTIONS[engine])
    states: list[dict[int, Row]] = [{}]
    told: list[list[Row]] = [[]]
    for commit in commits:
        state, rows, kinds = dict(states[-1]), [], []
        for key in sorted(commit):
            v, s, deletes = commit[key]
            deletes = deletes and engine == "deduplicate"
            rows.append({"k": key, "v": v, "s": s})
            kinds.append("-D" if deletes else "+I")
            merged(state, key, rows[-1], deletes, engine)
        table.commit(rows, kinds)
        states.append(state)
        told.append([{"_row_kind": kind, **row} for kind, row in zip(kinds, rows, strict=True)])
    opened = alluvium.open(str(place))
    for version, state in enumerate(states[1:], start=1):
        view = alluvium.open(str(place), version=version)
        assert view.to_arrow().sort_by("k").to_pylist() == [state[key] for key in sorted(state)]
    last = states[-1]
    for text, holds in WHERE:
        wanted = [row for row in last.values() if holds(row)]
        assert opened.to_arrow(where=text).sort_by("k").to_pylist() == sorted(wanted, key=lambda r: r["k"])
    start = data.draw(st.integers(0, len(commits)))
    end = data.draw(st.integers(start, len(commits)))
    delta = opened.changes(start, end, mode="delta").to_pylist()
    assert shown(delta) == shown([row for rows in told[start + 1 : end + 1] for row in rows])
    if start:
        found = opened.changes(start, end, mode="diff").drop_columns(["_row_kind"]).to_pylist()
        others = [row for key, row in states[end].items() if states[start].get(key) != row]
        assert shown(found) == shown(others)


#: Values that a join must tell apart, or must not.
CELLS = st.tuples(
    st.one_of(st.none(), st.integers(0, 2)),
    st.one_of(st.none(), st.sampled_from(["", "0", "=", "\x00"])),
    st.one_of(st.none(), st.sampled_from([0.0, 1.5, float("inf")])),
    st.one_of(st.none(), st.sampled_from([b"", b"0", b"\x00"])),
    st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 1)), max_size=2)),
    st.one_of(st.none(), st.booleans()),
)
CELL_TYPES = (pa.int64(), pa.string(), pa.float64(), pa.binary(), pa.list_(pa.int64()), pa.bool_())
KEYED = st.dictionaries(st.integers(0, 5), st.tuples(st.sampled_from([0, 2]), CELLS), max_size=6)


def cells(rows: dict[int, Any]) -> pa.Table:
    columns = {"k": pa.array(list(rows), pa.int64()), "_VALUE_KIND": pa.array([r[0] for r in rows.values()], pa.int8())}
    for n, kind in enumerate(CELL_TYPES):
        columns[f"c{n}"] = pa.array([r[1][n] for r in rows.values()], kind)
    return pa.table(columns)


@settings(max_examples=50, derandomize=True)
@given(KEYED, KEYED)
def test_rows_that_are_new_or_other(before: dict[int, Any], after: dict[int, Any]) -> None:
    found = difference(cells(before), cells(after))
    # As Java's `valueAndRowKindEquals`, which asks whether both are there, and not how they came.
    wanted = {key: row for key, row in after.items() if key not in before or before[key][1] != row[1]}
    assert found.to_pylist() == cells(wanted).to_pylist()
    assert found.schema == cells(after).schema


def test_names_of_kinds() -> None:
    kinds = pa.chunked_array([pa.array([0, 3], pa.int8()), pa.array([2, 1], pa.int8())])
    assert kind_names(kinds).to_pylist() == ["+I", "-D", "+U", "-U"]
    nothing = kind_names(pa.chunked_array([], pa.int8()))
    assert nothing.type == pa.string() and len(nothing) == 0


@pytest.fixture(scope="module")
def history(folder: Path) -> str:
    """Five snapshots a minute apart, of which the first has expired; `two` and `four` are tagged."""
    table = HandWritten(folder / "history", SCHEMA, ["k"])
    for n in range(1, 6):
        table.commit([{"k": n, "v": n, "s": None}], time_ms=n * 60_000)
    table.tag("two", 2)
    table.tag("four", 4)
    table.tag("3", 5)
    table.expire(1)
    return str(folder / "history")


def at(minutes: float) -> At:
    return At(timestamp_ms=int(minutes * 60_000))


@pytest.mark.parametrize(
    ("start", "end", "mode", "wanted"),
    [
        (2, None, "auto", ("delta", 2, 5)),
        (0, 3, "delta", ("delta", 0, 3)),
        (3, 3, "changelog", ("changelog", 3, 3)),
        ("2", "4", "diff", ("diff", 2, 4)),
        ("two", "four", "auto", ("diff", 2, 4)),
        ("two", "four", "delta", ("delta", 2, 4)),
        ("two", 4, "auto", ("delta", 2, 4)),
        (2, "four", "auto", ("delta", 2, 4)),
        # A tag is what a number stands for, if there is one of this name.
        (" two ", "3", "delta", ("delta", 2, 5)),
        (at(2), at(4.5), "delta", ("delta", 2, 4)),
        (at(3.5), None, "delta", ("delta", 3, 5)),
        # Before the first that is left: everything that is there, but a difference begins with it.
        (at(1), at(2), "delta", ("delta", 1, 2)),
        (at(0), at(3), "changelog", ("changelog", 1, 3)),
        (at(0), at(3), "diff", ("diff", 2, 3)),
        (4, 3, "delta", "invalid-range"),
        ("four", "two", "auto", "invalid-range"),
        (-1, 3, "delta", "invalid-version"),
        (True, 3, "delta", "invalid-version"),
        (2.0, 3, "delta", "invalid-version"),
        (2, [3], "delta", "invalid-version"),
        ("nowhere", 3, "delta", "tag-not-found"),
        (2, at(1), "delta", "no-snapshot-before"),
        (2, 3, "sideways", "invalid-mode"),
    ],
)
def test_the_ends_of_a_range(history: str, start: object, end: object, mode: str, wanted: object) -> None:
    snapshot = load_snapshot(open_store(history), At())
    if isinstance(wanted, str):
        with pytest.raises(AlluviumError) as raised:
            resolve_range(snapshot, start, end, mode)
        assert raised.value.code == wanted
        return
    found = resolve_range(snapshot, start, end, mode)
    assert (found.mode, found.start, found.end) == wanted


def test_a_range_over_what_has_expired(history: str) -> None:
    opened = alluvium.open(history)
    assert opened.changes(1, 3, mode="delta")["k"].to_pylist() == [2, 3]
    with pytest.raises(NotFound) as raised:
        opened.changes(0, 3, mode="delta")
    assert raised.value.code == "snapshot-expired"


def test_a_table_without_snapshots_has_no_ends(tmp_path: Path) -> None:
    HandWritten(tmp_path / "t", SCHEMA, ["k"])
    snapshot = load_snapshot(open_store(str(tmp_path / "t")), At())
    for start, end in ((0, None), (at(3), 0), (0, at(3))):
        with pytest.raises(NotFound) as raised:
            resolve_range(snapshot, start, end, "delta")
        assert raised.value.code in ("snapshot-not-found", "no-snapshot-before")


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
def test_the_mode_that_is_meant(tmp_path: Path, producer: str) -> None:
    table = HandWritten(tmp_path / "t", SCHEMA, ["k"], **{"changelog-producer": producer})
    table.commit([{"k": 1}])
    snapshot = load_snapshot(open_store(str(tmp_path / "t")), At())
    assert change_mode(snapshot, "auto") == ("delta" if producer == "none" else "changelog")
    for mode in ("delta", "changelog", "diff"):
        assert change_mode(snapshot, mode) == mode
    with pytest.raises(InvalidRequest):
        change_mode(snapshot, "AUTO")


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.one_of(st.none(), st.integers(0, 5))), max_size=12))
def test_updates_are_one_row(rows: list[tuple[int, int, int | None]]) -> None:
    """Beside a plain loop over the rows of each file, whatever comes first out of the reader."""
    expected: list[tuple[int, list[int | None], list[list[int | None]]]] = []
    files: dict[int, list[tuple[int, int | None]]] = {}
    for file, kind, value in rows:
        files.setdefault(file, []).append((kind, value))
    for file in sorted(files):
        waiting = files[file]
        while waiting:
            kind, value = waiting.pop(0)
            if kind == 1 and waiting and waiting[0][0] == 2:
                _, after = waiting.pop(0)
                expected.append((2, [value, after], [[value], [after]]))
            else:
                expected.append((kind, [value], [[value]]))
    placed = [
        (kind, value, file, sum(f == file for f, _, _ in rows[:at])) for at, (file, kind, value) in enumerate(rows)
    ]
    columns = list(zip(*placed[::-1], strict=True)) or [()] * 4
    table = pa.table(
        [
            pa.array(columns[0], pa.int8()),
            pa.array(columns[1], pa.int64()),
            pa.array([[value] for value in columns[1]], pa.list_(pa.int64())),
            pa.array(columns[2], pa.int64()),
            pa.array(columns[3], pa.int64()),
        ],
        names=["_VALUE_KIND", "v", "list", *PLACES],
    )
    found = packed(table)
    assert found.column_names == ["_VALUE_KIND", "v", "list"]
    assert [tuple(row.values()) for row in found.to_pylist()] == expected


def test_a_range_of_the_binlog(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", SCHEMA, ["k"])
    table.commit([{"k": 1, "v": 2}, {"k": 2, "v": None}], ["+U", "-D"])
    view = alluvium.open(str(tmp_path / "t"))
    assert view.changes(0, 1, mode="binlog", columns=["v"]).to_pylist() == [
        {"_row_kind": "+U", "v": [2]},
        {"_row_kind": "-D", "v": [None]},
    ]
    with pytest.raises(InvalidRequest) as caught:
        view.changes(0, 1, mode="binlog", where="v = 2")
    assert caught.value.code == "contradicting-options"
