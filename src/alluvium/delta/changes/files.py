"""Which files hold the changed rows of some versions, and which of their rows are changes.

Specification: "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.bitmaps.roaring import subtract
from alluvium.delta.changes.schema import COMMIT_VERSION
from alluvium.delta.features.rows.deletion_vectors import has_vector, load_vectors, parse_descriptors, vectors_of
from alluvium.delta.log.read_changes import CHANGED_FILES, CommitChanges
from alluvium.delta.terms.canonical_paths import canonical_paths
from alluvium.errors import AlluviumError
from alluvium.storage.store import Store

INSERT, DELETE = "insert", "delete"
_MERGE = "MERGE"
_MERGE_METRICS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
_SEPARATOR = "\0"


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Which rows of some files are listed; implements `plan.scan.MaskSource`.

    A file may stand in several versions with another vector in each: it is known by its path and the version.

    Attributes:
        keys: One a file, see `keys_of`.
        vectors: The listed rows, one descriptor a key (`DELETION_VECTOR`).
        without: Rows that are not listed after all; null where there are none. None: there are none at all.
        num_records: How many rows each file holds, null where it is unknown.
        store: The table's objects.
        open_store: From a URL to its store, for vectors outside the table.
    """

    keys: pa.Array
    vectors: pa.StructArray
    without: pa.StructArray | None
    num_records: pa.Array
    store: Store
    open_store: Callable[[str], Store]

    def load_masks(self, files: pa.Table) -> pa.Table:
        """Reads the vectors of these files, each file of vectors once.

        Raises:
            CorruptTable: A vector is not what its descriptor says.
            NotFound: A file of vectors is gone, code `missing-file`.
        """
        versions = pc.struct_field(files["constants"], COMMIT_VERSION)
        rows = pc.index_in(keys_of(files["path"], versions), value_set=self.keys)
        try:
            masks = self._masks(rows)
        except AlluviumError as error:
            error.url = error.url or self.store.url
            raise
        index = files.schema.get_field_index("mask")
        return files.set_column(index, "mask", pa.array(masks, pa.binary()))

    def _masks(self, rows: pa.Array) -> list[bytes | None]:
        counts = self.num_records.take(rows)
        listed = self._load(self.vectors.take(rows), counts)
        if self.without is None:
            return listed
        without = self.without.take(rows)
        there = has_vector(without)
        subtracted = iter(self._load(without.filter(there), counts.filter(there)))
        others = [next(subtracted) if is_there else None for is_there in there.to_pylist()]
        return [
            mask if mask is None or other is None else subtract(mask, other)
            for mask, other in zip(listed, others, strict=True)
        ]

    def _load(self, vectors: pa.StructArray, num_records: pa.Array) -> list[bytes | None]:
        return load_vectors(parse_descriptors(vectors), self.store, self.open_store, num_records.to_pylist())


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files whose changed rows are found in the same way.

    Attributes:
        name: Stable, for the key of the part.
        change_type: What became of the rows; None: a column of the files says it.
        files: `CHANGED_FILES`.
        vectors: Rows that the files' vectors list, one descriptor a file; None where all rows count.
        without: Of these, rows that are not listed after all.
        keeps_listed: The listed rows are the changes; else those that are not listed.
    """

    name: str
    change_type: str | None
    files: pa.Table
    vectors: pa.StructArray | None = None
    without: pa.StructArray | None = None
    keeps_listed: bool = False


def keys_of(paths: pa.ChunkedArray | pa.Array, versions: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A text for each file of each version."""
    texts = [_whole(paths).cast(pa.string()), _whole(versions).cast(pa.string())]
    return pc.binary_join_element_wise(*texts, _SEPARATOR)


def group_changes(commits: Sequence[CommitChanges]) -> tuple[FileGroup, ...]:
    """The files to read for the changes of some versions; groups without files are left out."""
    # "If there are `cdc` actions in this version, then read only those to get the row-level changes, and skip the
    # remaining `add` and `remove` actions in this version."
    derived = [c for c in commits if not c.recorded.num_rows and not _changed_nothing(c)]
    # "Otherwise, if there are no `cdc` actions in this version, read and treat all the rows in the `add` and `remove`
    # actions as inserted and deleted rows, respectively."
    added, removed = _joined(c.added for c in derived), _joined(c.removed for c in derived)
    groups = [FileGroup("recorded", None, _joined(c.recorded for c in commits))]
    if not added.num_rows or not removed.num_rows:
        groups += [*_whole_files("removed", DELETE, removed), *_whole_files("added", INSERT, added)]
    else:
        groups += _told_apart(added, removed)
    return tuple(group for group in groups if group.files.num_rows)


def _told_apart(added: pa.Table, removed: pa.Table) -> list[FileGroup]:
    """A file that leaves and comes back in one version has got another vector: the rows between the two changed."""
    added_keys, removed_keys = (keys_of(canonical_paths(_whole(f["path"])), f["version"]) for f in (added, removed))
    left = pc.is_in(removed_keys, value_set=added_keys)
    came_back = pc.is_in(added_keys, value_set=removed_keys)
    groups = [
        *_whole_files("removed", DELETE, removed.filter(pc.invert(left))),
        *_whole_files("added", INSERT, added.filter(pc.invert(came_back))),
    ]
    if pc.any(came_back).as_py():
        before = removed.take(pc.index_in(added_keys.filter(came_back), value_set=removed_keys))
        groups += _same_files(before, added.filter(came_back))
    return groups


def _changed_nothing(commit: CommitChanges) -> bool:
    """A merge that rewrote files though no row matched: as the reference, its own figures are believed."""
    info = commit.info
    if info is None or info.operation != _MERGE:
        return False
    return all(info.operation_metrics.get(name) == "0" for name in _MERGE_METRICS)


def _whole_files(name: str, change_type: str, files: pa.Table) -> list[FileGroup]:
    """Files that came or went. Rows that were deleted before the file went are not deleted once more."""
    vectors = vectors_of(files)
    if vectors.null_count == len(vectors):
        return [FileGroup(name, change_type, files)]
    masked = has_vector(vectors)
    with_vector = files.filter(masked)
    return [
        FileGroup(name, change_type, files.filter(pc.invert(masked))),
        FileGroup(f"{name}/masked", change_type, with_vector, vectors.filter(masked)),
    ]


def _same_files(before: pa.Table, after: pa.Table) -> list[FileGroup]:
    """Files that stayed with another vector: rows that it lists more are deleted, rows that it lists less are back."""
    old, new = vectors_of(before), vectors_of(after)
    changed = pc.fill_null(pc.invert(_equal(old, new)), True)
    had, has = (pc.and_(changed, has_vector(vectors)) for vectors in (old, new))
    # What they have in common is best known from the `add`: a remove need not repeat size and partition values.
    told = _with_stats_of_both(before, after)
    return [
        FileGroup("masked", DELETE, told.filter(has), new.filter(has), old.filter(has), keeps_listed=True),
        FileGroup("unmasked", INSERT, after.filter(had), old.filter(had), new.filter(had), keeps_listed=True),
    ]


def _with_stats_of_both(before: pa.Table, after: pa.Table) -> pa.Table:
    """Files that stayed, with statistics that hold for the rows that went, too.

    "`tightBounds`: Whether per-column statistics are currently tight or wide": unless they are called wide, those of
    the `add` may be of the rows that are left alone. Those of the `remove` are of the rows before; it need not say.
    """
    is_wide = pc.match_substring_regex(_whole(after["stats"]), r'"tightBounds"\s*:\s*false')
    stats = pc.if_else(pc.fill_null(is_wide, False), _whole(after["stats"]), _whole(before["stats"]))
    return after.set_column(after.schema.get_field_index("stats"), CHANGED_FILES.field("stats"), stats)


def _equal(old: pa.StructArray, new: pa.StructArray) -> pa.Array:
    """Whether two descriptors are of the same vector."""
    equal = pa.repeat(True, len(old))
    for name in ("storageType", "pathOrInlineDv", "offset"):
        one, other = pc.struct_field(old, name), pc.struct_field(new, name)
        both_null = pc.and_(pc.is_null(one), pc.is_null(other))
        equal = pc.and_(equal, pc.or_(both_null, pc.fill_null(pc.equal(one, other), False)))
    return equal


def _joined(tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables([CHANGED_FILES.empty_table(), *tables]).combine_chunks()


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
