"""A batch that is written by verbs, and comes again: the session says which one it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from dml_tables import MODES, last, make, rows_of
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

APP, VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"

RESETS = "spark.databricks.delta.write.txnVersion.autoReset.enabled"


@pytest.fixture
def session(spark) -> Iterator[object]:
    yield spark
    for name in (APP, VERSION, RESETS):
        spark.conf.unset(name)


def say(spark, app: str, version: int) -> None:
    spark.conf.set(APP, app)
    spark.conf.set(VERSION, str(version))


VERBS = {
    "update": lambda spark, t: t.update("id = 1", {"v": "concat(v, '+')"}),
    "delete": lambda spark, t: t.delete("id = (1)"),
    "delete whole": lambda spark, t: t.delete("p = 1"),
    "merge": lambda spark, t: (
        t.alias("t").merge(spark.range(1, 2).alias("s"), "t.id = s.id")
        .whenMatchedUpdate(set={"v": sf.concat("t.v", sf.lit("+"))}).execute()
    ),
}  # fmt: skip
NOTHING = {
    "update": lambda spark, t: t.update("id = -1", {"v": "'x'"}),
    "delete": lambda spark, t: t.delete("id = -1"),
    "delete whole": lambda spark, t: t.delete("p = 7"),
    "merge": lambda spark, t: (
        t.alias("t").merge(spark.range(900, 901).alias("s"), "t.id = s.id").whenMatchedDelete().execute()
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("verb", VERBS)
def test_a_batch_that_comes_again_is_passed_over(session, tmp_path, mode, verb):
    path = str(tmp_path / "t")
    table = make(session, path, MODES[mode], rows=4)
    say(session, "app", 5)
    VERBS[verb](session, table)
    once = rows_of(table)
    assert {k: v for k, v in last(path, "txn")[0].items() if k != "lastUpdated"} == {"appId": "app", "version": 5}
    for version in (5, 4):
        say(session, "app", version)
        VERBS[verb](session, table)
        assert (rows_of(table), alluvium.open(path).version) == (once, 2)
    say(session, "another", 1)
    VERBS[verb](session, table)
    say(session, "app", 6)
    NOTHING[verb](session, table)
    assert (alluvium.open(path).version, last(path, "txn")[0]["version"]) == (4, 6), "recorded, be it of no row"
    assert last(path, "add") == last(path, "remove") == []


def test_what_the_writer_and_the_verbs_say_is_one_transaction(session, tmp_path):
    path = str(tmp_path / "t")
    table = make(session, path, {}, rows=4)
    say(session, "app", 5)
    table.delete("id = 1")
    df = session.createDataFrame([(9, 1, "x")], "id long, p int, v string")
    assert alluvium.write(df, path, mode="append").attempts == 0
    assert alluvium.open(path).version == 2


def test_half_of_a_transaction_is_none(session, tmp_path):
    path = str(tmp_path / "t")
    make(session, path, {}, rows=4)
    session.conf.set(APP, "app")
    with pytest.raises(InvalidRequest) as caught:
        DeltaTable.forPath(session, path).delete("id = 1")
    assert caught.value.code == "contradicting-options"


def test_a_preview_moves_nothing(session, tmp_path):
    path = str(tmp_path / "t")
    table = make(session, path, {}, rows=4)
    say(session, "app", 5)
    table.delete("id = 1", dry_run=True)
    assert alluvium.open(path).version == 1


WRITES = {
    **VERBS,
    "append": lambda spark, t: alluvium.write(t.toDF(), str(t.detail().first()["location"]), mode="append"),
}


@pytest.mark.parametrize("verb", WRITES)
def test_the_version_counts_once_where_the_session_says_so(session, tmp_path, verb):
    """Else the next verb of another kind would be passed over as if it were the same."""
    path = str(tmp_path / "t")
    table = make(session, path, {}, rows=4)
    session.conf.set(RESETS, "true")
    say(session, "app", 5)
    table.update("id = 1", dry_run=True, set={"v": "'x'"})
    assert session.conf.get(VERSION) == "5"
    WRITES[verb](session, table)
    stands = table.history().count()
    assert session.conf.get(VERSION, None) is None
    with pytest.raises(InvalidRequest) as caught:
        WRITES[verb](session, table)
    assert caught.value.code == "contradicting-options"
    session.conf.set(VERSION, "5")
    WRITES[verb](session, table)
    assert table.history().count() == stands
    assert session.conf.get(VERSION, None) is None


def test_versions_of_a_writer_are_not_the_sessions(session, tmp_path):
    path = str(tmp_path / "t")
    session.conf.set(RESETS, "true")
    say(session, "app", 5)
    options = {"txnAppId": "mine", "txnVersion": "7"}
    for _ in range(2):
        alluvium.write(session.range(2), path, mode="append", **options)
    assert session.conf.get(VERSION) == "5"
    assert alluvium.open(path).count() == 2
