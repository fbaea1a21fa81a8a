"""The gate for SQL out of a table's log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alluvium.errors import InvalidRequest
from alluvium.expr.row_functions import GENERATION, JOB, ROW
from alluvium.expr.row_sql import MAX_CHARACTERS, parse_row_expression
from alluvium.schema.types import DATE, INTEGER, STRING, TIMESTAMP, Array, Field, Map, Struct

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
