"""Paimon tables by name, or in the form paimon.`/path`, and rows that go into them as by INSERT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.engine import session_opener
from alluvium.api.names.warehouses import find_named, has_named, url_of
from alluvium.api.paimon.merged_schema import parse_merging
from alluvium.api.paimon.paimon_writer import write_paimon
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema.logical import written_schema
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import Committed
from alluvium.plan.retry import DEFAULT_RETRY
from alluvium.schema.types import Struct
from alluvium.spark.sessions.catalog import CatalogTable, find_relation, has_database, is_path, parse_name
from alluvium.spark.sessions.session import ensure_native, time_zone
from alluvium.spark.values.columns import Assignment, align

PROVIDER = "paimon"


@dataclass(frozen=True, slots=True)
class PaimonAccess:
    """A Paimon table in a session.

    Attributes:
        spark: The session.
        url: Where the table is.
        entry: The catalog's, if it was opened by its name there.
        branch: Of the table; None: the main one.
    """

    spark: SparkSession
    url: str
    entry: CatalogTable | None = None
    branch: str | None = None

    def insert(
        self, rows: DataFrame, overwrite: bool, options: Mapping[str, object], partition_by: Sequence[str] = ()
    ) -> Committed:
        """Rows into the table, columns by name; types are cast as INSERT does.

        Args:
            rows: The rows.
            overwrite: Whether they take the place of others.
            options: Of the writer.
            partition_by: Partition keys that the table must have; none where nobody says which.

        Raises:
            InvalidRequest: Columns that the table lacks, or types that cannot be cast.
        """
        ensure_native(self.spark)
        store = session_opener(self.spark, None)(self.url)
        if self.branch is not None:
            options = {**options, "branch": self.branch}
        if parse_merging(options, self.spark).is_asked:
            given = rows
        else:
            brought = {name.lower() for name in rows.columns}
            wanted = [f for f in self.schema().fields if f.name.lower() in brought]
            given = align(rows, Struct(tuple(wanted)), Assignment.CAST)
        return write_paimon(given, store, "Overwrite" if overwrite else "Append", partition_by, options, DEFAULT_RETRY)

    def target(self) -> PaimonTarget:
        """The table as rows are written into it."""
        snapshot = self.snapshot()
        return PaimonTarget(snapshot.store, snapshot.schema, snapshot)

    def schema(self) -> Struct:
        """The columns."""
        return written_schema(self._table())

    def partition_columns(self) -> Sequence[str]:
        """Those that name a row's directory."""
        return self._table().partition_keys

    def _table(self) -> TableSchema:
        return self.snapshot().schema

    def snapshot(self) -> Snapshot:
        """The newest state."""
        store = session_opener(self.spark, None)(self.url)
        return load_snapshot(store, At(), self.branch or MAIN_BRANCH, time_zone=time_zone(self.spark))


def known_paimon(spark: SparkSession, name: str) -> PaimonAccess | None:
    """The Paimon table that a query means by a name; None where it is none, or Spark is to say what is wrong."""
    try:
        named = find_named(spark, parse_name(spark, name))
        if named is not None:
            is_table = named.system is None and has_named(spark, named)
            return PaimonAccess(spark, url_of(spark, named), branch=named.branch) if is_table else None
        entry = find_relation(spark, name)
    except (InvalidRequest, UnsupportedFeature):
        return None
    if entry is not None:
        return PaimonAccess(spark, entry.location, entry) if entry.provider == PROVIDER else None
    parts = parse_name(spark, name)
    if len(parts) != 2 or parts[0].lower() != PROVIDER:
        return None
    return PaimonAccess(spark, parts[1]) if is_path(parts[1]) or not has_database(spark, PROVIDER) else None
