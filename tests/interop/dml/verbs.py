"""Every clause, matches, partitions, sources."""

from __future__ import annotations

from collections.abc import Iterator

from .stage import FEED, MASK, NAMED, NUMBERED, REWRITE, THREE, TRACKED, Stage, Step, script


@script(
    mask=MASK | FEED | TRACKED, rewrite=REWRITE | FEED | TRACKED, named=NAMED | MASK | FEED | TRACKED,
    numbered=NUMBERED | REWRITE | FEED,
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


@script(mask=MASK)
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
