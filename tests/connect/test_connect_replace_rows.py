"""Overwrites of single rows by `replaceWhere` over Spark Connect: checked as on a classic session."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import functions as sf

import alluvium
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict, InvalidRequest, UnsupportedFeature

pytestmark = [pytest.mark.connect, pytest.mark.slow]

MODES = {"rewrite": {}, "mask": {"delta.enableDeletionVectors": "true"}}
KEPT = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}


def rows(path: str) -> dict[int, tuple[str, int, int]]:
    found = alluvium.open(path).to_arrow(["*", "_row_id", "_row_commit_version"])
    return {r["a"]: (r["b"], r["_row_id"], r["_row_commit_version"]) for r in found.to_pylist()}


def values(path: str) -> list[tuple[object, ...]]:
    found = [tuple(r.values()) for r in alluvium.open(path).to_arrow().to_pylist()]
    return sorted(found, key=repr)


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_replaced_and_others_keep_their_identity(connect, tmp_path, mode):
    path = str(tmp_path / "t")
    first = connect.sql("select cast(id as int) a, concat('b', id) b from range(10)").coalesce(1)
    alluvium.write(first, path, **MODES[mode], **KEPT)
    before = rows(path)
    fresh = connect.sql("select 3 a, 'n' b union all select 4, 'm'").coalesce(1)
    done = alluvium.write(fresh, path, mode="overwrite", replaceWhere="a between 3 and 5")
    after = rows(path)
    assert done.version == 1 and done.metrics["numDeletedRows"] == "3" and done.metrics["numCopiedRows"] == "7"
    assert {a for a in range(10) if after.get(a) == before[a]} == {0, 1, 2, 6, 7, 8, 9}
    assert after[3][0] == "n" and after[3][1] > 9 and after[3][2] == 1 and 5 not in after
    feed = alluvium.changes(connect, path, 1).select("_change_type", "a").collect()
    assert sorted((r[0], r[1]) for r in feed) == [
        ("delete", 3), ("delete", 4), ("delete", 5), ("insert", 3), ("insert", 4)]  # fmt: skip
    # Over files that have a mask already, and files that were written anew.
    alluvium.write(fresh.limit(0), path, mode="overwrite", replaceWhere="a >= 8 or b = 'n'")
    assert sorted(rows(path)) == [0, 1, 2, 4, 6, 7]
    assert not list(Path(path).rglob("_SUCCESS"))


@pytest.mark.parametrize("mode", MODES)
def test_rows_outside_of_the_condition_change_nothing(connect, tmp_path, mode):
    path = str(tmp_path / "t")
    alluvium.write(connect.sql("select 1 a, 'x' b"), path, **MODES[mode], **KEPT)
    files = set(Path(path).rglob("*.parquet"))
    for new, where, shown in (
        ("select 2 a, 'y' b", "a = 1", "a = 2"),
        ("select cast(null as int) a, 'y' b", "a = 1", "a = null"),
        ("select 1 a, cast(null as string) b", "b = 'x'", "b = null"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            alluvium.write(connect.sql(new), path, mode="overwrite", replaceWhere=where)
        assert caught.value.code == "constraint-violated" and shown in caught.value.message
    assert alluvium.open(path).version == 0 and set(Path(path).rglob("*.parquet")) == files


@pytest.mark.parametrize("mode", MODES)
def test_rows_for_which_the_condition_is_null_stay(connect, tmp_path, mode):
    path = str(tmp_path / "t")
    first = connect.sql(
        "select * from values (1, 'x', 'p'), (2, null, 'p'), (null, 'x', 'q'), (4, 'y', null) t(a, b, p)"
    )
    alluvium.write(first.coalesce(1), path, partition_by="p", **MODES[mode])
    alluvium.write(connect.sql("select 9 a, 'x' b, 'p' p"), path, mode="overwrite", replaceWhere="b = 'x'")
    assert values(path) == [(2, None, "p"), (4, "y", None), (9, "x", "p")]
    alluvium.write(connect.sql("select 8 a, 'z' b, 'q' p"), path, mode="overwrite", replaceWhere="p <> 'p' or a < 3")
    assert values(path) == [(4, "y", None), (8, "z", "q"), (9, "x", "p")]


def test_files_that_cannot_hold_such_rows_are_left_alone(connect, tmp_path):
    path = str(tmp_path / "t")
    for start in (0, 10, 20):
        alluvium.write(connect.range(start, start + 10).coalesce(1), path, mode="append")
    before = set(Path(path).glob("*/*.parquet")) | set(Path(path).glob("*.parquet"))
    alluvium.write(connect.range(12, 13), path, mode="overwrite", replaceWhere="id between 12 and 14")
    last = [json.loads(line) for line in max(Path(path, "_delta_log").glob("*.json")).read_text().splitlines()]
    assert len([a for a in last if "remove" in a]) == 1 and before
    assert values(path) == sorted(((n,) for n in range(30) if n not in (13, 14)), key=repr)


def test_many_files(connect, tmp_path):
    """More than may be looked up in the plan: where a row comes from is joined."""
    path = str(tmp_path / "t")
    many = connect.range(600).withColumn("p", sf.expr("cast(id % 150 as int)")).repartition(1)
    alluvium.write(many, path, partition_by="p", **MODES["mask"])
    alluvium.write(connect.sql("select 7L id, 7 p"), path, mode="overwrite", replaceWhere="id % 2 = 1 and id < 300")
    expected = [n for n in range(600) if n % 2 == 0 or n >= 300] + [7]
    assert sorted(alluvium.open(path).to_arrow(["id"])["id"].to_pylist()) == sorted(expected)


def test_names_that_files_have_otherwise(connect, tmp_path):
    path = str(tmp_path / "t")
    first = connect.sql("select cast(id as int) a, named_struct('x', id) s from range(4)").coalesce(1)
    alluvium.write(first, path, **{"delta.columnMapping.mode": "id"})
    fresh = connect.sql("select 9 a, named_struct('x', 3L) s")
    alluvium.write(fresh, path, mode="overwrite", replaceWhere="s.x = 3")
    assert values(path) == [(0, {"x": 0}), (1, {"x": 1}), (2, {"x": 2}), (9, {"x": 3})]


def test_nothing_for_nothing_makes_no_commit(connect, tmp_path):
    path = str(tmp_path / "t")
    alluvium.write(connect.sql("select 1 a, 'x' b"), path)
    none = connect.sql("select 2 a, 'y' b where false")
    assert alluvium.write(none, path, mode="overwrite", replaceWhere="a = 2").attempts == 0
    assert alluvium.write(none, path, mode="overwrite", replaceWhere="a = 1").version == 1
    assert alluvium.open(path).to_arrow().num_rows == 0


def test_a_condition_that_does_not_resolve(connect, tmp_path):
    path = str(tmp_path / "t")
    alluvium.write(connect.sql("select 1 a"), path)
    connect.range(3).createOrReplaceTempView("some_rows")
    wrong = ("zz = 1", "a +", "a > (select 1)", "exists(from some_rows)", "a in (select id from some_rows)", "rand() > a",
             "uuid() = 'x' or a = 1", "sum(a) > 1", "a", "row_number() over (order by a) = 1",
             "explode(array(a = 1))", "monotonically_increasing_id() = a")  # fmt: skip
    for ansi in ("true", "false"):
        # Where Spark reads texts otherwise than we do, it alone says what is wrong with them.
        connect.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            for where in wrong:
                with pytest.raises(InvalidRequest):
                    alluvium.write(connect.sql("select 1 a"), path, mode="overwrite", replaceWhere=where)
        finally:
            connect.conf.unset("spark.sql.ansi.enabled")
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(connect.sql("select 1 a"), path, mode="overwrite", replaceWhere="a = 1", dataChange=False)
    assert caught.value.code == "contradicting-options"
    assert alluvium.open(path).version == 0
    alluvium.write(connect.sql("select 1 a"), path, mode="overwrite", replaceWhere="pow(a, 2) = 1 or 'it\n+- x' = ''")
    assert alluvium.open(path).version == 1


def test_a_condition_that_only_spark_understands(connect, tmp_path):
    path = str(tmp_path / "t")
    alluvium.write(connect.sql("select cast(id as int) a from range(6)").coalesce(2), path)
    connect.conf.set("spark.sql.ansi.enabled", "false")
    try:
        fresh = connect.sql("select 14 a")
        alluvium.write(fresh, path, mode="overwrite", replaceWhere="cast('x' as int) is null and bit_count(a) > 1")
    finally:
        connect.conf.unset("spark.sql.ansi.enabled")
    assert values(path) == [(0,), (1,), (14,), (2,), (4,)]


def test_a_transaction_is_remembered(connect, tmp_path):
    path = str(tmp_path / "t")
    alluvium.write(connect.sql("select 1 a"), path)
    for _ in range(2):
        alluvium.write(
            connect.sql("select 1 a"), path, mode="overwrite", replaceWhere="a = 1", txnAppId="app", txnVersion=1
        )
    assert alluvium.open(path).version == 1 and dict(alluvium.open(path).txns) == {"app": 1}


def test_the_session_may_forbid_it(connect, tmp_path):
    path, key = str(tmp_path / "t"), "spark.databricks.delta.replaceWhere.dataColumns.enabled"
    alluvium.write(connect.sql("select 1 a"), path)
    connect.conf.set(key, "false")
    try:
        with pytest.raises(UnsupportedFeature) as caught:
            alluvium.write(connect.sql("select 1 a"), path, mode="overwrite", replaceWhere="a = 1")
    finally:
        connect.conf.unset(key)
    assert caught.value.code == "replace-where-data"


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Lets somebody else act between a job and its commit, once."""
    pending: list[Callable[[], object]] = []
    commit = DeltaTarget.commit

    def interrupted(self: DeltaTarget, changes: object) -> object:
        if pending:
            pending.pop()()
        return commit(self, changes)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaTarget, "commit", interrupted)
    return pending.append


def test_others_may_not_change_what_is_replaced_or_was_read(connect, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    alluvium.write(connect.sql("select cast(id as int) a from range(6)").coalesce(1), path)
    own = alluvium.read(connect, path)
    meanwhile(lambda: alluvium.write(connect.sql("select 3 a"), path, mode="append"))
    with pytest.raises(CommitConflict):
        alluvium.write(connect.sql("select 3 a"), path, mode="overwrite", replaceWhere="a = 3")
    assert values(path) == [(0,), (1,), (2,), (3,), (3,), (4,), (5,)]
    # Somebody changed what these rows were computed from, and what they do not replace.
    total = own.selectExpr("cast(sum(a) as int) as a")
    with pytest.raises(CommitConflict) as caught:
        alluvium.write(total, path, mode="overwrite", replaceWhere="a > 10")
    assert "read the table again" in caught.value.hint
    whole = alluvium.read(connect, path).where("a < 3").selectExpr("a + 10 as a")
    alluvium.write(whole, path, mode="overwrite", replaceWhere="a >= 3")
    assert values(path) == [(0,), (1,), (10,), (11,), (12,), (2,)]
    assert sum(1 for _ in Path(path).rglob("*.parquet")) >= 1


def test_nothing_is_left_of_a_write_that_lost(connect, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    alluvium.write(connect.sql("select cast(id as int) a from range(6)").coalesce(1), path, **KEPT)
    meanwhile(lambda: alluvium.open(path) and alluvium.write(connect.sql("select 3 a"), path, mode="append"))
    with pytest.raises(CommitConflict):
        alluvium.write(connect.sql("select 3 a"), path, mode="overwrite", replaceWhere="a = 3")
    assert sum(1 for _ in Path(path).rglob("*.parquet")) == 2
