"""Rows that a condition leaves tell where they were: however many they are, and whatever is read of them late."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

import alluvium

ROWS = 5000
TRACKED = {"delta.enableRowTracking": "true"}


@pytest.fixture(scope="module")
def url() -> str:
    place = f"memory://{uuid.uuid4().hex}/t"
    data = pa.table({"id": range(ROWS), "v": [n % 10 for n in range(ROWS)], "t": [f"text {n}" for n in range(ROWS)]})
    alluvium.write(data, place, **TRACKED)
    return place


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("v < 10", range(ROWS)), ("v > 0", [n for n in range(ROWS) if n % 10]), ("v = 3", range(3, ROWS, 10)), ("id = 4321", [4321]), ("id < 7", range(7)), ("v > 20", []),
        ("id >= 2500", range(2500, ROWS)), ("v > 4 and t like 'text 1%'", [n for n in range(ROWS) if n % 10 > 4 and str(n).startswith("1")]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("columns", [["id", "_row_id"], ["_row_id", "v"], ["t", "_row_id"], ["_row_id"]], ids=str)
def test_rows_keep_their_ids(url: str, where: str, kept: list[int], columns: list[str]) -> None:
    found = alluvium.open(url).to_arrow(where=where, columns=columns)
    assert sorted(found["_row_id"].to_pylist()) == list(kept)
    for name, of in (("id", lambda n: n), ("v", lambda n: n % 10), ("t", lambda n: f"text {n}")):
        if name in columns:
            assert found[name].to_pylist() == [of(n) for n in found["_row_id"].to_pylist()]
