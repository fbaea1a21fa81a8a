"""char(n) and varchar(n): no text is longer, at any depth."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from alluvium.errors import CorruptTable
from alluvium.plan.checks import length_checks
from alluvium.schema import types as t
from alluvium.schema.ddl import CHAR_VARCHAR as KEY
from alluvium.schema.types import Array, Field, Map, Struct
from alluvium.spark.naming.text_lengths import within_length

pytestmark = pytest.mark.spark

DEEP = Struct((Field("a b", t.STRING), Field("n", t.LONG), Field("m", Map(t.STRING, Array(t.STRING)))))


def holds(spark: SparkSession, declared: str, data_type: t.DataType, value: str) -> bool:
    (check,) = length_checks(Struct((Field("c", data_type, True, {KEY: declared}),)))
    assert (check.columns, check.code) == (("c",), "text-too-long")
    return bool(spark.sql(f"select {value} as c").selectExpr(f"coalesce({check.sql}, false) as ok").first()["ok"])


@pytest.mark.parametrize(
    ("declared", "data_type", "fits", "too_long"),
    [
        ("char(3)", t.STRING, ["'abc'", "''", "'äöü'", "cast(null as string)"], ["'abcd'", "'a   '"]),
        ("varchar(2)", t.STRING, ["'a '"], ["'abc'", "'a  '"]),
        ("array<char(1)>", Array(t.STRING), ["array('a', null)", "cast(null as array<string>)"], ["array('a', 'bb')"]),
        (
            "map<char(1),varchar(2)>", Map(t.STRING, t.STRING),
            ["map('a', 'bb')", "map('a', null)", "cast(null as map<string,string>)"], ["map('aa', '')", "map('', 'aaa')"],
        ),
        (
            "struct<`a b`:char(1),n:bigint,m:map<string,array<varchar(2)>>>", DEEP,
            ["named_struct('a b', 'x', 'n', 1L, 'm', map('long key', array('xx')))",
             "cast(null as struct<`a b`:string,n:bigint,m:map<string,array<string>>>)"],
            ["named_struct('a b', 'xx', 'n', 1L, 'm', map('k', array('xx')))",
             "named_struct('a b', 'x', 'n', 1L, 'm', map('k', array('xxx')))"],
        ),
    ],
)  # fmt: skip
def test_what_is_longer_does_not_hold(
    spark: SparkSession, declared: str, data_type: t.DataType, fits: list[str], too_long: list[str]
) -> None:
    assert all(holds(spark, declared, data_type, value) for value in fits)
    assert not any(holds(spark, declared, data_type, value) for value in too_long)


def test_other_columns_are_not_checked(spark: SparkSession) -> None:
    schema = Struct((Field("a", t.STRING), Field("b", Array(t.STRING), True, {KEY: "array<string>"})))
    assert length_checks(schema) == ()


@pytest.mark.parametrize("declared", ["char(", "7", "a b c"])
def test_what_is_no_type_is_reported(spark: SparkSession, declared: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        length_checks(Struct((Field("c", t.STRING, True, {KEY: declared}),)))
    assert (caught.value.code, caught.value.column) == ("invalid-text-type", "c")


@pytest.mark.parametrize(
    ("declared", "value", "fitted"),
    [
        ("varchar(4)", "abcd  ", "abcd"),
        ("varchar(4)", "ab", "ab"),
        ("varchar(4)", "ab    ", "ab  "),
        ("varchar(4)", "abcde ", "abcde "),
        ("char(3)", "a", "a  "),
        ("char(3)", "", "   "),
        ("char(3)", "abc  ", "abc"),
        ("char(3)", "abcd", "abcd"),
        ("char(3)", None, None),
        ("array<char(3)>", "a", "a"),
    ],
)
def test_new_values_are_trimmed_and_padded(spark: SparkSession, declared: str, value: str | None, fitted: str | None):
    rows = spark.createDataFrame([(value,)], "c string")
    assert rows.select(within_length(rows["c"], Field("c", t.STRING, True, {KEY: declared}))).first()[0] == fitted
