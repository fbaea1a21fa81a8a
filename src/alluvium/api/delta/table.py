"""Table: an immutable view of one version, without Spark."""

from __future__ import annotations

import datetime as dt
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from types import ModuleType
from typing import TYPE_CHECKING, SupportsIndex, cast

import pyarrow as pa

from alluvium.api.arguments import texts_of
from alluvium.api.delta.answers import Bounds, column_bounds, count_rows
from alluvium.api.delta.told.metadata import AskedMetadata, asked_metadata
from alluvium.api.lane import read_batches
from alluvium.api.lazy.rows import LazyRows
from alluvium.api.options import parse_bound
from alluvium.api.views.history import History
from alluvium.api.views.schema import Schema
from alluvium.codecs.variants.variant_text import show_variants
from alluvium.delta.features.rows.row_tracking import asked_columns, with_metadata_columns
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.view.answers import is_ordered
from alluvium.delta.view.history import commit_time_ms, read_history
from alluvium.delta.view.scan import plan_scan
from alluvium.delta.view.snapshot import Snapshot, refresh
from alluvium.delta.view.tables import live_files
from alluvium.errors import InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Expression, column_paths
from alluvium.plan.scan import ScanPlan
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds


def _later(module: str) -> ModuleType:
    """A module that few calls need: the first answer does not wait for it."""
    return importlib.import_module(module)


@dataclass(frozen=True, slots=True)
class Table:
    """One version of a table, read without Spark; made by `alluvium.open`.

    Every member reads from the same version, however many commits follow; `refresh()` gives the newest.
    Predicates (`where`) are Spark SQL text such as `"day >= '2024-01-01' and n in (1, 2)"`.
    """

    _snapshot: Snapshot
    _storage_options: Mapping[str, str]

    @property
    def snapshot(self) -> Snapshot:
        """The version as the library has it."""
        return self._snapshot

    @property
    def format(self) -> str:
        """`"delta"`."""
        return "delta"

    @property
    def url(self) -> str:
        """Where the table is, in canonical form."""
        return self._snapshot.store.url

    @property
    def version(self) -> int:
        """The version of this view."""
        return self._snapshot.version

    @property
    def timestamp(self) -> dt.datetime:
        """When the version was committed, in UTC, as the history shows it and time travel understands it."""
        return dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(
            milliseconds=commit_time_ms(self._snapshot)
        )

    @property
    def schema(self) -> Schema:
        """The logical schema: `.to_arrow()`, `.to_spark()`, `str()` is a tree."""
        return Schema(self._snapshot.config.schema)

    @property
    def protocol(self) -> Protocol:
        """What a client must implement: versions and features."""
        return self._snapshot.config.protocol

    @property
    def metadata(self) -> AskedMetadata:
        """The table's description as the log has it; called with a name it gives a table about the table.

        `t.metadata("files")`, `"commits"`, `"partitions"`, `"columns"`, `"features"`, `"transactions"`.
        """
        return asked_metadata(self._snapshot)

    @property
    def properties(self) -> Mapping[str, str]:
        """Table properties by name."""
        return dict(self._snapshot.config.metadata.configuration)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Columns that have one value a file, in partition order."""
        return self._snapshot.config.partition_columns

    @property
    def txns(self) -> Mapping[str, int]:
        """How far each application has come: id to version. Specification: "Transaction Identifiers"."""
        return {app_id: txn.version for app_id, txn in self._snapshot.state.txns.items()}

    @property
    def domains(self) -> Mapping[str, str]:
        """Metadata domains: name to configuration. Specification: "Domain Metadata"."""
        return {name: d.configuration for name, d in self._snapshot.state.domains.items()}

    def files(self, where: str | None = None) -> pa.Table:
        """The live files, those skipped that cannot hold a row for which `where` is true.

        Returns:
            A row a file: `path` (decoded, relative to the table), `size` (bytes), `num_rows` (those that are not
            deleted; null where unknown), `partition` (map of column to text), `modification_time`.

        Raises:
            InvalidRequest: `where` does not parse or names no column.
        """
        return live_files(self._snapshot, self._parse(where))

    def to_batches(
        self, columns: Sequence[str] | None = None, where: str | None = None, batch_size: int = 65_536
    ) -> pa.RecordBatchReader:
        """The rows as a stream that never holds the whole table.

        Args:
            columns: Names of columns; `"*"` stands for all, and `"_file"` may be named beside it, and `"_row_id"` and
                `"_row_commit_version"` where the table has row tracking.
            where: Only rows for which this is true; it may name these columns, too (but `"_file"`).
            batch_size: Rows a batch, at most.

        Raises:
            InvalidRequest: Unknown columns, or a predicate that needs Spark to evaluate.
            NotFound: A data file is gone.
        """
        config = self._snapshot.config
        predicate = None if where is None else parse_predicate(where, with_metadata_columns(config))
        names = None if columns is None else self._expand(columns, self.schema.names)
        return self._read(names, predicate, batch_size)

    def to_arrow(self, columns: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
        """The rows as one `pyarrow.Table`; arguments and errors as for `to_batches`."""
        return self.to_batches(columns, where).read_all()

    def scanner(self, columns: Sequence[str] | None = None, where: str | None = None) -> ds.Scanner:
        """The rows as Arrow's own scanner, which can be read once: `head`, `count_rows`, `to_batches`.

        Arguments and errors as for `to_batches`.
        """
        # Loading it loads pandas, where that is installed.
        dataset = importlib.import_module("pyarrow.dataset")
        return cast("ds.Scanner", dataset.Scanner.from_batches(self.to_batches(columns, where)))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for whoever speaks Arrow (Polars, DuckDB, `alluvium.write`), as a stream."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def to_pandas(self, columns: Sequence[str] | None = None, where: str | None = None) -> pd.DataFrame:
        """The rows as a pandas DataFrame; arguments and errors as for `to_batches`. Variants become JSON text."""
        try:
            return show_variants(self.to_arrow(columns, where), self._snapshot.config.schema).to_pandas()
        except ModuleNotFoundError as error:
            raise InvalidRequest(
                f"to_pandas needs pandas: {error}", code="missing-dependency", hint="pip install alluvium[pandas]"
            ) from None

    def to_polars(self) -> pl.LazyFrame:
        """The rows as a lazy frame of Polars, of which a query reads the columns and the files that it needs.

        What Polars' conditions mean is Polars' business: it looks at each row that our reader did not leave out.

        Raises:
            InvalidRequest: Polars is not installed (`missing-dependency`).

        Example:
            >>> t.to_polars().filter(pl.col("month") == 1).select("carrier").collect()
        """
        return self._lazy_rows().to_polars()

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The rows as a relation of DuckDB, of which a query reads the columns and the files that it needs.

        Args:
            connection: Whose relation it is; None: DuckDB's default connection, that of `duckdb.sql`.

        Raises:
            InvalidRequest: DuckDB is not installed (`missing-dependency`).

        Example:
            >>> t.to_duckdb().filter("month = 1").aggregate("carrier, count(*)")
        """
        return self._lazy_rows().to_duckdb(connection)

    def count(self, where: str | None = None) -> int:
        """How many rows there are for which `where` is true.

        The log answers for files of which partition values and statistics say that all of their rows count, or none,
        deleted rows subtracted; only the others are read. `alluvium.explain(url, where)` tells how many these are.

        Raises:
            InvalidRequest: `where` does not parse, names no column, or needs Spark to evaluate.
            NotFound: A data file that must be read is gone.
        """
        return count_rows(self._snapshot, self._parse(where), self._open_store)

    def bounds(self, columns: Sequence[str] | None = None) -> dict[str, Bounds]:
        """The least and the greatest value of columns, exact.

        The log answers where statistics are exact: whole numbers, decimals, dates and partition columns in files
        without deleted rows. Of other types, whose statistics writers cut off, only files are read that may hold an
        end; of floating-point columns all files, as writers differ on NaN.

        Args:
            columns: Names (fields of structs by dots); None: all columns whose values have an order.

        Raises:
            InvalidRequest: There is no such column (`unknown-column`), or it has no order (`unordered-column`).
            NotFound: A data file that must be read is gone.
        """
        if columns is None:
            fields = self._snapshot.config.schema.fields
            names = [f.name for f in fields if is_ordered(f.type)]
        else:
            names = self._expand(columns, self.schema.names)
        return {name: column_bounds(self._snapshot, name, self._open_store) for name in names}

    def history(self, limit: int | None = None) -> History:
        """The commits up to this version, newest first, in the columns of `DESCRIBE HISTORY`."""
        if limit is not None and (not isinstance(limit, Integral) or limit < 0):
            raise InvalidRequest(f"limit must be a whole number and not negative: {limit!r:.80}", code="invalid-limit")
        return History(read_history(self._snapshot, limit))

    def changes(
        self,
        start: int | dt.datetime | dt.date | str,
        end: int | dt.datetime | dt.date | str | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
    ) -> pa.Table:
        """The change data feed as one `pyarrow.Table`; arguments and errors as for `changes_batches`."""
        return self.changes_batches(start, end, columns=columns, where=where).read_all()

    def changes_batches(
        self,
        start: int | dt.datetime | dt.date | str,
        end: int | dt.datetime | dt.date | str | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        batch_size: int = 65_536,
    ) -> pa.RecordBatchReader:
        """Which rows versions inserted, updated and deleted, as a stream that never holds all of them.

        Args:
            start: The first version, or the first one committed at or after a time (naive: UTC).
            end: The last version, or the last one committed at or before a time; what is newer than this view is cut,
                and None is this view's version.
            columns: Names of columns; None: the table's, then `_change_type` (`insert`, `update_preimage`,
                `update_postimage`, `delete`), `_commit_version` and `_commit_timestamp`.
            where: Only changes for which this is true; it may name the three, too.
            batch_size: Rows a batch, at most.

        Raises:
            NotFound: The range is not in the log (`missing-version`), or a file of it is gone (`missing-file`).
            InvalidRequest: The range ends before it starts (`invalid-range`), changes were not recorded in all of it
                (`change-feed-disabled`), it has no common schema (`incompatible-schema`), or an unknown column.
            CorruptTable: The log or a file breaks the specification, section "Add CDC File".

        Example:
            >>> t.changes(3, 7, where="_change_type = 'delete'")
        """
        bounds = parse_bound(start, "start"), None if end is None else parse_bound(end, "end")
        source = _later("alluvium.delta.changes.source").load_changes(self._snapshot, *bounds)
        predicate = None if where is None else parse_predicate(where, source.schema)
        names = source.schema.names if columns is None else self._expand(columns, source.schema.names)
        plan = source.plan_scan(predicate)
        return read_batches(plan, self._snapshot.store, self._open_store, names, predicate, batch_size=batch_size)

    def follow(
        self,
        start: str | SupportsIndex | None = None,
        changes: bool = False,
        *,
        wait_s: float | None = 1.0,
        **options: object,
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of the newest version, then those that versions add, for as long as somebody asks for more.

        Args:
            start: An offset that came with a batch: what lies behind it; a version, as text too `"latest"`: what is
                added from there on; None: all rows first.
            changes: The change data feed instead of rows: what was updated and deleted, too.
            wait_s: How long to wait where there is nothing new before the log is listed again; None: it ends there.
            **options: Of streams: `ignoreDeletes`, `ignoreChanges`, `skipChangeCommits`, `skipVersions`,
                `excludeRegex`, `failOnDataLoss`, `startingTimestamp`.

        Returns:
            Pairs of an offset, text that can be stored, and rows of one file at most. Offsets at the end of a file are
            those of Structured Streaming.

        Raises:
            InvalidRequest: The rows cannot go on: a version removed or changed some and no option allows it, its
                columns are others, or the offset is another table's.
            NotFound: What comes next is gone.

        Example:
            >>> for offset, rows in alluvium.open("/data/flights").follow(start=stored):
            ...     handle(rows)
        """
        follow_table = _later("alluvium.api.delta.streams.follow").follow_table
        followed: Iterator[tuple[str, pa.RecordBatch]] = follow_table(
            self._snapshot, self._open_store, start, options, changes, wait_s
        )
        return followed

    def readable_versions(self) -> pa.Table:
        """Which versions up to the newest can still be read, and which could after VACUUM by the table's own retention.

        Returns:
            A row a version: `version`, `timestamp` (of its commit's file), `readable`, `after_vacuum`.
        """
        found: pa.Table = _later("alluvium.delta.upkeep.vacuum.readable_versions").readable_versions(self._snapshot)
        return found

    def system(self, name: str) -> pa.Table:
        """Paimon's system tables; a Delta table has none."""
        raise InvalidRequest(
            f"a Delta table has no system table {name!r}",
            code="no-system-tables",
            url=self.url,
            hint="use .metadata(name)",
        )

    def refresh(self) -> Table:
        """The newest version, reading only the log entries that came since."""
        newer = refresh(self._snapshot)
        return self if newer is self._snapshot else Table(newer, self._storage_options)

    def __repr__(self) -> str:
        return f"Table({self.url!r}, format='delta', version={self.version})"

    def _read(self, names: Sequence[str] | None, predicate: Expression | None, batch_size: int) -> pa.RecordBatchReader:
        plan, store = self._plan(names, predicate), self._snapshot.store
        return read_batches(plan, store, self._open_store, names, predicate, batch_size=batch_size)

    def _plan(self, names: Sequence[str] | None, predicate: Expression | None) -> ScanPlan:
        in_where = [] if predicate is None else [path[0] for path in column_paths(predicate)]
        asked = asked_columns([*(names or ()), *in_where], self._snapshot.config.schema)
        return plan_scan(self._snapshot, predicate, asked)

    def _lazy_rows(self) -> LazyRows:
        return LazyRows(self._snapshot.config.schema, self._plan, self._snapshot.store, self._open_store)

    def _parse(self, where: str | None) -> Expression | None:
        return None if where is None else parse_predicate(where, self._snapshot.config.schema)

    def _expand(self, columns: Sequence[str], all_names: Sequence[str]) -> list[str]:
        if isinstance(columns, str):
            raise InvalidRequest("columns must be a list of names", code="invalid-columns", hint=f"[{columns!r}]")
        expanded: list[str] = []
        for name in texts_of(columns, "columns"):
            expanded.extend(all_names if name == "*" else [name])
        return expanded

    def _open_store(self, url: str) -> Store:
        return open_store(url, dict(self._storage_options))
