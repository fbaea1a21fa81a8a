"""Statements mean what the session says that they are given to, whichever session Spark's thread had before.

A thread of Python has a thread of the JVM of its own, in which no session is active; and `newSession()` leaves the first
one active in the main thread. Spark's parser reads settings of whichever session is active.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import jvm
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import alluvium
from alluvium.spark.jvm.gateway import java_of

pytestmark = pytest.mark.spark

#: Midnight of 2024 in Tokyo and in UTC, seconds since 1970.
TOKYO, UTC = 1704034800, 1704067200


@pytest.fixture(scope="module")
def first(spark: SparkSession) -> Iterator[SparkSession]:
    alluvium.enable(spark)
    spark.sql("create table of_settings (id int, at timestamp, text string) using delta")
    yield spark
    spark.sql("drop table of_settings")
    alluvium.disable(spark)


@pytest.fixture(autouse=True)
def emptied(first: SparkSession) -> None:
    first.sql("delete from of_settings")


def in_thread(act: Callable[[], object]) -> None:
    """Carries something out in a thread of its own, whose errors are this one's."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def said(spark: SparkSession, **settings: str) -> AbstractContextManager[None]:
    """Settings of a session, dots as `__`."""
    return jvm.having(spark, {key.replace("__", "."): value for key, value in settings.items()})


def rows(spark: SparkSession, query: str) -> list[tuple]:
    return sorted(tuple(row) for row in spark.sql(query).collect())


STATEMENTS = (
    "insert into of_settings values (1, timestamp'2024-01-01 00:00:00', 'a')",
    "insert into of_settings select 2, timestamp'2024-01-01 00:00:00', 'b'",
    "update of_settings set text = 'c' where at = timestamp'2024-01-01 00:00:00' and id = 1",
    "delete from of_settings where at = timestamp'2024-01-01 00:00:00' and id = 2",
    "merge into of_settings t using (select 3 id) s on t.id = s.id and t.at = timestamp'2024-01-01 00:00:00' "
    "when not matched then insert (id, at) values (s.id, timestamp'2024-01-01 00:00:00')",
)


def test_times_are_of_the_session_s_zone(first: SparkSession):
    """The zone of a thread without a session is that of the JVM."""
    with said(first, spark__sql__session__timeZone="Asia/Tokyo"):
        in_thread(lambda: [first.sql(text) for text in STATEMENTS])
    assert rows(first, "select id, unix_seconds(at), text from of_settings") == [(1, TOKYO, "c"), (3, TOKYO, None)]


def test_of_another_session_too(first: SparkSession):
    other = first.newSession()
    alluvium.enable(other)
    try:
        other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        for text in STATEMENTS:
            other.sql(text)
        first.sql("insert into of_settings values (4, timestamp'2024-01-01 00:00:00', 'd')")
    finally:
        alluvium.disable(other)
    found = [(1, TOKYO, "c"), (3, TOKYO, None), (4, UTC, "d")]
    assert rows(first, "select id, unix_seconds(at), text from of_settings") == found


def test_texts_and_names_are_read_as_the_session_says(first: SparkSession):
    with said(first, spark__sql__parser__escapedStringLiterals="true"):
        in_thread(lambda: first.sql(r"insert into of_settings values (1, null, 'a\tb')"))
    with said(first, spark__sql__ansi__doubleQuotedIdentifiers="true"):
        in_thread(lambda: first.sql('update of_settings set "text" = concat("text", \'!\') where "id" = 1'))
    assert rows(first, "select id, text from of_settings") == [(1, r"a\tb!")]


def test_variables_are_the_session_s(first: SparkSession):
    with said(first, of__settings__table="of_settings", of__settings__number="7"):
        in_thread(lambda: first.sql("insert into ${of.settings.table} (id) values (${of.settings.number})"))
    assert rows(first, "select id from of_settings") == [(7,)]


def test_types_are_the_session_s(first: SparkSession):
    with said(first, spark__sql__timestampType="TIMESTAMP_NTZ"):
        in_thread(lambda: first.sql("create table of_settings_made (at timestamp) using delta"))
        in_thread(lambda: first.sql("alter table of_settings_made add column more timestamp"))
    try:
        assert [kind for _, kind in first.table("of_settings_made").dtypes] == ["timestamp_ntz"] * 2
    finally:
        first.sql("drop table of_settings_made")


def test_conditions_of_writers_and_partitions(first: SparkSession, tmp_path):
    url = str(tmp_path / "t")
    with said(first, spark__sql__session__timeZone="Asia/Tokyo"):
        first.sql(
            f"create table of_settings_parts (id int, p timestamp) using delta partitioned by (p) location '{url}'"
        )
        try:
            first.sql(
                "insert into of_settings_parts values (1, timestamp'2024-01-01 00:00:00'), (2, timestamp'2025-01-01')"
            )
            midnight = "insert overwrite of_settings_parts partition (p = '2024-01-01 00:00:00') select 3"
            in_thread(lambda: first.sql(midnight))
            seen = rows(first, "select id, unix_seconds(p) from of_settings_parts where id <> 2")
            more = first.sql("select 4 id, timestamp'2024-01-01 00:00:00' p")
            condition = sf.col("p") == sf.expr("timestamp'2024-01-01 00:00:00'")
            in_thread(lambda: more.writeTo("of_settings_parts").overwrite(condition))
            assert (seen, rows(first, "select id from of_settings_parts")) == ([(3, TOKYO)], [(2,), (4,)])
        finally:
            first.sql("drop table of_settings_parts")


def test_the_session_that_was_active_stays_so(first: SparkSession):
    other = first.newSession()
    alluvium.enable(other)
    java_of(first).jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(first._jsparkSession)
    try:
        other.sql("insert into of_settings (id) values (1)")
        with pytest.raises(Exception, match="nowhere"):
            other.sql("insert into of_settings select * from nowhere")
        assert active(first).get().equals(first._jsparkSession)
        seen: list[bool] = []
        in_thread(
            lambda: (other.sql("insert into of_settings (id) values (2)"), seen.append(active(first).isDefined()))
        )
        assert seen == [False]
    finally:
        alluvium.disable(other)


def active(spark: SparkSession) -> Any:
    """The session that this thread of the JVM has, as Scala's `Option`."""
    return java_of(spark).jvm.org.apache.spark.sql.classic.SparkSession.getActiveSession()
