"""Scenarios about the table: protocol, properties, row tracking, timestamps, change feed, restore, replacing."""

from __future__ import annotations

from collections.abc import Iterator

from .bench import Bench, Step, scenario

ROWS = "select cast(id as int) a, concat('b', id) b from range(10)"


@scenario("select 'dn' name, 3 qty, timestamp'2024-03-01 00:00:00' ts", delete="qty = 3", changes=1)
def everything_at_once(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: (
            b.create()
            .addColumn("id", "bigint", generatedAlwaysAs=b.delta.IdentityGenerator(start=100, step=1))
            .addColumn("name", "varchar(10)", nullable=False)
            .addColumn("qty", "int")
            .addColumn("ts", "timestamp")
            .addColumn("day", "date", generatedAlwaysAs="cast(ts as date)")
            .partitionedBy("day")
            .property("delta.columnMapping.mode", "name")
            .property("delta.enableRowTracking", "true")
            .property("delta.enableInCommitTimestamps", "true")
            .property("delta.enableChangeDataFeed", "true")
            .property("delta.enableDeletionVectors", "true")
            .property("delta.checkpointPolicy", "v2")
            .property("delta.enableTypeWidening", "true")
            .property("delta.checkpointInterval", "4")
            .execute()
        ),
    )
    rows = "select concat('n', id) name, cast(id as int) qty, timestamp'2024-01-01 00:00:00' + make_interval(0,0,0,cast(id % 2 as int)) ts from range(6)"
    yield "append", lambda: b.write(rows)
    yield "constrain", lambda: b.constrain("qty_ok", "qty >= 0")
    yield "violate", lambda: b.write("select 'x' name, -1 qty, timestamp'2024-01-01 00:00:00' ts")
    yield "rename", lambda: b.rename("name", "the name")
    yield "widen", lambda: b.change("ts", comment="when")
    yield "append renamed", lambda: b.write("select 'r' `the name`, 7 qty, timestamp'2024-01-01 00:00:00' ts")
    yield (
        "merge",
        lambda: b.write(
            "select 'm' `the name`, 8 qty, timestamp'2024-01-03 00:00:00' ts, named_struct('k', 1) extra",
            mergeSchema=True,
        ),
    )
    yield (
        "replace a day",
        lambda: b.write(
            "select 'o' `the name`, 9 qty, timestamp'2024-01-02 05:00:00' ts",
            "overwrite",
            replaceWhere="day = '2024-01-02'",
        ),
    )
    yield "rename back", lambda: b.rename("`the name`", "name")
    yield "drop", lambda: b.drop("extra")
    yield "restore", lambda: b.table().restoreToVersion(1).collect()
    yield "after restore", lambda: b.write("select 'z' name, 10 qty, timestamp'2024-01-01 00:00:00' ts")


@scenario("select 9 a, 'z' b", delete="a = 9")
def legacy_to_features(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: (
            b.create()
            .addColumns(b.spark.sql(ROWS).schema)
            .property("delta.minReaderVersion", "1")
            .property("delta.minWriterVersion", "2")
            .execute()
        ),
    )
    yield "append", lambda: b.write(ROWS)
    yield "to 1, 3", lambda: b.table().upgradeTableProtocol(1, 3)
    yield "lower", lambda: b.table().upgradeTableProtocol(1, 2)
    yield "constraint", lambda: b.constrain("c", "a < 100")
    yield "to 2, 6", lambda: b.table().upgradeTableProtocol(2, 6)
    yield "append at 6", lambda: b.write(ROWS)
    yield "feature", lambda: b.table().addFeatureSupport("deletionVectors")
    yield "again", lambda: b.table().addFeatureSupport("deletionVectors")
    yield "no such feature", lambda: b.table().addFeatureSupport("teleportation")
    yield "to 3, 7", lambda: b.table().upgradeTableProtocol(3, 7)
    yield "too high", lambda: b.table().upgradeTableProtocol(4, 9)
    yield "append at 7", lambda: b.write(ROWS)
    yield "row tracking", lambda: b.table().addFeatureSupport("rowTracking")
    yield "append with ids", lambda: b.write(ROWS)


@scenario("select 9 a, 'z' b", delete="a = 9")
def legacy_straight_to_seven(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write(ROWS)
    yield "to 1, 7", lambda: b.table().upgradeTableProtocol(1, 7)
    yield "to 3, 7", lambda: b.table().upgradeTableProtocol(3, 7)
    yield "ntz", lambda: b.add("n", "timestamp_ntz")
    yield "append", lambda: b.write("select 1 a, 'x' b, timestamp_ntz'2024-01-01 01:01:01.000001' n")
    yield "clustered features", lambda: b.set(delta__feature__domainMetadata="supported")


@scenario("select 9 a, 'z' b", delete="a = 9")
def row_tracking(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write(ROWS, delta__enableRowTracking="true")
    yield "append", lambda: b.write(ROWS)
    yield "no rows", lambda: b.write(ROWS + " where false")
    yield "overwrite", lambda: b.write(ROWS, "overwrite")
    yield "restore", lambda: b.table().restoreToVersion(1).collect()
    yield "append after", lambda: b.write("select 11 a, 'n' b")
    yield "replace", lambda: b.create("replace").addColumns(b.spark.sql(ROWS).schema).execute()
    yield "append to it", lambda: b.write(ROWS)
    yield "overwrite schema", lambda: b.write("select 1 a, 'x' b, 2 c", "overwrite", overwriteSchema=True)
    yield "disable", lambda: b.set(delta__enableRowTracking=False)
    yield "append disabled", lambda: b.write("select 1 a, 'x' b")


@scenario("select 9 a, 'z' b", delete="a = 9")
def row_tracking_later(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write(ROWS)
    yield "append", lambda: b.write("select 1 a, 'x' b")
    yield "enable", lambda: b.set(delta__enableRowTracking=True)
    yield "append with ids", lambda: b.write("select 2 a, 'x' b")
    yield "restore to before", lambda: b.table().restoreToVersion(1).collect()
    yield "append again", lambda: b.write("select 3 a, 'x' b")


@scenario("select 9 a, 'z' b", delete="a = 9")
def in_commit_timestamps(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write(ROWS)
    yield "enable", lambda: b.set(delta__enableInCommitTimestamps=True)
    yield "append", lambda: b.write(ROWS)
    yield "restore", lambda: b.table().restoreToVersion(0).collect()
    yield "disable", lambda: b.set(delta__enableInCommitTimestamps=False)
    yield "append disabled", lambda: b.write(ROWS)
    yield "enable again", lambda: b.set(delta__enableInCommitTimestamps=True)
    yield "overwrite", lambda: b.write(ROWS, "overwrite")


@scenario("select 9 a, 'z' b", delete="a = 9", changes=0)
def change_feed(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: (
            b.create()
            .addColumn("a", "int")
            .addColumn("b", "string")
            .property("delta.enableChangeDataFeed", "true")
            .execute()
        ),
    )
    yield "append", lambda: b.write(ROWS)
    yield "overwrite", lambda: b.write("select 1 a, 'o' b", "overwrite")
    yield "merge", lambda: b.write("select 2 a, 'o' b, 3 c", mergeSchema=True)
    yield "reserved name", lambda: b.write("select 2 a, 'o' _change_type", mergeSchema=True)
    yield "restore", lambda: b.table().restoreToVersion(1).collect()
    yield "replace rows", lambda: b.write("select 5 a, 'n' b", "overwrite", replaceWhere="a < 3")
    yield "replace rows outside", lambda: b.write("select 50 a, 'n' b", "overwrite", replaceWhere="a < 3")


@scenario("select 9 a, 'z' b", delete="a = 9")
def deletion_vector_tables(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write(ROWS, delta__enableDeletionVectors="true")
    yield "append", lambda: b.write(ROWS)
    yield "overwrite", lambda: b.write(ROWS, "overwrite")
    yield "restore", lambda: b.table().restoreToVersion(1).collect()
    yield "mapped, too", lambda: b.set(delta__columnMapping__mode="name")
    yield "append mapped", lambda: b.write(ROWS)


@scenario("select 9 a, 'z' b", delete="a = 9")
def builders(b: Bench) -> Iterator[Step]:
    schema = b.spark.sql(ROWS).schema
    yield "replace nothing", lambda: b.create("replace").addColumns(schema).execute()
    yield "create if not exists", lambda: b.create("createIfNotExists").addColumns(schema).property("p", "1").execute()
    yield "is there", lambda: b.create("createIfNotExists").addColumn("other", "int").execute()
    yield "create", lambda: b.create().addColumns(schema).execute()
    yield "append", lambda: b.write(ROWS)
    yield "append again", lambda: b.write(ROWS)
    yield (
        "mapped",
        lambda: b.create("replace").addColumns(schema).property("delta.columnMapping.mode", "name").execute(),
    )
    yield "append mapped", lambda: b.write(ROWS)
    yield (
        "unknown property",
        lambda: b.create("replace").addColumns(schema).property("delta.enableMagic", "1").execute(),
    )
    yield "bad value", lambda: b.create("replace").addColumns(schema).property("delta.appendOnly", "maybe").execute()
    yield "unknown partition", lambda: b.create("replace").addColumns(schema).partitionedBy("zz").execute()
    yield "twice", lambda: b.create("replace").addColumns(schema).addColumn("A", "int").execute()
    yield "bad name", lambda: b.create("replace").addColumn("a b", "int").execute()
    yield "replace", lambda: b.create("replace").addColumns(schema).execute()


@scenario("select 9 a, 'z' b")
def properties(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write(ROWS, delta__logRetentionDuration="interval 5 days", delta__checkpointInterval="3")
    yield "options of a table that exists", lambda: b.write(ROWS, delta__appendOnly="true")
    yield "set", lambda: b.set(team="me", delta__dataSkippingNumIndexedCols=1)
    yield "append", lambda: b.write(ROWS)
    yield "columns of statistics", lambda: b.set(delta__dataSkippingStatsColumns="b")
    yield "append with them", lambda: b.write(ROWS)
    yield "unknown statistics column", lambda: b.set(delta__dataSkippingStatsColumns="zz")
    yield "unset", lambda: b.unset("team")
    yield "unknown", lambda: b.set(delta__nope=1)
    yield "bad", lambda: b.set(delta__checkpointInterval="often")
    yield "bad duration", lambda: b.set(delta__logRetentionDuration="soon")
    yield "years", lambda: b.set(delta__logRetentionDuration="interval 1 year")
    yield "struct statistics", lambda: b.set(delta__checkpoint__writeStatsAsStruct=True)
    yield "append only", lambda: b.set(delta__appendOnly=True)
    yield "overwrite", lambda: b.write(ROWS, "overwrite")
    yield "append is allowed", lambda: b.write(ROWS)
    yield "replace where", lambda: b.write(ROWS, "overwrite", replaceWhere="true")


@scenario("select 9 a, 'z' b", delete="a = 9")
def saving(b: Bench) -> Iterator[Step]:
    yield "error mode creates", lambda: b.write(ROWS, "errorifexists", userMetadata="first")
    yield "error mode", lambda: b.write(ROWS, "errorifexists")
    yield "ignore", lambda: b.write(ROWS, "ignore")
    yield "transaction", lambda: b.write(ROWS, txnAppId="app", txnVersion=5)
    yield "the same again", lambda: b.write(ROWS, txnAppId="app", txnVersion=5)
    yield "an older one", lambda: b.write(ROWS, txnAppId="app", txnVersion=4)
    yield "the next", lambda: b.write("select 1 a, 't' b", txnAppId="app", txnVersion=6)
    yield "half a transaction", lambda: b.write("select 1 a, 't' b", txnAppId="app")
    yield "overwrite in one", lambda: b.write("select 2 a, 't' b", "overwrite", txnAppId="other", txnVersion=0)
    yield "more records per file", lambda: b.write(ROWS, maxRecordsPerFile=4)
    yield "restore", lambda: b.table().restoreToVersion(0).collect()
    yield "restore the newest", lambda: b.table().restoreToVersion(5).collect()
    yield "restore what is not", lambda: b.table().restoreToVersion(50).collect()


@scenario("select 9 a, 'z' b", delete="a = 9")
def clustered(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.create().addColumns(b.spark.sql(ROWS).schema).clusterBy("a", "b").execute()
    yield "append", lambda: b.write(ROWS)
    yield "overwrite", lambda: b.write(ROWS, "overwrite")
    yield (
        "partitioned",
        lambda: (
            b.create("replace").addColumn("a", "int").addColumn("b", "int").clusterBy("a").partitionedBy("b").execute()
        ),
    )
    yield "no statistics", lambda: b.create("replace").addColumn("a", "array<int>").clusterBy("a").execute()
    yield "replace", lambda: b.create("replace").addColumns(b.spark.sql(ROWS).schema).clusterBy("b").execute()
    yield "append again", lambda: b.write(ROWS)
    yield "replace unclustered", lambda: b.create("replace").addColumns(b.spark.sql(ROWS).schema).execute()
    yield "append more", lambda: b.write(ROWS)
    yield "restore", lambda: b.table().restoreToVersion(1).collect()


@scenario("select 9 a, 'z' b", delete="a = 9")
def checkpoints(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: b.write(
            ROWS,
            delta__checkpointInterval="2",
            delta__checkpoint__writeStatsAsStruct="true",
            delta__checkpointPolicy="v2",
        ),
    )
    yield "append", lambda: b.write(ROWS)
    yield "checkpointed", lambda: b.write(ROWS)
    yield "classic", lambda: b.set(delta__checkpointPolicy="classic", delta__checkpoint__writeStatsAsJson=False)
    yield "append classic", lambda: b.write(ROWS)
    yield "overwrite", lambda: b.write(ROWS, "overwrite")
    yield "append last", lambda: b.write(ROWS)


@scenario("select 9 a, 'z' b", delete="a = 9")
def recreated(b: Bench) -> Iterator[Step]:
    schema = b.spark.sql("select 1 a, 'x' b where false").select("a", "b").schema
    yield "create or replace nothing", lambda: b.create("createOrReplace").addColumns(schema).execute()
    yield "append", lambda: b.write(ROWS)
    # Not `createOrReplace` of a table that is there: by its path delta-spark takes that for `create`, leaves a table of
    # the same description alone, rows and all, and refuses any other. Ours replaces it, as by its name.
    yield "replace", lambda: b.create("replace").addColumns(schema).addColumn("c", "int").execute()
    yield "replace by no columns", lambda: b.create("replace").execute()
    yield "append again", lambda: b.write(ROWS)
