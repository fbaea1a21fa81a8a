"""Casts, structs, stars, evolution of the schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .stage import FEED, MASK, NAMED, REWRITE, TRACKED, Stage, Step, script


def typed(s: Stage) -> Iterator[Step]:
    """A table of many types."""
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


@script(mask=MASK | FEED | NAMED)
def values(s: Stage) -> Iterator[Step]:
    yield from typed(s)
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


@script(mask=MASK | FEED)
def merged_values(s: Stage) -> Iterator[Step]:
    yield from typed(s)
    yield (
        "stars without regard to case",
        lambda: (
            s.merge(
                "select 3 ID, named_struct('B', named_struct('d', 'l', 'C', 2), 'A', 1) s, 2 D, date'2024-05-05' DAY, "
                "timestamp'2024-05-05 00:00:00' AT, array(named_struct('Y', 'a', 'X', 1)) MANY, map('n', 2) M, 2.5f F "
                "union all select 44, null, 3, null, null, null, null, null"
            )
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
        ),
    )
    yield "star lacks columns", lambda: s.merge("select 3 id, 1 d").whenMatchedUpdateAll().execute()
    yield "star has more", lambda: (
        s.merge("select t.*, 1 as extra from (select 55 id, null S, null d, null day, null at, null many, null m, null f) t")
        .whenNotMatchedInsertAll().execute()
    )  # fmt: skip
    yield (
        "insert some",
        lambda: s.merge("select 66 id").whenNotMatchedInsert(values={"id": "s.id", "t.d": "1"}).execute(),
    )
    for what, value in (
        ("by name", "named_struct('b', named_struct('D', 'm', 'c', 1), 'a', 2)"),
        ("with less", "named_struct('a', 3)"),
        ("with more", "named_struct('a', 3, 'b', named_struct('c', 1, 'D', 'd', 'z', 1))"),
        ("of null", "cast(null as struct<a:int,b:struct<c:int,D:string>>)"),
    ):
        yield (
            f"merge a struct {what}",
            lambda x=value: s.merge(f"select 66 id, {x} st").whenMatchedUpdate(set={"S": "s.st"}).execute(),
        )
    yield "merge overflows", lambda: s.merge("select 66 id").whenMatchedUpdate(set={"d": "99999"}).execute()
    yield "merge nested", lambda: s.merge("select 66 id").whenMatchedUpdate(set={"t.S.b.c": "s.id"}).execute()


def grown(s: Stage, sql: str) -> Any:
    """A merge that takes new columns over."""
    return s.merge(sql).withSchemaEvolution()


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

    star = "select {0} id, 's' v, {1} from range(1)"
    yield (
        "not asked for",
        lambda: s.merge(star.format(1, "named_struct('a', 1) S, null l, 1 n")).whenMatchedUpdateAll().execute(),
    )
    yield (
        "update all",
        lambda: grown(s, star.format(1, "named_struct('a', 1) S, null l, 1 n")).whenMatchedUpdateAll().execute(),
    )
    yield (
        "insert all, fewer columns",
        lambda: grown(s, "select 10 id, 2 N, 'new' o").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(),
    )
    yield "update all, fewer columns", lambda: grown(s, "select 2 id, 3 n").whenMatchedUpdateAll().execute()
    yield (
        "nested",
        lambda: (
            grown(s, "select 1 id, named_struct('a', 5, 'b', 6) S union all select 11, named_struct('a', 7, 'b', 8)")
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
        ),
    )
    yield "nested with less", lambda: grown(s, "select 1 id, named_struct('b', 60) S").whenMatchedUpdateAll().execute()
    yield (
        "nested with less, inserted",
        lambda: grown(s, "select 12 id, named_struct('b', 60) S").whenNotMatchedInsertAll().execute(),
    )
    yield (
        "a null struct",
        lambda: (
            grown(s, "select 11 id, cast(null as struct<a:int,b:int>) S union all select 12, null")
            .whenMatchedUpdateAll()
            .execute()
        ),
    )
    yield (
        "a null struct with less",
        lambda: grown(s, "select 1 id, cast(null as struct<b:int>) S").whenMatchedUpdateAll().execute(),
    )
    yield (
        "in arrays",
        lambda: grown(s, "select 1 id, array(named_struct('x', 1, 'y', 2)) l").whenMatchedUpdateAll().execute(),
    )
    yield from evolving_by_name(s)


def evolving_by_name(s: Stage) -> Iterator[Step]:
    """Columns that clauses name, types that differ, the session's word."""
    yield "set a new column", lambda: grown(s, "select 3 id, 'q' q").whenMatchedUpdate(set={"q": "s.q"}).execute()
    yield "set an unknown column", lambda: grown(s, "select 3 id, 'q' q").whenMatchedUpdate(set={"r": "s.q"}).execute()
    yield "set another's column", lambda: grown(s, "select 3 id, 'q' q2").whenMatchedUpdate(set={"v": "s.q2"}).execute()
    yield (
        "insert a new column",
        lambda: (
            grown(s, "select 20 id, 1 w, 2 unused").whenNotMatchedInsert(values={"id": "s.id", "w": "s.w"}).execute()
        ),
    )
    yield "delete alone", lambda: grown(s, "select 20 id, 1 x9").whenMatchedDelete().execute()
    yield (
        "set a new field",
        lambda: grown(s, "select 3 id, named_struct('c', 1) S").whenMatchedUpdate(set={"S.c": "s.S.c"}).execute(),
    )
    yield "another type", lambda: grown(s, "select 3 id, 7L n").whenMatchedUpdateAll().execute()
    yield "a type that does not go", lambda: grown(s, "select 3 id, array(1) n").whenMatchedUpdateAll().execute()
    yield (
        "no row, but a column",
        lambda: grown(s, "select 3 id, 1 late").whenMatchedUpdateAll("s.id = 5").execute(),
    )
    s.spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    yield "by the session", lambda: s.merge("select 3 id, 1 auto").whenMatchedUpdateAll().execute()
    s.spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
