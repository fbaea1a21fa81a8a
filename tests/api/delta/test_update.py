"""UPDATE on tables with vectors and without: values, feed, row ids, generated columns, constraints."""

from __future__ import annotations

import pytest
from dml_tables import MODES, last, make, rows_of, tracked
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Preview

pytestmark = pytest.mark.spark

FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}


@pytest.mark.parametrize("mode", MODES)
def test_rows_change_and_keep_their_ids(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode] | FEED | TRACKED)
    before = {r["id"]: r for r in tracked(path)}
    done = table.alias("t").update("t.id = 4 or id = 5", {"v": "concat(t.v, '!')", "p": sf.lit("7")})
    rows = {r["id"]: r for r in rows_of(table)}
    assert {i: (r["p"], r["v"]) for i, r in rows.items() if r["p"] == 7} == {4: (7, "v4!"), 5: (7, "v5!")}
    assert len(rows) == 20
    after = {r["id"]: r for r in tracked(path)}
    assert {i: r["_row_id"] for i, r in after.items()} == {i: r["_row_id"] for i, r in before.items()}
    assert {i for i, r in after.items() if r["_row_commit_version"] == 2} == {4, 5}
    assert done.metrics["numUpdatedRows"] == "2"
    assert done.metrics["numCopiedRows"] == ("0" if mode == "mask" else "18")
    feed = alluvium.changes(spark, path, 2).select("id", "v", "_change_type").collect()
    assert sorted(map(tuple, feed)) == [
        (4, "v4", "update_preimage"), (4, "v4!", "update_postimage"),
        (5, "v5", "update_preimage"), (5, "v5!", "update_postimage"),
    ]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_all_rows(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode] | FEED)
    assert table.update(set={"v": sf.lit("x")}).metrics["numUpdatedRows"] == "20"
    assert {r["v"] for r in rows_of(table)} == {"x"}
    assert len(last(path, "remove")) == 2
    assert not [a for a in last(path, "add") if "deletionVector" in a]
    assert alluvium.changes(spark, path, 2).count() == 40


@pytest.mark.parametrize("mode", MODES)
def test_nothing_to_update_makes_no_commit(spark, tmp_path, mode):
    table = make(spark, str(tmp_path / "t"), MODES[mode])
    assert table.update("id = -1", {"v": "'x'"}).attempts == 0
    preview = table.update("id in (1, 2)", {"v": "'x'"}, dry_run=True)
    assert isinstance(preview, Preview)
    assert preview.operation.metrics["numUpdatedRows"] == "2"
    assert table.history(1).first()["version"] == 1


def test_nested_fields_and_casts(spark, tmp_path):
    path = str(tmp_path / "t")
    df = spark.sql("select 1 id, named_struct('a', 1, 'b', named_struct('c', 'x', 'd', 2L)) s union all select 2, null")
    alluvium.write(df, path)
    table = DeltaTable.forPath(spark, path)
    table.update(set={"s.b.C": "id + 10", "S.a": "'5'"})
    found = {r["id"]: r["s"].asDict(recursive=True) for r in rows_of(table)}
    assert found == {1: {"a": 5, "b": {"c": "11", "d": 2}}, 2: {"a": 5, "b": {"c": "12", "d": None}}}
    table.update("id = 1", {"s": "named_struct('B', named_struct('d', 9, 'c', 'y'), 'a', '1')"})
    assert rows_of(table)[0]["s"].asDict(recursive=True) == {"a": 1, "b": {"c": "y", "d": 9}}


def test_fields_of_structs_go_by_their_names_at_any_depth(spark, tmp_path):
    path = str(tmp_path / "t")
    ab = "named_struct('a', 1, 'b', 2)"
    alluvium.write(
        spark.sql(f"select 1L id, {ab} s, array({ab}) arr, map('k', {ab}) m, named_struct('o', {ab}) n"), path
    )
    table = DeltaTable.forPath(spark, path)
    swapped = "named_struct('b', 7L, 'A', 8)"
    given = {
        "s": swapped,
        "arr": f"array({swapped}, null)",
        "m": f"map('k', {swapped})",
        "n": f"named_struct('o', {swapped})",
    }
    table.update(set=given)
    (stored,) = rows_of(table)
    ab = {"a": 8, "b": 7}
    assert stored.asDict(recursive=True) == {"id": 1, "s": ab, "arr": [ab, None], "m": {"k": ab}, "n": {"o": ab}}
    table.update("id = 1", {"s": "(select named_struct('b', max(id), 'a', 3) from range(6))"})
    assert rows_of(table)[0]["s"].asDict() == {"a": 3, "b": 5}
    for values in [
        {"s": "named_struct('x', 7, 'y', 8)"},
        {"s": "named_struct('b', 9)"},
        {"s": "named_struct('a', 1, 'b', 2, 'c', 3)"},
        {"arr": "array(named_struct('x', 7, 'b', 8))"},
        {"n": "named_struct('o', named_struct('b', 8))"},
    ]:
        with pytest.raises(InvalidRequest) as caught:
            table.update("id = 1", values)
        assert caught.value.code == "schema-mismatch"
    assert table.history(1).first()["version"] == 2


@pytest.mark.parametrize("mode", MODES)
def test_generated_columns_and_constraints_hold(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    builder = DeltaTable.create(spark).location(path).addColumn("a", "int", nullable=False)
    builder = builder.addColumn("b", "int", generatedAlwaysAs="a * 2")
    for key, value in MODES[mode].items():
        builder = builder.property(key, value)
    table = builder.execute()
    alluvium.write(spark.sql("select cast(id as int) a from range(4)"), path, mode="append")
    table.update("a = 3", {"a": "a + 1"})
    assert sorted((r["a"], r["b"]) for r in rows_of(table)) == [(0, 0), (1, 2), (2, 4), (4, 8)]
    table.addConstraint("small", "a < 10")
    for values, code in [
        ({"a": "20"}, "constraint-violated"),
        ({"a": "null"}, None),
        ({"b": "1"}, "generated-column-violated"),
    ]:
        with pytest.raises(InvalidRequest) as caught:
            table.update("a = 4", values)
        assert code is None or caught.value.code == code
    assert table.history(1).first()["version"] == 3


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"w": "1"}, "unknown-column"),
        ({"v": "'1'", "V": "'2'"}, "assigned-twice"),
        ({"v": "nope"}, "invalid-expression"),
        ({"v": "max(v)"}, "invalid-expression"),
    ],
)
def test_bad_lists_are_refused(spark, tmp_path, values, code):
    table = make(spark, str(tmp_path / "t"), {})
    with pytest.raises(InvalidRequest) as caught:
        table.update("id = 1", values)
    assert caught.value.code == code


def test_a_table_may_be_called_like_one_of_its_columns(spark, tmp_path):
    path = str(tmp_path / "t")
    alluvium.write(spark.sql("select 1L id, 'a' v, 1 t, named_struct('w', 'x') s"), path)
    table = DeltaTable.forPath(spark, path)
    table.alias("t").update("t.id = 1", {"t.v": "concat(t.v, '!')", "t.t": "t + 1", "T.s.w": "'y'"})
    assert rows_of(table) == [(1, "a!", 2, ("y",))]
    table.alias("s").update(set={"s.w": "'z'", "s.v": "'b'"})
    nested = spark.sql("select 'a' v, named_struct('v', 'x') t")
    alluvium.write(nested, str(tmp_path / "nested"))
    both = DeltaTable.forPath(spark, str(tmp_path / "nested")).alias("t")
    both.update(set={"t.v": "'b'", "t.t.v": "'y'"})
    assert rows_of(both) == [("b", ("y",))], "the table's name comes first, as in delta-spark"
    source = spark.sql("select 1L id union all select 2").alias("n")
    merge = table.alias("t").merge(source, "t.id = n.id").whenMatchedUpdate(set={"t.t": "7"})
    merge.whenNotMatchedInsert(values={"t.id": "n.id", "t.v": "'c'"}).execute()
    assert sorted(rows_of(table)) == [(1, "b", 7, ("z",)), (2, "c", None, None)]
    with pytest.raises(InvalidRequest, match=r"no such field in 't': 't\.nope'"):
        table.alias("t").update(set={"t.nope": "1"})


def test_arguments_are_checked_as_in_delta_spark(spark, tmp_path):
    table = make(spark, str(tmp_path / "t"), {})
    with pytest.raises(ValueError, match="'set' cannot be None"):
        table.update("id = 1")
    with pytest.raises(TypeError, match="must be a dict"):
        table.update("id = 1", [("v", "1")])
    with pytest.raises(TypeError, match="Values of dict"):
        table.update("id = 1", {"v": 1})
    with pytest.raises(TypeError, match="condition"):
        table.update(1, {"v": "1"})


@pytest.mark.parametrize("mode", MODES)
def test_column_mapping(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode] | FEED | TRACKED | {"delta.columnMapping.mode": "name"})
    table.update("id = 4", {"v": "'x'"})
    table.delete("id = 5")
    assert [(r["id"], r["v"]) for r in rows_of(table) if r["id"] in (3, 4, 5)] == [(3, "v3"), (4, "x")]
    feed = alluvium.changes(spark, path, 2).select("id", "v", "_change_type").collect()
    assert sorted(map(tuple, feed)) == [
        (4, "v4", "update_preimage"), (4, "x", "update_postimage"), (5, "v5", "delete"),
    ]  # fmt: skip
