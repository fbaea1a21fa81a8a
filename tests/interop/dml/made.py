"""Values that the table makes or checks: generated, identity, default columns, constraints."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import types

from .stage import FEED, MASK, REWRITE, Stage, Step, script


def constrain(s: Stage, name: str, condition: str) -> None:
    if s.delta.__name__ == "alluvium":
        s.delta.DeltaTable.forPath(s.spark, s.path).addConstraint(name, condition)
    else:
        s.spark.sql(f"ALTER TABLE delta.`{s.path}` ADD CONSTRAINT {name} CHECK ({condition})")


@script(mask=MASK | FEED, rewrite=REWRITE | FEED)
def made_by_the_table(s: Stage) -> Iterator[Step]:
    yield (
        "create",
        lambda: s.create(
            ("id", "int"), ("twice", "int"), ("name", "varchar(4)"), ("must", "string"), ("part", "int"), ("code", "char(3)"),
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
            .whenNotMatchedInsert(values={"id": "s.id", "name": "s.name", "must": "s.must"})
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
        lambda: s.merge("select 131 id").whenNotMatchedInsert(values={"id": "s.id", "must": "'m'"}).execute(),
    )
    yield (
        "merge updates all",
        lambda: (
            s.merge("select 30 id, 60 twice, 'e' name, 'f' must, 0 part, 'c' code").whenMatchedUpdateAll().execute()
        ),
    )
    yield "short text of a length", lambda: s.t.update("id = 30", {"code": "'y'"})
    yield "long text of a length", lambda: s.t.update("id = 30", {"code": "'long'"})
    yield "spaces beyond the length", lambda: s.t.update("id = 30", {"code": "'ab   '"})
    yield "found without its spaces", lambda: s.t.update("code = 'ab'", {"must": "'found'"})
    yield (
        "merge of texts with lengths",
        lambda: (
            s.merge("select 30 id, 'abcd   ' name, 'z' code union all select 32, 'efgh ', 'q'")
            .whenMatchedUpdate(set={"name": "s.name", "code": "s.code"})
            .whenNotMatchedInsert(values={"id": "s.id", "must": "'m'", "name": "s.name", "code": "s.code"})
            .execute()
        ),
    )


@script(mask=MASK | FEED, rewrite=REWRITE)
def numbers(s: Stage) -> Iterator[Step]:
    always = {"generatedAlwaysAs": s.delta.IdentityGenerator(start=10, step=5)}
    yield "create", lambda: s.create(("n", "bigint"), ("id", "int"), ("v", "string"), n=always)
    yield "append", lambda: s.append("select cast(id as int) id, 'v' v from range(3)")
    one = {"id": "s.id", "v": "s.v"}
    yield (
        "update and insert",
        lambda: (
            s.merge("select 1 id, 'u' v union all select 7, 'i'")
            .whenMatchedUpdate(set={"v": "s.v"})
            .whenNotMatchedInsert(values=one)
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
        lambda: (
            s.merge("select 1 id, 'w' v").whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsert(values=one).execute()
        ),
    )
    yield (
        "two clauses that insert",
        lambda: (
            s.merge("select 20 id, 'a' v union all select 21, 'b' union all select 22, 'c'")
            .whenNotMatchedInsert("s.id = 20", {"id": "s.id", "v": "'first'"})
            .whenNotMatchedInsert("s.id = 21", one)
            .execute()
        ),
    )
    yield "evolving", lambda: s.merge("select 30 id, 1 new").withSchemaEvolution().whenNotMatchedInsertAll().execute()
    yield "delete", lambda: s.t.delete("n > 30")


@script(mask=MASK | FEED, rewrite=REWRITE)
def numbers_by_default(s: Stage) -> Iterator[Step]:
    default = {"generatedByDefaultAs": s.delta.IdentityGenerator(start=-1, step=-2)}
    yield "create", lambda: s.create(("n", "bigint"), ("id", "int"), n=default)
    yield "append", lambda: s.append("select cast(id as int) id from range(2)")
    yield (
        "insert the number",
        lambda: s.merge("select 9 id").whenNotMatchedInsert(values={"id": "s.id", "n": "-50"}).execute(),
    )
    yield "insert", lambda: s.merge("select 10 id").whenNotMatchedInsert(values={"id": "s.id"}).execute()
    yield "star with it", lambda: s.merge("select 12 id, -99L n").whenNotMatchedInsertAll().execute()
    yield "update the number", lambda: s.t.update("id = 1", {"n": "1"})
    yield "merge the number", lambda: s.merge("select 1 id").whenMatchedUpdate(set={"n": "s.id"}).execute()
    yield (
        "some given, some made",
        lambda: (
            s.merge("select 20 id union all select 21")
            .whenNotMatchedInsert("s.id = 20", {"id": "s.id", "n": "-77"})
            .whenNotMatchedInsert(values={"id": "s.id"})
            .execute()
        ),
    )
    yield "after that", lambda: s.merge("select 30 id").whenNotMatchedInsert(values={"id": "s.id"}).execute()


@script(mask=MASK | FEED)
def defaults(s: Stage) -> Iterator[Step]:
    def create() -> None:
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
    yield (
        "insert all, evolving",
        lambda: s.merge("select 3 id, 'x' v").withSchemaEvolution().whenNotMatchedInsertAll().execute(),
    )
    yield "default in an update", lambda: s.t.update("id = 3", {"v": "default"})
    yield "null stays", lambda: s.t.update("id = 3", {"v": "null"})
