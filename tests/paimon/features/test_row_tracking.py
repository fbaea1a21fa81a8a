"""The ids that rows get when their files are committed: one after the other, none twice."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.paimon.features.row_tracking import is_tracked, with_row_ids
from alluvium.paimon.terms.spec import ENTRIES


def entries(counts: list[int]) -> pa.Table:
    rows = [
        {"file_name": f"f{n}", "row_count": count, "min_sequence_number": 0, "max_sequence_number": 0}
        for n, count in enumerate(counts)
    ]
    columns = {f.name: pa.array([row.get(f.name) for row in rows], f.type) for f in ENTRIES}
    return pa.table(columns, schema=pa.schema([f.with_nullable(True) for f in ENTRIES]))


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.integers(0, 1 << 40), max_size=6), st.integers(0, 1 << 40), st.integers(1, 1 << 40))
def test_ids_follow_each_other(counts: list[int], first: int, snapshot: int) -> None:
    before = entries(counts)
    made, following = with_row_ids(before, snapshot, first)
    assert made["first_row_id"].to_pylist() == list(itertools.accumulate([first, *counts]))[:-1]
    assert following == first + sum(counts)
    for name in ("min_sequence_number", "max_sequence_number"):
        assert made[name].to_pylist() == [snapshot] * len(counts)
    others = [
        name
        for name in before.column_names
        if name not in ("first_row_id", "min_sequence_number", "max_sequence_number")
    ]
    assert made.select(others).equals(before.select(others)) and made.schema == before.schema


def test_files_that_store_ids_get_none() -> None:
    """Nor do files of columns of rows that are there. What only came into another file keeps its number."""
    before = entries([2, 3, 4, 5, 6])
    stored = [["k", "_ROW_ID", "_SEQUENCE_NUMBER"]] * 3
    columns = {
        "write_cols": [None, *stored, ["k"]],
        "first_row_id": [None, None, None, None, 7],
        "min_sequence_number": [0, 0, 3, 3, 0],
        "max_sequence_number": [1, 0, 0, 5, 5],
    }
    for name, values in columns.items():
        place = before.schema.get_field_index(name)
        before = before.set_column(place, before.schema.field(place), pa.array(values, before.schema.field(place).type))
    made, following = with_row_ids(before, 9, 100)
    assert made["first_row_id"].to_pylist() == [100, None, None, None, 7] and following == 102
    assert made["min_sequence_number"].to_pylist() == [9, 9, 3, 3, 9]
    assert made["max_sequence_number"].to_pylist() == [9, 9, 9, 5, 9]


@pytest.mark.parametrize(
    ("options", "tracked"),
    [
        ({}, False),
        ({"row-tracking.enabled": "true"}, True),
        ({"data-evolution.enabled": "true"}, True),
        ({"row-tracking.enabled": "false", "data-evolution.enabled": "false"}, False),
    ],
)
def test_which_tables_track_rows(options: dict[str, str], tracked: bool) -> None:
    assert is_tracked(options) == tracked
