"""How the methods of DeltaTable come to their table: by path or by name, always at its newest version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import SparkSession

from alluvium.api.delta.delta_errors import not_a_table
from alluvium.api.delta.snapshots import open_snapshot
from alluvium.api.engine import engine_of
from alluvium.api.stores import storage_for
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.plan.changes import Author
from alluvium.schema.ddl import parse_column_path
from alluvium.spark.sessions.catalog import (
    CatalogTable,
    find_relation,
    find_table,
    has_database,
    is_path,
    parse_name,
)
from alluvium.spark.sessions.session import ensure_native, hadoop_access, is_connect, time_zone
from alluvium.storage.store import Store

PROVIDER = "delta"


@dataclass(frozen=True, slots=True)
class TableAccess:
    """A table in a session.

    Attributes:
        spark: The session.
        url: Where the table is.
        options: Hadoop's settings for its file system.
        entry: The catalog's, if it was opened by its name there.
    """

    spark: SparkSession
    url: str
    options: Mapping[str, str] = field(default_factory=dict)
    entry: CatalogTable | None = None

    @property
    def name(self) -> str | None:
        """Its name in the catalog, if it was opened by that."""
        return None if self.entry is None else self.entry.name

    @property
    def engine(self) -> Author:
        """As the history shows it."""
        return engine_of(self.spark)

    def store(self, url: str | None = None) -> Store:
        """The objects of the table, or those at another place under the same settings."""
        hadoop = None if is_connect(self.spark) else partial(hadoop_access, self.spark)
        return storage_for(self.url if url is None else url, self.options, hadoop)

    def snapshot(self, version: int | None = None, timestamp_ms: int | None = None) -> Snapshot:
        """A version of the table, the newest by default."""
        return open_snapshot(self.store(), version, timestamp_ms, time_zone(self.spark), self.store)

    def newest(self) -> Snapshot | None:
        """The newest version; None where there is no table."""
        try:
            return self.snapshot()
        except NotFound as error:
            if error.code != "not-a-table":
                raise
            return None


def path_access(spark: SparkSession, path: str, options: Mapping[str, str] | None = None) -> TableAccess:
    """A table by its path.

    Raises:
        InvalidRequest: Settings of other things than file systems (`invalid-option`).
    """
    if not is_connect(spark):
        ensure_native(spark)
    given = dict(options or {})
    foreign = sorted(name for name in given if not name.startswith(("fs.", "dfs.")))
    if foreign:
        raise InvalidRequest(
            f"only settings of file systems (fs., dfs.) are taken here, not {foreign[0]!r}", code="invalid-option"
        )
    return TableAccess(spark, str(path), given)


def named_access(spark: SparkSession, name: str) -> TableAccess | None:
    """What a query means by a name, or by a path in the form delta.`/path`; None where that is no table of ours: a
    temporary view hides a table of its name.

    Raises:
        InvalidRequest: The name does not parse.
        UnsupportedFeature: It names another catalog than the session's.
    """
    if is_connect(spark):
        return over_connect(spark, parse_column_path(name))
    return _access(spark, name, find_relation(spark, name))


def over_connect(spark: SparkSession, parts: tuple[str, ...]) -> TableAccess:
    """The table of delta.`/path` over Spark Connect: whose names the server's catalog has, it does not tell.

    Raises:
        UnsupportedFeature: It is another name (`no-jvm-for-names`).
    """
    if len(parts) == 2 and parts[0].lower() == PROVIDER:
        return TableAccess(spark, parts[1])
    raise names_are_the_servers(parts)


def names_are_the_servers(parts: tuple[str, ...]) -> UnsupportedFeature:
    """The error that a name of the catalog stands in a statement over Spark Connect."""
    return UnsupportedFeature(
        f"over Spark Connect a table is named by its path, not {'.'.join(parts)!r}",
        code="no-jvm-for-names",
        hint="write delta.`/path/of/table`; names of the catalog need a classic session",
    )


def known_access(spark: SparkSession, name: str) -> TableAccess | None:
    """The same; None, too, where Spark is to answer: to what is no name, or one of another catalog."""
    try:
        return named_access(spark, name)
    except (InvalidRequest, UnsupportedFeature):
        return None


def table_access(spark: SparkSession, name: str) -> TableAccess | None:
    """The table of a name, where one is to be made or replaced: temporary views do not stand in its way."""
    if is_connect(spark):
        return over_connect(spark, parse_column_path(name))
    return _access(spark, name, find_table(spark, name))


def _access(spark: SparkSession, name: str, entry: CatalogTable | None) -> TableAccess | None:
    if entry is not None:
        return TableAccess(spark, entry.location, entry=entry) if entry.provider == PROVIDER else None
    path = path_in_name(spark, name)
    return None if path is None else path_access(spark, path)


def path_in_name(spark: SparkSession, name: str) -> str | None:
    """The path in delta.`/path`; None for other names.

    Where there is a database `delta`, a name in it is a table's, unless it is an absolute path or a URL.
    """
    if is_connect(spark):
        # What databases there are is the server's to know, and names of its catalog are refused.
        return over_connect(spark, parse_column_path(name)).url
    parts = parse_name(spark, name)
    if len(parts) != 2 or parts[0].lower() != PROVIDER:
        return None
    return parts[1] if is_path(parts[1]) or not has_database(spark, PROVIDER) else None


def ensure_table(access: TableAccess, shown: str) -> None:
    """Refuses a place where there is no Delta table (`not-a-table`); `shown`: how it was named."""
    try:
        access.snapshot()
    except NotFound as error:
        if error.code != "not-a-table":
            raise
        raise not_a_table(shown, access.url) from None
