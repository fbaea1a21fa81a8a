"""Merges whose values have been read from the table itself, beside writers who change what they saw."""

from __future__ import annotations

import pytest
from dml_tables import make, rows_of

import alluvium
from alluvium.errors import CommitConflict

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SERIALIZABLE: dict[str, str] = {}
WEAKER = {"delta.isolationLevel": "WriteSerializable"}


def batch(spark, *ids: int):
    return spark.createDataFrame([(i, i % 2, f"n{i}") for i in ids], "id long, p int, v string").coalesce(1)


@pytest.mark.parametrize("clause", ["matched", "new", "alone"])
def test_a_merge_by_a_subquery_has_read_what_that_has_read(spark, tmp_path, meanwhile, clause):
    """The row that came meanwhile meets no row of the source."""
    path = str(tmp_path / "t")
    table = make(spark, path, SERIALIZABLE, rows=2)
    most = "(select concat('max ', max(id)) from own_rows)"

    def merge() -> None:
        alluvium.read(spark, path).createOrReplaceTempView("own_rows")
        building = table.alias("t").merge(batch(spark, 0, 50).alias("s"), "t.id = s.id and t.id < 60")
        clauses = {
            "matched": lambda: building.whenMatchedUpdate(set={"v": most}),
            "new": lambda: building.whenNotMatchedInsert(values={"id": "s.id", "p": "s.p", "v": most}),
            "alone": lambda: building.whenNotMatchedBySourceUpdate("t.id = 1", {"v": most}),
        }
        clauses[clause]().execute()

    meanwhile(lambda: alluvium.write(batch(spark, 101), path, mode="append"))
    with pytest.raises(CommitConflict) as caught:
        merge()
    assert "one of its subqueries has read the table itself" in str(caught.value)
    assert [r.v for r in rows_of(table)] == ["v0", "v1", "n101"]
    merge()
    assert [r.v for r in rows_of(table)] == {
        "matched": ["max 101", "v1", "n101"],
        "new": ["v0", "v1", "max 101", "n101"],
        "alone": ["v0", "max 101", "n101"],
    }[clause]


def test_a_blind_append_may_come_after_it_where_the_table_allows_that(spark, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    table = make(spark, path, WEAKER, rows=2)
    alluvium.read(spark, path).createOrReplaceTempView("own_rows")
    meanwhile(lambda: alluvium.write(batch(spark, 101), path, mode="append"))
    merge = table.alias("t").merge(batch(spark, 0).alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set={"v": "(select concat('max ', max(id)) from own_rows)"}).execute()
    assert [r.v for r in rows_of(table)] == ["max 1", "v1", "n101"]


def test_a_merge_by_a_view_that_was_overtaken(spark, tmp_path):
    path = str(tmp_path / "t")
    table = make(spark, path, WEAKER, rows=2)
    alluvium.read(spark, path).createOrReplaceTempView("own_rows")
    alluvium.write(batch(spark, 101), path, mode="append")
    merge = table.alias("t").merge(batch(spark, 0).alias("s"), "t.id = s.id")
    with pytest.raises(CommitConflict) as caught:
        merge.whenMatchedUpdate(set={"v": "(select concat('max ', max(id)) from own_rows)"}).execute()
    assert caught.value.code == "concurrent-append"
    assert "a temporary view over the table keeps the version" in caught.value.hint
    assert [r.v for r in rows_of(table)] == ["v0", "v1", "n101"]


def test_a_merge_by_a_subquery_of_another_table_is_repeated(spark, tmp_path, meanwhile):
    path, other = str(tmp_path / "t"), str(tmp_path / "other")
    table = make(spark, path, SERIALIZABLE, rows=2)
    make(spark, other, SERIALIZABLE, rows=3)
    alluvium.read(spark, other).createOrReplaceTempView("other_rows")
    meanwhile(lambda: alluvium.write(batch(spark, 101), path, mode="append"))
    merge = table.alias("t").merge(batch(spark, 0, 101).alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set={"v": "(select concat('max ', max(id)) from other_rows)"}).execute()
    assert [r.v for r in rows_of(table)] == ["max 2", "v1", "max 2"]
