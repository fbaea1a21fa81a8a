"""Which statements are ours: nothing that Spark answers alone is ever taken from it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sql_statements import (
    COMMENTS,
    DELTA_STATEMENTS,
    EXTENSIONS,
    NARROWINGS,
    NOTHING,
    QUERIES,
    REFUSED,
    REFUSED_BY_SPARK,
    SPARK_PARSED,
)

from alluvium.api.sql.grammar.parse import parse_statement
from alluvium.api.sql.kinds import Kind, kind_of


@pytest.mark.parametrize("text", [*DELTA_STATEMENTS, *EXTENSIONS, *REFUSED, *NARROWINGS])
def test_what_only_delta_knows_is_ours(text):
    assert kind_of(text) is Kind.DELTA_ONLY


@pytest.mark.parametrize("text", SPARK_PARSED)
def test_what_spark_parses_for_us(text):
    assert kind_of(text) is Kind.SPARK_PARSED
    assert parse_statement(text) is None


@pytest.mark.parametrize("text", [*QUERIES, *COMMENTS, *NOTHING])
def test_queries_go_to_spark_untouched(text):
    assert kind_of(text) is Kind.QUERY
    assert parse_statement(text) is None


@pytest.mark.parametrize("text", REFUSED_BY_SPARK)
def test_what_spark_might_read_is_its_to_refuse(text):
    assert parse_statement(text) is None


#: What may stand before the first word of a query.
_BEFORE = st.lists(
    st.sampled_from([" ", "\n", "\t", "/* VACUUM t */", "-- OPTIMIZE t\n", "/* a /* b */ c */", "(", "/*+ HINT */"]),
    max_size=6,
).map("".join)
#: What may stand anywhere in one: words of ours, quotes, brackets, comments.
_PIECES = st.lists(
    st.sampled_from(
        [
            "VACUUM",
            "OPTIMIZE",
            "RESTORE",
            "CONVERT",
            "GENERATE",
            "REORG",
            "FSCK",
            "CLONE",
            "SHALLOW",
            "ALTER",
            "TABLE",
            "CREATE",
            "DESCRIBE",
            "DETAIL",
            "HISTORY",
            "SELECT",
            "FROM",
            "WHERE",
            "INSERT",
            "INTO",
            "MERGE",
            "UPDATE",
            "DELETE",
            "AS",
            "(",
            ")",
            ",",
            ";",
            "'",
            '"',
            "`",
            "/*",
            "*/",
            "--",
            "\n",
            "t",
            "1",
        ]
    ),
    max_size=20,
).map(" ".join)


@given(_BEFORE, st.sampled_from(["SELECT", "select", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE"]), _PIECES)
def test_no_query_is_ever_taken(before, word, rest):
    text = f"{before}{word} {rest}"
    assert kind_of(text) is not Kind.DELTA_ONLY
    assert parse_statement(text) is None


def test_a_long_query_costs_no_more_than_a_short_one():
    text = "SELECT " + ", ".join(f"'{i}'" for i in range(500_000))
    begun = time.process_time()
    for _ in range(1000):
        kind_of(text)
    # A look at each character would take a thousand times as long.
    assert time.process_time() - begun < 1


def test_the_rest_of_a_head_is_not_read():
    """A CREATE TABLE AS of megabytes, or with an open quote far behind, is told apart by its first words."""
    text = "CREATE TABLE t USING delta AS SELECT '" + "x" * 5_000_000
    begun = time.process_time()
    assert kind_of(text) is Kind.SPARK_PARSED
    assert time.process_time() - begun < 0.1


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE IDENTIFIER(:t) SHALLOW CLONE s",
        "CREATE TABLE `a.b`.`c``d` /* x */ SHALLOW -- y\n CLONE s",
        'CREATE TABLE "t" DEEP CLONE s',
        "create\ntable\nif\nnot\nexists\nt\nclone\ns",
        "ALTER TABLE IDENTIFIER('a' || :b) ADD FEATURE f",
        "ALTER TABLE a . b ADD/**/CONSTRAINT c CHECK (x)",
    ],
)
def test_heads_with_odd_names(text):
    assert kind_of(text) is Kind.DELTA_ONLY
