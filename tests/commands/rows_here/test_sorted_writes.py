"""Rows written in an order, beside Python's `sorted`; also rows in no batch at all."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

import alluvium

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("at", pa.int64())])


def _rows(seed: int, count: int) -> pa.Table:
    random = Random(seed)
    rows = [
        {"k": random.choice([None, *range(4)]), "s": random.choice([None, "", "a", "b", "é"]), "at": at}
        for at in range(count)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def _key(row: dict[str, object], names: tuple[str, ...]) -> list[tuple[bool, object]]:
    return [(row[name] is not None, row[name] if row[name] is not None else 0) for name in names]


@pytest.mark.parametrize("names", [("k",), ("s",), ("k", "s"), ("s", "k")])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_rows_come_in_the_order_that_is_asked(names: tuple[str, ...], size: int) -> None:
    rows = _rows(len(names) + size, 40)
    url = f"memory://sorted-{'-'.join(names)}-{size}/t"
    batches = pa.RecordBatchReader.from_batches(SCHEMA, rows.to_batches(max_chunksize=size))
    alluvium.write(batches, url, sort_by=list(names))
    found = alluvium.open(url).to_arrow().to_pylist()
    assert [_key(row, names) for row in found] == sorted(_key(row, names) for row in rows.to_pylist())
    assert sorted(row["at"] for row in found) == list(range(40))


@pytest.mark.parametrize("sort_by", [None, ["k"]])
@pytest.mark.parametrize("batches", [[], [pa.RecordBatch.from_pylist([], SCHEMA)]])
def test_no_rows_make_a_table_without_any(batches: list[pa.RecordBatch], sort_by: list[str] | None) -> None:
    url = f"memory://empty-{len(batches)}-{'sorted' if sort_by else 'plain'}/t"
    alluvium.write(pa.RecordBatchReader.from_batches(SCHEMA, batches), url, sort_by=sort_by)
    table = alluvium.open(url)
    assert table.version == 0
    assert table.to_arrow().schema.names == SCHEMA.names
    assert table.to_arrow().num_rows == 0
