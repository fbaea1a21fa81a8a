"""Columns of a Connect client whose names read as something else: a name is taken apart by its dots alone."""

from __future__ import annotations

import decimal
from pathlib import Path

import pytest
from pyspark.sql import functions as sf

import alluvium
from alluvium.expr.literals import format_sql
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Unknown
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.scan.connect_lane.connect_sql import to_sql

pytestmark = pytest.mark.connect

NAMES = ["a-b", "4d", "true", "not", "all", "a b", "x = 1 or y", "current_date"]
SCHEMA = Struct(
    (
        *(Field(name, t.INTEGER) for name in ("a", "b", *NAMES)),
        Field("s", Struct((Field("x-y", t.INTEGER),))),
        Field("d", t.Decimal(28, 10)),
    )
)


def test_a_column_by_its_name_is_no_expression(connect, tmp_path: Path):
    # `a-b` was the difference of two columns, 4d a number, and the files of the column's own rows were left out.
    url = str(tmp_path / "t")
    columns = ", ".join(f"{{0}} + {n} `{name}`" for n, name in enumerate(("a", "b", *NAMES)))
    for number in range(2):
        row = connect.sql("select " + columns.format(10 * number))
        alluvium.write(row, url, mode="append", **{"delta.columnMapping.mode": "name"} if number == 0 else {})
    df = alluvium.read(connect, url)
    for n, name in enumerate(NAMES, 2):
        found = df.where(sf.col(name if name == "a-b" else f"`{name}`") == 10 + n)
        assert [row["a"] for row in found.collect()] == [10], name
        (scan,) = alluvium.explain(found)
        assert scan.files == 1, name
        assert [row["a"] for row in df.where(sf.col(name) == 10 + n).collect()] == [10], name


def test_the_text_of_columns(connect):
    for name in NAMES:
        assert format_sql(parse_predicate(to_sql(sf.col(name) == 5), SCHEMA)).endswith(f"`{name}` = 5)") or (
            name.isidentifier() and format_sql(parse_predicate(to_sql(sf.col(name) == 5), SCHEMA)) == f"({name} = 5)"
        )
    assert format_sql(parse_predicate(to_sql(sf.col("s.x-y") == 5), SCHEMA)) == "(s.`x-y` = 5)"
    assert to_sql(sf.col("q`q") == 5) is None


def test_a_decimal_has_the_type_that_the_server_gives_it(connect):
    # Of 39 digits the server rounds the product.
    product = to_sql(sf.col("d") * decimal.Decimal("0.5") == decimal.Decimal("1.5"))
    assert product is not None and "decimal(10,1)" in product
    assert isinstance(parse_predicate(product, SCHEMA), Unknown)
    assert format_sql(parse_predicate(to_sql(sf.col("d") == decimal.Decimal("1E+2")), SCHEMA)).startswith("(d = ")
