"""Rows that a predicate may leave, by row groups and by pages: never fewer than it does, and no page that is ruled out."""

from __future__ import annotations

import datetime as dt
import decimal
import io
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.expr.evaluate import evaluate
from alluvium.expr.sql.parse import parse_predicate
from alluvium.portable.files import page_rows, row_bounds
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


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_row_groups_are_ruled_out_by_their_bounds_alone(name: str, indexed: bool) -> None:
    """One of the lowest value, one of nulls alone, one of the highest with a null, and one of both; no page is asked."""
    _, values, _ = KINDS[name]
    low, high = values[0], next(v for v in reversed(values) if v == v)
    groups = [[low] * 8, [None] * 8, [high] * 7 + [None], [low] * 4 + [high] * 4]
    table = table_of([{name: value, "l" if name != "l" else "i": 5} for group in groups for value in group])
    shown = pa.scalar(high, to_arrow(KINDS[name][0])).cast(pa.string()).as_py() if name not in "by" else None
    equal = {"b": "b", "y": f"y = DATE'{high}'", "t": f"t = TIMESTAMP_NTZ'{shown}'", "s": f"s = '{shown}'"}
    for text, wanted in (
        (equal.get(name, f"{name} = {shown}"), [[], [], None, None]),
        (f"{name} IS NULL", [[], None, None, []]),
        (f"{name} IS NOT NULL", [None, [], None, None]),
    ):
        bounds = opened(table, text, Lessons(misses=3), write_page_index=indexed)
        found = [bounds.candidates(group) for group in range(4)]
        assert [None if one is None else one.tolist() for one in found] == wanted, text
        assert bounds.lessons.misses == 3


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("i IS NULL", [2, 3, 6, 7]), ("i IS NOT NULL", [0, 1, 2, 3, 4, 5]), ("i <=> null", [2, 3, 6, 7]), ("i = 2", [2, 3]), ("l IN (0, 7)", [0, 1, 6, 7]),
        ("NOT (i < 2)", [2, 3, 4, 5]), ("i IS NULL AND l > 3", [6, 7]), ("i IS NULL OR l = 5", [2, 3, 4, 5, 6, 7]),
    ],
)  # fmt: skip
def test_pages_with_nulls(text: str, wanted: list[int], indexed: bool) -> None:
    """Of a page of nulls and others nobody knows which rows are null."""
    table = table_of([{"i": v, "l": n} for n, v in enumerate([0, 1, 2, None, 3, 4, None, None])])
    found = opened(table, text, Lessons(), write_page_index=indexed).candidates(0)
    assert found is not None and found.tolist() == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("i IS NULL", range(8, 16)), ("i IS NOT NULL", range(8)), ("i IS NULL AND l >= 13", range(12, 16)), ("l = 9", [8, 9]), ("i = 5", range(4, 8)),
        ("i = 5 AND l = 5", [4, 5]), ("l < 3 OR i = 5", range(8)), ("i > 3 AND l < 7", [4, 5, 6, 7]), ("i = 1 OR i IS NULL AND l = 15", [0, 1, 2, 3, 14, 15]),
        ("l = 9 AND i IS NOT NULL", []),
    ],
)  # fmt: skip
def test_pages_of_several_lengths(text: str, wanted: Iterable[int]) -> None:
    """Pages of two rows and of four, and one of eight nulls: what is known of a page is known of each part of it."""
    rows = [{"l": n, "i": n if n < 8 else None} for n in range(16)]
    kinds = {"f_l": pa.int64(), "f_i": pa.int32()}
    out = io.BytesIO()
    table = pa.table({name: pa.array([row[name[2:]] for row in rows], kind) for name, kind in kinds.items()})
    pq.write_table(table, out, data_page_size=16, write_batch_size=1, use_dictionary=False, write_page_index=True)
    source, metadata = pa.BufferReader(out.getvalue()), pq.read_metadata(pa.BufferReader(out.getvalue()))
    pages = PageRows(source, metadata, "us")
    found = [pages.bounds(0, name) for name in kinds]
    assert [one and one[0].first_rows.tolist() for one in found] == [list(range(0, 16, 2)), [0, 4, 8]]
    columns = {"l": FileColumn("f_l", t.LONG), "i": FileColumn("f_i", t.INTEGER)}
    made = RowBounds(metadata, pages, parse_predicate(text, SCHEMA), columns, {}, "UTC", Lessons()).candidates(0)
    assert made is not None and made.tolist() == list(wanted)


def test_rows_that_are_too_many_to_tell_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of([{"i": n} for n in range(8)])
    for most, wanted in ((4, [0, 1, 2, 3]), (3, None)):
        monkeypatch.setattr(row_bounds, "_MOST_CANDIDATES", most)
        lessons = Lessons(misses=1)
        found = opened(table, "i < 4", lessons, write_page_index=True).candidates(0)
        assert (None if found is None else found.tolist()) == wanted
        # Pages were worth asking all the same.
        assert lessons.misses == 0


def test_a_column_that_the_file_lacks_or_that_is_cast_says_nothing() -> None:
    table = table_of([{"i": n, "l": n, "s": "x"} for n in range(8)])
    out = io.BytesIO()
    pq.write_table(table, out, data_page_size=1, write_batch_size=2, use_dictionary=False)
    metadata = pq.read_metadata(pa.BufferReader(out.getvalue()))
    pages, where = PageRows(pa.BufferReader(out.getvalue()), metadata, "us"), parse_predicate("i = 5 AND l = 9", SCHEMA)

    def found(**columns: FileColumn) -> list[int] | None:
        one = RowBounds(metadata, pages, where, columns, {}, "UTC", Lessons()).candidates(0)
        return None if one is None else one.tolist()

    i, gone = FileColumn("f_i", t.INTEGER), FileColumn("gone", t.LONG)
    assert found(i=i, l=gone) == found(i=i) == [4, 5]
    assert found(l=gone) is found() is None
    assert found(l=FileColumn("f_l", t.LONG)) == []
    assert found(l=FileColumn("f_s", t.LONG), i=i) == [4, 5]


def test_lessons() -> None:
    assert [Lessons(misses).spares_pages for misses in range(5)] == [False, False, False, True, True]
    assert Lessons().share == 0.0 and not Lessons().spares_pages
