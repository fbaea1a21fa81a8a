"""Conditions that declared types ask for, evaluated on values of every shape; and what is said of rows that break one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from alluvium.expr.evaluate import evaluate
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import is_understood
from alluvium.plan.checks import length_checks, violation
from alluvium.plan.write import Check
from alluvium.schema import types as t
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.types import Array, DataType, Field, Map, Struct

ROW = Struct((Field("a", t.STRING), Field("b`c", t.STRING), Field("n", t.LONG)))


def of(declared: str, data_type: DataType = t.STRING, name: str = "x") -> Field:
    return Field(name, data_type, True, {CHAR_VARCHAR: declared})


@pytest.mark.parametrize(
    ("f", "sql"),
    [
        (of("varchar(3)"), "(`x` is null or length(`x`) <= 3)"), (of("char(3)", name="a`b"), "(`a``b` is null or length(`a``b`) <= 3)"),
        (of("string"), None), (of("int", t.INTEGER), None), (Field("x", t.STRING), None),
        (of("struct<a:char(1),`b``c`:varchar(2),n:bigint>", ROW),
         "(`x` is null or ((`x`.`a` is null or length(`x`.`a`) <= 1) and (`x`.`b``c` is null or length(`x`.`b``c`) <= 2)))"),
        (of("struct<a:string,n:bigint>", ROW), None),
        (of("array<varchar(2)>", Array(t.STRING)), "(`x` is null or forall(`x`, e0 -> (e0 is null or length(e0) <= 2)))"),
        (of("array<array<varchar(2)>>", Array(Array(t.STRING))),
         "(`x` is null or forall(`x`, e0 -> (e0 is null or forall(e0, e1 -> (e1 is null or length(e1) <= 2)))))"),
        (of("array<bigint>", Array(t.LONG)), None), (of("map<string,int>", Map(t.STRING, t.INTEGER)), None),
        (of("map<char(1),int>", Map(t.STRING, t.INTEGER)),
         "(`x` is null or (forall(map_keys(`x`), e0 -> (e0 is null or length(e0) <= 1))))"),
        (of("map<char(1),array<varchar(2)>>", Map(t.STRING, Array(t.STRING))),
         "(`x` is null or (forall(map_keys(`x`), e0 -> (e0 is null or length(e0) <= 1)) and "
         "forall(map_values(`x`), e0 -> (e0 is null or forall(e0, e1 -> (e1 is null or length(e1) <= 2))))))"),
    ],
)  # fmt: skip
def test_conditions_on_lengths(f: Field, sql: str | None) -> None:
    found = length_checks(Struct((Field("other", t.LONG), f)))
    assert [check.sql for check in found] == ([] if sql is None else [sql])
    if sql is not None:
        (check,) = found
        assert (check.name, check.columns, check.code) == (
            f"{f.name} {f.metadata[CHAR_VARCHAR]}",
            (f.name,),
            "text-too-long",
        )


@pytest.mark.parametrize(
    ("value", "holds"), [(None, True), ("", True), ("ab", True), ("abc", False), ("\U0001f600ä", True), ("äöü", False)]
)
def test_lengths_count_characters(value: Any, holds: bool) -> None:
    schema = Struct((of("varchar(2)"),))
    (check,) = length_checks(schema)
    condition = parse_predicate(check.sql, schema)
    assert is_understood(condition)
    assert evaluate(condition, pa.RecordBatch.from_pydict({"x": pa.array([value], pa.string())})).to_pylist() == [holds]


CHECK = Check("small", "a < 1", ("a", "b"), "my-code")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "does not hold for a row"), ([{}], "does not hold for a row"), ([{"a": "1", "b": None}], "for a row with a = 1, b = null"),
        ([{"a": "1"}, {"a": "2"}, {"a": "3"}], "for a row with a = 1\n  and for one with a = 2\n  and for one with a = 3"),
        ([{"a": "x" * 400}], f"with a = {'x' * 296}"), ([{}, {"a": "5"}], "for a row with a = 5"),
    ],
)  # fmt: skip
def test_what_is_said_of_rows(rows: list[dict[str, str | None]], said: str) -> None:
    error = violation(CHECK, rows, "memory://x/t")
    assert error.message.endswith(said) and "'small' (a < 1)" in error.message
    assert (error.code, error.url, error.column) == ("my-code", "memory://x/t", None)


def test_a_check_of_one_column_is_about_it() -> None:
    one = Check("c", "a < 1", ("a",), hint="so")
    assert violation(one, [], "u").column == "a" and violation(one, [], "u").hint == "so"
    assert "filter or correct" in (violation(CHECK, [], "u").hint or "")
