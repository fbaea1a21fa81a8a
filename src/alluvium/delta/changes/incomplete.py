"""Removes that do not say what the removed file was like: it is looked up where the file was added.

Specification: "Add File and Remove File": "When `extendedFileMetadata` is `true` the fields `partitionValues`, `size`,
and `tags` are present". When it is not, they need not be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.changes.files import DELETE, FileGroup
from alluvium.delta.log.read_changes import CHANGED_FILES
from alluvium.delta.terms.canonical_paths import canonical_paths
from alluvium.errors import CorruptTable

_COLUMNS = ("partitionValues", "size", "stats")


def complete_removes(
    groups: tuple[FileGroup, ...], added: pa.Table, load_older: Callable[[], pa.Table]
) -> tuple[FileGroup, ...]:
    """The groups, with the size and partition values of removed files.

    Args:
        groups: From `group_changes`.
        added: The files that the versions of the range added.
        load_older: Reads the files that were live before; only called where it is needed.

    Raises:
        CorruptTable: A file was removed that nobody added (`unknown-file-removed`).
    """
    if not any(_lacking(group) for group in groups):
        return groups
    known = pa.concat_tables([_described(load_older()), _described(added)]).combine_chunks()
    keys = canonical_paths(known["path"].combine_chunks())
    return tuple(_completed(group, known, keys) if _lacking(group) else group for group in groups)


def _described(files: pa.Table) -> pa.Table:
    chosen = files.select(["path", *_COLUMNS])
    return chosen.cast(pa.schema([CHANGED_FILES.field(name) for name in chosen.column_names]))


def _lacking(group: FileGroup) -> bool:
    if group.change_type != DELETE:
        return False
    return bool(group.files["size"].null_count or group.files["partitionValues"].null_count)


def _completed(group: FileGroup, known: pa.Table, keys: pa.Array) -> FileGroup:
    files = group.files
    rows = pc.index_in(canonical_paths(files["path"].combine_chunks()), value_set=keys)
    if rows.null_count:
        path = files["path"].combine_chunks().filter(rows.is_null())[0].as_py()
        raise CorruptTable(
            "the log removes a file that was never added, and does not say how large it was",
            code="unknown-file-removed",
            path=path,
            hint="the log lost an entry, or was written by a broken client",
        )
    for name in _COLUMNS:
        index = files.schema.get_field_index(name)
        own = files[name].combine_chunks()
        found = known[name].combine_chunks().take(rows)
        files = files.set_column(index, files.schema.field(index), _coalesced(own, found))
    return replace(group, files=files)


def _coalesced(own: pa.Array, found: pa.Array) -> pa.Array:
    """The first of two values that is not null; `pc.coalesce` has no maps."""
    count = len(own)
    ascending = pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)
    rows = pc.if_else(own.is_valid(), ascending, pc.add(ascending, count))
    return pa.concat_arrays([own, found]).take(rows)
