"""DeltaTable without a session: the names and arguments of `delta.tables`, conditions and values as SQL text."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike

import pyarrow as pa

import alluvium
from alluvium.api.arguments import text_of
from alluvium.api.delta.alter import Alteration
from alluvium.api.delta.maintenance import clone_table, convert_table, generate_manifests, vacuum_table
from alluvium.api.delta.portable.arguments import text_argument, values_argument
from alluvium.api.delta.portable.description import DescriptionVerbs
from alluvium.api.delta.portable.merge_builder import MergeBuilder, source_of
from alluvium.api.delta.portable.needs_spark import SparkVerbs
from alluvium.api.delta.portable.optimize_builder import OptimizeBuilder
from alluvium.api.delta.portable.writer import own_version
from alluvium.api.delta.snapshots import has_delta_table, open_snapshot
from alluvium.api.delta.table import Table
from alluvium.api.delta.told.detail import DETAIL, detail_row
from alluvium.api.views.history import History
from alluvium.commands.rows_here.optimize import OptimizeAsked
from alluvium.commands.rows_here.verbs import Asked, delete_here, update_here
from alluvium.delta.upkeep.repair.repair import Repaired, RepairRequest, repair
from alluvium.delta.upkeep.repair.statistics import compute_statistics
from alluvium.delta.upkeep.vacuum.vacuum import Vacuumed, VacuumPreview
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.symlink_manifest import ensure_mode
from alluvium.errors import WrongType
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.arrow import schema_to_arrow
from alluvium.storage.open import access_of, open_store, path_of

#: How the table is called in expressions where nobody gave it a name.
_TABLE = "__alluvium_table"
_NAMED_FORMAT = re.compile(r"(?:parquet|iceberg|paimon)\s*\.\s*`((?:[^`]|``)+)`", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PortableDeltaTable(DescriptionVerbs, SparkVerbs):
    """A Delta table without a session, made by `DeltaTable.forPath(path)`: no JVM is started, nor is PySpark needed.

    Methods act on the newest version, and have the names and arguments of `delta.tables`; conditions and values are SQL
    text, and what a verb came to is returned (`Committed`, or with `dry_run=True` a `Preview`). What only Spark can
    evaluate is refused before anything is written (`"needs-spark"`).

    Example:
        >>> t = DeltaTable.forPath("/data/flights")
        >>> t.update("month = 1 and delay < 0", {"delay": "0"}).metrics["numUpdatedRows"]
    """

    path: str
    storage_options: Mapping[str, str] = field(default_factory=dict)
    name: str = _TABLE

    @classmethod
    def forPath(cls, path: str | PathLike[str], storage_options: Mapping[str, str] | None = None) -> PortableDeltaTable:
        """The table at a path.

        Args:
            path: A local path or URL, as `alluvium.open` takes it.
            storage_options: Credentials and settings of the object store.

        Raises:
            NotFound: There is no Delta table (`"not-a-table"`).
        """
        table = cls(path_of(path), access_of(storage_options))
        table._snapshot()
        return table

    @classmethod
    def isDeltaTable(cls, identifier: str | PathLike[str], storage_options: Mapping[str, str] | None = None) -> bool:
        """Whether there is a Delta table at a path."""
        return has_delta_table(open_store(identifier, storage_options))

    def alias(self, aliasName: str) -> PortableDeltaTable:
        """The same table under a name for expressions."""
        return replace(self, name=text_of(aliasName, "aliasName"))

    # -- rows ---------------------------------------------------------------------------------------------------------

    def toTable(self) -> Table:
        """The newest version, to be read (`alluvium.open`)."""
        return Table(self._snapshot(), self.storage_options)

    def delete(
        self, condition: str | None = None, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Deletes the rows for which a condition is true, all without one.

        Args:
            condition: SQL text over the table's columns.
            dry_run: Only tell how many rows, and which files, would be touched.
            retry: How often a commit that lost a race is tried again, and the verb carried out anew.

        Raises:
            InvalidRequest: The condition does not parse, names no column, or the table is append-only.
            UnsupportedFeature: Only Spark evaluates it, or the table needs a writer that we are not.
            CommitConflict: Another writer touched what was read, and repeating was of no avail.
        """
        return delete_here(self._snapshot(), text_argument(condition, "condition"), self._asked(dry_run, retry))

    def update(
        self,
        condition: str | Mapping[str, str] | None = None,
        set: Mapping[str, str] | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Sets columns of the rows for which a condition is true, of all without one.

        Args:
            condition: SQL text over the table's columns; may be left out, as in `update({"n": "n + 1"})`.
            set: Column to value, as SQL text.
            dry_run: As of `delete`.
            retry: As of `delete`.

        Raises:
            InvalidRequest: As of `delete`; columns are unknown or set twice, or new rows do not fit the table.
            UnsupportedFeature: As of `delete`.
            CommitConflict: As of `delete`.
        """
        if isinstance(condition, Mapping) and set is None:
            condition, set = None, condition
        values = values_argument(set, "set")
        return update_here(self._snapshot(), text_argument(condition, "condition"), values, self._asked(dry_run, retry))

    def merge(self, source: object, condition: str, source_alias: str = "s") -> MergeBuilder:
        """Merges rows into the table: the beginning of a builder, which `execute()` carries out.

        Args:
            source: Whatever speaks Arrow, as `alluvium.write` takes it; it is held in memory.
            condition: Which of its rows meet which of the table, as SQL: it must compare columns of both by `=`. The
                table is called as `alias` says, `t` by default.
            source_alias: How the source is called.

        Raises:
            InvalidRequest: The source is no data (`"not-rows"`).
        """
        rows, schema = source_of(source)
        own = own_version(source, open_store(self.path, dict(self.storage_options)))
        alias = "t" if self.name == _TABLE else self.name
        asked = replace(self._asked(False, DEFAULT_RETRY, alias), has_read=own is not None)
        opened = self._snapshot if own is None else lambda: own
        return MergeBuilder(opened, asked, rows, schema, source_alias, _needed(condition))

    # -- what the table says of itself --------------------------------------------------------------------------------

    def history(self, limit: int | None = None) -> History:
        """The commits, newest first; at most `limit` of them."""
        return self.toTable().history(limit)

    def detail(self) -> pa.Table:
        """One row: format, id, name, location, size, properties, protocol."""
        return pa.Table.from_pylist([detail_row(self._snapshot(), None)], schema_to_arrow(DETAIL))

    def readable_versions(self) -> pa.Table:
        """A row a version: whether it can still be read, and whether it could after VACUUM."""
        return self.toTable().readable_versions()

    def alter(self) -> Alteration:
        """Changes of columns, properties, constraints and protocol."""
        return Alteration(self._opened, _engine())

    def upgradeTableProtocol(
        self, readerVersion: int, writerVersion: int, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Supports what protocol versions imply. Versions never fall: lower ones change nothing."""
        return self.alter().upgrade_protocol(readerVersion, writerVersion, dry_run, retry)

    def addFeatureSupport(
        self, featureName: str, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Supports a table feature; the protocol is upgraded as far as that needs."""
        return self.alter().add_feature(featureName, dry_run, retry)

    def dropFeatureSupport(
        self,
        featureName: str,
        truncateHistory: bool | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Supports a table feature no longer, where nothing of it is left in the table's files."""
        return self.alter().drop_feature(featureName, dry_run, retry, truncate=truncateHistory is True)

    def restoreToVersion(
        self, version: int, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Makes an older version the newest one.

        Raises:
            NotFound: There is no such version, or data files of it are gone.
        """
        return self.alter().restore(version=version, dry_run=dry_run, retry=retry)

    def restoreToTimestamp(
        self,
        timestamp: str | dt.datetime | dt.date,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Makes the version of a time (naive: UTC) the newest one; errors as of `restoreToVersion`."""
        return self.alter().restore(timestamp=timestamp, dry_run=dry_run, retry=retry)

    # -- upkeep -------------------------------------------------------------------------------------------------------

    @classmethod
    def convertToDelta(
        cls,
        identifier: str | PathLike[str],
        partitionSchema: str | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
        *,
        statistics: bool = True,
        storage_options: Mapping[str, str] | None = None,
    ) -> PortableDeltaTable | Preview:
        """Makes a table of Parquet files, which stay where and as they are: their footers are read, no rows.

        Args:
            identifier: The folder, or an Iceberg or Paimon table there; also in the form ``parquet.`/path` ``.
            partitionSchema: The partition columns in the order of the folders, as SQL text; None: as the folders name
                them.
            dry_run: Only tell what the table would be.
            retry: How often a commit is tried.
            statistics: Whether statistics are taken from the footers.
            storage_options: Credentials and settings of the object store.

        Raises:
            NotFound: There are no files.
            InvalidRequest: Files or folders do not fit; nothing is written.
            UnsupportedFeature: The files have a type that no table has.
        """
        path = path_of(identifier)
        named = _NAMED_FORMAT.fullmatch(path)
        path = path if named is None else named[1].replace("``", "`")
        done = convert_table(path, partitionSchema, storage_options, dry_run, statistics, retry)
        return done if isinstance(done, Preview) else cls.forPath(path, storage_options)

    def vacuum(
        self,
        retentionHours: float | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
        *,
        lite: bool = False,
        clones: Sequence[str] = (),
    ) -> Vacuumed | VacuumPreview:
        """Deletes files that no version within the retention needs; see `DeltaTable.vacuum`."""
        given = self.storage_options
        return vacuum_table(self.path, retentionHours, given, dry_run, lite, clones=clones, retry=retry)

    def repair(
        self, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY, *, log: bool = True, statistics: bool = True
    ) -> Repaired:
        """Mends what can be mended of the table; see `DeltaTable.repair`."""
        store = open_store(self.path, dict(self.storage_options))
        return repair(store, self._snapshot, RepairRequest(log, statistics, _engine()), dry_run, retry)

    def compute_statistics(self, every: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> Committed:
        """Takes statistics from the footers of files that have none, or of all files; no row is touched."""
        return compute_statistics(self._snapshot(), _engine(), every, retry).committed

    def clone(
        self,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Makes a table that begins as this one is now; see `DeltaTable.clone`."""
        return self._cloned(target, isShallow, replace, properties, dry_run, retry)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Makes a table that begins as this one was at a version; see `DeltaTable.clone`."""
        return self._cloned(target, isShallow, replace, properties, dry_run, retry, version=version)

    def cloneAtTimestamp(
        self,
        timestamp: str | dt.datetime | dt.date,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Makes a table that begins as this one was at a time (naive: UTC); see `DeltaTable.clone`."""
        return self._cloned(target, isShallow, replace, properties, dry_run, retry, timestamp=timestamp)

    def _cloned(
        self,
        target: str,
        shallow: bool,
        replace: bool,
        properties: Mapping[str, str] | None,
        dry_run: bool,
        retry: RetryPolicy,
        version: int | None = None,
        timestamp: str | dt.datetime | dt.date | None = None,
    ) -> Committed | Preview:
        given = self.storage_options
        return clone_table(self.path, target, shallow, replace, properties, version, timestamp, given, dry_run, retry)

    def generate(self, mode: str) -> int:
        """Writes files by which engines read that know nothing of the log; the version that they list."""
        ensure_mode(text_of(mode, "mode"))
        return generate_manifests(self.path, self.storage_options)

    def optimize(self) -> OptimizeBuilder:
        """Puts small files together: the beginning of a builder, which `executeCompaction()` carries out.

        Example:
            >>> t.optimize().where("day = '2024-01-01'").executeCompaction()
        """
        return OptimizeBuilder(self._snapshot, OptimizeAsked(self.name, _engine()))

    # -- within -------------------------------------------------------------------------------------------------------

    def _snapshot(self) -> Snapshot:
        return self._opened()

    def _opened(self, version: int | None = None, timestamp_ms: int | None = None) -> Snapshot:
        opened = partial(open_store, storage_options=dict(self.storage_options))
        return open_snapshot(opened(self.path), version, timestamp_ms, open_elsewhere=opened)

    def _engine(self) -> str:
        return _engine()

    def _asked(self, dry_run: bool, retry: RetryPolicy, alias: str | None = None) -> Asked:
        return Asked(_engine(), alias or self.name, dry_run, retry)


def _engine() -> str:
    return f"Alluvium/{alluvium.__version__}"


def _needed(given: object) -> str:
    text = text_argument(given, "condition")
    if text is None:
        raise WrongType("a merge needs a condition", hint='"t.id = s.id"')
    return text
