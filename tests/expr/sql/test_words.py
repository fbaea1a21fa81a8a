"""Every word and operator that predicates are read by: types, aggregates, and how operators bind in Spark's parser."""

from __future__ import annotations

import pytest

from alluvium.errors import InvalidRequest
from alluvium.expr.literals import format_sql
from alluvium.expr.sql.parse import parse_engine_filter, parse_predicate, parse_value
from alluvium.expr.tree import Cast, Column, Compare, Expression, Unknown, walk
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Decimal, Field, Struct

SCHEMA = Struct(
    (
        Field("s", t.STRING), Field("i", t.INTEGER), Field("j", t.INTEGER), Field("b", t.BOOLEAN), Field("c", t.BOOLEAN),
        Field("d", t.DOUBLE), Field("bi", t.BINARY),
    )
)  # fmt: skip
TYPES: dict[str, DataType] = {
    "TINYINT": t.BYTE, "BYTE": t.BYTE, "SMALLINT": t.SHORT, "SHORT": t.SHORT, "INT": t.INTEGER, "INTEGER": t.INTEGER,
    "BIGINT": t.LONG, "LONG": t.LONG, "FLOAT": t.FLOAT, "REAL": t.FLOAT, "DOUBLE": t.DOUBLE, "BOOLEAN": t.BOOLEAN,
    "BINARY": t.BINARY, "DATE": t.DATE, "TIMESTAMP": t.TIMESTAMP, "TIMESTAMP_LTZ": t.TIMESTAMP,
    "TIMESTAMP_NTZ": t.TIMESTAMP_NTZ, "DECIMAL": Decimal(10, 0), "DEC": Decimal(10, 0), "NUMERIC": Decimal(10, 0),
    "DECIMAL(7)": Decimal(7, 0), "DECIMAL(7, 2)": Decimal(7, 2), "DECIMAL(38, 38)": Decimal(38, 38), "DECIMAL(1, 0)": Decimal(1, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_names_of_types(name: str) -> None:
    for text in (name, name.lower()):
        found = parse_value(f"CAST(s AS {text})", SCHEMA, TYPES[name])
        assert isinstance(found, Cast) and found.type == TYPES[name] and found.child == Column(("s",), t.STRING)
    # Of a text that is no number TRY_CAST makes null, where CAST fails.
    tried = parse_value(f"TRY_CAST(s AS {name})", SCHEMA, TYPES[name])
    assert any(isinstance(node, Unknown) for node in walk(tried))


@pytest.mark.parametrize("name", ["STRING", "VARCHAR(3)", "CHAR(3)"])
def test_casts_to_texts_have_no_length(name: str) -> None:
    assert parse_value(f"CAST(s AS {name})", SCHEMA, t.STRING) == Column(("s",), t.STRING)
    made = parse_value(f"CAST(i AS {name})", SCHEMA, t.STRING)
    assert isinstance(made, Cast) and made.type == t.STRING


@pytest.mark.parametrize("name", ["DECIMAL(39, 0)", "DECIMAL(5, 6)", "DECIMAL(0, 0)", "VARIANT", "ARRAY<INT>"])
def test_types_that_are_left_to_spark(name: str) -> None:
    found = parse_predicate(f"CAST(s AS {name}) IS NULL AND i = 1", SCHEMA)
    assert format_sql(found) == f"(CAST(s AS {name}) IS NULL AND (i = 1))"
    assert any(isinstance(part, Unknown) for part in (found.left, found.right))  # type: ignore[union-attr]


AGGREGATES = ("count", "sum", "avg", "mean", "min", "max", "first", "last", "collect_list", "collect_set")


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates_are_no_conditions(name: str) -> None:
    for call in (f"{name}(i)", f"{name.upper()}( i )"):
        with pytest.raises(InvalidRequest) as caught:
            parse_predicate(f"b AND {call} = 1", SCHEMA)
        assert caught.value.code == "invalid-predicate" and "aggregate" in str(caught.value)
        assert isinstance(parse_engine_filter(f"{call} = 1", SCHEMA), Unknown)
    # A column may be called so.
    named = Struct((Field(name, t.INTEGER),))
    assert format_sql(parse_predicate(f"{name} = 1", named)) == f"({name} = 1)"


#: How Spark's parser groups what has no parentheses: texts of users, then what is understood; None: it is left to Spark.
GROUPED: list[tuple[str, str | None]] = [
    # These apply to the whole comparison before them.
    ("i = j IN (1)", None), ("i IN (1) = b", None), ("b = c LIKE 'x'", None), ("s LIKE 'a' = b", None),
    ("i < j BETWEEN 1 AND 2", None), ("s ILIKE 'x' = b", None), ("s RLIKE 'x' = b", None), ("b = NOT c", None),
    ("b = c IS NULL", "((b = c) IS NULL)"), ("b <=> c IS NULL", "((b <=> c) IS NULL)"), ("i != j IN (1)", None), ("i >= j IN (1)", None),
    # With parentheses they are operands.
    ("b = (i BETWEEN 1 AND 2)", "(b = ((i >= 1) AND (i <= 2)))"), ("b = (i IN (1))", "(b = (i IN (1)))"),
    ("(i IN (1)) = b", "((i IN (1)) = b)"), ("b = (NOT c)", "(b = (NOT c))"), ("b = (c IS NULL)", "(b = (c IS NULL))"),
    ("(s LIKE 'a') = b", "((s LIKE 'a') = b)"), ("i = j = b", "((i = j) = b)"), ("NOT b = c", "(NOT (b = c))"),
    # `||` binds looser than `+` and `-`, which sqlglot has the other way round.
    ("i + j || s = 'x'", "(concat(CAST((i + j) AS STRING), s) = 'x')"), ("s || i + j = 'x'", None), ("s || i - j = 'x'", None),
    ("s || (i + j) = 'x'", "(concat(s, CAST((i + j) AS STRING)) = 'x')"),
    # One and the other null-safe comparison.
    ("b IS DISTINCT FROM c", "(NOT (b <=> c))"), ("b IS NOT DISTINCT FROM c", "(b <=> c)"), ("b IS TRUE", "(b <=> true)"),
    ("b IS NOT FALSE", "(NOT (b <=> false))"), ("b IS NOT TRUE", "(NOT (b <=> true))"), ("i IS NOT NULL", "(NOT (i IS NULL))"),
    ("NOT NOT b", "b"), ("NOT NOT NOT b", "(NOT b)"),
    # Branches.
    ("if(b, i, j) = 1", "(CASE WHEN b THEN i ELSE j END = 1)"), ("if(b, i) = 1", "(CASE WHEN b THEN i END = 1)"),
    ("CASE i WHEN 1 THEN b WHEN 2 THEN c ELSE false END", "CASE WHEN (i = 1) THEN b WHEN (i = 2) THEN c ELSE false END"),
    ("CASE WHEN b THEN c END", "CASE WHEN b THEN c END"),
    # Signs.
    ("- i = 1", "((- i) = 1)"), ("-(1) = i", "(-1 = i)"), ("-5S = i", "(-5 = i)"), ("-CAST(5 AS INT) = i", "(-5 = i)"),
    ("+i = 1", "(i = 1)"), ("i::int = 1", "(i = 1)"), ("i IN ((1), (2))", "(i IN (1, 2))"),
    ("d = 1e5", "(d = 100000.0D)"), ("x'1' = bi", "(X'01' = bi)"), ("x'01' = bi", "(X'01' = bi)"), ("x'' = bi", "(X'' = bi)"),
    ("i /* c */ = 1", "(i = 1)"),
    # What only Spark knows.
    ("~i = 1", None), ("i & 1 = 1", None), ("i ^ 1 = 1", None), ("s COLLATE x = 'a'", None), ("i[0] = 1", None),
    ("(i, j) = (1, 2)", None), ("exists(s, x -> x = 1)", None), ("s RLIKE 'x'", None), ("s ILIKE 'x'", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "grouped"), GROUPED)
def test_how_operators_bind(text: str, grouped: str | None) -> None:
    found: Expression = parse_predicate(text, SCHEMA)
    if grouped is None:
        assert isinstance(found, Unknown) and found.sql == text
    else:
        assert format_sql(found) == grouped
        # An engine's text has parentheses: what is understood of a user's is of its too, and in the same way.
        assert parse_engine_filter(text, SCHEMA) == found


@pytest.mark.parametrize(
    ("operator", "name"), [("=", "="), ("==", "="), ("<>", "!="), ("!=", "!="), ("<", "<"), ("<=", "<="), (">", ">"), (">=", ">="), ("<=>", "<=>")]
)  # fmt: skip
def test_comparisons(operator: str, name: str) -> None:
    found = parse_predicate(f"i {operator} j", SCHEMA)
    assert found == Compare(name, Column(("i",), t.INTEGER), Column(("j",), t.INTEGER))


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "div", "%"])
def test_arithmetic(operator: str) -> None:
    text = format_sql(parse_predicate(f"d {operator} d = 1", SCHEMA)) if operator != "div" else ""
    assert operator == "div" or f"(d {operator} d)" in text
    assert format_sql(parse_predicate("i DIV j = 1", SCHEMA)) == "((CAST(i AS BIGINT) div CAST(j AS BIGINT)) = 1L)"


@pytest.mark.parametrize("name", ["true", "NULL", "False"])
def test_columns_that_are_called_as_constants(name: str) -> None:
    """Catalyst prints such a name without quotes: which of both is meant nobody knows."""
    schema = Struct((Field(name, t.BOOLEAN), Field("i", t.INTEGER)))
    assert isinstance(parse_engine_filter(f"i = 1 AND {name.lower()}", schema), Unknown)
    assert isinstance(parse_engine_filter(f"{name.upper()} OR i = 1", schema), Unknown)
    assert format_sql(parse_engine_filter("i = 1", schema)) == "(i = 1)"


def test_bounds_on_text() -> None:
    with pytest.raises(InvalidRequest, match="too long"):
        parse_predicate("b OR " * 100_000 + "b", SCHEMA)
    deep = "NOT (" * 100 + "b" + ")" * 100
    assert format_sql(parse_predicate(deep, SCHEMA)).count("NOT") == 100
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        parse_predicate("NOT (" * 200 + "b" + ")" * 200, SCHEMA)
