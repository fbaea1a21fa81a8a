"""Scenarios about values: constraints, generated, default and identity columns, lengths, partitions."""

from __future__ import annotations

from collections.abc import Iterator

from .bench import Bench, Step, scenario


@scenario("select 9 a, 'm' b", delete="a = 9")
def constraints(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write("select 1 a, 'x' b")
    yield "add", lambda: b.constrain("positive", "a > 0")
    yield "twice", lambda: b.constrain("Positive", "a > 1")
    yield "violated by rows", lambda: b.constrain("big", "a > 100")
    yield "unknown column", lambda: b.constrain("odd", "zzz > 100")
    yield "no condition", lambda: b.constrain("odd", "a + 1")
    yield "append", lambda: b.write("select 2 a, 'y' b")
    yield "violate", lambda: b.write("select -2 a, 'y' b")
    yield "null", lambda: b.write("select cast(null as int) a, 'y' b")
    yield "second", lambda: b.constrain("texts", "b < 'zz' and b is not null")
    yield "violate the second", lambda: b.write("select 2 a, 'zzz' b")
    yield (
        "drop a column of it",
        lambda: b.set(delta__columnMapping__mode="name", delta__minReaderVersion=2, delta__minWriterVersion=5),
    )
    yield "rename a column of it", lambda: b.rename("a", "c")
    yield "drop constraint", lambda: b.unconstrain("positive")
    yield "drop it again", lambda: b.unconstrain("positive")
    yield "now", lambda: b.write("select -2 a, 'y' b")
    yield "overwrite violates", lambda: b.write("select 2 a, 'zzz' b", "overwrite")


@scenario("select timestamp'2025-06-01 10:00:00' ts, 9 a", delete="a = 9", changes=1)
def generated(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: (
            b.create()
            .addColumn("ts", "timestamp")
            .addColumn("a", "int")
            .addColumn("day", "date", generatedAlwaysAs="cast(ts as date)")
            .addColumn("y", "int", generatedAlwaysAs="year(ts)")
            .addColumn("b", "int", generatedAlwaysAs="a * 2", comment="twice")
            .partitionedBy("day", "y")
            .property("delta.enableChangeDataFeed", "true")
            .execute()
        ),
    )
    rows = "select timestamp'2024-01-02 03:04:05' + make_interval(0,0,0,cast(id as int)) ts, cast(id as int) a from range(3)"
    yield "append", lambda: b.write(rows)
    yield "given", lambda: b.write("select timestamp'2024-01-02 03:04:05' ts, 1 a, date'2024-01-02' day, 2024 y, 2 b")
    yield "wrong", lambda: b.write("select timestamp'2024-01-02 03:04:05' ts, 1 a, 3 b")
    yield "null source", lambda: b.write("select cast(null as timestamp) ts, cast(null as int) a")
    yield (
        "replace a day",
        lambda: b.write(
            "select timestamp'2024-01-02 23:00:00' ts, 50 a", "overwrite", replaceWhere="day = '2024-01-02'"
        ),
    )
    yield (
        "replace another day",
        lambda: b.write(
            "select timestamp'2024-01-09 23:00:00' ts, 50 a", "overwrite", replaceWhere="day = '2024-01-02'"
        ),
    )
    yield (
        "dynamic",
        lambda: b.write(
            "select timestamp'2024-01-03 23:00:00' ts, 51 a", "overwrite", partitionOverwriteMode="dynamic"
        ),
    )
    yield "change the source", lambda: b.change("a", comment="source")
    yield "overwrite schema", lambda: b.write("select 1 a", "overwrite", overwriteSchema=True)
    yield (
        "wrong type",
        lambda: (
            b.create("replace")
            .addColumn("a", "int")
            .addColumn("g", "int", generatedAlwaysAs="cast(a as string)")
            .execute()
        ),
    )
    yield "restore", lambda: b.table().restoreToVersion(5).collect()


@scenario("select 77 x", delete="x = 77")
def identity_always(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: (
            b.create()
            .addColumn("id", "bigint", generatedAlwaysAs=b.delta.IdentityGenerator(start=10, step=5))
            .addColumn("x", "int")
            .execute()
        ),
    )
    yield "no rows yet", lambda: b.write("select 1 x where false")
    yield "append", lambda: b.write("select cast(id as int) x from range(3)")
    yield "no rows", lambda: b.write("select 1 x where false")
    yield "given", lambda: b.write("select 1L id, 1 x")
    yield "append more", lambda: b.write("select cast(id as int) x from range(2)")
    yield "overwrite", lambda: b.write("select 5 x", "overwrite")
    yield "merge", lambda: b.write("select 6 x, 'n' y", mergeSchema=True)
    yield (
        "to int",
        lambda: (
            b.create("replace")
            .addColumn("id", "int", generatedAlwaysAs=b.delta.IdentityGenerator())
            .addColumn("x", "int")
            .execute()
        ),
    )
    yield (
        "step 0",
        lambda: (
            b.create("replace").addColumn("id", "bigint", generatedAlwaysAs=b.delta.IdentityGenerator(1, 0)).execute()
        ),
    )
    yield "restore", lambda: b.table().restoreToVersion(2).collect()
    yield "after restore", lambda: b.write("select 7 x")


@scenario("select 77 x, 'p' p", delete="x = 77")
def identity_by_default(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: (
            b.create()
            .addColumn("id", "bigint", generatedByDefaultAs=b.delta.IdentityGenerator(start=0, step=-1))
            .addColumn("x", "int")
            .addColumn("p", "string")
            .partitionedBy("p")
            .execute()
        ),
    )
    yield "append", lambda: b.write("select cast(id as int) x, 'a' p from range(3)")
    yield "given", lambda: b.write("select -100L id, 1 x, 'b' p")
    yield "after given", lambda: b.write("select 1 x, 'b' p")
    yield "replace", lambda: b.write("select 4 x, 'a' p", "overwrite", replaceWhere="p = 'a'")


@scenario("select 9 a", delete="a = 9")
def defaults(b: Bench) -> Iterator[Step]:
    types = __import__("pyspark.sql.types", fromlist=["x"])

    def column(name: str, data_type: object, default: str) -> object:
        return types.StructField(name, data_type, True, {"CURRENT_DEFAULT": default, "EXISTS_DEFAULT": default})

    schema = types.StructType(
        [
            types.StructField("a", types.IntegerType()),
            column("b", types.StringType(), "'dflt'"),
            column("c", types.IntegerType(), "1 + 2"),
        ]
    )
    yield (
        "create",
        lambda: b.create().addColumns(schema).property("delta.feature.allowColumnDefaults", "supported").execute(),
    )
    yield "append", lambda: b.write("select 1 a")
    yield "null", lambda: b.write("select 2 a, cast(null as string) b")
    yield "given", lambda: b.write("select 3 a, 'x' b, 4 c")
    yield "merge", lambda: b.write("select 4 a, 5 n", mergeSchema=True)
    rows = lambda: b.spark.read.format("delta").load(b.path)  # noqa: E731  # read anew in each step
    yield (
        "its own rows",
        lambda: rows().write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(b.path),
    )
    yield "append to them", lambda: b.write("select 5 a")


@scenario("select 'ab' c, 'xy' v", delete="v = 'xy'")
def texts(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: (
            b.create()
            .addColumn("c", "char(4)")
            .addColumn("v", "varchar(3)")
            .addColumn("s", "struct<v:varchar(2)>")
            .addColumn("l", "array<char(2)>")
            .execute()
        ),
    )
    yield "append", lambda: b.write("select 'a' c, 'abc' v, named_struct('v', 'a') s, array('x') l")
    # delta-spark fails on a struct with lengths that is missing, so that it is given each time.
    no = ", cast(null as struct<v:string>) s"
    yield "spaces", lambda: b.write(f"select 'a     ' c, 'ab   ' v{no}")
    yield "too long", lambda: b.write(f"select 'abcde' c{no}")
    yield "too long varchar", lambda: b.write(f"select 'abcd' v{no}")
    yield "too long nested", lambda: b.write("select named_struct('v', 'abc') s")
    yield "longer", lambda: b.change("v", type="varchar(5)")
    yield "shorter", lambda: b.change("v", type="varchar(4)")
    yield "now", lambda: b.write(f"select 'abcd' v{no}")
    yield "add", lambda: b.add("w", "varchar(2)")
    yield "overwrite schema", lambda: b.write("select 'abcdefg' c, 'q' v", "overwrite", overwriteSchema=True)


@scenario("select 9 k, named_struct('x', 1, 'y', named_struct('z', 2)) s", delete="k = 9")
def required(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: (
            b.create()
            .addColumn("k", "int", nullable=False)
            .addColumn("s", "struct<x:int not null, y:struct<z:int not null>>")
            .execute()
        ),
    )
    yield "append", lambda: b.write("select 1 k, named_struct('x', 1, 'y', named_struct('z', 2)) s")
    yield "null struct", lambda: b.write("select 1 k, cast(null as struct<x:int,y:struct<z:int>>) s")
    yield (
        "null inside",
        lambda: b.write("select 1 k, named_struct('x', 1, 'y', named_struct('z', cast(null as int))) s"),
    )
    yield "null inner struct", lambda: b.write("select 1 k, named_struct('x', 1, 'y', cast(null as struct<z:int>)) s")
    yield "null", lambda: b.write("select cast(null as int) k")
    yield "allow", lambda: b.change("s.x", nullable=True)
    yield "now", lambda: b.write("select 1 k, named_struct('x', cast(null as int), 'y', named_struct('z', 3)) s")
    yield "in an array", lambda: b.create("replace").addColumn("l", "array<struct<e:int not null>>").execute()


_ODD = [
    "a b",
    "a/b",
    "100%",
    "ü=ö",
    "a:b",
    "x''y",
    'q"q',
    "{c}",
    "e^f",
    "#h?i",
    "..",
    "%20",
    "",
    " ",
    "NULL",
]


@scenario("select 'a/b' v, 99 i, date'2024-01-01' d", delete="i = 99")
def odd_partition_values(b: Bench) -> Iterator[Step]:
    rows = " union all ".join(f"select '{v}' v, {i} i" for i, v in enumerate(_ODD))
    yield "create", lambda: b.write(f"select v, i, date'2024-01-01' d from ({rows})", partition_by=("v", "d"))
    yield "null", lambda: b.write("select cast(null as string) v, 50 i, cast(null as date) d")
    yield (
        "replace one",
        lambda: b.write("select 'ü=ö' v, 51 i, date'2024-01-01' d", "overwrite", replaceWhere="v = 'ü=ö'"),
    )
    yield (
        "replace null",
        lambda: b.write(
            "select cast(null as string) v, 52 i, date'2024-01-02' d", "overwrite", replaceWhere="v is null"
        ),
    )
    yield (
        "dynamic",
        lambda: b.write("select '%20' v, 53 i, date'2024-01-01' d", "overwrite", partitionOverwriteMode="dynamic"),
    )
    yield (
        "replace a quote",
        lambda: b.write(
            "select 'q\"q' v, 54 i, date'2024-01-01' d", "overwrite", replaceWhere="v = 'q\"q' and d >= '2023-01-01'"
        ),
    )


@scenario(
    "select 9 i, timestamp'2024-05-05 05:05:05' ts, timestamp_ntz'2024-05-05 05:05:05' n, 1.5BD dec", delete="i = 9"
)
def typed_partitions(b: Bench) -> Iterator[Step]:
    sql = """select cast(id as int) i, timestamp_micros(1700000000000000 + id * 500000) ts, timestamp_ntz'2024-01-01 00:00:00.5' n,
        cast(id / 2 as decimal(9,3)) dec, id % 2 = 0 b, cast(id * 1.5 as double) d, cast(1.25 as float) f,
        cast(id as tinyint) t from range(3)"""
    parts = ("ts", "n", "dec", "b", "d", "f", "t")
    yield "create", lambda: b.write(sql, partition_by=parts)
    yield "append", lambda: b.write(sql)
    yield "replace a time", lambda: b.write(
        "select 100 i, timestamp_micros(1700000000500000) ts", "overwrite",
        replaceWhere="ts = '2023-11-14 22:13:20.5'",
    )  # fmt: skip
    yield (
        "replace a decimal",
        lambda: b.write("select 101 i, cast(1 as decimal(9,3)) dec", "overwrite", replaceWhere="dec = 1"),
    )
    yield "replace a double", lambda: b.write("select 102 i, 3.0D d", "overwrite", replaceWhere="d > 2.5")
    yield "dynamic", lambda: b.write(sql + " where id = 0", "overwrite", partitionOverwriteMode="dynamic")


@scenario("select 9 a, 'q' p, 'r' q", delete="a = 9", changes=0)
def replacements(b: Bench) -> Iterator[Step]:
    rows = "select cast(id as int) a, concat('p', id % 3) p, concat('q', id % 2) q from range(12)"
    yield "create", lambda: b.write(rows, partition_by=("p", "q"), delta__enableChangeDataFeed="true")
    yield "replace", lambda: b.write("select 100 a, 'p1' p, 'q0' q", "overwrite", replaceWhere="p = 'p1'")
    yield "rows outside", lambda: b.write("select 100 a, 'p2' p, 'q0' q", "overwrite", replaceWhere="p = 'p1'")
    yield "nothing there", lambda: b.write("select 100 a, 'p9' p, 'q0' q", "overwrite", replaceWhere="p = 'p9'")
    yield "by nothing", lambda: b.write("select 1 a, 'x' p, 'y' q where false", "overwrite", replaceWhere="p = 'p9'")
    yield (
        "several",
        lambda: b.write("select 101 a, 'p2' p, 'q1' q", "overwrite", replaceWhere="p in ('p2', 'p1') and q = 'q1'"),
    )
    yield (
        "dynamic",
        lambda: b.write(
            "select 102 a, 'p0' p, 'q1' q union all select 103, 'new', 'q1'",
            "overwrite",
            partitionOverwriteMode="dynamic",
        ),
    )
    yield (
        "dynamic nothing",
        lambda: b.write("select 1 a, 'x' p, 'y' q where false", "overwrite", partitionOverwriteMode="dynamic"),
    )
    yield (
        "contradiction",
        lambda: b.write(
            "select 1 a, 'x' p, 'y' q", "overwrite", partitionOverwriteMode="dynamic", replaceWhere="p = 'x'"
        ),
    )
    yield "all", lambda: b.write("select 1 a, 'x' p, 'y' q", "overwrite", replaceWhere="true")
    yield "unknown column", lambda: b.write("select 1 a, 'x' p, 'y' q", "overwrite", replaceWhere="zz = 1")
