"""`readStream` of Paimon tables: rows as they come, or changes with their kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.api.options import parse_flag, parse_options
from alluvium.api.paimon.door import dynamic_options
from alluvium.api.paimon.paimon_frame import kinds_first
from alluvium.commands.any_rows import read_any
from alluvium.errors import InvalidRequest
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema.logical import logical_schema
from alluvium.paimon.streams.begin import CONSUMER, STARTS, ensure_overwrites, ensure_start
from alluvium.paimon.streams.offset import format_offset, parse_offset
from alluvium.paimon.streams.stream import Stream
from alluvium.paimon.terms.options import STREAMING_READ_APPEND_OVERWRITE, STREAMING_READ_OVERWRITE
from alluvium.paimon.view.merge import KIND
from alluvium.plan.ports import ScanSource
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.sessions.session import time_zone
from alluvium.spark.streams.lanes import read_any_stream
from alluvium.storage.open import StoreOpener
from alluvium.storage.store import Store

#: As Paimon's connector names the column of kinds that it adds.
_KINDS = "rowkind"
_CHANGELOG = "read.changelog"
#: How much a batch takes, which is a number of snapshots here.
_LIMITS = "read.stream."
#: Options of streams that no dot tells from those that nobody knows.
_UNDOTTED = (CONSUMER, STREAMING_READ_OVERWRITE.key, STREAMING_READ_APPEND_OVERWRITE.key)


@dataclass(frozen=True, slots=True)
class PaimonStream:
    """Implements `plan.ports.StreamSource`.

    Attributes:
        stream: The table's.
        has_kinds: Whether each change is a row with its kind; otherwise rows come that are new, or new versions.
    """

    stream: Stream
    has_kinds: bool

    @property
    def name(self) -> str:
        return f"PaimonSource[{self.stream.snapshot.store.uri('').rstrip('/')}]"

    @property
    def schema(self) -> Struct:
        own = logical_schema(self.stream.snapshot.schema).fields
        return Struct((*((Field(_KINDS, t.STRING),) if self.has_kinds else ()), *own))

    def latest(self, start: str | None, *, limited: bool, until: str | None) -> str | None:
        if until is not None and start is not None:
            return until
        return format_offset(self.stream.latest(None if start is None else parse_offset(start)))

    def end_of_run(self, start: str | None) -> str:
        begin = self.stream.begin() if start is None else parse_offset(start)
        return format_offset(self.stream.latest(begin))

    def batch(self, start: str | None, end: str) -> Sequence[ScanSource]:
        return self.stream.batch(None if start is None else parse_offset(start), parse_offset(end))

    def shown(self, rows: DataFrame) -> DataFrame:
        """The rows of a source in the stream's columns."""
        if KIND not in rows.columns:
            # The first rows of all.
            return rows.select(sf.lit("+I").alias(_KINDS), "*") if self.has_kinds else rows
        if self.has_kinds:
            return kinds_first(rows, _KINDS)
        # Rows that went, and those that were before an update, are no rows of the table.
        return rows.where(sql_column(f"{quote(KIND)} in (0, 2)")).drop(KIND)

    def started(self, find_place: Callable[[], str]) -> None:
        """Nothing: a consumer is told of what has been read, wherever the checkpoint lies."""

    def committed(self, end: str) -> None:
        self.stream.committed(parse_offset(end))

    def metrics(self, offset: str) -> Mapping[str, str]:
        return {"snapshotsBehind": str(max(0, self.stream.newest + 1 - parse_offset(offset).snapshot_id))}


def read_paimon_stream(
    spark: SparkSession, url: str, options: Mapping[str, str], open_any: Callable[[str], Store]
) -> DataFrame:
    """The rows of a table, then what its snapshots change, for queries to be started of.

    Args:
        spark: The session.
        url: Of the table.
        options: As the caller spells them.
        open_any: From a URL to its store.

    Raises:
        NotFound: There is no table.
        InvalidRequest: An option that nobody knows, that means nothing for a stream, or does not go with the table's.
        UnsupportedFeature: A scan mode that streams do not have, or overwrites whose rows cannot be told; over Spark
            Connect also files that Spark's own readers cannot read.
    """
    parsed = parse_options(options, ("path", "branch", *_UNDOTTED), ())
    given = {**dynamic_options(parsed.engine), **{k: v for k, v in parsed.known.items() if k in _UNDOTTED}}
    limit = next((name for name in given if name.startswith(_LIMITS)), None)
    if limit is not None:
        raise InvalidRequest(
            f"{limit} is not known: a batch takes all snapshots that are there",
            code="unknown-option",
            hint="leave it out",
        )
    said = {name: given.pop(name) for name in STARTS if name in given}
    has_kinds = parse_flag(given.pop(_CHANGELOG, None), _CHANGELOG)
    ensure_start(said)
    branch = parsed.get("branch") or MAIN_BRANCH
    snapshot = load_snapshot(open_any(url), At(), branch, given, time_zone(spark), open_any)
    ensure_overwrites(snapshot.schema)
    stream = PaimonStream(Stream(snapshot, said), has_kinds)
    opener = StoreOpener(snapshot.store.url)
    return read_any_stream(spark, stream, stream.shown, lambda source: read_any(spark, source, opener))
