"""CLONE of DeltaTable: arguments, names, answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as s

from alluvium.api.arguments import plain
from alluvium.api.counterparts.raising import raises_counterparts
from alluvium.api.delta.creation.clone import clone_in_session
from alluvium.api.delta.creation.request import Mode, Wanted
from alluvium.api.delta.delta_access import PROVIDER, TableAccess
from alluvium.api.delta.delta_errors import WrongValue
from alluvium.api.options import parse_session_timestamp, parse_timestamp_ms
from alluvium.delta.view.snapshot import Snapshot
from alluvium.plan.changes import Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.sessions.catalog import is_path, quoted_name
from alluvium.spark.sessions.session import time_zone

#: Columns of a clone's result in SQL, and the metrics that they show.
_CLONED: Mapping[str, str] = {
    "source_table_size": "sourceTableSize",
    "source_num_of_files": "sourceNumOfFiles",
    "num_removed_files": "numRemovedFiles",
    "num_copied_files": "numCopiedFiles",
    "removed_files_size": "removedFilesSize",
    "copied_files_size": "copiedFilesSize",
}


class _Table(Protocol):
    """What the verbs need of the table that they are of."""

    _spark: SparkSession
    _access: TableAccess

    def __init__(self, spark: SparkSession, access: TableAccess) -> None: ...


TableT = TypeVar("TableT", bound=_Table)


@raises_counterparts("clone")
class CloneVerbs:
    """Tables that begin as a DeltaTable at a version."""

    def clone(
        self: TableT,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> TableT | Preview:
        """Makes a table that begins as this one is now.

        A deep clone has copies of all files, and is a table by itself; run again with `replace` it copies only files
        that it has not yet. A shallow one names the files where they are, and cannot be read without them.

        Args:
            target: Name of the clone in the catalog, or its path, absolute or with a scheme.
            isShallow: Whether files stay where they are.
            replace: Whether a table that is there is replaced; its history stays.
            properties: Table properties in place of this table's, or beside them.
            dry_run: Only tell what would come of it.
            retry: How often to try.

        Returns:
            The clone; its history has what was copied.

        Raises:
            InvalidRequest: There is a table and it is not to be replaced, or something else; properties that no table
                may have; the clone would lie in this table's folder.
            NotFound: Files of the table are gone.
            UnsupportedFeature: The clone needs a writer that we are not.
            CommitConflict: Another writer won; the target is as that one left it.
        """
        wanted = _wanted(target, isShallow, replace, properties)
        return _cloned(self, self._access.snapshot(), wanted, isShallow, dry_run, retry)

    def cloneAtVersion(
        self: TableT,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> TableT | Preview:
        """Makes a table that begins as this one was at a version; other arguments as of `clone`.

        Raises:
            NotFound: There is no such version, or files of it are gone.
        """
        wanted = _wanted(target, isShallow, replace, properties)
        _ensure(type(version) is int, "version", "an int", version)
        return _cloned(self, self._access.snapshot(version), wanted, isShallow, dry_run, retry)

    def cloneAtTimestamp(
        self: TableT,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> TableT | Preview:
        """Makes a table that begins as this one was at a time; other arguments as of `clone`.

        Args:
            timestamp: `yyyy-MM-dd` or `yyyy-MM-dd HH:mm:ss`, in the session's zone.
            target: As of `clone`.
            isShallow: As of `clone`.
            replace: As of `clone`.
            properties: As of `clone`.
            dry_run: As of `clone`.
            retry: As of `clone`.

        Raises:
            NotFound: There is no version of that time, or files of it are gone.
        """
        wanted = _wanted(target, isShallow, replace, properties)
        _ensure(isinstance(timestamp, str), "timestamp", "a string", timestamp)
        return _cloned(self, snapshot_of_time(self._access, timestamp), wanted, isShallow, dry_run, retry)


def snapshot_of_time(access: TableAccess, timestamp: str) -> Snapshot:
    """The version of a time that is a text in the session's zone."""
    moment = parse_session_timestamp(timestamp, time_zone(access.spark))
    return access.snapshot(timestamp_ms=parse_timestamp_ms(moment))


def clone_frame(spark: SparkSession, metrics: Mapping[str, str] | None) -> DataFrame:
    """The metrics of a clone; no row where none was made."""
    rows = [] if metrics is None else [tuple(int(metrics[name]) for name in _CLONED.values())]
    return spark.createDataFrame(rows, s.StructType([s.StructField(name, s.LongType()) for name in _CLONED]))


def _cloned(
    table: TableT, source: Snapshot, wanted: Wanted, shallow: bool, dry_run: bool, retry: RetryPolicy
) -> TableT | Preview:
    place, done = clone_in_session(table._access, source, wanted, shallow, dry_run, retry)
    return done if isinstance(done, Preview) else type(table)(table._spark, place)


def _wanted(target: str, shallow: bool, replace: bool, properties: Mapping[str, str] | None) -> Wanted:
    _ensure(isinstance(target, str), "target", "a string", target)
    _ensure(isinstance(shallow, bool), "isShallow", "a bool", shallow)
    _ensure(isinstance(replace, bool), "replace", "a bool", replace)
    _ensure(properties is None or isinstance(properties, Mapping), "properties", "a dict", properties)
    given = dict(properties or {})
    for name, value in given.items():
        _ensure(isinstance(name, str), f"property {name}", "a string", name)
        _ensure(isinstance(value, str), f"the value of property {name}", "a string", value)
    mode, target = Mode.CREATE_OR_REPLACE if replace else Mode.CREATE, plain(target)
    said = {plain(name): plain(value) for name, value in given.items()}
    return Wanted(mode, quoted_name((PROVIDER, target)) if is_path(target) else target, properties=said)


def _ensure(condition: bool, name: str, kind: str, value: object) -> None:
    if not condition:
        raise WrongValue(f"{name} needs to be {kind} but got '{type(value)}'.", code="wrong-type")
