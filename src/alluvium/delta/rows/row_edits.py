"""What becomes of live files some of whose rows go: removed, or committed again with a deletion vector.

Specification: "Add File and Remove File", "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.bitmaps.bits import last_position, union
from alluvium.codecs.footers.parquet_footer import read_footer
from alluvium.delta.features.rows.deletion_vectors import has_vector, load_vectors, parse_descriptors, vectors_of
from alluvium.delta.rows.vector_files import vector_column, write_vectors
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.terms.actions import total
from alluvium.delta.terms.spec import FILES
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import CorruptTable
from alluvium.plan.changes import EditFigures
from alluvium.storage.elsewhere import locate
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import is_absolute
from alluvium.storage.store import Store


@dataclass(frozen=True, slots=True)
class EditedFiles:
    """What a commit says of files that it edits.

    Attributes:
        removed: Live files as they were (`FILES`): each of them is removed.
        masked: Those of them that live on, with their new vectors (`FILES`).
        updated: How many had a vector before.
        vectors_path: The file of vectors that was written, if one was.
    """

    removed: pa.Table
    masked: pa.Table
    updated: int = 0
    vectors_path: str | None = None

    def figures(self, added: pa.Table, change_files: int) -> EditFigures:
        """What it comes to, with the files of new rows (`FILES`) and how many files of change data there are."""
        gone = self.removed.filter(pc.invert(pc.is_in(self.removed["path"], value_set=_chunk(self.masked["path"]))))
        return EditFigures(
            files_added=added.num_rows,
            bytes_added=total(added["size"]),
            files_removed=gone.num_rows,
            bytes_removed=total(gone["size"]),
            masks_added=self.masked.num_rows,
            bytes_masked=total(self.masked["size"]),
            masks_updated=self.updated,
            masks_removed=self.updated + total(has_vector(vectors_of(gone)).cast(pa.int64())),
            change_files=change_files,
        )


def edit_files(snapshot: Snapshot, touched: pa.Table) -> EditedFiles:
    """Carries out what a verb did to live files (`plan.changes.TOUCHED_FILES`).

    Raises:
        CorruptTable: A vector that is there is damaged, a file does not say how many rows it has, or has fewer than
            it must have had.
    """
    named = touched["path"].combine_chunks()
    files = snapshot.pick_files(lambda some: some.filter(pc.is_in(data_paths(some), value_set=named)))
    rows = pc.index_in(named, value_set=data_paths(files).combine_chunks())
    live = files.take(rows)
    masks = _chunk(touched["mask"])
    stays = masks.is_valid()
    if not pc.any(stays, min_count=0).as_py():
        return EditedFiles(live.select(FILES.names), FILES.empty_table())
    candidates = live.filter(stays)
    bitmaps = _merged(snapshot, candidates, masks.filter(stays))
    counts = _row_counts(snapshot, candidates, bitmaps)
    # A file none of whose rows is left goes as a whole: nobody need read its vector.
    kept = pa.array([cardinality < count for (_, cardinality), count in zip(bitmaps, counts, strict=True)], pa.bool_())
    vectors, path = write_vectors(
        snapshot.store, [bitmap for bitmap, is_kept in zip(bitmaps, kept.to_pylist(), strict=True) if is_kept]
    )
    masked = candidates.filter(kept)
    had = has_vector(vectors_of(masked))
    return EditedFiles(
        live.select(FILES.names),
        _recommitted(masked, vector_column(vectors), pa.array(counts, pa.int64()).filter(kept)),
        int(pc.sum(had).as_py() or 0),
        path,
    )


def _merged(snapshot: Snapshot, files: pa.Table, masks: pa.Array) -> list[tuple[bytes, int]]:
    """The rows that go, with those that went before."""
    there = has_vector(vectors_of(files))
    masked = files.filter(there)
    vectors, counts = parse_descriptors(vectors_of(masked)), snapshot.statistics(masked).num_rows().to_pylist()
    earlier = iter(load_vectors(vectors, snapshot.store, snapshot.open_store, counts))
    bitmaps = []
    for mask, is_there in zip(masks.to_pylist(), there.to_pylist(), strict=True):
        before = next(earlier) if is_there else None
        bitmaps.append(union(mask, mask if before is None else before))
    return bitmaps


def _num_records(snapshot: Snapshot, files: pa.Table) -> list[int]:
    counts = snapshot.statistics(files).num_rows()
    if counts.null_count:
        path = files["path"].filter(counts.is_null())[0].as_py()
        raise CorruptTable(
            "a file does not say how many rows it has, so that none of them can be masked",
            code="no-num-records",
            path=path,
            hint="its statistics lack numRecords: rewrite the file, or set delta.enableDeletionVectors to false",
        )
    return list(counts.to_pylist())


def _row_counts(snapshot: Snapshot, files: pa.Table, bitmaps: Sequence[tuple[bytes, int]]) -> list[int]:
    """How many rows the files have, given those that go: files that would go as a whole are asked themselves.

    Statistics do not suffice to remove a file (docs/decisions/0018): a `numRecords` that is too small would take the
    rows along that it forgot.
    """
    counts = _num_records(snapshot, files)
    doubtful = [
        place
        for place, ((bitmap, cardinality), count) in enumerate(zip(bitmaps, counts, strict=True))
        if cardinality >= count or last_position(bitmap) >= count
    ]
    paths: list[str] = data_paths(files).combine_chunks().take(pa.array(doubtful, pa.int64())).to_pylist()
    opened = cache(snapshot.open_store)
    stored = map_parallel(lambda path: _stored_rows(snapshot, opened, path), paths)
    for place, path, count in zip(doubtful, paths, stored, strict=True):
        if last_position(bitmaps[place][0]) >= count:
            raise CorruptTable(
                f"a row beyond the {count} of the file was to be deleted", code="damaged-file", path=path,
                hint="the file was replaced while it was read: find out who wrote it",
            )  # fmt: skip
        counts[place] = count
    return counts


def _stored_rows(snapshot: Snapshot, opened: Callable[[str], Store], path: str) -> int:
    store, name = locate(snapshot.store, opened, path) if is_absolute(path) else (snapshot.store, path)
    return read_footer(store.open_input(name), (), path).num_rows


def _recommitted(files: pa.Table, vectors: pa.Array, counts: pa.Array) -> pa.Table:
    texts = zip(with_stats_text(files)["stats"].to_pylist(), counts.to_pylist(), strict=True)
    computed = {
        "stats": pa.array([_wide(text, count) for text, count in texts], pa.string()),
        "deletionVector": vectors,
        "dataChange": pa.repeat(pa.scalar(True), files.num_rows),
    }
    columns = [computed[f.name] if f.name in computed else files.column(f.name).cast(f.type) for f in FILES]
    return pa.Table.from_arrays(columns, schema=FILES)


_STATS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _wide(text: str | None, count: int) -> str:
    """ "When adding a logical file with a deletion vector, then that logical file must have correct `numRecords`
    information for the data file in the `stats` field", and bounds are no longer those of live rows alone.
    """
    known = {} if text is None else _STATS.decode(text)
    return msgspec.json.encode({**known, "numRecords": count, "tightBounds": False}).decode()


def _chunk(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks()


def live_counts(snapshot: Snapshot, files: pa.Table) -> pa.Array:
    """Rows of each file that are not deleted; null where a file does not say."""
    deleted = pc.struct_field(vectors_of(files), "cardinality")
    return pc.subtract(snapshot.statistics(files).num_rows(), pc.fill_null(deleted, 0))
