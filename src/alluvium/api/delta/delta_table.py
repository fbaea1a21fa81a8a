"""DeltaTable: the API of `delta.tables` 4.4, without a JAR, and what goes beyond it."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from types import MappingProxyType
from typing import cast, overload

from pyspark.sql import Column, DataFrame, SparkSession

from alluvium.api.counterparts.raising import raises_counterparts
from alluvium.api.delta import row_verbs
from alluvium.api.delta.creation.request import Mode
from alluvium.api.delta.delta_access import PROVIDER, TableAccess, ensure_table, named_access, path_access
from alluvium.api.delta.delta_columns import DeltaColumnBuilder
from alluvium.api.delta.delta_errors import WrongValue, ensure_value, not_a_table
from alluvium.api.delta.delta_expressions import expression_argument, set_argument
from alluvium.api.delta.delta_merge import DeltaMergeBuilder
from alluvium.api.delta.delta_table_builder import TableBuilder
from alluvium.api.delta.delta_views import detail_frame, history_frame, restore_frame
from alluvium.api.delta.frames.session_options import forget_version, session_txn
from alluvium.api.delta.optimize.auto import compacting, renewed
from alluvium.api.delta.optimize.builder import DeltaOptimizeBuilder
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.api.delta.row_verbs import own_columns
from alluvium.api.delta.snapshots import has_delta_table
from alluvium.api.delta.upkeep.clone import CloneVerbs
from alluvium.api.delta.upkeep.columns import ColumnVerbs
from alluvium.api.delta.upkeep.convert import ConvertVerbs
from alluvium.api.delta.upkeep.repair import RepairVerbs
from alluvium.api.delta.upkeep.vacuum import VacuumVerbs
from alluvium.api.options import parse_session_timestamp
from alluvium.commands.delete import TABLE
from alluvium.commands.merge.merging import MergeRequest
from alluvium.commands.rewrite import rewriter
from alluvium.commands.update import UpdateRequest
from alluvium.delta.view.source import DeltaSource
from alluvium.delta.write.symlink_manifest import ensure_mode, write_manifests
from alluvium.errors import InvalidRequest, WrongType
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.naming.types import show_not_null
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.scan.own_lane import read_own_lane
from alluvium.spark.sessions.session import is_connect, time_zone
from alluvium.spark.statements.own_columns import OwnColumns
from alluvium.spark.statements.resolve import Qualifier, named_rows

_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


class DeltaTableBuilder(TableBuilder["DeltaTable"]):
    """Describes a table, and creates or replaces it with `execute()`.

    Either a name (in the session's catalog) or a location must be given.

    Example:
        >>> (DeltaTable.create(spark).location("/data/trips")
        ...     .addColumn("id", "bigint", nullable=False).addColumn("day", "date").partitionedBy("day").execute())
    """


@raises_counterparts()
class DeltaTable(ColumnVerbs, VacuumVerbs, CloneVerbs, ConvertVerbs, RepairVerbs):
    """A Delta table in a Spark session. Made by `forPath`, `forName`, or a builder from `create` and its like.

    Methods act on the newest version. Those beyond `delta.tables` take `dry_run=True` (tell what would change, write
    nothing; they return a `Preview` then) and `retry=` (how often a commit that lost a race is tried again).

    Example:
        >>> from alluvium import DeltaTable
        >>> DeltaTable.forPath(spark, "/data/flights").history(1).show()
    """

    def __init__(
        self, spark: SparkSession, access: TableAccess, alias: str | None = None, own: OwnColumns | None = None
    ) -> None:
        self._spark = spark
        self._access = access
        self._alias = alias
        self._own = own_columns(spark) if own is None else own

    @classmethod
    @overload
    def forPath(cls, sparkSession: str | PathLike[str]) -> PortableDeltaTable: ...

    @classmethod
    @overload
    def forPath(
        cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] = _NO_SETTINGS
    ) -> DeltaTable: ...

    @classmethod
    def forPath(
        cls,
        sparkSession: SparkSession | str | PathLike[str],
        path: str | None = None,
        hadoopConf: Mapping[str, str] = _NO_SETTINGS,
    ) -> DeltaTable | PortableDeltaTable:
        """The table at a path.

        Args:
            sparkSession: A classic session. A path alone: the table without a session (`PortableDeltaTable`).
            path: Of the table's root.
            hadoopConf: Settings of file systems (`fs.`, `dfs.`), e.g. credentials.

        Raises:
            NotFound: There is no Delta table.
            InvalidRequest: Settings of other things.
        """
        if isinstance(sparkSession, str | PathLike):
            return PortableDeltaTable.forPath(sparkSession)
        access = path_access(sparkSession, cast(str, path), hadoopConf)
        ensure_table(access, str(path))
        return cls(sparkSession, access)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """The table of that name in the session's catalog, or at a path in the form delta.`/path`.

        Raises:
            NotFound: There is no table of that name, or it is not a Delta table.
        """
        access = named_access(sparkSession, tableOrViewName)
        if access is None:
            raise not_a_table(tableOrViewName)
        ensure_table(access, tableOrViewName)
        return cls(sparkSession, access)

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether there is a Delta table at a path."""
        return has_delta_table(path_access(sparkSession, identifier).store())

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A builder of a table that must not exist yet."""
        return DeltaTableBuilder(_session(sparkSession), Mode.CREATE, cls)

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A builder of a table; one that exists is left as it is."""
        return DeltaTableBuilder(_session(sparkSession), Mode.CREATE_IF_NOT_EXISTS, cls)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A builder of a table that takes the place of one that must exist, with no rows."""
        return DeltaTableBuilder(_session(sparkSession), Mode.REPLACE, cls)

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A builder of a table that takes the place of one if it exists."""
        return DeltaTableBuilder(_session(sparkSession), Mode.CREATE_OR_REPLACE, cls)

    @classmethod
    def columnBuilder(cls, sparkSession: SparkSession | str, colName: str | None = None) -> DeltaColumnBuilder:
        """A builder of a column for the table builders; a session may stand before the name."""
        name = colName if colName is not None else sparkSession
        if not isinstance(name, str):
            raise WrongType(f"Column name must be str, not {name!r}")
        return DeltaColumnBuilder(name)

    def toDF(self) -> DataFrame:
        """The rows of the table, each query those of the newest version; over Spark Connect those of the version that
        is the newest now. Its columns (`rows["id"]`) can be used in the verbs of this table.
        """
        snapshot = self._access.snapshot()
        if is_connect(self._spark):
            rows = read_own_lane(self._spark, DeltaSource(snapshot))
            rows = rows if self._alias is None else rows.alias(self._alias)
            self._own.remember(rows)
            return rows
        rows = read_native(self._spark, DeltaSource(snapshot, follows=True), follows=True)
        if self._alias is not None or self._access.entry is not None:
            rows = named_rows(rows, self._name)
        self._own.remember(rows)
        return show_not_null(rows, snapshot.config.schema)

    def alias(self, aliasName: str) -> DeltaTable:
        """The same table under a name for expressions, which then know it by no other."""
        return DeltaTable(self._spark, self._access, aliasName, self._own)

    def history(self, limit: int | None = None) -> DataFrame:
        """The commits, newest first; at most `limit` of them."""
        return history_frame(self._spark, self._access.snapshot(), limit)

    def detail(self) -> DataFrame:
        """One row: format, id, name, location, size, properties, protocol."""
        return detail_frame(self._spark, self._access.snapshot(), self._access.name)

    def upgradeTableProtocol(
        self, readerVersion: int, writerVersion: int, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Supports what protocol versions imply. Versions never fall: lower ones change nothing."""
        ensure_value(
            isinstance(readerVersion, int), f"The readerVersion needs to be an integer but got '{type(readerVersion)}'."
        )
        ensure_value(
            isinstance(writerVersion, int), f"The writerVersion needs to be an integer but got '{type(writerVersion)}'."
        )
        return self._alteration().upgrade_protocol(readerVersion, writerVersion, dry_run, retry)

    def addFeatureSupport(
        self, featureName: str, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Supports a table feature; the protocol is upgraded as far as that needs."""
        ensure_value(isinstance(featureName, str), f"featureName needs to be a string but got '{type(featureName)}'.")
        return self._alteration().add_feature(featureName, dry_run, retry)

    def dropFeatureSupport(
        self,
        featureName: str,
        truncateHistory: bool | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Supports a table feature no longer; the protocol becomes the weakest for the others.

        Files that have something of the feature in them are written anew. Older versions that need it are hidden behind
        protected checkpoints; with `truncateHistory` they must have expired instead.

        Raises:
            InvalidRequest: The feature is in use, cannot be dropped, or is in versions that have not expired
                (`feature-in-history`).
        """
        ensure_value(isinstance(featureName, str), f"featureName needs to be a string but got '{type(featureName)}'.")
        ensure_value(
            truncateHistory is None or isinstance(truncateHistory, bool),
            f"truncateHistory needs to be a boolean but got '{type(truncateHistory)}'.",
        )
        rewrite = rewriter(self._spark, retry)
        return self._alteration().drop_feature(featureName, dry_run, retry, rewrite, truncateHistory is True)

    def restoreToVersion(
        self, version: int, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> DataFrame | Preview:
        """Makes an older version the newest one; one row of metrics.

        Raises:
            NotFound: There is no such version, or data files of it are gone.
        """
        ensure_value(type(version) is int, f"version needs to be an int but got '{type(version)}'.")
        return self._restored(self._alteration().restore(version=version, dry_run=dry_run, retry=retry))

    def restoreToTimestamp(
        self, timestamp: str, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> DataFrame | Preview:
        """Makes the version of a time (`yyyy-MM-dd` or `yyyy-MM-dd HH:mm:ss`, in the session's zone) the newest one.

        Raises:
            NotFound: There is no version of that time, or data files of it are gone.
        """
        ensure_value(isinstance(timestamp, str), f"timestamp needs to be a string but got '{type(timestamp)}'.")
        moment = parse_session_timestamp(timestamp, time_zone(self._spark))
        return self._restored(
            self._alteration().restore(timestamp=moment, dry_run=dry_run, retry=retry, said=timestamp)
        )

    def _restored(self, done: Committed | Preview) -> DataFrame | Preview:
        done = renewed(self._spark, self._access.url, done)
        return done if isinstance(done, Preview) else restore_frame(self._spark, done.metrics)

    def generate(self, mode: str) -> None:
        """Writes files by which engines read the newest version that know nothing of its log.

        Args:
            mode: `"symlink_format_manifest"`: lists of files in `_symlink_format_manifest`, one a partition.

        Raises:
            InvalidRequest: Another mode (`unknown-mode`).
            UnsupportedFeature: The table has deletion vectors or mapped columns, which such engines do not know.
        """
        ensure_value(isinstance(mode, str), f"mode needs to be a string but got '{type(mode)}'.")
        ensure_mode(mode)
        write_manifests(self._access.snapshot())

    # --- rows ---

    def delete(
        self, condition: Column | str | None = None, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Deletes the rows for which a condition is true, all without one. No row reaches the driver.

        Files that partition values or statistics prove to go as a whole are not read.

        Args:
            condition: SQL text or a column; it may name the table by its alias, or by its name in the catalog. It may
                have subqueries; those that do not name the row are asked once.
            dry_run: Only tell how many rows, and which files, would be touched.
            retry: How often a commit that lost a race is tried again, and the verb carried out anew.

        Returns:
            The version, and metrics under the history's names (`numDeletedRows`, ...); `attempts` is 0 where no row
            was to go, for then nothing is committed.

        Raises:
            InvalidRequest: The condition does not resolve (`invalid-expression`), or the table is append-only.
            UnsupportedFeature: The table needs a writer that we are not.
            CommitConflict: Another writer touched what was read, and repeating was of no avail; the error names it.
        """
        given = None if condition is None else self._by_name(expression_argument(condition, "'condition'"))
        txn = None if dry_run else session_txn(self._spark)
        more = (self._access.engine, self._name, dry_run, retry, txn)
        done = compacting(self._access, lambda snapshot: row_verbs.delete(self._spark, snapshot, given, *more))
        forget_version(self._spark, txn)
        return done

    def update(
        self,
        condition: Column | str | None = None,
        set: Mapping[str, Column | str] | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Sets columns in the rows for which a condition is true, in all rows without one.

        Args:
            condition: SQL text or a column; it may name the table by its alias, or by its name in the catalog. It may
                have subqueries; those that do not name the row are asked once.
            set: Column, or dotted field of one, to its new value: SQL text or a column over the row's old values.
            dry_run: Only tell how many rows, and which files, would be touched.
            retry: How often a commit that lost a race is tried again, and the verb carried out anew.

        Returns:
            As of `delete`, with `numUpdatedRows`.

        Raises:
            InvalidRequest: The condition or a value does not resolve (`invalid-expression`), a column is unknown
                (`unknown-column`) or set twice (`assigned-twice`), or new rows break a constraint.
            UnsupportedFeature: The table needs a writer that we are not.
            CommitConflict: Another writer touched what was read, and repeating was of no avail; the error names it.
        """
        # The list first, as in delta-spark: who gives it alone, and as the first argument, is told that it is missing.
        values = {column: self._by_name(value) for column, value in set_argument(set, "'set'").items()}
        given = None if condition is None else self._by_name(expression_argument(condition, "'condition'"))
        return self._update(UpdateRequest(given, values, self._name), dry_run, retry)

    def _update(self, request: UpdateRequest, dry_run: bool, retry: RetryPolicy) -> Committed | Preview:
        txn = None if dry_run else session_txn(self._spark)
        more = (self._access.engine, dry_run, retry, txn)
        done = compacting(self._access, lambda snapshot: row_verbs.update(self._spark, snapshot, request, *more))
        forget_version(self._spark, txn)
        return done

    def merge(self, source: DataFrame, condition: Column | str) -> DeltaMergeBuilder:
        """A builder of a merge: what the rows of a source do to those of the table that they match.

        Args:
            source: The rows that come. One that is not deterministic is computed once.
            condition: Which of them match which rows of the table; it may name both by their aliases, or by their names
                in the catalog.

        Raises:
            InvalidRequest: The arguments are of other types (a TypeError, too).

        Example:
            >>> merge = table.alias("t").merge(updates.alias("s"), "t.id = s.id")
            >>> merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        """
        if source is None or condition is None:
            raise WrongValue(
                f"'{'source' if source is None else 'condition'}' in merge cannot be None", code="wrong-type"
            )
        if not isinstance(source, DataFrame):
            raise WrongType("Type of 'source' in merge must be DataFrame.")
        request = MergeRequest(source, expression_argument(condition, "'condition'"), name=self._name)
        return DeltaMergeBuilder(self._spark, self._access, request, self._own)

    def optimize(self) -> DeltaOptimizeBuilder:
        """A builder that writes files anew, compact or in a better order; the rows stay as they are.

        Example:
            >>> table.optimize().where("day >= '2024-01-01'").executeCompaction().show()
            >>> table.optimize().executeZOrderBy("customer", "product")
        """
        return DeltaOptimizeBuilder(self._spark, self._access, self._name)

    @property
    def _name(self) -> Qualifier:
        """By which expressions know the table."""
        if self._alias is not None:
            return (self._alias,)
        if self._access.entry is None and is_connect(self._spark):
            # Rows have one name there.
            return (TABLE,)
        if self._access.entry is None:
            # As of delta.`/path` in Spark.
            return ("spark_catalog", PROVIDER, self._access.url)
        return self._access.entry.parts

    def _by_name(self, given: Column | str) -> Column | str:
        return self._own.by_name(self._spark, given, self._name)

    def __repr__(self) -> str:
        return f"DeltaTable({self._access.name or self._access.url!r})"


def update_by_statement(
    table: DeltaTable, condition: Column | None, values: Mapping[str, Column | str], dry_run: bool
) -> Committed | Preview:
    """`DeltaTable.update` as SQL's UPDATE: casts are those of `spark.sql.storeAssignmentPolicy`."""
    request = UpdateRequest(condition, values, table._name, by_statement=True)
    return table._update(request, dry_run, DEFAULT_RETRY)


def _session(given: SparkSession | None) -> SparkSession:
    session = given or SparkSession.getActiveSession()
    if session is None:
        raise InvalidRequest("there is no active Spark session", code="no-jvm", hint="name the session")
    return session
