"""Files whose rows a verb may change, as a source of scan plans: each row tells its file and its place in it.

Rows of a table with a primary key merge while they are read, so that they are in no one place: their plan is that of
the whole table, and files are only told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import UnsupportedFeature
from alluvium.expr.tree import Expression, conjunction
from alluvium.paimon.features.deletion_vectors import vector_counts, vector_masks
from alluvium.paimon.features.row_tracking import is_tracked
from alluvium.paimon.files.partitions import data_paths, partitions_of
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.rows.range_candidates import RangeCandidates, range_candidates
from alluvium.paimon.rows.row_ids import stored_ids
from alluvium.paimon.schema.logical import written_schema
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.spec import ROW_ID
from alluvium.paimon.view.fallback import ensure_own_rows
from alluvium.paimon.view.merge import SEQUENCE
from alluvium.paimon.view.scan_parts import plan_files
from alluvium.paimon.view.selection import narrowed, select_files, unmerged
from alluvium.paimon.view.source import TRACKING, PaimonSource, View, has_ids, with_named_ids
from alluvium.plan.changes import RowChangeMode, RowColumns
from alluvium.plan.scan import FileConstant, OutputColumn, RowPosition, ScanPart, ScanPlan
from alluvium.plan.write import StoredIds
from alluvium.schema.types import LONG, Field, Struct
from alluvium.storage.locating import locating


@dataclass(frozen=True, slots=True)
class Candidates:
    """Implements `plan.ports.RowPlaces` for some numbered live files.

    Attributes:
        snapshot: The state.
        entries: The files (`SCANNED_ENTRIES`).
        numbers: One a file; stays with the file when `only` leaves others out.
        columns: Under which names rows tell where they are.
        is_placed: Whether rows tell it at all.
        where: Of rows that merge: what is true of those that may change.
    """

    snapshot: Snapshot
    entries: pa.Table
    numbers: pa.Array
    columns: RowColumns = RowColumns()  # noqa: RUF009 - immutable
    is_placed: bool = True
    where: Expression | None = None

    @property
    def identity(self) -> tuple[str, ...]:
        whole = PaimonSource(self.snapshot).identity
        if self.merges:
            return (*whole, "rows", hashlib.sha256(repr(self.where).encode()).hexdigest())
        choice = hashlib.sha256(self.numbers.to_numpy(zero_copy_only=False).tobytes())
        choice.update("\n".join(self.entries["file_name"].to_pylist()).encode(errors="surrogatepass"))
        return (*whole, "rows", choice.hexdigest())

    @property
    def merges(self) -> bool:
        """Whether rows merge by key."""
        return bool(self.snapshot.schema.primary_keys)

    @property
    def url(self) -> str:
        return self.snapshot.store.url

    @property
    def version(self) -> int:
        return self.snapshot.version or 0

    @property
    def table_schema(self) -> Struct:
        return written_schema(self.snapshot.schema)

    @property
    def stored_ids(self) -> StoredIds | None:
        return stored_ids(self.snapshot.schema)

    @property
    def size_bytes(self) -> int:
        return int(pc.sum(self.entries["file_size"]).as_py() or 0)

    @property
    def total_files(self) -> int:
        return int(self.snapshot.entries.num_rows)

    @property
    def files(self) -> pa.Table:
        """`path`, `size`, and the names and rows of the files."""
        entries = self.entries
        names = ["file_size", "file_name", "row_count"]
        renamed = entries.select(names).rename_columns(["size", "file_name", "row_count"])
        return renamed.add_column(0, "path", self.paths)

    @property
    def paths(self) -> pa.Array:
        """The files as plans name them."""
        schema = self.snapshot.schema
        return data_paths(self.entries, partitions_of(self.entries, schema), schema)

    def live_counts(self, files: pa.Table) -> pa.Array:
        """Rows of each file that are not deleted; null where nothing says how many a vector deletes."""
        deleted = vector_counts(self.snapshot, files["file_name"].combine_chunks())
        return pc.subtract(files["row_count"].combine_chunks(), deleted)

    def only(self, numbers: pa.Array) -> Candidates:
        """Those of the files that have these numbers."""
        kept = pc.is_in(self.numbers, value_set=numbers)
        return replace(self, entries=self.entries.filter(kept), numbers=self.numbers.filter(kept))

    def places(self, numbers: pa.Array) -> pa.Array:
        """Where the files of these numbers stand in `files`."""
        return pc.index_in(numbers, value_set=self.numbers)

    def renumbered(self, numbers: pa.Array) -> Candidates:
        """The same files under other numbers."""
        return replace(self, numbers=numbers)

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        if self.merges:
            # Rows are numbered where they are read, behind which Spark pushes no filter.
            every = conjunction(tuple(filter(None, (self.where, where))))
            return PaimonSource(self.snapshot, is_exact=True).plan_scan(every)
        s, names = self.snapshot, self.columns
        with locating(s.store, s.version):
            plan = plan_files(s, narrowed(s, unmerged(s, self.entries), where), None, vector_masks(s))
            if not self.is_placed:
                names_of = self.snapshot.schema.names
                return replace(plan, parts=tuple(_bare(part, names_of) for part in plan.parts if part.files.num_rows))
            paths = self.paths
            parts = tuple(self._placed(part, paths) for part in plan.parts if part.files.num_rows)
            places = tuple(Field(name, LONG) for name in names.names)
            own = plan.schema if names.row_id is None else with_named_ids(plan.schema, s.schema)
            return replace(plan, parts=parts, schema=Struct((*own.fields, *places)))

    def _placed(self, part: ScanPart, paths: pa.Array) -> ScanPart:
        names, files = self.columns, part.files
        constants = files["constants"].combine_chunks()
        numbers = self.numbers.take(pc.index_in(files["path"].combine_chunks(), value_set=paths))
        fields = [*constants.type, pa.field(names.file, pa.int64())]
        made = pa.StructArray.from_arrays([*constants.flatten(), numbers], fields=fields)
        own = {c.name: c for c in part.output}
        # Under names of ours rows keep their ids; under their own conditions ask for them.
        ids = () if names.row_id is None else (ROW_ID, SEQUENCE)
        columns = [own[name] for name in (*self.snapshot.schema.names, *ids)]
        columns.append(OutputColumn(names.file, LONG, False, FileConstant(names.file, LONG)))
        columns.append(OutputColumn(names.row, LONG, False, RowPosition()))
        if names.row_id is not None and names.row_version is not None:
            columns += [replace(own[ROW_ID], name=names.row_id), replace(own[SEQUENCE], name=names.row_version)]
        place = files.schema.get_field_index("constants")
        files = files.set_column(place, "constants", made)
        return replace(part, files=files, output=tuple(columns), is_exact=True)


def _bare(part: ScanPart, names: Sequence[str]) -> ScanPart:
    """The table's columns alone."""
    own = {c.name: c for c in part.output}
    return replace(part, output=tuple(own[name] for name in names), is_exact=True)


@dataclass(frozen=True, slots=True)
class PaimonVersion:
    """Implements `plan.ports.RowTable` for one state of a Paimon table."""

    snapshot: Snapshot

    @property
    def source(self) -> PaimonSource:
        """With the ids of rows, where they have any: conditions may name them."""
        return PaimonSource(self.snapshot, View(TRACKING) if has_ids(self.snapshot.schema) else View())

    @property
    def schema(self) -> Struct:
        return with_named_ids(written_schema(self.snapshot.schema), self.snapshot.schema)

    @property
    def partition_columns(self) -> Sequence[str]:
        return self.snapshot.schema.partition_keys

    def candidates(self, where: Expression | None) -> Candidates | RangeCandidates:
        if o.DATA_EVOLUTION.get(self.snapshot.schema.options):
            return range_candidates(self.snapshot, select_files(self.snapshot, where).entries)
        return self.files(where)

    def files(self, where: Expression | None) -> Candidates:
        """The files that may hold a row for which `where` is true, where each row lies in one."""
        entries = select_files(self.snapshot, where).entries
        numbers = pa.array(np.arange(entries.num_rows), pa.int64())
        columns = RowColumns.with_ids() if is_tracked(self.snapshot.schema.options) else RowColumns()
        return Candidates(self.snapshot, entries, numbers, columns, where=where)

    def mode(self, candidates: object) -> RowChangeMode:
        schema = self.snapshot.schema
        if schema.primary_keys:
            return RowChangeMode.UPSERT_KEYS
        if o.DATA_EVOLUTION.get(schema.options):
            return RowChangeMode.PATCH_COLUMNS
        return RowChangeMode.MASK_ROWS if o.DELETION_VECTORS.get(schema.options) else RowChangeMode.REWRITE_FILES


def ensure_columns_change(snapshot: Snapshot, *, is_patch: bool) -> None:
    """Refuses what a table with data evolution does not take of a MERGE, as Java does.

    Args:
        snapshot: The table.
        is_patch: Whether matched rows are updated, others inserted, and nothing else is done.

    Raises:
        UnsupportedFeature: `"unsupported-row-change"`.
    """
    ensure_own_rows(snapshot.schema)
    if not is_patch:
        raise _no_row_change(snapshot)
    if o.DELETION_VECTORS.get(snapshot.schema.options):
        raise UnsupportedFeature(
            f"columns of rows, some of which {o.DELETION_VECTORS.key} says are gone, are not written",
            code="unsupported-row-change",
            features=(o.DELETION_VECTORS.key,),
            hint="change the rows with Paimon's own engine",
        )


def _no_row_change(snapshot: Snapshot) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"tables with {o.DATA_EVOLUTION.key} = true take MERGE alone, that updates matched rows and inserts others",
        code="unsupported-row-change",
        path=snapshot.store.url,
        features=(o.DATA_EVOLUTION.key,),
        hint="merge the new values, or overwrite partitions with the rows that shall be there",
    )


def ensure_append_rows_change(snapshot: Snapshot) -> None:
    """Refuses append tables whose rows have more to keep than their values.

    Raises:
        UnsupportedFeature: `"unsupported-row-change"`.
    """
    ensure_own_rows(snapshot.schema)
    options = snapshot.schema.options
    if o.DATA_EVOLUTION.get(options):
        raise _no_row_change(snapshot)
    if o.ROW_TRACKING.get(options) and o.BUCKET.get(options) > 0:
        raise UnsupportedFeature(
            f"rows with ids ({o.ROW_TRACKING.key}) of tables with buckets are read, but not changed",
            code="unsupported-row-change",
            features=(o.ROW_TRACKING.key,),
            hint="change them with Paimon's own engine, or overwrite partitions with the rows that shall be there",
        )
