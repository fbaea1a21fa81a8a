"""The gate for SQL out of a table's log."""

from __future__ import annotations

import contextlib
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alluvium.errors import InvalidRequest
from alluvium.expr.sql.row_functions import GENERATION, JOB, ROW
from alluvium.expr.sql.row_sql import MAX_CHARACTERS, parse_row_expression
from alluvium.schema.types import DATE, INTEGER, STRING, TIMESTAMP, VARIANT, Array, Field, Map, Struct

SCHEMA = Struct(
    (
        Field("a", INTEGER),
        Field("B", STRING),
        Field("ts", TIMESTAMP),
        Field("d", DATE),
        Field("s", Struct((Field("X", INTEGER), Field("y z", STRING)))),
        Field("m", Map(STRING, INTEGER)),
        Field("ar", Array(INTEGER)),
        Field("table", INTEGER),
        Field("year", INTEGER),
        Field("v", VARIANT),
        Field("Select", INTEGER),
        Field("a.b", INTEGER),
    )
)


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("a > 0", ["a"]),
        ("A > 0 and b <> 'x''y'", ["a", "B"]),
        ("s.x + 1 > `s`.`y z`", ["s.X", "s.y z"]),
        ("`a`>1e5 or a<-.5", ["a"]),
        ("cast(a as decimal(10, 2)) between 1.5BD and 2", ["a"]),
        ("a::bigint = 3L", ["a"]),
        ("date_format(ts, 'yyyy-MM-dd') = '2024-01-01'", ["ts"]),
        ("extract(year from ts) > 2000", ["year", "ts"]),
        ("trim(both 'x' from b) = ''", ["B"]),
        ("case when a > 1 then 'x' else \"y\" end in ('x', 'y')", ["a"]),
        ("m['k'] > 1 and ar[0] = 2", ["m", "ar"]),
        ("exists(ar, x -> x > 1) and forall(ar, (x) -> x is not null)", ["ar"]),
        ("b like 'a\\'--%' escape '/'", ["B"]),
        ("not (a is null) and (((a <=> 1)))", ["a"]),
        ("date'2024-01-01' < d", ["d"]),
        ("d + interval 1 day > d", ["d"]),
        ("timestampadd(DAY, 1, ts) > ts", ["ts"]),
        ("table > 1 and s.x in (1)", ["table", "s.X"]),
        ("b rlike '^[(]select' and x'00' is not null", ["B"]),
        ("a % 2 = 0 and a & 1 = 0 and ~a | 2 ^ 1 > 0 and !false", ["a"]),
        ("7.5", []),
        ("null", []),
        ("b is distinct from 'x'", ["B"]),
        ("substring(b from 1 for 2) = r'x' and b not like all ('a', \"b\")", ["B"]),
        ("trim(leading from b) <> '' and overlay(b placing 'x' from 1) <> b", ["B"]),
        ("transform(ar, (x, i) -> x + i)[0] > 1e-3", ["ar"]),
        ("zip_with(ar, ar, (x, y) -> x * y) is not null", ["ar"]),
        ("interval '1-2' year to month > interval 1 day 2 hours", ["year"]),
        ("cast(a as array<array<int>>) is null and a::timestamp_ntz is null", ["a"]),
        ("a >> 1 > 2 or a <<2 = 1 or a>>>1 =2", ["a"]),
        ("struct(a as y).y > 1", ["a"]),
        ("v:x.y[0]::int > 1", ["v"]),
        ("`Select` > 1 and `a.b` > 2", ["Select", "a.b"]),
        ("lpad(cast(a * 1000000 as string), 20, '0') <> repeat('ab', 1000)", ["a"]),
        ("mask(b, upperChar => 'X') <> ''", ["B"]),
        ("s.x between -1 and +1", ["s.X"]),
    ],
)
def test_expressions_over_a_row_pass(sql: str, columns: list[str]):
    parsed = parse_row_expression(sql, SCHEMA, ROW)
    assert parsed.sql == sql
    assert [".".join(path) for path in parsed.columns] == columns


@pytest.mark.parametrize(
    "sql",
    [
        "a in (select 1)",
        "(select max(a) from t) > 1",
        "exists(select 1)",
        "a in (table t)",
        "a in (table `t`)",
        "(with t as (select 1) select 1) = 1",
        "a in (map a using 'cat' as (b string))",
        "a in (values 1)",
        "sum(a) > 0",
        "lead(a) over (order by a) > 1",
        "row_number() > 1",
        "explode(ar) > 0",
        "rand() > 0.5",
        "uuid() <> ''",
        "monotonically_increasing_id() > 0",
        "spark_partition_id() = 0",
        "input_file_name() <> ''",
        "reflect('java.lang.Runtime', 'getRuntime') is not null",
        "JAVA_METHOD ('a', 'b') = ''",
        "try_reflect('a','b') = ''",
        "my_udf(a)",
        "aßert_true(a)",
        "db.upper(b) = ''",
        "system.builtin.upper(b) = ''",
        "`reflect`('a','b') = ''",
        "identifier('reflect')('a','b') = ''",
        "s.x(1)",
        "a > 0) or (true",
        "(a > 0",
        "ar[0)",
        "a > 0, false",
        "a > 0; drop table t",
        "a > 0 -- x",
        "a--1 > 0",
        "a /* x */ > 0",
        "a > ${x}",
        "a > ?",
        "a = 'unclosed",
        "a = `unclosed",
        "r'\\' = reflect('a','b') and b = ''",
        "current_date() > d",
        "current_user = b",
        # Queries of Spark 4, and what it makes of digits before words.
        "(from t) > 1",
        "(from text.`/x` limit 1) = b",
        "a in (from t select x)",
        "exists(from t)",
        "1. using > 2",
        "1.select",
        "1.`select`",
        "a > 1E+1select",
        "a > 1e1from",
        "1using",
        "a in (map a, b using 'cat')",
        "a in (reduce a using 'cat')",
        "(select 1)",
        "(Select a) > 1",
        "(`Select`) > 1 or (Select a)",
        "Select table t",
        # Settings and the environment.
        "b = '${env:HOME}'",
        "b = `${env:HOME}`",
        'b = "${system:user.home}"',
        "b = '$' '{x}' or b = '${'",
        # Names in double quotes.
        "\"reflect\"('java.lang.System', 'getenv', 'HOME') = b",
        "'reflect'('a', 'b')",
        '"s".x > 1',
        # What may open a file.
        "from_xml(b, 'a int', map('rowValidationXSDPath', '/x')) is null",
        "to_xml(s) = ''",
        "schema_of_xml(b) = ''",
        # Variables of the session, and other names that are no column.
        "secret = b",
        "session.secret = b",
        "system.session.secret = b",
        "`secret` = b",
        "transform(ar, secret -> 1)[0] = secret",
        "filter(ar, (x, y) -> x > 1) is null and y > 1",
        "transform(ar, select -> select) is null",
        "a = :secret",
        "_metadata.file_path = b",
        "a > 1 where true",
        "a as from b",
        "v:select",
        "(a).upper(b)",
        # Values that grow.
        "length(repeat('a', 1900000000)) > 0",
        "length(repeat(repeat('a', 100000), 100000)) > 0",
        "length(repeat('a', 100000 * 100000)) > 0",
        "length(repeat('a', 19e8)) > 0",
        "space(2000000000) = b",
        "lpad(b, 2000000000, 'x') = b",
        "rpad(b, (1 + 2000000000)) = b",
        "size(sequence(1, 2000000000)) > 0",
        "size(array_repeat(a, 2000000000)) > 0",
        "format_number(a, 2000000000) = b",
        "1" * 5000 + " > repeat('a', " + "9" * 5000 + ")",
        "",
        "  ",
        "(" * 200 + "a" + ")" * 200,
        "a > " + "1" * MAX_CHARACTERS,
    ],
)
def test_what_is_more_than_an_expression_is_refused(sql: str):
    with pytest.raises(InvalidRequest) as caught:
        parse_row_expression(sql, SCHEMA, ROW)
    assert caught.value.code == "invalid-expression"
    assert len(str(caught.value)) < 1000


def test_what_is_the_same_in_a_whole_job_must_be_asked_for():
    parse_row_expression("d <= current_date() and b <> current_user", SCHEMA, ROW | JOB)


def test_a_column_may_be_called_like_a_function_or_a_query():
    schema = Struct((Field("current_date", DATE), Field("select", INTEGER)))
    assert parse_row_expression("current_date > '2024-01-01' and select > 1", schema, ROW).roots == {
        "current_date",
        "select",
    }
    with pytest.raises(InvalidRequest):
        parse_row_expression("select 1", schema, ROW)


def test_what_the_reference_refuses_in_generated_columns_is_known():
    parse_row_expression("concat(upper(b), 'x')", SCHEMA, GENERATION)
    for sql in ("try_add(a, 1)", "get(ar, 0)", "raise_error('x')", "current_date()"):
        with pytest.raises(InvalidRequest):
            parse_row_expression(sql, SCHEMA, GENERATION)


@given(st.text(alphabet="aB`'\"\\()[].,-/*>rs 1;=$é\n", max_size=40))
def test_any_text_is_read_or_refused(text: str):
    try:
        parsed = parse_row_expression(text, SCHEMA, ROW)
    except InvalidRequest as error:
        assert error.code == "invalid-expression"
    else:
        assert parsed.sql == text


@pytest.mark.parametrize(
    ("sql", "canonical"),
    [
        ("a>1 and A<-.5", "`a` > 1 and `A` < - .5"),
        ("select > 1", "`select` > 1"),
        ("s.x = s . `y z`", "`s` . `x` = `s` . `y z`"),
        (
            'b = "it\'s" or b="a\\"b" or b = "a""b"',
            "`b` = concat('it', chr(39), 's') or `b` = 'a\\\"b' or `b` = 'a\"b'",
        ),
        ("b = r'x'", "`b` = 'x'"),
        ("b = 'x''y'", "`b` = 'x''y'"),
        ("transform(ar, x->x+a)", "transform ( `ar` , `x` -> `x` + `a` )"),
        ("extract(year from ts)", "extract ( year from `ts` )"),
        ("date'2024-01-01' < d", "date '2024-01-01' < `d`"),
        ("current_date() = d", "current_date ( ) = `d`"),
        ("v:x.y", "`v` : x . y"),
        ("struct(a as where)", "struct ( `a` as `where` )"),
    ],
)
def test_the_text_is_written_anew(sql: str, canonical: str):
    schema = Struct((*SCHEMA.fields, Field("select", INTEGER)))
    assert parse_row_expression(sql, schema, ROW | JOB).canonical == canonical


_PARTS = [
    "a",
    "b",
    "s.x",
    "ar",
    "m",
    "v",
    "`a.b`",
    "select",
    "`select`",
    "from",
    "with",
    "using",
    "table",
    "map",
    "reduce",
    "values",
    "(",
    ")",
    "[",
    "]",
    ",",
    ".",
    ":",
    "::",
    "->",
    "=>",
    "+",
    "-",
    "*",
    "/",
    "=",
    "<",
    ">",
    "||",
    "and",
    "or",
    "not",
    "in",
    "exists(",
    "upper(",
    "cast(",
    "as",
    "int",
    "string",
    "date",
    "timestamp",
    "interval",
    "day",
    "1",
    "1.",
    ".5",
    "1e1",
    "1E+1",
    "2L",
    "'x'",
    '"x"',
    "''",
    '""',
    "r'x'",
    "x'00'",
    "date'2024-01-01'",
    "case",
    "when",
    "then",
    "else",
    "end",
    "null",
    "transform(",
    "x",
    "->",
    "reflect(",
    '"reflect"(',
    "identifier(",
    "lateral",
    "over",
    "${",
    "${x}",
    "year",
    "repeat(",
    "secret",
    "session.",
    "extract(",
    "trim(",
    "both",
    "leading",
    "distinct",
    "like",
    "escape",
    "between",
    "is",
]


@given(st.lists(st.tuples(st.sampled_from(_PARTS), st.sampled_from(["", " "])), max_size=12))
def test_what_passes_is_written_in_a_form_that_passes(parts: list[tuple[str, str]]):
    text = "".join(part + blank for part, blank in parts)
    try:
        parsed = parse_row_expression(text, SCHEMA, ROW)
    except InvalidRequest:
        return
    again = parse_row_expression(parsed.canonical, SCHEMA, ROW)
    assert (again.canonical, again.columns) == (parsed.canonical, parsed.columns)
    assert "$" not in parsed.canonical
    assert '"' not in re.sub(r"'(?:[^'\\\\]|\\\\.|'')*'", "", parsed.canonical)


def test_long_texts_are_read_in_time():
    start = time.process_time()
    for text in ("transform(ar,x->" * 90 + "x" + ")" * 90, "a+" * 20_000 + "a", "''" * 20_000, "(" + "a," * 20_000):
        with contextlib.suppress(InvalidRequest):
            parse_row_expression(text, SCHEMA, ROW)
    assert time.process_time() - start < 10
