"""CREATE TABLE ... CLONE and REPLACE TABLE ... CLONE."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.creation.clone import clone_in_session
from alluvium.api.delta.creation.request import Mode, Wanted
from alluvium.api.delta.delta_access import PROVIDER, TableAccess, named_access
from alluvium.api.delta.delta_errors import NotATable
from alluvium.api.delta.upkeep.clone import clone_frame, snapshot_of_time
from alluvium.api.delta.upkeep.convert import found_in_session
from alluvium.api.options import has_point, point_in_path
from alluvium.api.reader import AT_IN_PATH
from alluvium.api.sql.grammar.clone import Clone
from alluvium.api.sql.text.terms import TableName
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.plan.changes import Committed
from alluvium.spark.sessions.catalog import find_relation, quoted_name
from alluvium.spark.sessions.session import time_zone
from alluvium.spark.sessions.settings import read_flag

#: Formats of which SQL names a folder, that no clone is made of.
_OF_FOLDERS = frozenset(("iceberg", "orc", "csv", "json", "text", "avro"))


def run(spark: SparkSession, statement: Clone) -> DataFrame | None:
    """Carries it out: the answer is one row of metrics, none where the table that is there was left alone."""
    assert isinstance(statement.target, TableName) and isinstance(statement.source, TableName)  # parameters are bound
    with counterparts("clone"):
        access, source, name = _source(spark, statement, statement.source.parts)
        wanted = Wanted(
            _mode(statement),
            quoted_name(statement.target.parts),
            location=statement.location,  # type: ignore[arg-type]  # parameters are bound
            properties=dict(statement.properties),  # type: ignore[arg-type]  # parameters are bound
        )
        _, done = clone_in_session(access, source, wanted, statement.shallow, name=name)
        return clone_frame(spark, done.metrics if isinstance(done, Committed) else None)


def _mode(statement: Clone) -> Mode:
    if statement.replace:
        return Mode.CREATE_OR_REPLACE if statement.create else Mode.REPLACE
    return Mode.CREATE_IF_NOT_EXISTS if statement.if_not_exists else Mode.CREATE


def _source(spark: SparkSession, statement: Clone, parts: tuple[str, ...]) -> tuple[TableAccess, Snapshot, str | None]:
    """The table to clone, the version that is asked for, and its name where it is no Delta table."""
    point = statement.as_of
    name = quoted_name(parts)
    access = named_access(spark, name)
    if access is None:
        return _converted_source(spark, statement, parts)
    version, time_ms = None, None
    if access.entry is None and access.newest() is None and _has_point(spark, access.url):
        path, version, time_ms = point_in_path(access.url, time_zone(spark))
        if point is not None:
            raise InvalidRequest(
                f"{name} names a point in time, and so does the statement", code="version-and-timestamp", url=path
            )
        access = TableAccess(spark, path, access.options)
    if point is not None and point.timestamp is not None:
        return access, snapshot_of_time(access, str(point.timestamp)), None
    if point is not None:
        assert isinstance(point.version, int)  # parameters are bound
        version = point.version
    return access, access.snapshot(version, time_ms), None


def _converted_source(
    spark: SparkSession, statement: Clone, parts: tuple[str, ...]
) -> tuple[TableAccess, Snapshot, str]:
    found = found_in_session(spark, parts)
    if found is None:
        raise _no_source(spark, parts)
    if statement.as_of is not None:
        raise InvalidRequest(
            f"{found[2]} has no versions to be cloned as of",
            code="unsupported-clone-source",
            url=found[0].url,
            hint="leave out VERSION AS OF or TIMESTAMP AS OF",
        )
    return found


def _has_point(spark: SparkSession, path: str) -> bool:
    return has_point(path) and read_flag(spark, AT_IN_PATH, True)


def _no_source(spark: SparkSession, parts: tuple[str, ...]) -> InvalidRequest | UnsupportedFeature | NotATable:
    shown, found = ".".join(parts), find_relation(spark, quoted_name(parts))
    kind = parts[0].lower() if len(parts) == 2 else None
    if found is None and kind not in _OF_FOLDERS and not spark.catalog.tableExists(quoted_name(parts)):
        return NotATable(
            f"the table to clone cannot be found: {shown}", code="not-a-table", hint="the name has no table behind it"
        )
    kind = (found.provider or "view") if found is not None else kind or "view"
    if kind == "iceberg":
        return UnsupportedFeature(
            f"{shown} is an {kind} table, and only {PROVIDER}, Parquet and Paimon tables are cloned",
            code="unsupported-clone-source",
            hint=f"CREATE TABLE ... USING {PROVIDER} AS SELECT * FROM {shown} copies its rows",
        )
    return InvalidRequest(
        f"{shown} is a {kind}, and only {PROVIDER}, Parquet and Paimon tables are cloned",
        code="unsupported-clone-source",
        hint=f"CREATE TABLE ... USING {PROVIDER} AS SELECT * FROM {shown} copies its rows",
    )
