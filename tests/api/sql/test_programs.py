"""Statements within statements: EXECUTE IMMEDIATE and scripts, about tables of ours and of others."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

import alluvium
from alluvium.errors import InvalidRequest

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def enabled(spark, tmp_path_factory) -> Iterator[SparkSession]:
    """A session with a database of its own, where `t` and `u` are ours and `plain` is Spark's."""
    alluvium.enable(spark)
    name = f"d_{uuid.uuid4().hex[:8]}"
    spark.conf.set("spark.sql.scripting.enabled", "true")
    spark.sql(f"create database {name} location '{tmp_path_factory.mktemp('warehouse')}'")
    spark.catalog.setCurrentDatabase(name)
    for table in ("t", "u"):
        spark.sql("select 1 a, 'one' b").limit(0).write.format("delta").saveAsTable(table)
    spark.sql("create table plain (a int, b string) using parquet")
    yield spark
    spark.catalog.setCurrentDatabase("default")
    spark._jsparkSession.sessionState().catalog().dropDatabase(name, True, True)
    alluvium.disable(spark)


@pytest.fixture(autouse=True)
def emptied(enabled) -> None:
    for name in ("t", "u", "plain"):
        enabled.sql(f"truncate table {name}")


def rows(spark: SparkSession, name: str) -> list[tuple]:
    return sorted((tuple(row) for row in spark.table(name).collect()), key=str)


class TestImmediate:
    def test_values_and_variables(self, enabled):
        enabled.sql("declare or replace variable text string default 'insert into t values (?, ?)'")
        enabled.sql("declare or replace variable n int default 2")
        enabled.sql("execute immediate text using 1, 'a'")
        enabled.sql("EXECUTE IMMEDIATE 'insert into t values (:n, :b)' USING n, 'b' AS b")
        enabled.sql("execute immediate 'insert into t select :x + 1, null' using n as x")
        assert rows(enabled, "t") == [(1, "a"), (2, "b"), (3, None)]

    def test_queries_and_their_results_are_sparks(self, enabled):
        enabled.sql("insert into t values (1, 'a'), (2, 'b')")
        enabled.sql("declare or replace variable found bigint")
        enabled.sql("execute immediate 'select count(*) from t where a > ?' into found using 1")
        assert enabled.sql("select found").collect()[0][0] == 1
        with pytest.raises(InvalidRequest) as caught:
            enabled.sql("execute immediate 'truncate table t' into found")
        assert caught.value.code == "not-a-query"
        assert len(rows(enabled, "t")) == 2

    def test_statements_that_only_delta_knows(self, enabled):
        answer = enabled.sql("execute immediate 'describe history t limit :n' using 1 as n")
        assert len(answer.collect()) == 1

    def test_other_tables_and_nonsense_are_sparks(self, enabled):
        enabled.sql("execute immediate 'insert into plain values (1, \\'a\\')'")
        assert rows(enabled, "plain") == [(1, "a")]
        enabled.sql("execute immediate 'truncate table plain'")
        assert rows(enabled, "plain") == []
        with pytest.raises(ParseException):
            enabled.sql("execute immediate 'insert nothing'")


class TestScripts:
    def test_each_statement_in_its_turn(self, enabled):
        answer = enabled.sql(
            """begin
              declare n int default 3;
              while n > 0 do
                insert into t values (n, 'loop');
                set n = n - 1;
              end while;
              if (select count(*) from t) = 3 then
                delete from t where a = 2;
              else
                truncate table t;
              end if;
              for r as select a from t do
                insert into u values (r.a * 10, 'for');
              end for;
              insert into plain values (1, 'script');
              select count(*) c from u;
            end"""
        )
        assert [tuple(row) for row in answer.collect()] == [(2,)]
        assert rows(enabled, "t") == [(1, "loop"), (3, "loop")]
        assert rows(enabled, "u") == [(10, "for"), (30, "for")]
        assert rows(enabled, "plain") == [(1, "script")]

    def test_truncate_leaves_the_log(self, enabled):
        enabled.sql("insert into t values (1, 'a')")
        enabled.sql("begin truncate table t; end")
        assert rows(enabled, "t") == []
        assert enabled.sql("describe history t limit 1").collect()[0]["operation"] == "TRUNCATE"

    def test_an_error_ends_the_script(self, enabled):
        with pytest.raises(InvalidRequest) as caught:
            enabled.sql(
                "begin insert into t values (1, 'a'); insert into t values (1); insert into t values (2, 'b'); end"
            )
        assert caught.value.code == "schema-mismatch"
        assert rows(enabled, "t") == [(1, "a")]

    def test_texts_queries_and_parameters_within(self, enabled):
        enabled.sql("begin execute immediate 'insert into t values (?, ?)' using 1, 'a'; end")
        enabled.sql("begin with s as (select 2 a) insert into t select a, 'b' from s; end")
        enabled.sql("begin insert into identifier('t') values (3, 'c'); end")
        enabled.sql("begin insert into t values (:a, :b); end", {"a": 4, "b": "d"})
        assert rows(enabled, "t") == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]

    def test_a_statement_that_fails_does_not_have_the_others_run_again(self, enabled, tmp_path):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            enabled.sql(f"begin insert into plain values (1, 'a'); drop table delta.`{tmp_path}/nowhere`; end")
        assert rows(enabled, "plain") == [(1, "a")]

    def test_handlers_write_too(self, enabled):
        enabled.sql(
            "begin declare exit handler for sqlexception begin insert into t values (9, 'handled'); end; select 1 / 0; end"
        )
        assert rows(enabled, "t") == [(9, "handled")]

    @pytest.mark.parametrize(
        ("what", "statement"),
        [
            ("sqlexception", "insert into t values (1)"),
            ("sqlexception", "describe history plain"),
            ("sqlstate '42802'", "insert into t values (1)"),
            ("unresolved_column", "update t set nope = 1"),
            ("sqlstate '22003'", "select * from t version as of 999"),
        ],
    )
    def test_handlers_see_what_our_statements_raise(self, enabled, what, statement):
        enabled.sql(
            f"begin declare exit handler for {what} begin insert into u values (1, 'handled'); end; "
            f"{statement}; insert into u values (2, 'after'); end"
        )
        assert rows(enabled, "u") == [(1, "handled")]

    def test_an_error_that_no_handler_is_for_is_raised_as_it_was(self, enabled):
        with pytest.raises(InvalidRequest) as caught:
            enabled.sql(
                "begin declare exit handler for divide_by_zero begin insert into u values (1, 'no'); end; "
                "insert into t values (1); end"
            )
        assert caught.value.code == "schema-mismatch" and "alluvium-error" not in str(caught.value)
        assert caught.value.getCondition() == "DELTA_INSERT_COLUMN_ARITY_MISMATCH"
        assert rows(enabled, "u") == []

    def test_scripts_of_others_are_sparks(self, enabled):
        enabled.sql(
            "begin insert into plain values (1, 'a'); truncate table plain; insert into plain values (2, 'b'); end"
        )
        assert rows(enabled, "plain") == [(2, "b")]

    def test_the_branch_that_is_meant(self, enabled):
        enabled.sql(
            """begin
              if 1 = 2 then insert into t values (1, 'if');
              elseif 2 = 3 then insert into t values (2, 'elseif');
              else insert into t values (3, 'else');
              end if;
              case 7 when 5 then insert into t values (4, 'five'); else insert into t values (5, 'other'); end case;
              case when 1 = 2 then insert into t values (6, 'no'); else insert into t values (7, 'yes'); end case;
            end"""
        )
        assert rows(enabled, "t") == [(3, "else"), (5, "other"), (7, "yes")]
