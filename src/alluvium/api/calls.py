"""What calls with Spark ask of a format's door, their arguments understood, and the lanes that carry out reads."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession

from alluvium.api.doors import Asked, format_named
from alluvium.api.engine import session_opener
from alluvium.api.options import Options
from alluvium.errors import InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Expression
from alluvium.plan.changes import Committed
from alluvium.plan.ports import ScanSource
from alluvium.plan.retry import RetryPolicy
from alluvium.schema.types import Struct
from alluvium.spark.naming.names import nullable_schema, quote
from alluvium.spark.naming.types import to_spark
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.sessions.readings import is_condition, read_in, reading_zone
from alluvium.spark.sessions.session import LaneChoice, choose_lane, ensure_native, is_connect
from alluvium.storage.paths import is_near
from alluvium.storage.store import Store

_PARTITIONS = "_alluvium_partition_columns"


@dataclass(slots=True)
class KeptRows:
    """Rows of a table that were read before, for whoever may have the same ones again: of the same state of its log.

    Attributes:
        known: The rows, what the log said, and by which settings they were read; assigned as one, for threads share it.
    """

    known: tuple[DataFrame, object, tuple[object, ...]] | None = None

    def once(self, state: object, settings: tuple[object, ...], read: Callable[[], DataFrame]) -> DataFrame:
        """The rows that are kept, if they are of this very state, or those that are read now."""
        known = self.known
        if known is None or known[1] is not state or known[2] != settings:
            known = self.known = read(), state, settings
        return known[0]


@dataclass(frozen=True, slots=True)
class Reading:
    """A call of `read` or `changes`.

    Attributes:
        spark: The session.
        store: The table's objects.
        open_any: From a URL to its store, over the session's access to storage.
        time_zone: The session's.
        asked: Which state, and what of it.
        lane: The lane that the caller names.
        choice: The lane, as far as the session alone decides it.
        storage_options: Credentials, for Python workers.
        options: In Spark's spelling.
        where: Only rows for which this is true.
        columns: Only these.
        kept: Where rows that may be given again are kept; None: others are wanted each time.
    """

    spark: SparkSession
    store: Store
    open_any: Callable[[str], Store]
    time_zone: str
    asked: Asked
    lane: str | None
    choice: LaneChoice
    storage_options: Mapping[str, str]
    options: Options
    where: str | Column | None = None
    columns: Sequence[str] | None = None
    kept: KeptRows | None = None

    def choice_for(self, source: ScanSource) -> LaneChoice:
        """The lane, now that the files are known: a server of Connect may not see them.

        Raises:
            InvalidRequest: `"unreachable-storage"`, or the lane that the caller names is impossible.
        """
        if self.choice.lane != "connect":
            return self.choice
        return choose_lane(self.spark, self.lane, lambda: _unreachable(self.spark, source, self.store.url))


@dataclass(frozen=True, slots=True)
class Writing:
    """A call of `write`.

    Attributes:
        df: The rows.
        store: The table's objects.
        open_any: From a URL to its store, over the session's access to storage.
        save_mode: As the history names it.
        partition_by: Partition columns of a table to create.
        options: As the caller spells them.
        retry: How often a lost commit is tried again.
        storage_options: Credentials, for Python workers.
    """

    df: DataFrame
    store: Store
    open_any: Callable[[str], Store]
    save_mode: str
    partition_by: Sequence[str]
    options: Mapping[str, object]
    retry: RetryPolicy
    storage_options: Mapping[str, str] | None


def write_frame(
    df: DataFrame,
    url: str,
    save_mode: str,
    format: str,
    partition_by: Sequence[str],
    retry: RetryPolicy,
    storage_options: Mapping[str, str] | None,
    options: Mapping[str, object],
) -> Committed:
    """`alluvium.write` of a DataFrame; arguments and errors as there, `save_mode` as the history names it."""
    spark = df.sparkSession
    if not is_connect(spark):
        ensure_native(spark)
    open_any = session_opener(spark, storage_options)
    writing = Writing(df, open_any(url), open_any, save_mode, partition_by, options, retry, storage_options)
    return format_named(format).frame_door.write(writing)


def read_source(
    spark: SparkSession, source: ScanSource, choice: LaneChoice, is_pinned: bool = False, follows: bool = False
) -> DataFrame:
    """A source on one of the lanes of Spark's own readers.

    Args:
        spark: The session.
        source: What to read.
        choice: The lane; not that of Python workers.
        is_pinned: Whether somebody has asked for just this version.
        follows: As of `read_native`; the server of Spark Connect does not know how.
    """
    if choice.lane == "native":
        return read_native(spark, source, follows=follows)
    # Spark Connect needs packages that a classic session does without.
    connect = importlib.import_module("alluvium.spark.scan.connect_lane.connect_frame")
    frame: DataFrame = connect.read_connect(spark, source, choice.why, is_pinned=is_pinned)
    return frame


def read_condition(
    spark: SparkSession, where: object, schema: Struct, time_zone: str, choice: LaneChoice
) -> Expression | None:
    """What a condition says, as far as we read it; None: Spark alone does, which filters by it in any case.

    Raises:
        InvalidRequest: It is a text, and no condition on these columns.
    """
    # What Spark itself filters by it reads itself.
    if not isinstance(where, str) or reading_zone(spark, () if choice.lane == "native" else (where,)) is None:
        return None
    try:
        return read_in(parse_predicate(where, schema, time_zone), time_zone)
    except InvalidRequest:
        # A word that is no column may be a variable of the session.
        if choice.lane == "python" or not is_condition(spark, where, to_spark(nullable_schema(schema))):
            raise
        return None


def narrowed(frame: DataFrame, where: str | Column | None, columns: Sequence[str] | None) -> DataFrame:
    """Some rows, some columns."""
    frame = frame if where is None else frame.where(where)
    return frame if columns is None else frame.select(*(quote(name) for name in columns))


def _unreachable(spark: SparkSession, source: ScanSource, url: str) -> str | None:
    """Why the server cannot read the files itself, though its Python workers may.

    Raises:
        InvalidRequest: `"unreachable-storage"`: the storage is this machine's alone, so that the workers cannot either.
    """
    connect = importlib.import_module("alluvium.spark.scan.connect_lane.connect")
    problem: str | None = connect.unreachable(spark, source.plan_scan(None))
    if problem is not None and is_near(url):
        raise connect.cannot_be_seen(url, problem)
    return problem


def tell_partitions(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Notes on rows of a whole table by which columns it is partitioned, for Spark's catalog to show."""
    frame.__dict__[_PARTITIONS] = tuple(columns)
    return frame


def told_partitions(frame: DataFrame) -> tuple[str, ...]:
    """What was noted; nothing where nobody did."""
    found: tuple[str, ...] = frame.__dict__.get(_PARTITIONS, ())
    return found
