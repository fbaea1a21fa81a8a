"""Rows that one task puts in order piece by piece stand as if it had sorted them all at once."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import alluvium
from alluvium import DeltaTable
from alluvium.commands.optimize import bins

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def order_in_file(spark, path: str, verb) -> list:
    verb(DeltaTable.forPath(spark, path))
    (name,) = alluvium.open(path).files()["path"].to_pylist()
    return list(zip(*pq.read_table(f"{path}/{name}").to_pydict().values(), strict=True))


def make(spark, path: str, *clustered_by: str) -> None:
    made = DeltaTable.create(spark).location(path).addColumn("id", "long").addColumn("part", "string")
    (made.clusterBy(*clustered_by) if clustered_by else made).execute()
    # Every second id, none in order; some null, which come first.
    rows = spark.range(0, 600, 1, 5).selectExpr("if(id < 3, null, (id * 467) % 1201) as id", "concat('p', id) as part")
    alluvium.write(rows, path, mode="append")


@pytest.mark.parametrize("sorted_bytes", [1, 2000, 1 << 40], ids=["many pieces", "some", "one"])
def test_rows_stand_in_order_from_piece_to_piece(spark, tmp_path, monkeypatch, sorted_bytes):
    monkeypatch.setattr(bins, "_SORTED_BYTES", sorted_bytes)
    path = str(tmp_path / "t")
    make(spark, path)
    found = order_in_file(spark, path, lambda table: table.optimize().executeZOrderBy("id"))
    ids = [row[0] for row in found]
    assert ids == sorted(ids, key=lambda v: -1 if v is None else v)
    assert sorted(row[1] for row in found) == sorted(f"p{n}" for n in range(600))


def test_a_curve_through_several_columns_goes_on_from_piece_to_piece(spark, tmp_path, monkeypatch):
    orders = []
    for number, sorted_bytes in enumerate((1, 1 << 40)):
        monkeypatch.setattr(bins, "_SORTED_BYTES", sorted_bytes)
        # Even small cubes are put in order where somebody asks for the measure.
        path = str(tmp_path / f"{number}")
        make(spark, path, "id", "part")
        orders.append(order_in_file(spark, path, lambda t: t.optimize().executeCompaction(measure=True)))
    assert len(set(orders[0])) == 600 and orders[0] == orders[1]
