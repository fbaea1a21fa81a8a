"""PaimonView: an immutable view of one state of a Paimon table, without Spark."""

from __future__ import annotations

import datetime as dt
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from alluvium.api.lane import read_batches
from alluvium.api.lazy.rows import LazyRows
from alluvium.api.paimon.metadata import AskedSchema, asked_schema
from alluvium.api.paimon.paimon_range import named_range
from alluvium.api.views.history import History
from alluvium.api.views.schema import Schema
from alluvium.codecs.variants.variant_text import show_variants
from alluvium.errors import InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Expression
from alluvium.paimon.log.history import read_history
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema.logical import logical_schema
from alluvium.paimon.terms.options import FALLBACK_BRANCH
from alluvium.paimon.view.changes import (
    BINLOG,
    PLACES,
    ROW_KIND,
    ChangeRange,
    as_arrays,
    difference,
    kind_names,
    packed,
    placed,
    plan_changes,
    plan_difference,
)
from alluvium.paimon.view.fallback import fallback_branch
from alluvium.paimon.view.merge import KIND, keep_deletes
from alluvium.paimon.view.scan import plan_read_optimized, plan_scan
from alluvium.paimon.view.source import named_columns
from alluvium.paimon.view.system.file_tables import live_files
from alluvium.paimon.view.system.system_tables import read_system_table
from alluvium.plan.scan import ScanPlan
from alluvium.storage.locating import locating
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_ROWKIND = "rowkind"


@dataclass(frozen=True, slots=True)
class PaimonView:
    """One state of a Paimon table, read without Spark; made by `alluvium.open`.

    Every member reads from the same snapshot, however many commits follow; `refresh()` gives the newest.
    Predicates (`where`) are Spark SQL text such as `"day >= '2024-01-01' and n in (1, 2)"`.
    """

    _snapshot: Snapshot
    _storage_options: Mapping[str, str]

    @property
    def format(self) -> str:
        """`"paimon"`."""
        return "paimon"

    @property
    def url(self) -> str:
        """Where the table is, in canonical form."""
        return self._snapshot.store.url

    @property
    def version(self) -> int | None:
        """The snapshot's id; None: the table has no snapshot yet."""
        return self._snapshot.version

    @property
    def timestamp(self) -> dt.datetime | None:
        """When the snapshot was committed, in UTC."""
        document = self._snapshot.document
        return None if document is None else _EPOCH + dt.timedelta(milliseconds=document.time_millis)

    @property
    def branch(self) -> str:
        """The branch; `"main"` is the table itself."""
        return self._snapshot.branch

    @property
    def schema(self) -> Schema:
        """The logical schema: `.to_arrow()`, `.to_spark()`, `str()` is a tree."""
        return Schema(logical_schema(self._snapshot.schema))

    @property
    def metadata(self) -> AskedSchema:
        """The schema file: columns with their ids and types, keys, options, comment.

        Called with a name it gives a table about the table: `t.metadata("files")`, `"commits"`, `"partitions"`,
        `"columns"`; more of them, by Paimon's names, are in `t.system(name)`.
        """
        return asked_schema(self._snapshot)

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's options, with those of the call on top."""
        return dict(self._snapshot.schema.options)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Columns that have one value a file, in partition order."""
        return self._snapshot.schema.partition_keys

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """Columns by which rows are one; empty: the table is append-only."""
        return self._snapshot.schema.primary_keys

    def files(self, where: str | None = None) -> pa.Table:
        """The data files that batch readers see, those skipped that cannot hold a row for which `where` is true.

        Returns:
            A row a file: `path` (relative to the table, or absolute), `size` (bytes), `num_rows` (deleted rows and
            rows that merge with others included), `partition` (map of column to text), `modification_time`, `bucket`,
            `level`, `schema_id`.

        Raises:
            InvalidRequest: `where` does not parse or names no column.
        """
        with locating(self._snapshot.store, self.version):
            return live_files(self._snapshot, self._parse(where))

    def to_batches(
        self, columns: Sequence[str] | None = None, where: str | None = None, batch_size: int = 65_536
    ) -> pa.RecordBatchReader:
        """The rows as a stream; of a table with a primary key it holds a section of overlapping files at a time.

        Args:
            columns: Names of columns; `"*"` stands for all, and `"_file"` may be named beside it, and `"_ROW_ID"` and
                `"_SEQUENCE_NUMBER"` where rows are tracked.
            where: Only rows for which this is true.
            batch_size: Rows a batch, at most.

        Raises:
            InvalidRequest: Unknown columns, a predicate that needs Spark to evaluate, or a value that cannot be cast.
            UnsupportedFeature: The table needs something that is not implemented.
            NotFound: A data file is gone.
        """
        return self._rows(self._expand(columns), self._parse(where), batch_size)

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
            return show_variants(self.to_arrow(columns, where), logical_schema(self._snapshot.schema)).to_pandas()
        except ModuleNotFoundError as error:
            raise InvalidRequest(
                f"to_pandas needs pandas: {error}", code="missing-dependency", hint="pip install alluvium[pandas]"
            ) from None

    def to_polars(self) -> pl.LazyFrame:
        """The rows as a lazy frame of Polars, of which a query reads the columns and the files that it needs.

        What Polars' conditions mean is Polars' business: it looks at each row that our reader did not leave out.

        Raises:
            InvalidRequest: Polars is not installed (`missing-dependency`).
        """
        return self._lazy_rows().to_polars()

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The rows as a relation of DuckDB, of which a query reads the columns and the files that it needs.

        Args:
            connection: Whose relation it is; None: DuckDB's default connection, that of `duckdb.sql`.

        Raises:
            InvalidRequest: DuckDB is not installed (`missing-dependency`).
        """
        return self._lazy_rows().to_duckdb(connection)

    def changes(
        self,
        start: int | str | dt.datetime | dt.date,
        end: int | str | dt.datetime | dt.date | None = None,
        mode: str = "auto",
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
    ) -> pa.Table:
        """What came after snapshot `start` up to `end`, both snapshot ids, tags or times.

        Args:
            start: Exclusive; 0 is before the first snapshot, and so is a time before it.
            end: Inclusive; None: this view's snapshot.
            mode: `"delta"`: rows of the data files that appends added; `"changelog"`: rows of changelog files;
                `"diff"`: rows that are other at the end than at the start; `"auto"`: `changelog` where the table's
                `changelog-producer` writes one, else `delta`; between two tags of a table with a primary key `diff`,
                as what lies between may have expired. As `incremental-between-scan-mode`. `"binlog"`: as `auto`, but
                never a difference, each value in an array; of an update one row, whose arrays have both values.
            columns: Names of columns, without the first; None: the table's.
            where: Only changes for which this is true; not with `"binlog"`.

        Returns:
            `_row_kind` (`+I`, `-U`, `+U`, `-D`), then the columns.

        Raises:
            NotFound: A snapshot of the range does not exist (any more).
            InvalidRequest: The range ends before it starts (`invalid-range`), or an unknown mode (`invalid-mode`).
        """
        predicate = self._parse(where)
        names = self._expand(columns) or list(self.schema.names)
        if mode == BINLOG and predicate is not None:
            raise InvalidRequest("arrays of values are not compared with values", code="contradicting-options")
        with locating(self._snapshot.store, None):
            chosen = named_range(self._snapshot, start, end, mode)
            if chosen.mode == "diff":
                return self._difference(chosen, names, predicate)
            plan = plan_changes(self._snapshot, chosen.start, chosen.end, chosen.mode)
            if mode == BINLOG and self.primary_keys:
                return _kinds_first(packed(self._read(placed(plan), [KIND, *names, *PLACES]).read_all()), ROW_KIND)
            if mode == BINLOG:
                return as_arrays(_kinds_first(self._read(plan, [KIND, *names]).read_all(), ROW_KIND))
            return _kinds_first(self._read(plan, [KIND, *names], predicate).read_all(), ROW_KIND)

    def system(self, name: str) -> pa.Table:
        """A system table: `"snapshots"`, `"schemas"`, `"options"`, `"tags"`, `"branches"`, `"files"`, `"manifests"`,
        `"partitions"`, `"buckets"`, `"consumers"`, `"statistics"`, `"aggregation_fields"`, `"table_indexes"`,
        `"file_key_ranges"`, `"audit_log"` (rows with their kind, deletions too), `"binlog"` (the same, each value in
        an array), `"ro"` (what needs no merge), `"row_tracking"`.

        Raises:
            InvalidRequest: There is no such table (`unknown-system-table`).
        """
        snapshot = self._snapshot
        with locating(snapshot.store, self.version):
            if name in ("audit_log", "binlog"):
                plan = keep_deletes(plan_scan(snapshot))
                rows = _kinds_first(self._read(plan, [KIND, *self.schema.names]).read_all(), _ROWKIND)
                return rows if name == "audit_log" else as_arrays(rows)
            if name == "ro":
                return self._read(plan_read_optimized(snapshot)).read_all()
            if name in ("row_tracking", "row_lineage"):
                return self.to_arrow(["*", "_ROW_ID", "_SEQUENCE_NUMBER"])
            return read_system_table(snapshot, name)

    def history(self, limit: int | None = None) -> History:
        """The snapshots up to this one, newest first, in the columns of `DESCRIBE HISTORY`."""
        if limit is not None and limit < 0:
            raise InvalidRequest(f"limit must not be negative: {limit}", code="invalid-limit")
        return History(read_history(self._snapshot, limit))

    def refresh(self) -> PaimonView:
        """The newest state of the branch, or the one that the table's own options pin.

        Numbers of snapshots come again behind a rollback and by `fast_forward`: what a snapshot says is compared.
        """
        old = self._snapshot
        points = {key for key in old.asked if key.startswith("scan.") and key != FALLBACK_BRANCH.key}
        options = {key: value for key, value in old.asked.items() if key not in points}
        newer = load_snapshot(old.store, None, old.branch, options, old.time_zone, old.open_store)
        is_same = newer.document == old.document and newer.schema == old.schema
        # Nobody asks here how far a fallback branch has come.
        return self if is_same and fallback_branch(newer) is None else replace(self, _snapshot=newer)

    def __repr__(self) -> str:
        return f"PaimonView({self.url!r}, format='paimon', version={self.version})"

    def _difference(self, chosen: ChangeRange, names: list[str], where: Expression | None) -> pa.Table:
        if not self.primary_keys:
            raise InvalidRequest("the mode diff needs a primary key", code="invalid-mode", hint='use mode="delta"')
        wanted = [KIND, *self.schema.names]
        plans = plan_difference(self._snapshot, *map(self._snapshot.state, (chosen.start, chosen.end)))
        before, after = (self._read(plan, wanted, where).read_all() for plan in plans)
        return _kinds_first(difference(before, after).select([KIND, *names]), ROW_KIND)

    def _rows(self, names: Sequence[str] | None, where: Expression | None, batch_size: int) -> pa.RecordBatchReader:
        with locating(self._snapshot.store, self.version):
            return self._read(plan_scan(self._snapshot, where), names, where, batch_size)

    def _lazy_rows(self) -> LazyRows:
        found = self._snapshot
        columns = logical_schema(found.schema)
        return LazyRows(columns, self._plan, found.store, found.open_store, found.time_zone)

    def _plan(self, _: Sequence[str] | None, where: Expression | None) -> ScanPlan:
        with locating(self._snapshot.store, self.version):
            return plan_scan(self._snapshot, where)

    def _read(
        self,
        plan: ScanPlan,
        columns: Sequence[str] | None = None,
        where: Expression | None = None,
        batch_size: int = 65_536,
    ) -> pa.RecordBatchReader:
        return read_batches(
            plan,
            self._snapshot.store,
            self._snapshot.open_store,
            columns,
            where,
            self._snapshot.time_zone,
            batch_size,
        )

    def _parse(self, where: str | None) -> Expression | None:
        return None if where is None else parse_predicate(where, named_columns(self._snapshot.schema))

    def _expand(self, columns: Sequence[str] | None) -> list[str] | None:
        if columns is None:
            return None
        if isinstance(columns, str):
            raise InvalidRequest("columns must be a list of names", code="invalid-columns", hint=f"[{columns!r}]")
        expanded: list[str] = []
        for name in columns:
            expanded.extend(self.schema.names if name == "*" else [name])
        return expanded


def _kinds_first(table: pa.Table, name: str) -> pa.Table:
    place = table.schema.get_field_index(KIND)
    kinds = kind_names(table.column(place))
    return table.remove_column(place).add_column(0, pa.field(name, pa.string(), False), kinds)


def open_paimon(
    store: Store,
    at: At | None,
    branch: str,
    options: Mapping[str, str] | None,
    storage_options: Mapping[str, str],
) -> PaimonView:
    """The view that `alluvium.open` gives."""
    elsewhere = dict(storage_options)
    snapshot = load_snapshot(store, at, branch, options, open_elsewhere=partial(open_store, storage_options=elsewhere))
    return PaimonView(snapshot, storage_options)
