"""Settings of the session, under delta-spark's names, that change how UPDATE, DELETE and MERGE are carried out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import jvm
import pytest
from dml_tables import last
from pyspark.sql import SparkSession
from templates import copy_of

import alluvium
from alluvium import DeltaTable
from alluvium.errors import AlluviumError, InvalidRequest

pytestmark = pytest.mark.spark

PREFIX = "spark.databricks.delta."
CASTS, POLICY = f"{PREFIX}updateAndMergeCastingFollowsAnsiEnabledFlag", "spark.sql.storeAssignmentPolicy"
ANSI = "spark.sql.ansi.enabled"
STATEMENTS = {
    "delete": "delete from {t} where id = 1",
    "update": "update {t} set v = 9 where id = 1",
    "merge": "merge into {t} t using (select 1 as id) s on t.id = s.id when matched then delete",
}


@pytest.fixture(scope="module")
def enabled(spark) -> Iterator[SparkSession]:
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


def made(spark: SparkSession, path: Path, vectors: str = "true") -> str:
    properties = f"'delta.enableDeletionVectors' = '{vectors}'"

    def make(new: str) -> None:
        spark.sql(f"create table delta.`{new}` (id int, v int) using delta tblproperties ({properties})")
        rows = spark.range(10).selectExpr("cast(id as int) id", "0 v").coalesce(1)
        rows.write.format("delta").mode("append").save(new)

    copy_of((__name__, vectors), path, make)
    return f"delta.`{path}`"


@pytest.mark.parametrize("verb", STATEMENTS)
@pytest.mark.parametrize("value", ["true", "False"])
def test_rows_are_masked_unless_the_session_says_no(enabled, tmp_path: Path, verb: str, value: str) -> None:
    table = made(enabled, tmp_path / "t")
    masks = {name: value if name == verb else "true" for name in STATEMENTS}
    with jvm.having(enabled, {f"{PREFIX}{name}.deletionVectors.persistent": said for name, said in masks.items()}):
        enabled.sql(STATEMENTS[verb].format(t=table))
        rows = {row["id"]: row["v"] for row in enabled.sql(f"select * from {table}").collect()}
        assert rows == {n: 0 for n in range(10) if n != 1} | ({1: 9} if verb == "update" else {})
        masked = [add for add in last(str(tmp_path / "t"), "add") if add.get("deletionVector")]
        assert len(masked) == (1 if value == "true" else 0)
        # A file that has vectors already is written anew without them.
        if verb == "delete":
            enabled.conf.set(f"{PREFIX}delete.deletionVectors.persistent", "false")
            enabled.sql(f"delete from {table} where id = 2")
            assert [add.get("deletionVector") for add in last(str(tmp_path / "t"), "add")] == [None]
            assert enabled.sql(f"select * from {table}").count() == 8


def test_a_setting_that_is_no_flag_is_refused(enabled, tmp_path: Path) -> None:
    table = made(enabled, tmp_path / "t")
    wrong = {f"{PREFIX}delete.deletionVectors.persistent": "maybe"}
    with jvm.having(enabled, wrong), pytest.raises(InvalidRequest) as caught:
        enabled.sql(STATEMENTS["delete"].format(t=table))
    assert caught.value.code == "invalid-setting"
    assert alluvium.open(str(tmp_path / "t")).version == 1


@pytest.mark.parametrize(
    ("policy", "ansi", "casts", "stored"),
    [
        ("ANSI", "true", "false", "refused"),
        ("ANSI", "false", "false", "refused"),
        ("LEGACY", "true", "false", None),
        ("LEGACY", "true", "true", "refused"),
        ("ANSI", "false", "true", None),
        ("STRICT", "false", "true", None),
        ("STRICT", "true", "false", "refused"),
    ],
)
@pytest.mark.parametrize("verb", ["update", "merge"])
def test_which_setting_rules_casts(enabled, tmp_path: Path, verb, policy, ansi, casts, stored) -> None:
    table = made(enabled, tmp_path / "t")
    statement = {
        "update": f"update {table} set v = 'zz' where id = 1",
        "merge": f"merge into {table} t using (select 1 id, 'zz' v) s on t.id = s.id when matched then update set *",
    }[verb]
    with jvm.having(enabled, {POLICY: policy, ANSI: ansi, CASTS: casts}):
        if stored == "refused":
            with pytest.raises(AlluviumError):
                enabled.sql(statement)
        else:
            enabled.sql(statement)
    found = enabled.sql(f"select v from {table} where id = 1").collect()
    assert [row["v"] for row in found] == [0 if stored == "refused" else stored]


@pytest.mark.parametrize("policy", ["LEGACY", "STRICT"])
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_the_method_update_casts_as_ansi_under_any_policy(enabled, tmp_path: Path, policy: str, ansi: str) -> None:
    made(enabled, tmp_path / "t")
    table = DeltaTable.forPath(enabled, str(tmp_path / "t"))
    with jvm.having(enabled, {POLICY: policy, ANSI: ansi, CASTS: "false"}):
        table.update("id = 1", {"v": "7L"})
        with pytest.raises(AlluviumError) as caught:
            table.update("id = 2", {"v": "'zz'"})
    assert caught.value.code == "invalid-data"
    found = enabled.sql(f"select v from delta.`{tmp_path / 't'}` where id in (1, 2) order by id").collect()
    assert [row["v"] for row in found] == [7, 0]


DYNAMIC = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
FORBIDDEN = {**DYNAMIC, f"{PREFIX}dynamicPartitionOverwrite.enabled": "false"}
OVERWRITES = {
    "insert": lambda rows, name, path: rows.sparkSession.sql(
        f"insert overwrite {name} select * from {{rows}}", rows=rows
    ),
    "save": lambda rows, name, path: rows.write.format("delta").mode("overwrite").save(path),
    "saveAsTable": lambda rows, name, path: rows.write.format("delta").mode("overwrite").saveAsTable(name),
    "insertInto": lambda rows, name, path: rows.write.mode("overwrite").insertInto(name),
    "option": lambda rows, name, path: (
        rows.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
    ),
    "overwritePartitions": lambda rows, name, path: rows.writeTo(name).overwritePartitions(),
}


@pytest.mark.parametrize("way", OVERWRITES)
def test_no_way_overwrites_single_partitions_where_that_is_forbidden(enabled, tmp_path: Path, way: str) -> None:
    name, path = f"forbidden_{way.lower()}", str(tmp_path / "t")
    enabled.sql(f"create table {name} (id int, p int) using delta partitioned by (p) location '{path}'")
    try:
        enabled.sql(f"insert into {name} values (1, 1), (2, 2)")
        rows = enabled.sql("select 9 id, 1 p")
        with jvm.having(enabled, FORBIDDEN), pytest.raises(InvalidRequest) as caught:
            OVERWRITES[way](rows, name, path)
        assert caught.value.getCondition() == "DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED"
        assert alluvium.open(path).count() == 2
        with jvm.having(enabled, DYNAMIC):
            OVERWRITES[way](rows, name, path)
        assert {tuple(row) for row in enabled.table(name).collect()} == {(9, 1), (2, 2)}
    finally:
        enabled.sql(f"drop table {name}")


def test_a_table_without_partitions_is_overwritten_all_the_same(enabled, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with jvm.having(enabled, FORBIDDEN):
        for n in (1, 2):
            enabled.range(n).write.format("delta").mode("overwrite").save(path)
    assert alluvium.open(path).count() == 2


@pytest.mark.parametrize(
    ("setting", "statement"),
    [
        ("retentionDurationCheck.enabled", "vacuum {t} retain 0 hours"),
        ("vacuum.logging.enabled", "vacuum {t}"),
        ("replaceWhere.constraintCheck.enabled", "insert into {t} replace where id = 1 values (2, 2)"),
        ("replaceWhere.dataColumns.enabled", "insert into {t} replace where id = 1 values (1, 2)"),
        ("write.txnVersion.autoReset.enabled", "delete from {t} where id = 1"),
        (
            "schema.autoMerge.enabled",
            "merge into {t} t using (select 1 as id) s on t.id = s.id when matched then delete",
        ),
        ("schema.autoMerge.enabled", "insert into {t} values (1, 2)"),
        ("changeDataFeed.timestampOutOfRange.enabled", "select * from table_changes_by_path('{p}', 0)"),
        ("timeTravel.resolveOnIdentifier.enabled", "create table delta.`{p}_copy` shallow clone delta.`{p}@v0`"),
    ],
)
def test_a_check_is_not_turned_off_by_what_makes_no_sense(enabled, tmp_path: Path, setting, statement) -> None:
    table = made(enabled, tmp_path / "t")
    wrong = {f"{PREFIX}{setting}": "nope", f"{PREFIX}write.txnAppId": "app", f"{PREFIX}write.txnVersion": "1"}
    with jvm.having(enabled, wrong), pytest.raises(InvalidRequest) as caught:
        enabled.sql(statement.format(t=table, p=tmp_path / "t"))
    assert (caught.value.code, setting in str(caught.value)) == ("invalid-setting", True)
    assert alluvium.open(str(tmp_path / "t")).count() == 10


def test_rows_that_no_partition_is_of_are_not_replaced_where_that_is_forbidden(enabled, tmp_path: Path) -> None:
    table = made(enabled, tmp_path / "t")
    forbidden = {f"{PREFIX}replaceWhere.dataColumns.enabled": "false"}
    with jvm.having(enabled, forbidden), pytest.raises(AlluviumError) as caught:
        enabled.sql(f"insert into {table} replace where id = 1 values (1, 2)")
    assert caught.value.getCondition() == "DELTA_NON_PARTITION_COLUMN_REFERENCE"


def test_defaults_of_properties_that_nobody_knows_are_passed_over(enabled, tmp_path: Path, caplog) -> None:
    """As in delta-spark: sessions of other products have them."""
    defaults = {f"{PREFIX}properties.defaults.{n}": v for n, v in (("enableChangeDataFeed", "true"), ("mine", "1"))}
    with jvm.having(enabled, defaults), caplog.at_level(logging.WARNING, "alluvium"):
        enabled.sql(f"create table delta.`{tmp_path / 'c'}` (id int) using delta")
        enabled.range(1).write.format("delta").save(str(tmp_path / "w"))
    for name in "cw":
        properties = DeltaTable.forPath(enabled, str(tmp_path / name)).detail().first()["properties"]
        assert properties == {"delta.enableChangeDataFeed": "true"}
    assert caplog.messages == ["no such properties, which tables that are created do not get: delta.mine"] * 2
