"""A mark in a plan of Spark Connect: which table's rows those below it are, in words that come back from the server.

A server does not know our scans: it sees files of Parquet. The client knows them in the plans that it builds, but not
behind a view, which is a name to it. So each scan carries a condition that is always true and names the table's
version: the optimizer folds it away, and what Spark prints of a plan that it has analysed shows it, be it in a view, in
a subquery, or of rows that are cached.
"""

from __future__ import annotations

import base64
import re

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from alluvium.errors import DECODE_ERRORS, InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Expression, conjunction
from alluvium.schema.types import Struct
from alluvium.spark.scan.native_lane.describe import About
from alluvium.spark.sessions.readings import read_in

_WORD = "alluvium-scan:"
#: Neither quotes nor spaces, so that no setting of the server reads or prints it in another way.
_MARK = re.compile(rf"{_WORD}([A-Za-z0-9_\-]+=*)")


class Mark(msgspec.Struct, frozen=True):
    """What is below.

    Attributes:
        about: The scan.
        filters: SQL conditions that chose its files, all of which stand above it in the plan.
        zone: The time zone in which they are read; None: as nobody here understands them.
    """

    about: About
    filters: tuple[str, ...] = ()
    zone: str | None = None

    @property
    def text(self) -> str:
        """The mark as a word."""
        return _WORD + base64.urlsafe_b64encode(msgspec.json.encode(self)).decode()

    def wanted(self, schema: Struct) -> Expression | None:
        """The rows that are asked for; None: all, as far as is known.

        Args:
            schema: Of the version that is read.
        """
        if self.zone is None:
            return None
        try:
            parsed = [read_in(parse_predicate(text, schema, self.zone), self.zone) for text in self.filters]
        except InvalidRequest:
            return None
        return conjunction(tuple(parsed)) if parsed else None


def marked(rows: DataFrame, mark: Mark) -> DataFrame:
    """The same rows, with a mark."""
    return rows.where(sf.expr(_condition(mark)))


def mark_of(condition: str) -> Mark | None:
    """The mark that a condition of a plan is; None: it is somebody else's."""
    found = marks_in(condition)
    return found[0] if found and condition == _condition(found[0]) else None


def _condition(mark: Mark) -> str:
    """In words: `isNotNull` of a Column is a name to the server, and may mean a function of the caller's."""
    return f"'{mark.text}' is not null"


def marks_in(text: str) -> tuple[Mark, ...]:
    """The marks in a text, in order."""
    return tuple(filter(None, map(_parsed, _MARK.findall(text))))


def _parsed(word: str) -> Mark | None:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(word), type=Mark)
    except (ValueError, *DECODE_ERRORS):
        # Somebody else's text.
        return None
