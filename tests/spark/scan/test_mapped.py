"""Tables with column mapping and widened types through Spark's own Parquet reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from mapped_table import MAPPED, Log, by, features, mapped, numbered
from pyspark.sql import DataFrame, SparkSession

import alluvium
from alluvium.schema import types as t
from alluvium.schema.types import Array, Decimal, Field, Map, Struct
from alluvium.storage.open import open_store

pytestmark = pytest.mark.spark

FIELD_ID_CONF = "spark.sql.parquet.fieldId.read.enabled"


def named(made_up: bool, number: int) -> str:
    """A physical name: of the kind that writers make up, or as a column of a converted table has it."""
    return f"col-00000000-0000-0000-0000-{number:012}" if made_up else f"c{number}"


def schema_of(n: Callable[[int], str]) -> Struct:
    inner = Struct((mapped("x y", t.LONG, n(5), 5), mapped("z", t.STRING, n(6), 6)))
    element = Struct((mapped("e", t.LONG, n(7), 7), mapped("new", t.LONG, n(70), 70)))
    return Struct(
        (
            mapped("id", t.LONG, n(1), 1),
            mapped("a.b`c d", t.STRING, n(2), 2),
            mapped("s", inner, n(3), 3),
            mapped("l", Array(element), n(4), 4),
            mapped("m", Map(t.STRING, Struct((mapped("v", t.LONG, n(9), 9),))), n(8), 8),
            mapped("p", t.INTEGER, n(10), 10),
        )
    )


def rows(start: int, n: Callable[[int], str]) -> pa.Table:
    ids = range(start, start + 3)
    element, value = pa.struct([(n(7), pa.int64())]), pa.struct([(n(9), pa.int64())])
    columns = {
        n(1): pa.array(ids, pa.int64()),
        n(2): [f"v{i}" for i in ids],
        n(3): pa.array([{n(5): i, n(6): f"z{i}"} if i % 3 else None for i in ids]),
        n(4): pa.array([[{n(7): i}, None] for i in ids], pa.list_(element)),
        n(8): pa.array([[("k", {n(9): i})] for i in ids], pa.map_(pa.string(), value)),
    }
    return numbered(pa.table(columns), {n(i): i for i in range(1, 10)})


def stats(start: int, n: Callable[[int], str]) -> dict[str, object]:
    low = {n(1): start, n(2): f"v{start}", n(3): {n(5): start, n(6): f"z{start}"}}
    high = {n(1): start + 2, n(2): f"v{start + 2}", n(3): {n(5): start + 2, n(6): f"z{start + 2}"}}
    return {"numRecords": 3, "minValues": low, "maxValues": high, "nullCount": {n(1): 0, n(2): 0}}


@pytest.fixture(params=["name", "name converted", "id", "id converted"])
def nested(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    mode, _, converted = request.param.partition(" ")
    n = partial(named, not converted)
    files = [(rows(first, n), {n(10): str(first)}, stats(first, n)) for first in (0, 3, 6)]
    root = tmp_path / request.param
    root.mkdir()
    Log(open_store(str(root))).commit(schema_of(n), MAPPED, by(mode), ["p"], files)
    return str(root)


def scanned_files(df: DataFrame) -> int:
    leaves = df._jdf.queryExecution().executedPlan().collectLeaves()
    return sum(leaves.apply(i).selectedPartitions().totalNumberOfFiles() for i in range(leaves.size()))


def in_order(table: pa.Table) -> list[object]:
    return sorted(table.to_pylist(), key=lambda row: row["id"])


@contextmanager
def conf(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, before or "")


def test_rows_are_those_of_the_lane_without_spark(spark: SparkSession, nested: str) -> None:
    before = spark.conf.get(FIELD_ID_CONF)
    df = alluvium.read(spark, nested)
    expected = alluvium.open(nested).to_arrow()
    assert in_order(df.toArrow()) == in_order(expected)
    assert df.columns == expected.column_names
    with conf(spark, "spark.sql.parquet.enableVectorizedReader", "false"):
        assert in_order(alluvium.read(spark, nested).toArrow()) == in_order(expected)
    # The session is the user's.
    assert spark.conf.get(FIELD_ID_CONF) == before


def test_no_trace_of_the_mapping_in_the_schema(spark: SparkSession, nested: str) -> None:
    shown = alluvium.read(spark, nested).schema.json()
    assert "columnMapping" not in shown
    if spark.version.startswith("4.0."):
        # Spark 4.0 takes empty metadata for none, in `alias` as in `withMetadata`, and a column keeps what it had.
        pytest.skip("Spark 4.0 cannot take metadata from a column")
    assert "parquet.field.id" not in shown


@pytest.mark.parametrize(
    ("where", "count", "files"),
    [
        ("id = 4", 1, 1),
        ("`a.b``c d` = 'v4'", 1, 1),
        ("p = 3", 3, 1),
        ("p > 0 and id < 5", 2, 1),
        ("s.`x y` = 4", 1, 1),
        ("s.z > 'z4' and s.`x y` > 4", 3, 2),
        ("s is null", 3, 3),
        ("l[0].e = 4", 1, 3),
        ("m['k'].v = 4", 1, 3),
        ("l[0].new is null", 9, 3),
    ],
)
def test_filters_on_display_names_choose_files(
    spark: SparkSession, nested: str, where: str, count: int, files: int
) -> None:
    df = alluvium.read(spark, nested).where(where)
    assert df.count() == count
    # Where columns can be found by number alone, Spark must read structs whole, and filters on members stay above.
    assert scanned_files(df) == (3 if nested.endswith("id converted") and where.startswith("s.") else files)


def test_only_the_members_needed_are_read(spark: SparkSession, nested: str) -> None:
    plan = alluvium.read(spark, nested).selectExpr("s.z")._jdf.queryExecution().executedPlan().toString()
    read = plan.split("ReadSchema: ")[1].splitlines()[0]
    assert read.count(":") == (3 if nested.endswith("id converted") else 2), read


def test_names_that_moved_to_other_columns_do_not_mislead_filters(spark: SparkSession, tmp_path: Path) -> None:
    """Files by an older name: what is `a` there is `b` today, and the other way round."""
    schema = Struct((mapped("b", t.LONG, "b", 1), mapped("a", t.LONG, "a", 2), mapped("c", t.LONG, "c", 3)))
    old = numbered(pa.table({"a": [1, 2], "b": [10, 20], "c": [5, 6]}), {"a": 1, "b": 2, "c": 9})
    Log(open_store(str(tmp_path))).commit(schema, MAPPED, by("id"), files=[(old, {}, None)])
    df = alluvium.read(spark, str(tmp_path))
    assert sorted(tuple(r) for r in df.collect()) == [(1, 10, None), (2, 20, None)]
    assert df.where("b = 1").count() == 1
    assert df.where("a >= 20").count() == 1
    assert df.where("c is null").count() == 2
    assert alluvium.open(str(tmp_path)).to_arrow(where="b = 1").to_pydict() == {"b": [1], "a": [10], "c": [None]}


def test_by_id_files_without_numbers_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """ "If a data file does not contain field ids, readers must refuse to read that file or return nulls" """
    schema = Struct((mapped("a", t.LONG, "a", 1),))
    Log(open_store(str(tmp_path))).commit(schema, MAPPED, by("id"), files=[(pa.table({"a": [1]}), {}, None)])
    with pytest.raises(Exception, match=r"(?i)field id"):
        alluvium.read(spark, str(tmp_path)).collect()


WIDE = {
    "byte": (pa.int8(), -128, [t.SHORT, t.INTEGER, t.LONG, t.DOUBLE, Decimal(10, 0), Decimal(12, 2), Decimal(38, 28)]),
    "short": (pa.int16(), 32767, [t.INTEGER, t.LONG, t.DOUBLE, Decimal(10, 0), Decimal(12, 2), Decimal(38, 28)]),
    "int": (pa.int32(), -(1 << 31), [t.LONG, t.DOUBLE, Decimal(10, 0), Decimal(12, 2), Decimal(38, 28)]),
    "long": (pa.int64(), (1 << 63) - 1, [Decimal(20, 0), Decimal(22, 2), Decimal(38, 18)]),
    "float": (pa.float32(), 0.10000000149011612, [t.DOUBLE]),
    "dec5": (pa.decimal128(5, 2), "999.99", [Decimal(9, 2), Decimal(12, 2), Decimal(9, 4), Decimal(30, 10)]),
    "dec12": (pa.decimal128(12, 2), "-1234567890.12", [Decimal(18, 2), Decimal(18, 4), Decimal(38, 10)]),
    "dec20": (pa.decimal128(20, 5), "123456789012345.12345", [Decimal(21, 5), Decimal(38, 20)]),
    "date": (pa.date32(), 19_782, [t.TIMESTAMP_NTZ]),
}
CASES = [(name, wide) for name, (_, _, targets) in WIDE.items() for wide in targets]


@pytest.mark.parametrize(("vectorized", "as_integers"), [("true", True), ("false", False)])
def test_every_widening_at_any_depth(spark: SparkSession, tmp_path: Path, vectorized: str, as_integers: bool) -> None:
    fields, columns = [], {}
    for number, (name, wide) in enumerate(CASES):
        kind, value, _ = WIDE[name]
        leaf = pa.array([pa.scalar(value).cast(kind).as_py() if isinstance(value, str) else value, None], kind)
        struct = pa.StructArray.from_arrays([leaf], names=["x"])
        for prefix, column in (("f", leaf), ("s", struct), ("l", pa.ListArray.from_arrays([0, 1, 2], struct))):
            columns[f"{prefix}{number}"] = column
        inner = Struct((Field("x", wide),))
        for prefix, data_type in (("f", wide), ("s", inner), ("l", Array(inner))):
            fields.append(Field(f"{prefix}{number}", data_type))
    table, schema = pa.table(columns), Struct(tuple(fields))
    log = Log(open_store(str(tmp_path)), store_decimal_as_integer=as_integers)
    log.commit(schema, features("typeWidening", "timestampNtz"), files=[(table, {}, None)])
    expected = alluvium.open(str(tmp_path)).to_arrow()
    with conf(spark, "spark.sql.parquet.enableVectorizedReader", vectorized):
        df = alluvium.read(spark, str(tmp_path))
        found = df.toArrow()
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
        # A filter on the wide type, pushed down to the narrow one, loses nothing.
        for number, (name, _) in enumerate(CASES):
            value = expected.column(f"f{number}")[0].as_py()
            literal = f"timestamp_ntz'{value}'" if name == "date" else f"{value}" + ("D" if name == "float" else "")
            assert df.where(f"f{number} = {literal}").count() == 1, (name, literal)
            assert df.where(f"f{number} is null").count() == 1
