"""Text to trees: what users write and what Catalyst prints."""

from __future__ import annotations

import time

import pytest

from alluvium.errors import InvalidRequest
from alluvium.expr.literals import format_sql
from alluvium.expr.sql.parse import parse_engine_filter, parse_predicate, parse_value
from alluvium.expr.tree import Column, Literal, Unknown, walk
from alluvium.schema import types as t
from alluvium.schema.types import Array, Decimal, Field, Map, Struct

NESTED = Struct((Field("a", t.INTEGER), Field("b", Struct((Field("c", t.STRING),)))))
SCHEMA = Struct(
    (
        Field("id", t.LONG),
        Field("i", t.INTEGER),
        Field("sh", t.SHORT),
        Field("by", t.BYTE),
        Field("f", t.FLOAT),
        Field("d", t.DOUBLE),
        Field("s", t.STRING),
        Field("bi", t.BINARY),
        Field("b", t.BOOLEAN),
        Field("dt", t.DATE),
        Field("ts", t.TIMESTAMP),
        Field("tn", t.TIMESTAMP_NTZ),
        Field("dec", Decimal(10, 2)),
        Field("st", NESTED),
        Field("arr", Array(t.INTEGER)),
        Field("m", Map(t.STRING, t.INTEGER)),
        Field("we ird", t.INTEGER),
        Field("o`p.q", t.INTEGER),
        Field("folded", t.STRING, True, {"__COLLATIONS": {"folded": "UTF8_LCASE"}}),
    )
)
ZONE = "America/New_York"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id > 10", "(id > 10L)"),
        ("ID > 10", "(id > 10L)"),
        ("`id` = 1", "(id = 1L)"),
        ("ST.B.C = 'x'", "(st.b.c = 'x')"),
        ("`we ird` = 1", "(`we ird` = 1)"),
        ("`o``p.q` = 1", "(`o``p.q` = 1)"),
        ("sh = 2", "(sh = 2S)"),
        ("sh = 40000", "(CAST(sh AS INT) = 40000)"),
        ("by IN (1, 2)", "(by IN (1Y, 2Y))"),
        ("i = '5'", "(CAST(i AS BIGINT) = 5L)"),
        ("s > 5", "(CAST(s AS BIGINT) > 5L)"),
        ("i = 1.0", "(i = 1)"),
        ("i > 1.5", "(CAST(i AS DECIMAL(11,1)) > CAST('1.5' AS DECIMAL(11,1)))"),
        ("i > 2.5D", "(CAST(i AS DOUBLE) > 2.5D)"),
        ("s LIKE NULL", "CAST(NULL AS BOOLEAN)"),
        ("i > CAST(1.5 AS DECIMAL(5))", "(i > 2)"),
        ("i > CAST(1.5 AS DECIMAL)", "(i > 2)"),
        ("dec = 1.5", "(dec = CAST('1.50' AS DECIMAL(10,2)))"),
        ("dec > 1.234", "(CAST(dec AS DECIMAL(11,3)) > CAST('1.234' AS DECIMAL(11,3)))"),
        ("dec = '1.5'", "(CAST(dec AS DOUBLE) = 1.5D)"),
        ("f = 1.5", "(f = CAST('1.5' AS FLOAT))"),
        ("f > 0.1", "(CAST(f AS DOUBLE) > 0.1D)"),
        ("d = 0.1", "(d = 0.1D)"),
        ("id = -9223372036854775808", "(id = -9223372036854775808L)"),
        ("id = -9223372036854775808L", "(id = -9223372036854775808L)"),
        ("dt >= '2024-1-1'", "(dt >= DATE '2024-01-01')"),
        ("ts >= DATE'2024-01-01'", "(ts >= TIMESTAMP '2024-01-01 05:00:00Z')"),
        ("ts > '2024-01-01T00:00:00Z'", "(ts > TIMESTAMP '2024-01-01 00:00:00Z')"),
        ("dt >= TIMESTAMP'2024-01-01'", "(CAST(dt AS TIMESTAMP) >= TIMESTAMP '2024-01-01 05:00:00Z')"),
        ("tn = '2024-01-01 12:00'", "(tn = TIMESTAMP_NTZ '2024-01-01 12:00:00')"),
        ("i = NULL", "(i = CAST(NULL AS INT))"),
        ("NULL", "CAST(NULL AS BOOLEAN)"),
        ("bi = x'0aF'", "(bi = X'00AF')"),
        ("s = 'a' 'b'", "(s = 'ab')"),
        ('s = "dq"', "(s = 'dq')"),
        ("s NOT LIKE 'a%'", "(NOT (s LIKE 'a%'))"),
        ("i NOT BETWEEN 1 AND 2 AND b", "((NOT ((i >= 1) AND (i <= 2))) AND b)"),
        ("b AND NOT between(i, 1, 2) AND b", "((b AND (NOT ((i >= 1) AND (i <= 2)))) AND b)"),
        (
            "i NOT BETWEEN (1) AND (2) AND between(i, 1, 2)",
            "((NOT ((i >= 1) AND (i <= 2))) AND ((i >= 1) AND (i <= 2)))",
        ),
        ("NOT i = 1 AND b", "((NOT (i = 1)) AND b)"),
        ("b OR i = 1 AND s = 'x'", "(b OR ((i = 1) AND (s = 'x')))"),
        ("CASE WHEN b AND i = 1 THEN b END OR b", "(CASE WHEN (b AND (i = 1)) THEN b END OR b)"),
        ("i IN (1, id)", "((i = 1) OR (CAST(i AS BIGINT) = id))"),
        ("dt + 1 = '2024-01-02'", "(date_add(dt, 1) = DATE '2024-01-02')"),
        ("hash(i) = 1 AND b", "(hash(i) = 1 AND b)"),
        ("i = 1 -- a remark", "(i = 1)"),
    ],
)
def test_user_text(text: str, expected: str) -> None:
    parsed = parse_predicate(text, SCHEMA, ZONE)
    assert format_sql(parsed) == expected
    assert parse_predicate(expected, SCHEMA, ZONE) == parsed


@pytest.mark.parametrize(
    "text",
    ["", "a b c", "i =", "(i = 1", "i = 1)", "'", "i", "i + 1", "b = 1", "dt > 'abc'", "i = 'x'", "i IN ()", "i = 1; b", "NOT",
     "i IN (SELECT 1)", "EXISTS (SELECT 1)", "sum(i) > 1", "count(*) > 1", "rank() OVER (ORDER BY i) = 1", "i > 5 AS x", "*",
     "dt = DATE'12345-01-01'", "dt = DATE'-0044-01-01'", "ts > TIMESTAMP'2024-13-01'", "s LIKE 'a\\\\'", "i = 1, b",
     "i = 99999999999999999999999999999999999999999999", "b AND i", "b AND", "i = 4ebd", "i = 4e", "d > 9e+bd",
     "d = 4ed"],
)  # fmt: skip
def test_bad_user_text(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_predicate(text, SCHEMA)
    assert caught.value.code == "invalid-predicate"
    assert isinstance(parse_engine_filter(text, SCHEMA), Unknown) or "AND" in text


def test_unknown_columns_are_named() -> None:
    for text, column, hint in (
        ("idd = 1", "idd", "'id'"),
        ("st.x = 1", "st.x", "a, b"),
        ("hash(nope) = 1", "nope", "known"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            parse_predicate(text, SCHEMA)
        assert caught.value.code == "unknown-column"
        assert caught.value.column == column
        assert hint in (caught.value.hint or "")


def test_unknown_time_zone() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_predicate("b", SCHEMA, "Mars/Olympus")
    assert caught.value.code == "unknown-time-zone"
    assert parse_engine_filter("b", SCHEMA, "Mars/Olympus") == Unknown("b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(t.id > 10L)", "(id > 10L)"),
        ("((spark_catalog.default.t.id IS NOT NULL) AND (t.id <=> 1L))", "((NOT (id IS NULL)) AND (id <=> 1L))"),
        ("(t.st.`b`.`c` = 'x')", "(st.b.c = 'x')"),
        ("(ts > TIMESTAMP '1980-01-02 00:00:00')", "(ts > TIMESTAMP '1980-01-02 05:00:00Z')"),
        ("(NOT (d = CAST('NaN' AS DOUBLE)))", "(NOT (d = CAST('NaN' AS DOUBLE)))"),
        ("(d > 1.0E-300D)", "(d > 1e-300D)"),
        ("(dec = 1.50BD)", "(dec = CAST('1.50' AS DECIMAL(10,2)))"),
        ("(sh IN (1S, CAST(NULL AS SMALLINT)))", "(sh IN (1S, CAST(NULL AS SMALLINT)))"),
        ("(by > -1Y)", "(by > -1Y)"),
        (r"(s = 'it\'s \\ %')", r"(s = 'it\'s \\ %')"),
        ("(s = 'a\nb\tc')", "(s = 'a\nb\tc')"),
        ("startswith(t.s, 'a')", "startswith(s, 'a')"),
        ("((- t.i) > 5)", "((- i) > 5)"),
        ("(NOT t.b)", "(NOT b)"),
        ("(folded IS NULL)", "folded IS NULL"),
    ],
)
def test_engine_text(text: str, expected: str) -> None:
    assert format_sql(parse_engine_filter(text, SCHEMA, ZONE)) == expected


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("((t.i = 1) AND array_contains(t.arr, 1))", "array_contains(t.arr, 1)"),
        ("((t.i = 1) AND (dynamicpruning#12 AND t.b))", "dynamicpruning#12"),
        ("((t.i = 1) OR (NOT (t.arr[0] = 1)))", "t.arr[0] = 1"),
        (
            "((t.i = 1) AND exists(arr, lambdafunction((x_1#3 > 1), x_1#3)))",
            "exists(arr, lambdafunction((x_1#3 > 1), x_1#3))",
        ),
        (
            "((t.i = 1) AND (CAST(t.s AS STRING COLLATE UTF8_LCASE) = 'a'))",
            "CAST(t.s AS STRING COLLATE UTF8_LCASE) = 'a'",
        ),
        ("((t.i = 1) AND (folded = 'a'))", "folded = 'a'"),
        ("((t.i = 1) AND (dt = DATE '+12345-01-01'))", "dt = DATE '+12345-01-01'"),
        ("((t.i = 1) AND (try_cast(s AS INT) = 1))", "try_cast(s AS INT) = 1"),
        ("((t.i = 1) AND (nope = 1))", "nope = 1"),
        ("((t.i = 1) AND (s ILIKE 'a'))", "s ILIKE 'a'"),
        # what looks like a number and is none: within the bare name of a mapped column
        ("((t.i = 1) AND (invoke(X.f(col-93a1c5e0-4ebd-4c1d)) = 1))", "invoke(X.f(col-93a1c5e0-4ebd-4c1d)) = 1"),
        ("((t.i = 1) AND (f(col-7e-b) = 1))", "f(col-7e-b) = 1"),
        ("((t.i = 1) AND (s LIKE 'a' ESCAPE '/'))", "s LIKE 'a' ESCAPE '/'"),
        # the clock shows this time twice
        ("((t.i = 1) AND (ts < TIMESTAMP '2024-11-03 01:30:00'))", "ts < TIMESTAMP '2024-11-03 01:30:00'"),
    ],
)
def test_engine_text_that_is_not_understood(text: str, unknown: str) -> None:
    parsed = parse_engine_filter(text, SCHEMA, ZONE)
    assert [n.sql for n in walk(parsed) if isinstance(n, Unknown)] == [unknown]
    assert format_sql(parsed).startswith("((i = 1)")


def test_names_that_the_engine_knows_and_the_table_does_not() -> None:
    """Spark has found a column for each name: it is of another plan, or one that is read in no way that we know."""
    parsed = parse_engine_filter("((nowhere = 1) AND (i = 1))", SCHEMA, ZONE)
    assert [n.sql for n in walk(parsed) if isinstance(n, Unknown)] == ["nowhere = 1"]


def test_names_with_several_readings() -> None:
    schema = Struct((Field("n", Struct((Field("s", t.STRING),))), Field("s", t.STRING)))
    assert isinstance(parse_engine_filter("(n.s = 'x')", schema), Unknown)
    assert isinstance(parse_engine_filter("(`n`.`s` = 'x')", schema), Unknown)
    # Catalyst quotes the fields of structs always, other names where they need it
    field = parse_engine_filter("(a.n.`s` = 'x')", schema)
    assert [n.path for n in walk(field) if isinstance(n, Column)] == [("n", "s")]
    assert format_sql(parse_engine_filter("(a.s = 'x')", schema)) == "(s = 'x')"
    assert format_sql(parse_predicate("n.s = s", schema)) == "(n.s = s)"


@pytest.mark.parametrize("name", ["true", "False", "NULL"])
def test_a_column_that_prints_as_a_constant(name: str) -> None:
    schema = Struct((Field(name, t.BOOLEAN), Field("i", t.INTEGER)))
    for text in (f"(NOT {name})", name, f"({name} IS NOT NULL)", f"(i > 3 AND {name.lower()})"):
        assert isinstance(parse_engine_filter(text, schema), Unknown)
        assert not isinstance(parse_engine_filter(text, Struct(schema.fields[1:])), Unknown)
    assert format_sql(parse_engine_filter("(i = 1)", schema)) == "(i = 1)"


NAMED = Struct(
    (
        *(Field(name, t.INTEGER) for name in ("and", "or", "not", "is", "case", "between", "i")),
        *(Field(name, t.BOOLEAN) for name in ("b", "c")),
    )
)


@pytest.mark.parametrize("name", ["and", "or", "not", "case", "between"])
def test_a_name_that_reads_as_an_operator(name: str) -> None:
    # Catalyst prints it without quotes. `not IS NOT NULL` was `is IS NULL`, and `t.and IS NOT NULL` a part of an AND.
    for text in (f"({name} IS NOT NULL)", f"(({name} IS NOT NULL) AND (i = 1))"):
        assert ("is",) not in [n.path for n in walk(parse_engine_filter(text, NAMED)) if isinstance(n, Column)]
    assert format_sql(parse_engine_filter(f"(c.s.t.{name} IS NOT NULL)", NAMED)) == f"(NOT ({name} IS NULL))"
    assert format_sql(parse_engine_filter(f"((t.{name} > 5) OR (t.i = t.{name}))", NAMED)) == (
        f"(({name} > 5) OR (i = {name}))"
    )


@pytest.mark.parametrize(
    "text",
    ["(coalesce(i, all) = 5)", "(coalesce(i, as) = 5)", "((IF(b, i, as)) = 5)", "(i IN (1, all))", "(abs(all) = 5)",
     "((i + coalesce(1, t.i, all)) = 5)"],
)  # fmt: skip
def test_an_argument_that_sqlglot_drops(text: str) -> None:
    # coalesce(i, all) = 5 was coalesce(i) = 5, and a file whose `i` is null was left out
    schema = Struct((*NAMED.fields, Field("all", t.INTEGER), Field("as", t.INTEGER)))
    for parse in (parse_engine_filter, parse_predicate):
        try:
            parsed = parse(text, schema)
        except InvalidRequest:
            continue
        paths = [n.path for n in walk(parsed) if isinstance(n, Column)]
        assert isinstance(parsed, Unknown) or ("all",) in paths or ("as",) in paths


def test_commas_of_types_are_none_between_arguments() -> None:
    text = "((dec IN (1.50BD, 2.50BD)) AND (coalesce(CAST(i AS DECIMAL(12,2)), 1.5BD) = CAST(dec AS DECIMAL(12, 2))))"
    assert not any(isinstance(node, Unknown) for node in walk(parse_engine_filter(text, SCHEMA)))


@pytest.mark.parametrize(
    ("text", "understood"),
    [
        ("(ts > TIMESTAMP '1943-07-01 00:00:00')", False),
        ("(ts > TIMESTAMP '1978-11-20 00:00:00')", False),
        ("(ts > TIMESTAMP '1980-01-02 00:00:00')", True),
        ("(tn > TIMESTAMP_NTZ '1943-07-01 00:00:00')", True),
        ("(dt > DATE '1943-07-01')", True),
        ("(ts > CAST(DATE '1943-07-01' AS TIMESTAMP))", False),
        ("(tn > CAST(TIMESTAMP '1943-07-01 00:00:00' AS TIMESTAMP_NTZ))", False),
    ],
)
def test_local_times_before_1980(text: str, understood: bool) -> None:
    # Catalyst prints an instant as a local time by Java's table, in which Stockholm has gone by Berlin's clock since 1893.
    for parse in (parse_engine_filter, parse_predicate):
        assert isinstance(parse(text, SCHEMA, "Europe/Stockholm"), Unknown) is not understood
        assert not isinstance(parse(text, SCHEMA, "UTC"), Unknown)
        assert not isinstance(parse(text, SCHEMA, "+01:00"), Unknown)


@pytest.mark.parametrize("text", ["not is not null", "is = 5", "b and is > 3", "i in (1, is)", "b or not is is null"])
def test_a_bare_is(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_predicate(text, NAMED)
    assert caught.value.code == "invalid-predicate" and "backticks" in str(caught.value)
    assert isinstance(parse_engine_filter(text, NAMED), Unknown)


@pytest.mark.parametrize(
    "text",
    ["b < c IN (false)", "b < c between false and true", "b = i between 1 and 5", "b in (true) = c", "i in (1) = b",
     "b <=> c not in (false)", "b = c < b", "b <=> c < b", "s || i + 1 = '15'", "i between 1 and 5 = b", "b between false and true = c"],
)  # fmt: skip
def test_a_condition_beside_a_comparison_needs_parentheses(text: str) -> None:
    # Spark means (b < c) IN (false), for which sqlglot has b < (c IN (false)): by it DELETE took other rows.
    schema = Struct((*NAMED.fields, Field("s", t.STRING)))
    assert isinstance(parse_predicate(text, schema), Unknown)


@pytest.mark.parametrize("text", ["s = 'it''s'", 's = "a""b"', "s = ''''", "s in ('a', 'b''c')", "i = 1 or s = '''a'"])
def test_a_doubled_quote_is_a_quote_to_some_versions_of_spark_alone(text: str) -> None:
    schema = Struct((*NAMED.fields, Field("s", t.STRING)))
    assert any(isinstance(node, Unknown) for node in walk(parse_predicate(text, schema)))
    value = parse_value("concat(s, 'it''s')", schema, t.STRING)
    assert any(isinstance(node, Unknown) for node in walk(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [("'it' 's'", "its"), (r"'it\'s'", "it's"), ("\"it''s\"", "it''s"), ("''", ""), ("'a'\"b\"", "ab")],
)
def test_other_quotes_are_the_same_to_all(text: str, value: str) -> None:
    assert parse_value(text, NAMED, t.STRING) == Literal(value, t.STRING)


def test_a_condition_beside_a_comparison_in_parentheses() -> None:
    for text in ("(b < c) IN (false)", "b = (i IN (1, 2))", "b < c = b", "(b <=> c) = b"):
        assert not isinstance(parse_predicate(text, NAMED), Unknown)
    assert format_sql(parse_predicate("b = c IS NULL", NAMED)) == "((b = c) IS NULL)"
    assert format_sql(parse_engine_filter("(b = s LIKE 'a%')", Struct((*NAMED.fields, Field("s", t.STRING))))) == (
        "(b = (s LIKE 'a%'))"
    )


@pytest.mark.parametrize("text", ["(list.`a` IS NULL)", "(list.`a b` IS NULL)", "(m.`a` = 1)", "(t.list.`a` IS NULL)"])
def test_a_field_of_an_arrays_elements_is_no_column_of_its_name(text: str) -> None:
    """So Catalyst prints `GetArrayStructFields`; a column's qualifier stands before it as the array does."""
    inner = Struct((Field("a", t.INTEGER), Field("a b", t.INTEGER)))
    fields = (*inner.fields, Field("list", t.Array(inner)), Field("m", t.Map(t.STRING, t.INTEGER)))
    assert isinstance(parse_engine_filter(text, Struct(fields)), Unknown)
    assert format_sql(parse_engine_filter("(list.a = 1)", Struct(inner.fields))) == "(a = 1)"
    assert format_sql(parse_engine_filter("(list.`a b` = 1)", Struct(inner.fields))) == "(`a b` = 1)"


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [" AND ".join(["i = 1"] * 100_000), "(" * 10_000 + "b" + ")" * 10_000, "(" * 10_000 + "i" + ")" * 10_000 + " = 1",
     "NOT " * 10_001 + "b", "- " * 10_000 + "i = 1", "i" + " + 1" * 20_000 + " = 1", "(" * 400 + "b" + " OR b)" * 400,
     "CASE WHEN b THEN " * 3000 + "b" + " END" * 3000, "[" * 5000, "(" * 100_000, "f(" * 5000 + ")" * 5000],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_huge_text_is_bounded(text: str) -> None:
    start = time.process_time()
    try:
        format_sql(parse_predicate(text, SCHEMA))
    except InvalidRequest as error:
        assert error.code == "invalid-predicate"
        assert len(str(error)) < 500
    list(walk(parse_engine_filter(text, SCHEMA)))
    assert time.process_time() - start < 10


@pytest.mark.long
def test_long_chains_and_lists() -> None:
    parsed = parse_predicate(" OR ".join(f"i = {n}" for n in range(5000)), SCHEMA)
    assert sum(isinstance(n, Column) for n in walk(parsed)) == 5000
    assert len(list(walk(parse_predicate(f"i IN ({', '.join(map(str, range(10_000)))})", SCHEMA)))) == 10_002


def test_speed() -> None:
    times = []
    for _ in range(20):
        start = time.process_time()
        parse_engine_filter("((t.id IS NOT NULL) AND (t.id > 10L))", SCHEMA)
        times.append(time.process_time() - start)
    assert min(times) < 0.001
