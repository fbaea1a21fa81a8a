"""By what a session reads the text of a condition: its settings, and the functions that it knows by name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from itertools import pairwise

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql.catalog import Function
from pyspark.sql.types import StructType

from alluvium.codecs.temporal_text import parse_zone
from alluvium.expr.bind import type_of
from alluvium.expr.literals import format_sql
from alluvium.expr.sql.sql_tokens import SUBSTITUTION, UnreadableText, read_tokens
from alluvium.expr.tree import (
    Cast,
    Compare,
    Expression,
    In,
    Unknown,
    children,
    in_zone,
    is_understood,
    named_paths,
    with_children,
)
from alluvium.schema import types as t
from alluvium.spark.jvm.expression_classes import PACKAGE
from alluvium.spark.sessions.server_clocks import shares_clock
from alluvium.spark.sessions.session import time_zone

ZONE = "spark.sql.session.timeZone"
#: What each setting is where Spark reads a text as we do.
_USUAL: dict[str, tuple[str, ...]] = {
    "spark.sql.ansi.enabled": ("true",),
    "spark.sql.caseSensitive": ("false",),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("false",),
    "spark.sql.parser.escapedStringLiterals": ("false",),
    "spark.sql.legacy.timeParserPolicy": ("corrected", "exception"),
    "spark.sql.timestampType": ("timestamp_ltz",),
    # By which texts of CHAR columns are padded before they are compared.
    "spark.sql.readSideCharPadding": ("true",),
    "spark.sql.legacy.charVarcharAsString": ("false",),
    "spark.sql.legacy.noCharPaddingInPredicate": ("false",),
}
#: Functions that a Column calls by name, which a client's text of it writes as words (`connect_sql`).
_WRITTEN: dict[str, tuple[str, ...]] = {
    "is": ("isnull", "isnotnull"),
    **{word: (word,) for word in ("like", "not", "and", "or", "in")},
}


def reading_zone(spark: SparkSession, texts: Iterable[str]) -> str | None:
    """The zone in which the session reads texts; None where it makes something else of one than we do.

    By its settings; by variables, in whose place Spark puts their values before it reads (`${name}`); because a
    function that a text calls is not Spark's own, whatever our reader makes of the name; or because the zone's clock is
    another to it.
    """
    # All at once: over Connect each question is a round trip.
    said = spark.conf.getAll
    if not all(name not in said or said[name].lower() in usual for name, usual in _USUAL.items()):
        return None
    known = tuple(texts)
    if any(SUBSTITUTION in text for text in known):
        return None
    try:
        called = frozenset(name for text in known for name in _called(text))
        foreign = foreign_function(spark, called)
    except (UnreadableText, AnalysisException):
        # Spark has more tokens than we read, and catalogs that do not list their functions.
        return None
    zone = said.get(ZONE) or time_zone(spark)
    return zone if foreign is None and (not known or shares_clock(spark, zone)) else None


def read_in(node: Expression, zone: str) -> Expression:
    """What a text says in the zone in which a session reads it.

    Of a cast to a local time beside a constant Spark's optimizer makes a comparison of the instant with one at which
    the clock shows the constant, of which there may be two, or none: that is Spark's to tell.
    """
    return in_zone(node if isinstance(parse_zone(zone), dt.timezone) else _without_unwrapped(node), zone)


def _without_unwrapped(node: Expression) -> Expression:
    if isinstance(node, (Compare, In)) and any(map(_is_shown, children(node))):
        return Unknown(format_sql(node), named_paths(node) if is_understood(node) else None)
    return with_children(node, _without_unwrapped)


def _is_shown(node: Expression) -> bool:
    return isinstance(node, Cast) and node.type == t.TIMESTAMP_NTZ and type_of(node.child) == t.TIMESTAMP


def is_condition(spark: SparkSession, text: str, columns: StructType) -> bool:
    """Whether the session can filter rows of some columns by a text: it may name what only the session knows."""
    try:
        return spark.createDataFrame([], columns).where(text).schema == columns
    except (AnalysisException, ParseException):
        return False


def _called(text: str) -> Iterable[str]:
    """What stands before a bracket, in lower case: functions, and words such as `in`, which are Spark's own, too.

    And what a word may stand for, in the text of a Column: to the server that is a call.
    """
    for word, follower in pairwise(read_tokens(text)):
        if word.is_name and follower.text == "(":
            yield word.name.lower()
        yield from _WRITTEN.get(word.folded, ())


def foreign_function(spark: SparkSession, called: frozenset[str]) -> str | None:
    """Which of some names means a function that is not Spark's own; None: none of them."""
    if not called:
        return None
    listed = spark.catalog.listFunctions(pattern="|".join(sorted(called)))
    others = sorted({f.name for f in listed if not _is_sparks(f) and f.name.lower() in called})
    # Where several functions have a name, it depends on the version of Spark which of them is meant.
    return next((name for name in others if not _is_sparks(spark.catalog.getFunction(name))), None)


def _is_sparks(function: Function) -> bool:
    return str(function.className).startswith(PACKAGE)
