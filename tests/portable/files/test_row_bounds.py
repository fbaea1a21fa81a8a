"""Rows that a predicate may leave, by row groups and by pages: never fewer than it does, and no page that is ruled out."""

from __future__ import annotations

import datetime as dt
import decimal
import io
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.expr.evaluate import evaluate
from alluvium.expr.sql.parse import parse_predicate
from alluvium.portable.files import page_rows
from alluvium.portable.files.page_rows import PageRows
from alluvium.portable.files.row_bounds import FileColumn, Lessons, RowBounds
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType, Decimal, Field, Struct

#: Values in order, and predicates over the column.
KINDS: dict[str, tuple[DataType, list[Any], list[str]]] = {
    "i": (t.INTEGER, [-(2**31), -1, 0, 1, 5, 2**31 - 1], ["i = 1", "i < 0", "i >= 5", "i IN (0, 5)", "i IS NULL", "i IS NOT NULL", "i != 1"]),
    "l": (t.LONG, [-(2**63), 0, 7, 2**63 - 1], ["l = 7", "l > 7", "l BETWEEN 1 AND 8"]),
    "d": (t.DOUBLE, [-1.5, -0.0, 0.0, 2.5, float("nan")], ["d = 0", "d > 1", "d < -1", "isnan(d)", "NOT (d > 1)"]),
    "s": (t.STRING, ["", "a", "ab", "b", "é"], ["s = 'ab'", "s > 'a'", "s LIKE 'a%'", "s NOT LIKE 'a%'", "s IS NULL"]),
    "b": (t.BOOLEAN, [False, True], ["b", "NOT b", "b IS NULL"]),
    "y": (t.DATE, [dt.date(1969, 1, 1), dt.date(2024, 1, 1)], ["y = DATE'2024-01-01'", "y < DATE'1970-01-01'"]),
    "e": (Decimal(9, 2), [decimal.Decimal("-1.50"), decimal.Decimal("1.25")], ["e > 1"]),
    "t": (t.TIMESTAMP_NTZ, [dt.datetime(1969, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 7)], ["t > TIMESTAMP_NTZ'2024-01-01 00:00:00'"]),
}  # fmt: skip
SCHEMA = Struct(tuple(Field(name, kind) for name, (kind, _, _) in KINDS.items()))
PREDICATES = [text for _, _, texts in KINDS.values() for text in texts]
COLUMNS = {
    name: st.one_of(st.none(), st.sampled_from(values)) if values else st.none()
    for name, (_, values, _) in KINDS.items()
}


@pytest.fixture(autouse=True)
def _cheap_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """These files are small."""
    monkeypatch.setattr(page_rows, "_NEAR_BYTES", 1)
    monkeypatch.setattr(page_rows, "_FAR_BYTES", 1)


def opened(
    table: pa.Table, text: str, lessons: Lessons, constants: dict[str, Any] | None = None, **how: Any
) -> RowBounds:
    """A file of row groups of eight rows, with pages of two."""
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=8, data_page_size=1, write_batch_size=2, use_dictionary=False, **how)
    source = pa.BufferReader(out.getvalue())
    metadata = pq.read_metadata(pa.BufferReader(out.getvalue()))
    where = parse_predicate(text, SCHEMA)
    columns = {
        name: FileColumn(f"f_{name}", kind) for name, (kind, _, _) in KINDS.items() if name not in (constants or {})
    }
    known = {name: pa.scalar(value, to_arrow(KINDS[name][0])) for name, value in (constants or {}).items()}
    return RowBounds(metadata, PageRows(source, metadata, "us"), where, columns, known, "UTC", lessons)


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table(
        {f"f_{n}": pa.array([row.get(n) for row in rows], to_arrow(kind)) for n, (kind, _, _) in KINDS.items()}
    )


def matching(table: pa.Table, text: str) -> list[int]:
    bare = table.rename_columns([name.removeprefix("f_") for name in table.column_names])
    found = pc.fill_null(evaluate(parse_predicate(text, SCHEMA), bare), False).to_pylist()
    return [n for n, hit in enumerate(found) if hit]


@pytest.mark.long
@settings(max_examples=30, derandomize=True)
@given(
    st.lists(st.fixed_dictionaries(COLUMNS), min_size=1, max_size=20), st.sampled_from(PREDICATES), st.sampled_from(PREDICATES),
    st.sampled_from(["AND", "OR"]), st.booleans(), st.sampled_from([None, *KINDS]),
)  # fmt: skip
def test_no_row_is_lost(
    rows: list[dict[str, Any]], one: str, other: str, joined: str, indexed: bool, sorted_by: str | None
) -> None:
    text = f"({one}) {joined} ({other})"
    table = table_of(rows)
    if sorted_by is not None:
        table = table.sort_by(f"f_{sorted_by}")
    bounds = opened(table, text, Lessons(), write_page_index=indexed)
    wanted = matching(table, text)
    for group in range(bounds.metadata.num_row_groups):
        found = bounds.candidates(group)
        here = {n - 8 * group for n in wanted if 8 * group <= n < 8 * group + 8}
        assert found is None or here <= set(found.tolist())
        assert found is None or found.tolist() == sorted(set(found.tolist()))
        assert found is None or all(0 <= n < bounds.metadata.row_group(group).num_rows for n in found.tolist())


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("i < 0", [None, [], []]),
        ("i = 9", [[], [0, 1], []]),
        ("i IN (3, 20)", [[2, 3], [], [4, 5]]),
        ("i >= 7", [[6, 7], None, None]),
        ("i > 22", [[], [], [6, 7]]),
        ("i != 5", [None, None, None]),
        ("i IS NULL", [[], [], []]),
        ("i IS NOT NULL", [None, None, None]),
        ("s IS NULL", [None, None, None]),
        ("s IS NOT NULL", [[], [], []]),
        ("i = 9 AND l = 5", [[], [], []]),
        ("i = 9 OR l = 5", [[4, 5], [0, 1], []]),
        ("i + 1 = 10", [[], [0, 1], []]),
        ("i < 9 AND i > 6", [[6, 7], [0, 1], []]),
        ("10 / (i - 9) > 1", [None, None, None]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("indexed", [False, True])
def test_pages_that_are_ruled_out(text: str, groups: list[list[int] | None], indexed: bool) -> None:
    """Numbers from 0 to 23 in order, in pages of two; `i < 0` alone meets none, which no page is asked for."""
    table = table_of([{"i": n, "l": n} for n in range(24)])
    if text == "i < 0":
        groups = [[], [], []]
    bounds = opened(table, text, Lessons(), write_page_index=indexed)
    found = [bounds.candidates(group) for group in range(3)]
    assert [None if one is None else one.tolist() for one in found] == groups


def test_where_pages_leave_nothing_out_they_are_not_asked_for_ever() -> None:
    table = table_of([{"i": n % 2} for n in range(48)])
    lessons = Lessons()
    bounds = opened(table, "i = 1", lessons, write_page_index=True)
    for group in range(3):
        assert not lessons.spares_pages
        assert bounds.candidates(group) is None and lessons.misses == group + 1
    assert lessons.spares_pages
    assert bounds.candidates(3) is None and lessons.misses == 3
    ordered = opened(table_of([{"i": n} for n in range(8)]), "i = 1", lessons, write_page_index=True)
    assert ordered.candidates(0) is None
    lessons.misses = 2
    found = ordered.candidates(0)
    assert found is not None and (found.tolist(), lessons.misses) == ([0, 1], 0)


def test_columns_that_are_one_value_in_the_whole_file() -> None:
    table = table_of([{"i": n} for n in range(8)])
    for value, wanted in ((7, [4, 5]), (8, []), (None, [])):
        found = opened(table, "l = 7 AND i = 5", Lessons(), {"l": value}, write_page_index=True).candidates(0)
        assert found is not None and found.tolist() == wanted


def test_times_finer_than_microseconds_have_no_bounds_here() -> None:
    table = pa.table({"f_t": pa.array([1, 2_000_000_000], pa.timestamp("ns"))})
    assert opened(table, "t > TIMESTAMP_NTZ'2024-01-01 00:00:00'", Lessons()).candidates(0) is None


def test_no_statistics_leave_everything() -> None:
    table = table_of([{"i": n} for n in range(8)])
    assert opened(table, "i = 100", Lessons(), write_statistics=False).candidates(0) is None
