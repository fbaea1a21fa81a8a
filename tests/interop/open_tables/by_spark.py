"""Tables that Alluvium writes with Spark: rows of every kind, partitions, and what a column can be told."""

from __future__ import annotations

from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from alluvium import DeltaTable, IdentityGenerator

from .maker import Maker, table

ODD_VALUES = (
    "a b", "a/b", "100%", "ü=ö", "a:b", "x''y", 'q"q', "{c}", "[d]", "e^f", "#h?i", "..", "%20", "a+b", " ", "NULL", "",
)  # fmt: skip


@table(("i", ">=", 2))
def every_type(m: Maker) -> None:
    m.write(
        """select cast(id as tinyint) t, cast(id as smallint) sm, cast(id as int) i, id l, cast(id as float) f,
        if(id = 3, double('NaN'), if(id = 2, double('-Infinity'), id / 8)) d,
        cast(id / 3 as decimal(9,2)) d9, cast(id / 7 as decimal(18,6)) d18, cast(id / 7 as decimal(38,10)) d38,
        if(id = 1, null, repeat('ü', cast(id * 20 as int))) s, repeat('\U0001f600', cast(id * 10 as int)) sur,
        cast(concat('b', id) as binary) bin, id % 2 = 0 bo, date_add(date'2024-02-28', cast(id as int)) da,
        timestamp_micros(1700000000123456 + id * 1000001) ts, cast(null as int) nothing from range(4)"""
    )
    m.write("select cast(null as tinyint) t")
    m.write("select 10 i, 10L l, '' s, cast('' as binary) bin, -0.5D d")


@table(("id", ">=", 2))
def nested_types(m: Maker) -> None:
    m.write(
        """select id, named_struct('x', id, 'in', named_struct('y', cast(null as int), 'z', concat('q', id))) st,
        array(id, null) ar, array(array(id), cast(null as array<bigint>)) aa, map('k', id, 'l', null) m,
        array(named_struct('e', id, 'f', map(cast(id as int), array('v')))) deep from range(4)"""
    )
    m.write(
        """select 10L id, cast(null as struct<x:bigint,in:struct<y:int,z:string>>) st,
        cast(array() as array<bigint>) ar, map() m"""
    )


@table(("ts", ">=", {"timestamp": "2023-11-14 22:13:20.123456+00:00"}))
def bounds_of_times(m: Maker) -> None:
    """Bounds hold milliseconds: the microseconds of the greatest value are not in them."""
    m.write("select id, timestamp_micros(1700000000123456 - id * 1000) ts from range(3)")
    m.write("select 9L id, timestamp'1582-10-04 00:00:00.000001' ts")


@table(("s", ">=", "\U0001f600" * 39))
def bounds_of_texts(m: Maker) -> None:
    """Bounds hold the beginnings of long texts, of characters of four bytes, too; or none."""
    m.write("select id, repeat('\U0001f600', 40) s, repeat('\U0010ffff', 40) z from range(3)")
    m.write("select 9L id, repeat('ü', 100) s, 'a' z")


@table(("d", ">", 0))
def bounds_of_numbers(m: Maker) -> None:
    """Not a number is greater than all numbers to some readers."""
    m.write("select id, double('NaN') d, float('Infinity') f, cast(1e37 as decimal(38,0)) n from range(2)")
    m.write("select 9L id, -0.0D d, float('NaN') f, cast(-1 as decimal(38,0)) n")
    m.write("select 10L id, 1.5D d, 0.1F f, cast(null as decimal(38,0)) n")


@table(("id", "<", 3))
def old_times(m: Maker) -> None:
    """Before the calendar's reform, before 1900, before 1970, and at the end of the calendar."""
    m.write(
        """select * from values (1, date'0001-01-01', timestamp'0001-01-01 00:00:00.000001'),
        (2, date'1582-10-04', timestamp'1582-10-04 23:59:59.999999'),
        (3, date'1582-10-15', timestamp'1582-10-15 00:00:00'), (4, date'1899-12-31', timestamp'1883-11-18 12:00:00.5'),
        (5, date'1969-12-31', timestamp'1969-12-31 23:59:59.999999'),
        (6, date'9999-12-31', timestamp'9999-12-31 23:59:59.999999') as v(id, d, ts)"""
    )
    m.write("select 7 id, date'1500-02-28' d, timestamp'1500-02-28 01:02:03' ts")


@table(("v", "=", "a/b"))
def odd_partition_values(m: Maker) -> None:
    rows = " union all ".join(f"select '{v}' v, {i} i" for i, v in enumerate(ODD_VALUES))
    m.write(f"select v, i, date'2024-01-01' d from ({rows})", partition_by=("v", "d"))
    m.write("select cast(null as string) v, 50 i, cast(null as date) d")


@table(("id", "=", 1))
def typed_partitions(m: Maker) -> None:
    columns = ("i", "ts", "dec", "b", "d", "f", "t", "da")
    m.write(
        """select id, cast(id as int) i, timestamp_micros(1700000000000000 + id * 500000) ts, cast(id / 2 as decimal(9,3)) dec,
        id % 2 = 0 b, cast(id * 1.5 as double) d, cast(1.25 as float) f, cast(id as tinyint) t,
        date_add(date'1582-10-01', cast(id as int)) da from range(3)""",
        partition_by=columns,
    )
    m.write(f"select 9L id, {', '.join(f'null {name}' for name in columns)}")


@table(("id", ">=", 1))
def partitions_of_old_times(m: Maker) -> None:
    m.write(
        """select id, date_add(date'1582-09-30', cast(id * 10 as int)) d,
        timestamp'1582-10-04 23:59:59.999999' + make_interval(0, 0, 0, cast(id * 12 as int)) ts from range(3)""",
        partition_by=("d", "ts"),
    )


@table(("id", ">=", 2))
def timestamps_without_zone(m: Maker) -> None:
    m.write(
        """select id, timestamp_ntz'2024-02-29 23:59:59.999999' + make_interval(0, 0, 0, cast(id as int)) n,
        timestamp_ntz'1582-10-04 00:00:00' old, array(timestamp_ntz'1960-01-01 00:00:00.5') l from range(4)"""
    )


@table(("id", "=", 1))
def partitions_without_zone(m: Maker) -> None:
    m.write(
        "select id, timestamp_ntz'2024-01-01 00:00:00.5' + make_interval(0, 0, 0, cast(id as int)) n from range(2)",
        partition_by=("n",),
    )


@table(("id", ">=", 2))
def void_column(m: Maker) -> None:
    m.write("select id, null v from range(4)")


@table(("id", "=", 1), sql="select id, v::json::varchar v from delta_scan(?)")
def variants(m: Maker) -> None:
    m.write(
        """select * from values (1, parse_json('{"a": 1, "b": [true, null, "ü"], "c": {"d": 1.5}}')), (2, parse_json('"text"')),
        (3, parse_json('null')), (4, null), (5, parse_json('[1, 2.25, 12345678901]')) as v(id, v)"""
    )


@table(("id", "<", 3))
def no_rows(m: Maker) -> None:
    m.create({"id": "bigint", "s": "string", "p": "date"}, partition_by=("p",))


@table(("id", "<", 3))
def emptied(m: Maker) -> None:
    m.write("select id, 'x' s from range(4)")
    m.t.delete()


@table(("id", ">=", 3))
def evolved(m: Maker) -> None:
    m.write("select 1 id, named_struct('x', 1) s, array(named_struct('e', 1)) l")
    m.write("select 2 id, named_struct('x', 1, 'y', 'z') s", mergeSchema=True)
    m.write("select 3 id, array(named_struct('e', 1, 'f', 2)) l, date'2024-01-01' d", mergeSchema=True)
    m.alter.add_columns({"first": "int"}, position="first")
    m.alter.add_columns({"s.q": "int"}, position="first")
    m.write("select 4 id, 5 first, named_struct('q', 1, 'x', 2, 'y', 'w') s")


@table(("id", ">=", 3))
def other_schema(m: Maker) -> None:
    m.write("select id, 'x' s from range(3)")
    m.write("select cast(id as string) s, cast(id as int) id from range(4)", "overwrite", ("s",), overwriteSchema=True)


@table(("a", ">=", 4))
def replaced(m: Maker) -> None:
    m.write("select cast(id as int) a, concat('p', id % 3) p from range(9)", partition_by=("p",))
    m.write("select 100 a, 'p1' p", "overwrite", replaceWhere="p = 'p1'")
    m.write("select 102 a, 'p0' p union all select 103, 'new'", "overwrite", partitionOverwriteMode="dynamic")
    m.write("select 5 a, 'p2' p", "overwrite", replaceWhere="a = 5")
    m.write("select 7 a, 'all' p", "overwrite")
    m.alter.restore(version=2)


@table(("id", ">=", 2), app="loader")
def transactions(m: Maker) -> None:
    m.write("select id from range(3)", txnAppId="loader", txnVersion=4)
    m.write("select id from range(3)", txnAppId="loader", txnVersion=5)
    m.write("select id from range(3)", txnAppId="loader", txnVersion=5)


@table(("id", ">=", 2))
def constraints(m: Maker) -> None:
    m.create({"id": {"dataType": "int", "nullable": False}, "s": "struct<x:int not null,y:string>"})
    m.write("select cast(id as int) id, named_struct('x', 1, 'y', 'k') s from range(3)")
    m.t.addConstraint("small", "id < 100 and s.x > 0")
    m.write("select 99 id, named_struct('x', 2, 'y', cast(null as string)) s")


@table(("id", ">=", 2))
def texts_with_lengths(m: Maker) -> None:
    m.create({"id": "int", "c": "char(4)", "v": "varchar(3)", "l": "array<char(2)>"})
    # As long as can be: what is shorter we read with blanks, as Spark does, and they as it was written.
    m.write("select cast(id as int) id, 'abcd' c, 'ab ' v, array('xy') l from range(3)")


@table(("d", "=", {"date": "2024-01-02"}))
def generated(m: Maker) -> None:
    m.create(
        {
            "ts": "timestamp", "a": "int", "d": {"dataType": "date", "generatedAlwaysAs": "cast(ts as date)"},
            "twice": {"dataType": "int", "generatedAlwaysAs": "a * 2"},
        },
        partition_by=("d",),
    )  # fmt: skip
    m.write(
        "select timestamp'2024-01-01 23:00:00' + make_interval(0, 0, 0, cast(id as int)) ts, cast(id as int) a from range(3)"
    )
    m.write("select cast(null as timestamp) ts, 1 a")


@table(("id", ">", 105))
def identity(m: Maker) -> None:
    m.create({"id": {"dataType": "bigint", "generatedAlwaysAs": IdentityGenerator(start=100, step=5)}, "x": "int"})
    m.write("select cast(id as int) x from range(3)")
    m.write("select 9 x")


@table(("a", ">=", 2))
def defaults(m: Maker) -> None:
    told = {"CURRENT_DEFAULT": "'dflt'", "EXISTS_DEFAULT": "'dflt'"}
    schema = StructType([StructField("a", IntegerType()), StructField("b", StringType(), True, told)])
    builder = DeltaTable.create(m.spark).location(m.path).addColumns(schema)
    builder.property("delta.feature.allowColumnDefaults", "supported").execute()
    m.write("select 1 a")
    m.write("select 2 a, cast(null as string) b")


@table(("id", ">=", 2))
def append_only(m: Maker) -> None:
    m.write("select id from range(4)", properties={"delta.appendOnly": "true"})
    m.write("select 9L id")
