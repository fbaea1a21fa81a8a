"""Scenarios of every day: partitions loaded again, row changes, restores, the session's settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

from .bench import Bench, Step, scenario

DAYS = "select cast(id as int) id, date_add(date'2024-01-01', cast(id % 3 as int)) day, concat('v', id) v from range(9)"


def under(b: Bench, key: str, value: str, function: Callable[[], object]) -> Callable[[], object]:
    """A step with a setting of the session, which is as it was afterwards."""

    def step() -> object:
        before = b.spark.conf.get(key, None)
        b.spark.conf.set(key, value)
        try:
            return function()
        finally:
            b.spark.conf.unset(key) if before is None else b.spark.conf.set(key, before)

    return step


@scenario("select 9 id, date'2024-01-02' day, 'z' v", delete="id = 9")
def daily_loads(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write(DAYS, partition_by=("day",))
    yield "append", lambda: b.write("select 20 id, date'2024-01-02' day, 'a' v")
    yield (
        "dynamic",
        lambda: b.write("select 21 id, date'2024-01-02' day, 'd' v", "overwrite", partitionOverwriteMode="dynamic"),
    )
    yield (
        "dynamic by the session",
        under(
            b,
            "spark.sql.sources.partitionOverwriteMode",
            "dynamic",
            lambda: b.write("select 22 id, date'2024-01-03' day, 'd' v", "overwrite"),
        ),
    )
    yield (
        "static by the option",
        under(
            b,
            "spark.sql.sources.partitionOverwriteMode",
            "dynamic",
            lambda: b.write(DAYS, "overwrite", partitionOverwriteMode="static"),
        ),
    )
    yield (
        "replace under dynamic",
        under(
            b,
            "spark.sql.sources.partitionOverwriteMode",
            "dynamic",
            lambda: b.write(
                "select 23 id, date'2024-01-03' day, 'r' v", "overwrite", replaceWhere="day >= '2024-01-03'"
            ),
        ),
    )
    yield (
        "dynamic with a new column",
        lambda: b.write(
            "select 24 id, date'2024-01-01' day, 'd' v, 1 n",
            "overwrite",
            partitionOverwriteMode="dynamic",
            mergeSchema=True,
        ),
    )
    yield (
        "dynamic with another schema",
        lambda: b.write(
            "select 24 id, date'2024-01-01' day",
            "overwrite",
            ("day",),
            partitionOverwriteMode="dynamic",
            overwriteSchema=True,
        ),
    )
    yield "other partitioning", lambda: b.write(DAYS, "overwrite", ("v",), overwriteSchema=True)
    yield "no partitioning", lambda: b.write(DAYS, "overwrite", overwriteSchema=True)
    yield "dynamic unpartitioned", lambda: b.write(DAYS, "overwrite", partitionOverwriteMode="dynamic")


@scenario("select 9 a, 'z' b, 1 c", delete="a = 9", changes=0)
def replaced_rows(b: Bench) -> Iterator[Step]:
    rows = "select cast(id as int) a, concat('b', id % 4) b, cast(id % 2 as int) c from range(12)"
    yield "create", lambda: b.write(rows, partition_by=("c",), delta__enableChangeDataFeed="true")
    yield (
        "replace rows",
        lambda: b.write("select 50 a, 'n' b, 1 c", "overwrite", replaceWhere="a >= 8 and b = 'n' or a < 2"),
    )
    yield "replace", lambda: b.write("select 3 a, 'n' b, 1 c", "overwrite", replaceWhere="a = 3")
    yield "rows outside", lambda: b.write("select 4 a, 'n' b, 1 c", "overwrite", replaceWhere="a = 3")
    yield (
        "both kinds",
        lambda: b.write("select 6 a, 'q' b, 0 c", "overwrite", replaceWhere="c = 0 and a between 5 and 7"),
    )
    yield "nothing there", lambda: b.write("select 90 a, 'q' b, 0 c", "overwrite", replaceWhere="a = 90")
    yield "by nothing", lambda: b.write(rows + " where false", "overwrite", replaceWhere="a = 90")
    yield "by nothing, nothing there", lambda: b.write(rows + " where false", "overwrite", replaceWhere="a = 91")
    yield "a null", lambda: b.write("select cast(null as int) a, 'q' b, 0 c", "overwrite", replaceWhere="a is null")
    yield (
        "a null again",
        lambda: b.write("select cast(null as int) a, 'r' b, 1 c", "overwrite", replaceWhere="a is null"),
    )
    yield "in append mode", lambda: b.write("select 4 a, 'n' b, 1 c", "append", replaceWhere="a = 4")
    yield "unknown column", lambda: b.write("select 4 a, 'n' b, 1 c", "overwrite", replaceWhere="zz = 4")
    yield (
        "new column",
        lambda: b.write("select 4 a, 'n' b, 1 c, 2 d", "overwrite", replaceWhere="a = 4", mergeSchema=True),
    )
    yield "not a condition", lambda: b.write("select 4 a, 'n' b, 1 c, 2 d", "overwrite", replaceWhere="a +")
    yield (
        "switched off",
        under(
            b,
            "spark.databricks.delta.replaceWhere.dataColumns.enabled",
            "false",
            lambda: b.write("select 4 a, 'n' b, 1 c, 2 d", "overwrite", replaceWhere="a = 4"),
        ),
    )
    yield (
        "unchecked",
        under(
            b,
            "spark.databricks.delta.replaceWhere.constraintCheck.enabled",
            "false",
            lambda: b.write("select 5 a, 'n' b, 1 c, 2 d", "overwrite", replaceWhere="a = 4"),
        ),
    )


@scenario("select 9 a, 'z' b", delete="a = 9", changes=0)
def replaced_rows_by_vectors(b: Bench) -> Iterator[Step]:
    rows = "select cast(id as int) a, concat('b', id % 4) b from range(12)"
    yield (
        "create",
        lambda: b.write(
            rows,
            delta__enableChangeDataFeed="true",
            delta__enableDeletionVectors="true",
            delta__enableRowTracking="true",
        ),
    )
    yield "replace", lambda: b.write("select 3 a, 'n' b", "overwrite", replaceWhere="a = 3")
    yield "replace more", lambda: b.write("select 5 a, 'n' b", "overwrite", replaceWhere="a between 4 and 7")
    yield "replace the rest", lambda: b.write("select 50 a, 'n' b", "overwrite", replaceWhere="a >= 0")


@scenario("select 9 a, 'z' b", delete="a = 9", changes=0)
def row_changes(b: Bench) -> Iterator[Step]:
    rows = "select cast(id as int) a, concat('b', id) b from range(10)"
    yield (
        "create",
        lambda: b.write(
            rows,
            delta__enableChangeDataFeed="true",
            delta__enableRowTracking="true",
            delta__enableDeletionVectors="false",
        ),
    )
    yield "delete", lambda: b.table().delete("a = 3")
    yield "delete nothing", lambda: b.table().delete("a = 33")
    yield "update", lambda: b.table().update("a = 4", {"b": "'four'"})
    yield "update all", lambda: b.table().update(set={"b": "concat(b, '!')"})
    yield "merge", lambda: merge(b, "select 5 a, 'five' b union all select 50, 'fifty'")
    yield "append", lambda: b.write("select 60 a, 'x' b")
    yield "delete all", lambda: b.table().delete()


@scenario("select 9 a, 'z' b", delete="a = 9", changes=0)
def row_changes_by_vectors(b: Bench) -> Iterator[Step]:
    rows = "select cast(id as int) a, concat('b', id) b from range(10)"
    yield (
        "create",
        lambda: b.write(
            rows,
            delta__enableChangeDataFeed="true",
            delta__enableRowTracking="true",
            delta__enableDeletionVectors="true",
        ),
    )
    yield "delete", lambda: b.table().delete("a = 3")
    yield "delete more", lambda: b.table().delete("a = 2")
    yield "update", lambda: b.table().update("a = 4", {"b": "'four'"})
    yield "merge", lambda: merge(b, "select 5 a, 'five' b union all select 50, 'fifty'")
    yield "append", lambda: b.write("select 60 a, 'x' b")
    yield "restore", lambda: b.table().restoreToVersion(2).collect()
    yield "overwrite", lambda: b.write(rows, "overwrite")
    yield "delete a file", lambda: b.table().delete("a >= 0")


def merge(b: Bench, source: str) -> None:
    (
        b.table()
        .alias("t")
        .merge(b.rows(source).alias("s"), "t.a = s.a")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )


def hours_ago(hours: float) -> datetime:
    return datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours)


def age(b: Bench) -> None:
    """Versions of known times, an hour from one to the next: delta-spark travels no further than a week."""
    for file in Path(b.path, "_delta_log").glob("*.json"):
        if file.stem.isdigit():
            seconds = hours_ago(9 - int(file.stem)).timestamp()
            os.utime(file, (seconds, seconds))


@scenario("select 9 a", delete="a = 9")
def restored_by_time(b: Bench) -> Iterator[Step]:
    def restore(text: str) -> Callable[[], object]:
        return lambda: b.table().restoreToTimestamp(text).collect()

    yield "create", lambda: b.write("select 0 a")
    yield "append", lambda: b.write("select 1 a", userMetadata="one")
    yield "overwrite", lambda: b.write("select 2 a", "overwrite", userMetadata='{"two": 2}')
    yield "age", lambda: age(b)
    yield "to a time between", restore(hours_ago(7.5).strftime("%Y-%m-%d %H:%M:%S"))
    yield "to the second", restore(hours_ago(9).strftime("%Y-%m-%d %H:%M:%S"))
    yield "before the first", restore("2001-01-01")
    yield "in the future", restore("2101-01-01")
    yield "not a time", restore("yesterday")


@scenario("select 9 a")
def append_only(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write("select 0 a")
    yield "append", lambda: b.write("select 1 a")
    yield "append only", lambda: b.set(delta__appendOnly=True)
    yield "append again", lambda: b.write("select 2 a")
    yield "restore", lambda: b.table().restoreToVersion(0).collect()
    yield "append once more", lambda: b.write("select 3 a")
    yield "restore to appends", lambda: b.table().restoreToVersion(3).collect()
    yield "delete", lambda: b.table().delete("a = 1")
    yield "replace", lambda: b.create("replace").addColumn("a", "int").execute()
    yield "make append only", lambda: b.set(delta__appendOnly=True)
    yield "delete nothing", lambda: b.table().delete("a = 100")


@scenario("select 9 a, 'z' b", delete="a = 9")
def settings_of_the_session(b: Bench) -> Iterator[Step]:
    conf = "spark.databricks.delta."
    yield (
        "default properties",
        under(b, f"{conf}properties.defaults.enableChangeDataFeed", "true", lambda: b.write("select 1 a, 'x' b")),
    )
    yield (
        "metadata",
        under(b, f"{conf}commitInfo.userMetadata", "by the session", lambda: b.write("select 2 a, 'x' b")),
    )
    yield (
        "metadata of both",
        under(
            b,
            f"{conf}commitInfo.userMetadata",
            "by the session",
            lambda: b.write("select 2 a, 'x' b", userMetadata="by the option"),
        ),
    )
    yield (
        "merges",
        under(b, f"{conf}schema.autoMerge.enabled", "true", lambda: b.write("select 3 a, 'x' b, 1 c")),
    )
    yield (
        "builder",
        under(
            b,
            f"{conf}properties.defaults.appendOnly",
            "true",
            lambda: b.create("replace").addColumn("a", "int").addColumn("b", "string").execute(),
        ),
    )
    yield "off", lambda: b.set(delta__appendOnly=False)
    yield (
        "metadata of a property",
        under(b, f"{conf}commitInfo.userMetadata", "said of it", lambda: b.set(delta__logRetentionDuration="9 days")),
    )
    yield (
        "metadata of a delete",
        under(b, f"{conf}commitInfo.userMetadata", "gone", lambda: b.table().delete("a = 77")),
    )


@scenario("select 9 a, parse_json('[1]') v", delete="a = 9")
def variants(b: Bench) -> Iterator[Step]:
    rows = "select cast(id as int) a, parse_json(concat('{\"k\":', id, '}')) v from range(3)"
    yield "create", lambda: b.write(rows)
    yield "append", lambda: b.write("select 5 a, cast(null as variant) v")
    yield "new variant", lambda: b.write("select 6 a, parse_json('1') w", mergeSchema=True)
    yield "inside", lambda: b.write("select 7 a, array(parse_json('1')) l", mergeSchema=True)
    yield (
        "partitioned",
        lambda: b.create("replace").addColumn("v", "variant").addColumn("a", "int").partitionedBy("v").execute(),
    )
    yield "overwrite", lambda: b.write(rows, "overwrite")


@scenario("select 9 a", delete="a = 9")
def timestamps_without_zone(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write("select 1 a")
    yield "merge", lambda: b.write("select 2 a, timestamp_ntz'2024-01-01 01:02:03.456789' n", mergeSchema=True)
    yield "add the feature", lambda: b.table().addFeatureSupport("timestampNtz")
    yield "merge now", lambda: b.write("select 2 a, timestamp_ntz'2024-01-01 01:02:03.456789' n", mergeSchema=True)
    yield "old", lambda: b.write("select 3 a, timestamp_ntz'1582-10-04 00:00:00' n")
    yield "zone for none", lambda: b.write("select 3 a, timestamp'2024-01-01 00:00:00' n")


@scenario("select 9 a, 'z' b", delete="a = 9")
def unmapped_again(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write("select 1 a, 'x' b", delta__columnMapping__mode="name")
    yield "to none", lambda: b.set(delta__columnMapping__mode="none")
    yield "append", lambda: b.write("select 2 a, 'x' b")
    yield "to id", lambda: b.set(delta__columnMapping__mode="id")
    yield (
        "replace by name",
        lambda: (
            b.create("replace")
            .addColumn("a", "int")
            .addColumn("b", "string")
            .property("delta.columnMapping.mode", "name")
            .execute()
        ),
    )
    yield "append mapped", lambda: b.write("select 3 a, 'x' b")
    yield "unset", lambda: b.unset("delta.columnMapping.mode")
    yield (
        "replace by none",
        lambda: (
            b.create("replace")
            .addColumn("a", "int")
            .addColumn("b", "string")
            .property("delta.columnMapping.mode", "none")
            .execute()
        ),
    )
    yield "append again", lambda: b.write("select 3 a, 'x' b")


@scenario("select 9 a, 'z' b", delete="a = 9")
def defaults_without_feature(b: Bench) -> Iterator[Step]:
    types = __import__("pyspark.sql.types", fromlist=["x"])
    extra = {"CURRENT_DEFAULT": "'d'", "EXISTS_DEFAULT": "'d'"}
    schema = types.StructType(
        [types.StructField("a", types.IntegerType()), types.StructField("b", types.StringType(), True, extra)]
    )
    yield "plain", lambda: b.create().addColumn("a", "int").addColumn("b", "string").execute()
    yield "replace", lambda: b.create("replace").addColumns(schema).execute()
    yield "support", lambda: b.table().addFeatureSupport("allowColumnDefaults")
    yield "replace now", lambda: b.create("replace").addColumns(schema).execute()
    yield "append", lambda: b.write("select 1 a")


@scenario("select 9 id, 'a' name", delete="id = 9")
def column_builders(b: Bench) -> Iterator[Step]:
    def columns(verb: str) -> object:
        return (
            b.create(verb)
            .addColumn("id", "bigint", nullable=False, comment="the 'key'")
            .addColumn("name", b.types.StringType(), comment='of "it"')
            .addColumn("n", "bigint", generatedByDefaultAs=b.delta.IdentityGenerator(10, 5))
            .addColumn("upper_name", "string", generatedAlwaysAs="upper(name)", comment="computed")
            .comment("a 'table'")
            .property("Team", "Blue")
            .property("delta.dataSkippingNumIndexedCols", "2")
        )

    yield "create", lambda: columns("create").execute()
    yield "append", lambda: b.write("select id, concat('n', id) name from range(3)")
    yield "replace", lambda: columns("replace").partitionedBy("name").execute()
    yield "append again", lambda: b.write("select id, concat('n', id) name from range(3)")
    yield "null key", lambda: b.write("select cast(null as bigint) id, 'x' name")
    yield "no columns", lambda: b.create("replace").execute()
    yield (
        "identity of int",
        lambda: b.create("replace").addColumn("i", "int", generatedAlwaysAs=b.delta.IdentityGenerator()).execute(),
    )


@scenario("select 9000 id, 3 w", delete="id = 9000")
def following(b: Bench) -> Iterator[Step]:
    """Frames that were made before show the table as it is now: what they count is written down in it."""
    known: dict[str, Callable[[], object]] = {}

    def frames() -> None:
        load = b.spark.read.format("delta").load(b.path)
        load.createOrReplaceTempView("following_view")
        kept = {
            "load": load,
            "where": load.where("id < 1000 and v >= 'a'"),
            "toDF": b.table().toDF(),
            "view": b.spark.table("following_view"),
            "itself": load.alias("x").join(b.table().toDF().alias("y"), "id"),
            "asked": b.spark.read.format("delta").option("versionAsOf", 0).load(b.path),
        }
        # Each a frame of its own, which is planned when it is asked.
        known.update({name: lambda df=df: df.selectExpr("count(*) n").collect()[0][0] for name, df in kept.items()})
        known["filled"] = lambda: load.where("v is not null").selectExpr("count(*) n").collect()[0][0]
        known["frame"] = lambda: load

    def counts(turn: int) -> Step:
        def write() -> None:
            found = [known[name]() for name in ("load", "where", "toDF", "view", "itself", "asked", "filled")]
            b.write(f"select {turn * 1000}L id, '{'-'.join(map(str, found))}' v")

        return f"counts {turn}", write

    rows = "select id, concat('v', id) v from range({}, {})"
    yield "create", lambda: b.write(rows.format(0, 6), delta__enableDeletionVectors="true")
    yield "frames", frames
    yield counts(1)
    yield "append", lambda: b.write(rows.format(10, 12))
    yield counts(2)
    yield "delete", lambda: b.table().delete("id in (1, 10)")
    yield counts(3)
    yield "update", lambda: b.table().update("id = 2", {"v": "null"})
    yield counts(4)
    yield (
        "into itself",
        lambda: known["frame"]().selectExpr("id + 100 as id", "v").write.format("delta").mode("append").save(b.path),
    )
    yield counts(5)
    yield (
        "over itself",
        lambda: known["frame"]().where("id < 1000").write.format("delta").mode("overwrite").save(b.path),
    )
    yield counts(6)
    yield (
        "merge with itself",
        lambda: (
            b.table()
            .alias("t")
            .merge(known["frame"]().where("id < 4").selectExpr("id + 4 as id", "'m' v").alias("s"), "t.id = s.id")
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
        ),
    )
    yield counts(7)
    yield "add a column", lambda: b.add("more", "int")
    yield counts(8)
    yield "other columns", lambda: b.write("select 1 id, 2 w", "overwrite", overwriteSchema="true")
    yield counts(9)
