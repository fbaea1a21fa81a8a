"""Rows of tables with data evolution that a verb may change: those of a range of ids lie in several files, each with
some of the columns.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import UnsupportedFeature
from alluvium.expr.tree import Expression
from alluvium.paimon.files.partitions import data_paths, partitions_of
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import written_schema
from alluvium.paimon.terms.spec import ROW_ID
from alluvium.paimon.view.merge import SEQUENCE
from alluvium.paimon.view.row_ranges import IS_APART
from alluvium.paimon.view.scan_parts import plan_files
from alluvium.paimon.view.selection import narrowed, unmerged
from alluvium.paimon.view.source import PaimonSource, with_named_ids
from alluvium.plan.changes import RowColumns
from alluvium.plan.scan import FileConstant, OutputColumn, RowPosition, ScanPart, ScanPlan
from alluvium.plan.write import StoredIds
from alluvium.schema.types import LONG, Field, Struct
from alluvium.storage.locating import locating

#: What tells a range: ids of rows are given once, but by writers of other languages once in each partition.
RANGE = ["partition", "bucket", "first_row_id"]


@dataclass(frozen=True, slots=True)
class RangeCandidates:
    """Implements `plan.ports.RowPlaces`: each range counts as one file, which goes by the name of its oldest.

    Attributes:
        snapshot: The state.
        entries: The files of the ranges (`SCANNED_ENTRIES`).
        ranges: Of each entry the place of its range in `numbers`.
        numbers: One a range; stays with it when `only` leaves others out.
        columns: Under which names rows tell where they are.
    """

    snapshot: Snapshot
    entries: pa.Table
    ranges: pa.Array
    numbers: pa.Array
    columns: RowColumns = RowColumns()  # noqa: RUF009 - immutable

    @property
    def identity(self) -> tuple[str, ...]:
        choice = hashlib.sha256(self.numbers.to_numpy(zero_copy_only=False).tobytes())
        choice.update("\n".join(self.entries["file_name"].to_pylist()).encode(errors="surrogatepass"))
        return (*PaimonSource(self.snapshot).identity, "ranges", choice.hexdigest())

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
        """Rows stay where they are."""
        return None

    @property
    def size_bytes(self) -> int:
        return int(pc.sum(self.entries["file_size"]).as_py() or 0)

    @property
    def total_files(self) -> int:
        return int(self.snapshot.entries.num_rows)

    @property
    def files(self) -> pa.Table:
        """`path`, `size`, and the names and rows of the oldest file of each range."""
        ages = self.entries.select(["max_sequence_number", "file_name"])
        ages = ages.append_column("range", self.ranges).append_column(
            "place", pa.array(range(ages.num_rows), pa.int64())
        )
        ordered = ages.sort_by(
            [("range", "ascending"), ("max_sequence_number", "ascending"), ("file_name", "ascending")]
        )
        _, first = np.unique(ordered["range"].to_numpy(), return_index=True)
        oldest = ordered["place"].combine_chunks().take(pa.array(first, pa.int64()))
        sizes = pa.table({"range": self.ranges, "size": self.entries["file_size"]}).group_by("range")
        summed = sizes.aggregate([("size", "sum")]).sort_by("range")["size_sum"]
        names = self.entries.select(["file_name", "row_count"]).take(oldest)
        return names.add_column(0, "size", summed).add_column(0, "path", self._entry_paths().take(oldest))

    @property
    def paths(self) -> pa.Array:
        """The files as plans name them."""
        return self.files["path"].combine_chunks()

    def _entry_paths(self) -> pa.Array:
        schema = self.snapshot.schema
        return data_paths(self.entries, partitions_of(self.entries, schema), schema)

    def live_counts(self, files: pa.Table) -> pa.Array:
        """Rows of each range: none is deleted."""
        return files["row_count"].combine_chunks()

    def only(self, numbers: pa.Array) -> RangeCandidates:
        """Those of the ranges that have these numbers."""
        kept = pc.is_in(self.numbers, value_set=numbers)
        places = pc.indices_nonzero(kept).cast(pa.int64())
        moved = pc.index_in(self.ranges, value_set=places).cast(pa.int64())
        entries = self.entries.filter(moved.is_valid())
        return replace(self, entries=entries, ranges=moved.drop_null(), numbers=self.numbers.filter(kept))

    def places(self, numbers: pa.Array) -> pa.Array:
        """Where the ranges of these numbers stand in `files`."""
        return pc.index_in(numbers, value_set=self.numbers)

    def renumbered(self, numbers: pa.Array) -> RangeCandidates:
        """The same ranges under other numbers."""
        return replace(self, numbers=numbers)

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        s, names = self.snapshot, self.columns
        with locating(s.store, s.version):
            plan = plan_files(s, narrowed(s, unmerged(s, self.entries), where), None, None)
            numbers, paths = self.numbers.take(self.ranges), self._entry_paths()
            parts = tuple(self._placed(part, paths, numbers) for part in plan.parts if part.files.num_rows)
            places = (Field(names.file, LONG), Field(names.row, LONG))
            own = with_named_ids(plan.schema, s.schema)
            return replace(plan, parts=parts, schema=Struct((*own.fields, *places)))

    def _placed(self, part: ScanPart, paths: pa.Array, numbers: pa.Array) -> ScanPart:
        names, files = self.columns, part.files
        constants = files["constants"].combine_chunks()
        own = numbers.take(pc.index_in(files["path"].combine_chunks(), value_set=paths))
        fields = [*constants.type, pa.field(names.file, pa.int64())]
        made = pa.StructArray.from_arrays([*constants.flatten(), own], fields=fields)
        columns = list(part.output)
        if part.merge is None:
            by_name = {c.name: c for c in part.output}
            columns = [by_name[name] for name in (*self.snapshot.schema.names, ROW_ID, SEQUENCE)]
        # All files of a range have its rows in the same order.
        columns.append(OutputColumn(names.file, LONG, False, FileConstant(names.file, LONG)))
        columns.append(OutputColumn(names.row, LONG, False, RowPosition()))
        files = files.set_column(files.schema.get_field_index("constants"), "constants", made)
        return replace(part, files=files, output=tuple(columns), is_exact=True)


def range_candidates(snapshot: Snapshot, entries: pa.Table) -> RangeCandidates:
    """The ranges of some live files, numbered.

    Raises:
        UnsupportedFeature: Files of a range differ in their rows, or hold large values alone
            (`"unsupported-row-change"`).
    """
    if not entries.num_rows:
        nothing = pa.array([], pa.int64())
        return RangeCandidates(snapshot, entries, nothing, nothing)
    if entries["first_row_id"].null_count or pc.any(pc.match_substring_regex(entries["file_name"], IS_APART)).as_py():
        raise _unlike("files without row ids, or of single large values, are among its files", entries["file_name"][0])
    keys = entries.select(RANGE)
    known = keys.append_column("rows", entries["row_count"]).group_by(RANGE, use_threads=False)
    found = known.aggregate([("rows", "min"), ("rows", "max")])
    found = found.append_column("range", pa.array(range(found.num_rows), pa.int64()))
    ordered = found.sort_by([("partition", "ascending"), ("bucket", "ascending"), ("first_row_id", "ascending")])
    first, count = ordered["first_row_id"].to_numpy(), ordered["rows_max"].to_numpy()
    place = np.unique(np.stack([
        ordered["partition"].combine_chunks().dictionary_encode().indices.to_numpy(), ordered["bucket"].to_numpy(),
    ]), axis=1, return_inverse=True)[1].reshape(-1)  # fmt: skip
    overlaps = (place[1:] == place[:-1]) & (first[1:] < first[:-1] + count[:-1])
    if not found["rows_min"].equals(found["rows_max"]) or overlaps.any():
        raise _unlike("files with columns of the same rows have different ones of them", entries["file_name"][0])
    numbered = keys.append_column("place", pa.array(range(keys.num_rows), pa.int64())).join(found, RANGE)
    ranges = numbered.sort_by("place")["range"].combine_chunks()
    return RangeCandidates(snapshot, entries, ranges, pa.array(range(found.num_rows), pa.int64()))


def _unlike(problem: str, name: pa.Scalar) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"columns of a table with data evolution are not written beside such files: {problem}",
        code="unsupported-row-change",
        path=name.as_py(),
        features=("data-evolution.enabled",),
        hint="change the rows with Paimon's own engine",
    )
