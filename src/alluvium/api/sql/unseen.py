"""Statements about tables of ours that Spark meets before we do: in scripts, `EXECUTE IMMEDIATE`, behind `STREAM`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from alluvium.api.sql.text.lexer import scan_tokens
from alluvium.errors import InvalidRequest, UnsupportedFeature

#: What Spark says where it is to make a table of a format for which it has no class.
_NO_CLASS = re.compile(
    r"\[DATA_SOURCE_NOT_FOUND\] Failed to find (?:the )?data source: (delta|paimon)\.", re.IGNORECASE
)

#: How many plans of tables by name Spark keeps, ours among them, which it looks for there; and how many surely do.
_ROOM, _ENOUGH = "spark.sql.filesourceTableRelationCacheSize", 100


@contextmanager
def named_as_ours(spark: SparkSession, text: str) -> Iterator[None]:
    """Within it, the error that there is no such format is one that says what to do instead.

    Args:
        spark: The session.
        text: The statement.

    Raises:
        UnsupportedFeature: A statement of ours stands where only Spark sees it.
        InvalidRequest: Spark has no room for the plans of the tables that the statement names.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = _NO_CLASS.search(str(error))
        if found is None:
            raise
        _ensure_room(spark)
        if any(token.word == "STREAM" for token in scan_tokens(text)):
            raise UnsupportedFeature(
                f"a {found[1].lower()} table cannot be streamed by STREAM in SQL",
                code="unsupported-stream",
                features=("streams",),
                hint="spark.readStream.table('name').createOrReplaceTempView('rows') makes a view of it for SQL",
            ) from None
        raise UnsupportedFeature(
            f"a {found[1].lower()} table is made inside of a script or another statement, where only Spark sees it",
            code="unsupported-statement",
            hint="run it as a statement of its own: spark.sql('CREATE TABLE ...')",
        ) from None


def _ensure_room(spark: SparkSession) -> None:
    room = int(str(spark.conf.get(_ROOM)))
    if room < _ENOUGH:
        raise InvalidRequest(
            f"Spark keeps the plans of no more than {room} tables by name ({_ROOM}), and finds the rows of ours there",
            code="invalid-setting",
            hint=f"start the session without {_ROOM}; spark.read.format('delta').load(path) does without it",
        ) from None
