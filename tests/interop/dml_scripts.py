"""Scripts of row changes, for any engine that has DeltaTable: each runs with `delta.tables` and with `alluvium`.

Runs in the reference engine's Python, too: no imports of the project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Step = tuple[str, Callable[[], object]]

FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
MASK = {"delta.enableDeletionVectors": "true"}
REWRITE = {"delta.enableDeletionVectors": "false"}
NAMED = {"delta.columnMapping.mode": "name"}
NUMBERED = {"delta.columnMapping.mode": "id"}


@dataclass(frozen=True)
class Script:
    """Steps, and the tables (by name, with their properties) on which they run."""

    steps: Callable[[Stage], Iterator[Step]]
    tables: Mapping[str, Mapping[str, str]]


SCRIPTS: dict[str, Script] = {}


def script(**tables: Mapping[str, str]) -> Callable[[Callable[[Stage], Iterator[Step]]], Callable[..., Any]]:
    """Registers a script under its function's name."""

    def register(steps: Callable[[Stage], Iterator[Step]]) -> Callable[..., Any]:
        SCRIPTS[steps.__name__] = Script(steps, tables)
        return steps

    return register


@dataclass(frozen=True)
class Stage:
    """An engine at work on one table."""

    spark: Any
    delta: Any
    path: str
    properties: Mapping[str, str]

    @property
    def t(self) -> Any:
        return self.delta.DeltaTable.forPath(self.spark, self.path).alias("t")

    def rows(self, sql: str) -> Any:
        return self.spark.sql(sql).coalesce(1).alias("s")

    def merge(self, sql: str, condition: Any = "t.id = s.id") -> Any:
        return self.t.merge(self.rows(sql), condition)

    def create(self, *columns: tuple[str, str], partition_by: tuple[str, ...] = (), **made: Mapping[str, Any]) -> None:
        """Columns by name and type; what else is to be said of some by name."""
        builder = self.delta.DeltaTable.create(self.spark).location(self.path)
        for name, data_type in columns:
            builder = builder.addColumn(name, data_type, **made.get(name, {}))
        for key, value in self.properties.items():
            builder = builder.property(key, value)
        (builder.partitionedBy(*partition_by) if partition_by else builder).execute()

    def append(self, sql: str) -> None:
        self.rows(sql).write.format("delta").mode("append").save(self.path)

    def make(self, rows: int = 20) -> None:
        """`id` from 0, `p` = id % 2 (the partition), `v` = "v" + id; a file a partition."""
        self.create(("id", "long"), ("p", "int"), ("v", "string"), partition_by=("p",))
        self.append(f"select id, cast(id % 2 as int) as p, concat('v', id) as v from range({rows})")


THREE = "select * from values (5L, 1, 's5'), (6L, 0, 's6'), (100L, 1, 's100') as s(id, p, v)"


@script(
    mask=MASK | FEED | TRACKED, rewrite=REWRITE | FEED | TRACKED, mask_plain=MASK, rewrite_plain=REWRITE,
    named=NAMED | MASK | FEED | TRACKED, numbered=NUMBERED | REWRITE | FEED,
)  # fmt: skip
def every_clause(s: Stage) -> Iterator[Step]:
    yield "make", s.make
    yield "delete", lambda: s.t.delete("id = 3")
    yield "update", lambda: s.t.update("id in (4, 5)", {"v": "concat(v, '!')"})
    yield (
        "merge",
        lambda: s.merge(THREE).whenMatchedDelete("s.id = 6").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(),
    )
    yield (
        "not matched by source",
        lambda: (
            s.merge(THREE)
            .whenMatchedUpdate(set={"v": "'q'"})
            .whenNotMatchedBySourceUpdate("t.id = 10", {"v": "'n'"})
            .whenNotMatchedBySourceDelete("t.id = 11")
            .execute()
        ),
    )
    yield "delete again in a file", lambda: s.t.delete("id in (7, 8)")
    yield "nothing to delete", lambda: s.t.delete("id = 1000")
    yield "nothing to update", lambda: s.t.update("id = 1000", {"v": "'x'"})
    yield "a partition goes", lambda: s.t.delete("p = 0")
    yield "all rows", lambda: s.t.update(set={"v": "concat(v, '.')"})
    yield "only inserts", lambda: s.merge(THREE.replace("100L", "101L")).whenNotMatchedInsertAll().execute()
    yield "everything goes", lambda: s.t.delete()


@script(mask=MASK | FEED | TRACKED, rewrite=REWRITE | FEED)
def matches(s: Stage) -> Iterator[Step]:
    twice = "select * from values (5L, 1, 'a'), (5L, 1, 'b'), (7L, 1, 'c') as s(id, p, v)"
    nulls = "select * from values (cast(null as bigint), 1, 'n'), (1L, 1, 'one') as s(id, p, v)"
    yield "make", s.make
    yield "a null key", lambda: s.append("select cast(null as bigint) id, 1 p, 'null' v")
    yield "several update", lambda: s.merge(twice).whenMatchedUpdateAll().execute()
    yield "several delete", lambda: s.merge(twice).whenMatchedDelete("s.v <> 'z'").execute()
    yield "several, one wins", lambda: s.merge(twice).whenMatchedUpdate("s.v = 'a'", {"v": "s.v"}).execute()
    yield (
        "several, none applies",
        lambda: s.merge(twice).whenMatchedUpdate("s.v = 'z'", {"v": "s.v"}).whenNotMatchedInsertAll().execute(),
    )
    yield (
        "several, unconditional",
        lambda: s.merge(twice).whenMatchedDelete().whenNotMatchedBySourceUpdate("id = 9", {"v": "'n'"}).execute(),
    )
    yield (
        "several, inserts",
        lambda: s.merge(twice.replace("5L", "55L"), "t.id = s.id").whenNotMatchedInsertAll("s.id = 55").execute(),
    )
    yield "nulls do not match", lambda: s.merge(nulls).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    yield "nulls match", lambda: s.merge(nulls, "t.id <=> s.id").whenMatchedDelete("t.v = 'null'").execute()
    yield (
        "null conditions",
        lambda: s.merge(THREE).whenMatchedDelete("cast(null as boolean)").whenMatchedUpdateAll().execute(),
    )
    yield (
        "an empty source",
        lambda: s.merge(THREE + " where false").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(),
    )
    yield (
        "an empty source, deletes",
        lambda: s.merge(THREE + " where false").whenMatchedUpdateAll().whenNotMatchedBySourceDelete("p = 0").execute(),
    )
    yield "no equality", lambda: s.merge(THREE, "t.id > s.id + 95").whenMatchedUpdate(set={"v": "s.v"}).execute()
    yield "never", lambda: s.merge(THREE, "false").whenMatchedDelete().whenNotMatchedInsertAll("s.id = 5").execute()
    yield (
        "of itself",
        lambda: (
            s.t.merge(s.t.toDF().where("id = 13").selectExpr("id + 2 as id", "v").alias("s"), "t.id = s.id")
            .whenMatchedUpdate(set={"v": "concat(t.v, s.v)"})
            .execute()
        ),
    )
    yield "null delete", lambda: s.t.delete("id > cast(null as bigint)")
    yield "null update", lambda: s.t.update("v = null", {"v": "'x'"})
    yield "unknown or true", lambda: s.t.delete("id is null or v is null")
    yield "no match at all", lambda: s.merge(THREE, "t.id = s.id and t.v = 'none'").whenMatchedUpdateAll().execute()


@script(mask=MASK | FEED, rewrite=REWRITE | NAMED)
def values(s: Stage) -> Iterator[Step]:
    yield (
        "create",
        lambda: s.create(
            ("id", "int"), ("S", "struct<a:int,b:struct<c:int,D:string>>"), ("d", "decimal(5,2)"), ("day", "date"),
            ("at", "timestamp"), ("many", "array<struct<x:int,y:string>>"), ("m", "map<string,int>"), ("f", "float"),
        ),
    )  # fmt: skip
    yield (
        "append",
        lambda: s.append(
            "select cast(id as int) id, named_struct('a', cast(id as int), 'b', named_struct('c', 1, 'D', 'd')) S, "
            "cast(id as decimal(5,2)) d, date'2024-01-01' day, timestamp'2024-01-01 00:00:00' at, "
            "array(named_struct('x', 1, 'y', 'y')) many, map('k', 1) m, cast(id as float) f from range(4)"
        ),
    )
    yield "no struct", lambda: s.append("select 9 id")
    yield "nested", lambda: s.t.update("id = 1", {"S.b.c": "7", "s.a": "S.a + 1"})
    yield "nested of null", lambda: s.t.update("id = 9", {"S.b.D": "'new'"})
    yield "text to int", lambda: s.t.update("id = 2", {"id": "'22'"})
    yield "bad text to int", lambda: s.t.update("id = 3", {"id": "'x'"})
    yield "long that fits", lambda: s.t.update("id = 3", {"id": "33L"})
    yield "long that does not", lambda: s.t.update("id = 33", {"id": "3000000000L"})
    yield "decimal rounds", lambda: s.t.update("id = 33", {"d": "1.005"})
    yield "decimal overflows", lambda: s.t.update("id = 33", {"d": "123456"})
    yield "int to decimal", lambda: s.t.update("id = 33", {"d": "12", "f": "1.5D"})
    yield "date to timestamp", lambda: s.t.update("id = 33", {"at": "date'2024-02-02'", "day": "'2024-03-03'"})
    yield "boolean to int", lambda: s.t.update("id = 33", {"id": "true"})
    yield "int to date", lambda: s.t.update("id = 33", {"day": "1"})
    yield (
        "struct by name",
        lambda: s.t.update("id = 0", {"S": "named_struct('b', named_struct('D', 'q', 'c', 5), 'a', 3)"}),
    )
    yield "struct with less", lambda: s.t.update("id = 0", {"S": "named_struct('a', 4)"})
    yield "struct with more", lambda: s.t.update("id = 0", {"S": "named_struct('a', 4, 'z', 1)"})
    yield "array", lambda: s.t.update("id = 0", {"many": "array(named_struct('y', 'z', 'x', 8L))"})
    yield "within an array", lambda: s.t.update("id = 0", {"many.x": "1"})
    yield "map", lambda: s.t.update("id = 0", {"m": "map('a', 5L)"})
    yield "null", lambda: s.t.update("id = 0", {"S": "null", "many": "null", "d": "null"})
    yield "twice", lambda: s.t.update("id = 0", {"S.a": "1", "S": "null"})
    yield "twice by case", lambda: s.t.update("id = 0", {"d": "1", "D": "2"})
    yield "unknown", lambda: s.t.update("id = 0", {"nope": "1"})
    yield "unknown field", lambda: s.t.update("id = 0", {"S.nope": "1"})
    yield (
        "stars without regard to case",
        lambda: (
            s.merge(
                "select 33 ID, named_struct('B', named_struct('d', 'l', 'C', 2), 'A', 1) s, 2 D, date'2024-05-05' DAY, "
                "timestamp'2024-05-05 00:00:00' AT, array(named_struct('Y', 'a', 'X', 1)) MANY, map('n', 2) M, 2.5f F "
                "union all select 44, null, 3, null, null, null, null, null"
            )
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
        ),
    )
    yield "star lacks columns", lambda: s.merge("select 33 id, 1 d").whenMatchedUpdateAll().execute()
    yield "star has more", lambda: (
        s.merge("select t.*, 1 as extra from (select 55 id, null S, null d, null day, null at, null many, null m, null f) t")
        .whenNotMatchedInsertAll().execute()
    )  # fmt: skip
    yield (
        "insert some",
        lambda: s.merge("select 66 id").whenNotMatchedInsert(values={"id": "s.id", "t.d": "1"}).execute(),
    )
    yield (
        "insert nested",
        lambda: s.merge("select 67 id").whenNotMatchedInsert(values={"id": "s.id", "S.a": "1"}).execute(),
    )
    yield "merge overflows", lambda: s.merge("select 66 id").whenMatchedUpdate(set={"d": "99999"}).execute()
    yield "merge nested", lambda: s.merge("select 66 id").whenMatchedUpdate(set={"t.S.b.c": "s.id"}).execute()


@script(mask=MASK | FEED, rewrite=REWRITE | NAMED | TRACKED)
def evolving(s: Stage) -> Iterator[Step]:
    yield (
        "create",
        lambda: s.create(("id", "int"), ("v", "string"), ("S", "struct<a:int>"), ("l", "array<struct<x:int>>")),
    )
    yield (
        "append",
        lambda: s.append(
            "select cast(id as int) id, 'v' v, named_struct('a', 1) S, array(named_struct('x', 1)) l from range(4)"
        ),
    )

    def grown(sql: str) -> Any:
        return s.merge(sql).withSchemaEvolution()

    star = "select {0} id, 's' v, {1} from range(1)"
    yield (
        "not asked for",
        lambda: s.merge(star.format(1, "named_struct('a', 1) S, null l, 1 n")).whenMatchedUpdateAll().execute(),
    )
    yield (
        "update all",
        lambda: grown(star.format(1, "named_struct('a', 1) S, null l, 1 n")).whenMatchedUpdateAll().execute(),
    )
    yield (
        "insert all, fewer columns",
        lambda: grown("select 10 id, 2 N, 'new' o").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(),
    )
    yield "update all, fewer columns", lambda: grown("select 2 id, 3 n").whenMatchedUpdateAll().execute()
    yield (
        "nested",
        lambda: (
            grown("select 1 id, named_struct('a', 5, 'b', 6) S union all select 11, named_struct('a', 7, 'b', 8)")
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
        ),
    )
    yield "nested with less", lambda: grown("select 1 id, named_struct('b', 60) S").whenMatchedUpdateAll().execute()
    yield (
        "nested with less, inserted",
        lambda: grown("select 12 id, named_struct('b', 60) S").whenNotMatchedInsertAll().execute(),
    )
    yield (
        "in arrays",
        lambda: grown("select 1 id, array(named_struct('x', 1, 'y', 2)) l").whenMatchedUpdateAll().execute(),
    )
    yield "set a new column", lambda: grown("select 3 id, 'q' q").whenMatchedUpdate(set={"q": "s.q"}).execute()
    yield "set an unknown column", lambda: grown("select 3 id, 'q' q").whenMatchedUpdate(set={"r": "s.q"}).execute()
    yield "set another's column", lambda: grown("select 3 id, 'q' q2").whenMatchedUpdate(set={"v": "s.q2"}).execute()
    yield (
        "insert a new column",
        lambda: grown("select 20 id, 1 w, 2 unused").whenNotMatchedInsert(values={"id": "s.id", "w": "s.w"}).execute(),
    )
    yield "delete alone", lambda: grown("select 20 id, 1 x9").whenMatchedDelete().execute()
    yield (
        "set a new field",
        lambda: grown("select 3 id, named_struct('c', 1) S").whenMatchedUpdate(set={"S.c": "s.S.c"}).execute(),
    )
    yield "another type", lambda: grown("select 3 id, 7L n").whenMatchedUpdateAll().execute()
    yield "a type that does not go", lambda: grown("select 3 id, array(1) n").whenMatchedUpdateAll().execute()
    yield (
        "no row, but a column",
        lambda: grown("select 3 id, 1 late").whenMatchedUpdateAll("s.id = 5").execute(),
    )
    s.spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    yield "by the session", lambda: s.merge("select 3 id, 1 auto").whenMatchedUpdateAll().execute()
    s.spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")


@script(mask=MASK | FEED, rewrite=REWRITE | FEED)
def made_by_the_table(s: Stage) -> Iterator[Step]:
    generator = s.delta.IdentityGenerator if hasattr(s.delta, "IdentityGenerator") else None
    yield (
        "create",
        lambda: s.create(
            ("id", "int"), ("twice", "int"), ("name", "varchar(4)"), ("must", "string"), ("part", "int"),
            partition_by=("part",),
            twice={"generatedAlwaysAs": "id * 2"}, part={"generatedAlwaysAs": "id % 2"}, must={"nullable": False},
        ),
    )  # fmt: skip
    yield "append", lambda: s.append("select cast(id as int) id, 'n' name, 'm' must from range(4)")
    yield "constrain", lambda: constrain(s, "small", "id < 100")
    yield "update", lambda: s.t.update("id = 1", {"id": "11"})
    yield "moves to another partition", lambda: s.t.update("id = 2", {"id": "21"})
    yield "given rightly", lambda: s.t.update("id = 3", {"id": "13", "twice": "26"})
    yield "given wrongly", lambda: s.t.update("id = 13", {"twice": "5"})
    yield "too long", lambda: s.t.update("id = 13", {"name": "'longer'"})
    yield "too long of spaces", lambda: s.t.update("id = 13", {"name": "'abcd  '"})
    yield "null", lambda: s.t.update("id = 13", {"must": "null"})
    yield "constraint", lambda: s.t.update("id = 13", {"id": "100"})
    yield (
        "merge",
        lambda: (
            s.merge("select 13 id, 'a' name, 'b' must union all select 30, 'c', 'd'")
            .whenMatchedUpdate(set={"id": "t.id + 1", "name": "s.name"})
            .whenNotMatchedInsertAll()
            .execute()
        ),
    )
    yield (
        "merge inserts null",
        lambda: s.merge("select 31 id").whenNotMatchedInsert(values={"id": "s.id"}).execute(),
    )
    yield (
        "merge inserts wrongly",
        lambda: (
            s.merge("select 31 id").whenNotMatchedInsert(values={"id": "s.id", "must": "'m'", "twice": "1"}).execute()
        ),
    )
    yield (
        "merge breaks a constraint",
        lambda: s.merge("select 131 id, 'a' name, 'b' must").whenNotMatchedInsertAll().execute(),
    )
    yield (
        "merge updates all",
        lambda: s.merge("select 30 id, 'e' name, 'f' must").whenMatchedUpdateAll().execute(),
    )
    yield "delete by the generated", lambda: s.t.delete("part = 1 and twice > 50")
    del generator


def constrain(s: Stage, name: str, condition: str) -> None:
    if s.delta.__name__ == "alluvium":
        s.delta.DeltaTable.forPath(s.spark, s.path).addConstraint(name, condition)
    else:
        s.spark.sql(f"ALTER TABLE delta.`{s.path}` ADD CONSTRAINT {name} CHECK ({condition})")


@script(mask=MASK | FEED, rewrite=REWRITE)
def numbers(s: Stage) -> Iterator[Step]:
    def create(builder: Any, **how: Any) -> None:
        builder = builder.addColumn("n", "bigint", **how).addColumn("id", "int").addColumn("v", "string")
        for key, value in s.properties.items():
            builder = builder.property(key, value)
        builder.execute()

    always = s.delta.IdentityGenerator(start=10, step=5)
    yield "create", lambda: create(s.delta.DeltaTable.create(s.spark).location(s.path), generatedAlwaysAs=always)
    yield "append", lambda: s.append("select cast(id as int) id, 'v' v from range(3)")
    yield (
        "insert all",
        lambda: (
            s.merge("select 1 id, 'u' v union all select 7, 'i'")
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
        ),
    )
    yield "insert", lambda: s.merge("select 8 id").whenNotMatchedInsert(values={"id": "s.id"}).execute()
    yield (
        "insert the number",
        lambda: s.merge("select 9 id").whenNotMatchedInsert(values={"id": "s.id", "n": "1"}).execute(),
    )
    yield "star brings the number", lambda: s.merge("select 9 id, 'v' v, 1L n").whenNotMatchedInsertAll().execute()
    yield "update the number", lambda: s.t.update("id = 1", {"n": "1"})
    yield "merge the number", lambda: s.merge("select 1 id").whenMatchedUpdate(set={"n": "1"}).execute()
    yield "update beside it", lambda: s.t.update("id = 1", {"v": "'x'"})
    yield (
        "no insert after all",
        lambda: s.merge("select 1 id, 'w' v").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(),
    )
    yield "two inserts", lambda: (
        s.merge("select 20 id, 'a' v union all select 21, 'b'")
        .whenNotMatchedInsert("s.id = 20", {"id": "s.id", "v": "'first'"}).whenNotMatchedInsertAll().execute()
    )  # fmt: skip
    yield "delete", lambda: s.t.delete("n > 20")


@script(mask=MASK | FEED, rewrite=REWRITE)
def numbers_by_default(s: Stage) -> Iterator[Step]:
    default = s.delta.IdentityGenerator(start=-1, step=-2)
    yield "create", lambda: s.create(("n", "bigint"), ("id", "int"), n={"generatedByDefaultAs": default})
    yield "append", lambda: s.append("select cast(id as int) id from range(2)")
    yield (
        "insert the number",
        lambda: s.merge("select 9 id").whenNotMatchedInsert(values={"id": "s.id", "n": "-50"}).execute(),
    )
    yield "insert", lambda: s.merge("select 10 id").whenNotMatchedInsert(values={"id": "s.id"}).execute()
    yield "star without it", lambda: s.merge("select 11 id").whenNotMatchedInsertAll().execute()
    yield "star with it", lambda: s.merge("select 12 id, -99L n").whenNotMatchedInsertAll().execute()
    yield "update the number", lambda: s.t.update("id = 1", {"n": "1"})
    yield "merge the number", lambda: s.merge("select 1 id").whenMatchedUpdate(set={"n": "s.id"}).execute()
    yield "some given, some made", lambda: (
        s.merge("select 20 id union all select 21")
        .whenNotMatchedInsert("s.id = 20", {"id": "s.id", "n": "7"}).whenNotMatchedInsert(values={"id": "s.id"}).execute()
    )  # fmt: skip


@script(mask=MASK | FEED, rewrite=REWRITE)
def defaults(s: Stage) -> Iterator[Step]:
    def create() -> None:
        types = __import__("pyspark.sql.types", fromlist=["types"])
        fields = [
            types.StructField("id", types.IntegerType()),
            types.StructField("v", types.StringType(), True, {"CURRENT_DEFAULT": "'dflt'", "EXISTS_DEFAULT": "'dflt'"}),
            types.StructField("w", types.IntegerType(), True, {"CURRENT_DEFAULT": "1 + 1", "EXISTS_DEFAULT": "2"}),
        ]
        builder = s.delta.DeltaTable.create(s.spark).location(s.path).addColumns(types.StructType(fields))
        for key, value in {**s.properties, "delta.feature.allowColumnDefaults": "supported"}.items():
            builder = builder.property(key, value)
        builder.execute()

    yield "create", create
    yield "append", lambda: s.append("select 1 id")
    yield "insert some", lambda: s.merge("select 2 id").whenNotMatchedInsert(values={"id": "s.id"}).execute()
    yield "insert all, fewer", lambda: s.merge("select 3 id, 'x' v").whenNotMatchedInsertAll().execute()
    yield (
        "insert all, evolving",
        lambda: s.merge("select 3 id, 'x' v").withSchemaEvolution().whenNotMatchedInsertAll().execute(),
    )
    yield "default in update", lambda: s.t.update("id = 2", {"v": "default"})
    yield "default in merge", lambda: (
        s.merge("select 2 id union all select 4").whenMatchedUpdate(set={"w": "default"})
        .whenNotMatchedInsert(values={"id": "s.id", "v": "default", "w": "5"}).execute()
    )  # fmt: skip
    yield "null stays", lambda: s.t.update("id = 3", {"v": "null"})


@script(mask=MASK | FEED | TRACKED, rewrite=REWRITE | NAMED)
def partitions(s: Stage) -> Iterator[Step]:
    yield (
        "create",
        lambda: s.create(("id", "int"), ("p", "string"), ("d", "date"), ("v", "int"), partition_by=("p", "d")),
    )
    yield (
        "append",
        lambda: s.append(
            "select cast(id as int) id, case id % 4 when 0 then 'a b' when 1 then 'x=%/y' when 2 then null else 'z' end p,"
            " date'2024-01-01' d, 1 v from range(12)"
        ),
    )
    yield "of null", lambda: s.t.delete("p is null")
    yield "moves", lambda: s.t.update("p = 'z' and id < 5", {"p": "'x=%/y'"})
    yield "to null", lambda: s.t.update("p = 'z'", {"p": "null", "d": "null"})
    yield "mixed", lambda: s.t.delete("p = 'a b' or id = 1")
    yield (
        "merge by partition",
        lambda: (
            s.merge("select 5 id, 'x=%/y' p", "t.id = s.id and t.p = s.p")
            .whenMatchedUpdate(set={"v": "t.v + 1"})
            .whenNotMatchedBySourceDelete("p = 'x=%/y'")
            .execute()
        ),
    )
    yield "date as text", lambda: s.t.update("d = '2024-01-01'", {"d": "'2024-02-02'"})
    yield "empty text", lambda: s.t.update("id = 5", {"p": "''"})
    yield "all of a partition by vectors", lambda: s.t.delete("id = 5")


@script(mask=MASK, rewrite=REWRITE)
def places(s: Stage) -> Iterator[Step]:
    yield "make", s.make
    yield "delete by file", lambda: s.t.delete("_metadata.file_name like '%parquet' and id = 1")
    yield "update from metadata", lambda: s.t.update("id = 2", {"v": "cast(_metadata.file_size > 0 as string)"})
    yield (
        "merge from metadata",
        lambda: (
            s.merge(THREE).whenMatchedUpdate(set={"v": "cast(t._metadata.row_index is not null as string)"}).execute()
        ),
    )
    yield "delete by place", lambda: s.t.delete("_metadata.row_index = 3 and p = 1")


@script(mask=MASK)
def refused(s: Stage) -> Iterator[Step]:
    yield "make", s.make
    for n, condition in enumerate(
        ["nope = 1", "t.nope = 1", "id", "id in (select 1)", "exists (select 1)", "max(id) > 1", "rand() < 0.5",
         "id = 1 and", "row_number() over (order by id) = 1", "x.id = 1", "'true'", "1"]
    ):  # fmt: skip
        yield f"delete {n}: {condition}", lambda c=condition: s.t.delete(c)
    for n, (condition, value) in enumerate(
        [
            ("id = 1", "nope"),
            ("id = 1", "(select 1)"),
            ("id = 1", "max(v)"),
            ("rand() < 2", "'x'"),
            ("id = 1", "explode(array(1))"),
        ]
    ):
        yield f"update {n}: {condition} {value}", lambda c=condition, v=value: s.t.update(c, {"v": v})
    yield "no clauses", lambda: s.merge(THREE).execute()
    yield "unreachable", lambda: s.merge(THREE).whenMatchedDelete().whenMatchedUpdateAll().execute()
    yield (
        "unreachable insert",
        lambda: s.merge(THREE).whenNotMatchedInsertAll().whenNotMatchedInsertAll("s.id = 1").execute(),
    )
    yield (
        "unreachable by source",
        lambda: (
            s.merge(THREE)
            .whenNotMatchedBySourceDelete()
            .whenNotMatchedBySourceUpdate("t.id = 1", {"v": "'x'"})
            .execute()
        ),
    )
    yield "ambiguous", lambda: s.merge(THREE, "id = 1").whenMatchedDelete().execute()
    yield "ambiguous value", lambda: s.merge(THREE).whenMatchedUpdate(set={"v": "v"}).execute()
    yield "target in insert", lambda: s.merge(THREE).whenNotMatchedInsert(values={"id": "t.id"}).execute()
    yield "source in the other", lambda: s.merge(THREE).whenNotMatchedBySourceUpdate(set={"v": "s.v"}).execute()
    yield "target in insert condition", lambda: s.merge(THREE).whenNotMatchedInsertAll("t.id = 1").execute()
    yield "aggregate", lambda: s.merge(THREE, "max(t.id) = s.id").whenMatchedDelete().execute()
    yield "not deterministic", lambda: s.merge(THREE, "t.id = s.id and rand() < 2").whenMatchedDelete().execute()
    yield "subquery", lambda: s.merge(THREE, "t.id in (select 1)").whenMatchedDelete().execute()
    yield "clause subquery", lambda: s.merge(THREE).whenMatchedDelete("t.id in (select 1)").execute()
    yield "clause not deterministic", lambda: s.merge(THREE).whenMatchedDelete("rand() < 2").execute()
    yield "not boolean", lambda: s.merge(THREE).whenMatchedDelete("s.v").execute()
    yield "set twice", lambda: s.merge(THREE).whenMatchedUpdate(set={"v": "1", "V": "2"}).execute()
    yield "insert twice", lambda: s.merge(THREE).whenNotMatchedInsert(values={"v": "1", "t.v": "2"}).execute()
    yield (
        "source has a column twice",
        lambda: s.merge("select 5L id, 5L ID, 1 p, 'v' v").whenMatchedUpdateAll().execute(),
    )
    yield "no values", lambda: s.t.update("id = 1", {})
    yield "insert no values", lambda: s.merge(THREE).whenNotMatchedInsert(values={}).execute()
    yield "update no values", lambda: s.merge(THREE).whenMatchedUpdate(set={}).execute()


@script(mask=MASK, rewrite=REWRITE)
def sources(s: Stage) -> Iterator[Step]:
    yield "make", s.make
    yield (
        "unnamed",
        lambda: (
            s.delta.DeltaTable.forPath(s.spark, s.path)
            .merge(s.spark.sql("select 5L k, 'w' w"), "id = k")
            .whenMatchedUpdate(set={"v": "w"})
            .whenNotMatchedInsert(values={"id": "k"})
            .execute()
        ),
    )
    yield (
        "random values, keys certain",
        lambda: (
            s.merge("select id, 1 p, case when rand() < 2 then 'r' end v from range(2)")
            .whenMatchedUpdateAll()
            .execute()
        ),
    )
    yield (
        "skewed",
        lambda: (
            s.merge("select id div 50 as id, max(1) p, 'k' v from range(1000) group by 1")
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll("s.id > 18")
            .execute()
        ),
    )
    yield "with a window", lambda: (
        s.t.merge(
            s.spark.sql("select id, p, v, row_number() over (partition by id order by v desc) n from values (5L, 1, 'a'), (5L, 1, 'b') as x(id, p, v)").where("n = 1").drop("n").alias("s"),
            "t.id = s.id",
        ).whenMatchedUpdateAll().execute()
    )  # fmt: skip
    yield (
        "keys of another type",
        lambda: s.merge("select '5' id, 'five' v").whenMatchedUpdate(set={"v": "s.v"}).execute(),
    )
    yield (
        "keys computed",
        lambda: s.merge("select 4 id", "t.id = s.id + 1 and t.p = 1").whenMatchedUpdate(set={"v": "'c'"}).execute(),
    )
    yield (
        "condition on the source",
        lambda: s.merge(THREE, "t.id = s.id and s.p = 1").whenMatchedDelete().whenNotMatchedInsertAll().execute(),
    )
    yield (
        "condition on the table",
        lambda: s.merge(THREE, "t.id = s.id and t.p = 0").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(),
    )
