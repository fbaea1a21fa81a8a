"""Conditions that are kept as text mean what they meant."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from pyspark.sql import functions as sf

from alluvium.errors import InvalidRequest
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.statements.conditions import condition_text

pytestmark = pytest.mark.spark

SCHEMA = Struct(
    (
        Field("a", t.LONG),
        Field("p", t.STRING),
        Field("ts", t.TIMESTAMP),
        Field("true", t.BOOLEAN),
        Field("s", Struct((Field("x y", t.DOUBLE),))),
        Field("d", t.Decimal(9, 2)),
    )
)
#: Of which text and meaning are one.
KEPT = (
    "a = 1", "a in (1, 2, null)", "not a between 1 and 3", "p like 'a\\\\_%' escape '!'", "p ilike 'A%' or p rlike '^a'",
    "p = 'it''s'", "p = 'a\\\\b'", "ts >= '2024-01-01'", "ts < current_timestamp()", "cast(ts as date) = current_date()",
    "s.`x y` = 0.1", "isnan(s.`x y`)", "d = 1.50", "d > 1e3", "coalesce(p, 'x') <=> null", "nullif(p, '') is not null",
    "date_trunc('day', ts) = timestamp'2024-05-05 00:00:00'", "ts - interval 1 day > '2024-01-01'", "p = x'41'",
    "substr(p, 2) = 'é'", "try_cast(p as int) = 3", "case when a = 1 then true else p is null end", "if(a = 1, true, false)",
    "a div 2 = 1", "a % 2 = 0", "array_contains(array('a'), p)", "a is distinct from 3",
    "startswith(p, 'a')", "left(p, 1) = 'a'", "year(ts) = 2024", "p || 'x' = 'ax'", "a::string = '1'",
    "ts = timestamp_ntz'2024-01-01 00:00:00'", "-a = -1", "a = -9223372036854775808L", "s.`x y` = double('NaN')",
)  # fmt: skip


@pytest.fixture
def session(spark):
    fresh = spark.newSession()
    fresh.conf.set("spark.sql.session.timeZone", "America/New_York")
    return fresh


def test_they_are_kept(session) -> None:
    refused = []
    for text in KEPT:
        try:
            assert condition_text(session, SCHEMA, sf.expr(text)) is not None
        except InvalidRequest as error:
            refused.append((text, error.message))
    assert not refused


def test_what_spark_prints_as_no_sql_is_kept_as_it_was_written(session) -> None:
    # `likeall(p)` is what it prints of the first, without the patterns; a function of the session may be called so.
    session.udf.register("likeall", len, "boolean")
    for text in (
        "p like all ('a%', '%b')", "p collate utf8_lcase = 'A'", "extract(month from ts) = 2", "exists(array(a), x -> x > 2)"
    ):  # fmt: skip
        assert condition_text(session, SCHEMA, sf.expr(text)) == text
    made = sf.exists(sf.array("a"), lambda x: x > 2)
    with pytest.raises(InvalidRequest, match="something else as text"):
        condition_text(session, SCHEMA, made)


#: Refused as columns, which have no text of their own; what was written as text means what it means.
OTHERWISE = {
    # Before the clocks were set back, an hour after `TIMESTAMP '2024-11-03 01:30:00'` is read to be.
    "instant": (
        "spark.sql.ansi.enabled", lambda: sf.col("ts") > datetime(2024, 11, 3, 6, 30, tzinfo=timezone.utc),
        "ts > timestamp'2024-11-03T06:30:00Z'",
    ),
    "backslash": ("spark.sql.parser.escapedStringLiterals", lambda: sf.col("p") != "a\\b", "p != 'a\\b'"),
    "constant": ("spark.sql.ansi.enabled", lambda: sf.col("`true`"), "`true`"),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERWISE)
def test_what_would_mean_something_else_is_refused(session, case: str) -> None:
    setting, column, text = OTHERWISE[case]
    session.conf.set(setting, "true")
    assert condition_text(session, SCHEMA, sf.expr(text)) == text
    with pytest.raises(InvalidRequest) as caught:
        condition_text(session, SCHEMA, column())
    assert caught.value.code == "invalid-condition"
    assert "function of yours" not in caught.value.message


def test_a_subquery_is_refused(session) -> None:
    with pytest.raises(InvalidRequest) as caught:
        condition_text(session, SCHEMA, sf.expr("a in (select 1)"))
    assert caught.value.code == "invalid-condition"
