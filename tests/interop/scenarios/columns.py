"""Scenarios about columns: schema evolution, column mapping, widening, names and types."""

from __future__ import annotations

from collections.abc import Iterator

from .bench import Bench, Step, scenario

MAPPED = {"delta__columnMapping__mode": "name"}


@scenario("select 9L id, 'more' s", delete="id = 9")
def plain_appends(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: (
            b.create()
            .addColumn("id", "bigint", nullable=False, comment="the key")
            .addColumn("s", "string")
            .property("team", "blue")
            .comment("plain")
            .execute()
        ),
    )
    yield "append", lambda: b.write("select id, concat('s', id) s from range(5)")
    yield "other case of names", lambda: b.write("select 'x' S, 7L ID")
    yield "fewer columns", lambda: b.write("select 8L id")
    yield "no key", lambda: b.write("select 'x' s")
    yield "null key", lambda: b.write("select cast(null as bigint) id, 'x' s")
    yield "a column too many", lambda: b.write("select 1L id, 'x' s, 3 z")
    yield "another type", lambda: b.write("select 'a' id, 'x' s")
    yield "a narrower type", lambda: b.write("select 3 id, 'x' s")
    yield "no rows", lambda: b.write("select 1L id, 'x' s where false")
    yield "overwrite", lambda: b.write("select 1L id, 'o' s", "overwrite", userMetadata="said so")
    yield "overwrite by nothing", lambda: b.write("select 1L id, 'o' s where false", "overwrite")
    yield "wrong partitions", lambda: b.write("select 1L id, 'x' s", partition_by=("s",))


@scenario("select 5 a, named_struct('x', 1, 'y', 'k') s, array(named_struct('e', 1, 'f', 2)) l", delete="a = 5")
def merge_schema(b: Bench) -> Iterator[Step]:
    first = "select 1 a, named_struct('x', 1) s, array(named_struct('e', 1)) l"
    yield "create", lambda: b.write(first)
    yield "refused", lambda: b.write("select 2 a, named_struct('x', 1, 'y', 'z') s")
    yield "nested", lambda: b.write("select 2 a, named_struct('x', 1, 'y', 'z') s", mergeSchema="true")
    yield "element", lambda: b.write("select 3 a, array(named_struct('e', 1, 'f', 2)) l", mergeSchema=True)
    yield "top", lambda: b.write("select 4 a, date'2024-01-01' d, cast(null as map<string,int>) m", mergeSchema=True)
    yield "nothing new", lambda: b.write("select 4 a", mergeSchema=True)
    yield "another type", lambda: b.write("select 'a' a", mergeSchema=True)
    yield "merge in overwrite", lambda: b.write("select 4 a, 1 n", "overwrite", mergeSchema=True)
    yield "overwrite, other schema", lambda: b.write("select 'a' a", "overwrite")
    yield "overwrite schema", lambda: b.write("select 'a' a, 2 p", "overwrite", ("p",), overwriteSchema=True)
    yield (
        "back",
        lambda: b.write(
            "select 1 a, named_struct('x', 1, 'y', 'z') s, array(named_struct('e', 1, 'f', 2)) l",
            "overwrite",
            overwriteSchema=True,
        ),
    )


@scenario("select 9 `a b`, 'p=1' `p;q`, named_struct('x y', 3) `s,t`", delete="`a b` = 9")
def mapped_names(b: Bench) -> Iterator[Step]:
    rows = "select cast(id as int) `a b`, concat('k', id % 2) `p;q`, named_struct('x y', cast(id as int)) `s,t` from range(6)"
    yield "create", lambda: b.write(rows, partition_by=("p;q",), **MAPPED)
    yield "append", lambda: b.write(rows)
    yield (
        "merge nested",
        lambda: b.write("select 7 `a b`, 'k/1' `p;q`, named_struct('x y', 1, 'new()', 2) `s,t`", mergeSchema=True),
    )
    yield "rename", lambda: b.rename("`a b`", "ä=b")
    yield "rename nested", lambda: b.rename("`s,t`.`x y`", "z")
    yield "rename partition", lambda: b.rename("`p;q`", "part")
    yield "append renamed", lambda: b.write("select 8 `ä=b`, 'k 2' part, named_struct('z', 1, 'new()', 4) `s,t`")
    yield "to a name that is there", lambda: b.rename("part", "ä=b")
    yield "drop nested", lambda: b.drop("`s,t`.`new()`")
    yield "drop partition column", lambda: b.drop("part")
    yield "drop", lambda: b.drop("`ä=b`")
    yield "again", lambda: b.add("`a b`", "int")
    yield "rename back", lambda: b.rename("part", "p;q")
    yield "name again", lambda: b.rename("`s,t`.z", "x y")
    yield "append again", lambda: b.write("select 9 `a b`, 'k0' `p;q`, named_struct('x y', 5) `s,t`")
    yield (
        "replace a partition",
        lambda: b.write(
            "select 10 `a b`, 'k0' `p;q`, named_struct('x y', 5) `s,t`", "overwrite", replaceWhere="`p;q` = 'k0'"
        ),
    )


@scenario("select 5 a, 'z' c", delete="a = 5")
def mapped_later(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write("select 1 a, 'x' b, named_struct('i', 1) s")
    yield "rename unmapped", lambda: b.rename("b", "c")
    yield "to id", lambda: b.set(delta__columnMapping__mode="id")
    yield (
        "to name",
        lambda: b.set(delta__columnMapping__mode="name", delta__minReaderVersion=2, delta__minWriterVersion=5),
    )
    yield "append", lambda: b.write("select 2 a, 'y' b")
    yield "rename", lambda: b.rename("b", "c")
    yield "append renamed", lambda: b.write("select 3 a, 'y' c")
    yield "drop", lambda: b.drop("s")
    yield "add back", lambda: b.add("s", "struct<i:int,j:string>")
    yield "append", lambda: b.write("select 4 a, 'y' c, named_struct('i', 3, 'j', 'q') s")
    yield "overwrite schema", lambda: b.write("select 4 a, 'y' c, 1 fresh", "overwrite", overwriteSchema=True)


@scenario("select 5 a, named_struct('x', 1, 'y', 2) s", delete="a = 5")
def mapped_ids(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: (
            b.create()
            .addColumn("a", "int")
            .addColumn("s", "struct<x:int>")
            .addColumn("m", "map<string,struct<v:int>>")
            .property("delta.columnMapping.mode", "id")
            .execute()
        ),
    )
    yield "append", lambda: b.write("select 1 a, named_struct('x', 1) s, map('k', named_struct('v', 1)) m")
    yield (
        "merge",
        lambda: b.write(
            "select 2 a, named_struct('x', 1, 'y', 2) s, map('k', named_struct('v', 1, 'w', 2)) m", mergeSchema=True
        ),
    )
    yield "rename", lambda: b.rename("m", "mm")
    yield "element", lambda: b.add("mm.value.z", "int")
    yield "append again", lambda: b.write("select 3 a, map('k', named_struct('v', 1, 'w', 2, 'z', 4)) mm")
    yield (
        "overwrite schema",
        lambda: b.write("select 3 a, named_struct('x', 1, 'y', 2) s", "overwrite", overwriteSchema=True),
    )


@scenario("select 5L a, 6 b, cast(1.5 as decimal(12,4)) d, 2.5D f", delete="a = 5")
def widening(b: Bench) -> Iterator[Step]:
    first = "select 1 a, cast(1 as tinyint) b, cast(1.5 as decimal(5,2)) d, cast(1.5 as float) f"
    yield "create", lambda: b.write(first)
    yield "without", lambda: b.change("a", type="bigint")
    yield "enable", lambda: b.set(delta__enableTypeWidening=True)
    yield "int to long", lambda: b.change("a", type="bigint")
    yield "byte to short", lambda: b.change("b", type="smallint")
    yield "short to int", lambda: b.change("b", type="int")
    yield "decimal", lambda: b.change("d", type="decimal(12,4)")
    yield "narrower", lambda: b.change("a", type="int")
    yield (
        "append",
        lambda: b.write("select 5000000000L a, 70000 b, cast(1.0005 as decimal(12,4)) d, cast(2 as float) f"),
    )
    yield "by rows", lambda: b.write("select 2.25D f", mergeSchema=True)
    yield "narrower rows", lambda: b.write("select 3 a", mergeSchema=True)
    yield "no widening", lambda: b.write("select 'x' a", mergeSchema=True)
    yield "disable", lambda: b.set(delta__enableTypeWidening=False)
    yield "disabled", lambda: b.change("b", type="bigint")


@scenario("select 9 a", delete="a = 9")
def alterations(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: (
            b.create()
            .addColumn("a", "int", nullable=False)
            .addColumn("s", "struct<x:int,y:string>")
            .addColumn("l", "array<struct<e:int>>")
            .execute()
        ),
    )
    yield "append", lambda: b.write("select 1 a, named_struct('x', 1, 'y', 'q') s, array(named_struct('e', 1)) l")
    yield "add first", lambda: b.add("f", "timestamp", "first")
    yield "add behind", lambda: b.add("s.z", "int", "after x")
    yield "add to elements", lambda: b.add("l.element.g", "double")
    yield "add what is there", lambda: b.add("A", "int")
    yield "comment", lambda: b.change("s.x", comment="inner")
    yield "move", lambda: b.change("a", position="first")
    yield "null allowed", lambda: b.change("a", nullable=True)
    yield "append null", lambda: b.write("select cast(null as int) a, timestamp'2024-01-01 00:00:00.123456' f")
    yield "unknown", lambda: b.change("nope", comment="x")
    yield "drop unmapped", lambda: b.drop("l")


@scenario("select 9 a, cast(null as string) n", delete="a = 9")
def void_columns(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write("select 1 a, null v")
    yield "append", lambda: b.write("select 2 a, null v")
    yield "new void", lambda: b.write("select 3 a, null w", mergeSchema=True)
    yield "gets a type", lambda: b.write("select 4 a, 'x' v", mergeSchema=True)
    yield "nested void", lambda: b.write("select 4 a, named_struct('x', 1, 'n', null) s", mergeSchema=True)
    yield "void in an array", lambda: b.write("select 4 a, array(null) ar", mergeSchema=True)
    yield "null for a type", lambda: b.write("select 5 a, null v")
    yield "add a void column", lambda: b.add("z", "void")
    yield "overwrite schema", lambda: b.write("select 5 a, 'k' n, null u", "overwrite", overwriteSchema=True)


@scenario("select cast(9 as tinyint) t", delete="t = 9")
def every_type(b: Bench) -> Iterator[Step]:
    sql = """select cast(id as tinyint) t, cast(id as smallint) sm, cast(id as int) i, id l, cast(id as float) f,
        if(id = 3, double('NaN'), if(id = 2, double('-Infinity'), -0.0D)) d,
        cast(id / 3 as decimal(9,2)) d9, cast(id / 7 as decimal(18,6)) d18, cast(id / 7 as decimal(38,10)) d38,
        if(id = 1, null, repeat('ü', cast(id * 20 as int))) s, repeat('\U0001f600', cast(id * 10 as int)) sur, cast(concat('b', id) as binary) bin,
        id % 2 = 0 bo, date_add(date'1969-12-31', cast(id as int)) da,
        timestamp_micros(-62135596800000000 + id * 1000001) ts, timestamp_ntz'2024-02-29 23:59:59.999999' ntz,
        named_struct('x', id, 'in', named_struct('y', cast(null as int), 'z', 'q')) st, array(id, null) ar,
        map('k', id) m, cast(null as int) nothing, interval '1' day is null never from range(4)"""
    yield "create", lambda: b.write(sql)
    yield "append", lambda: b.write(sql)
    yield (
        "nulls",
        lambda: b.write("select cast(null as tinyint) t, cast(null as struct<x:bigint,in:struct<y:int,z:string>>) st"),
    )
    yield "interval", lambda: b.write("select interval '1' day iv", mergeSchema=True)
