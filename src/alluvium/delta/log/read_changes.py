"""Commits as a change feed reads them: what each version added, removed and recorded, apart from the others.

Specification: "Delta Log Entries", "Add CDC File".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from alluvium.codecs.columns import long_column, string_column
from alluvium.delta.log.columns import deletion_vector_column, map_column
from alluvium.delta.log.read import commit_version
from alluvium.delta.terms.lines import decode_line, decode_lines, split_lines
from alluvium.delta.terms.spec import (
    DELETION_VECTOR,
    STRING_MAP,
    Add,
    Cdc,
    CommitInfo,
    Metadata,
    Protocol,
    Remove,
    Wire,
    parse_commit_info,
)
from alluvium.errors import NotFound
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import is_near
from alluvium.storage.store import ObjectInfo, Store

#: One row an `add`, `remove` or `cdc` of one version, under the protocol's names. What a remove need not say is null.
CHANGED_FILES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("partitionValues", STRING_MAP),
        pa.field("size", pa.int64()),
        pa.field("modificationTime", pa.int64()),
        pa.field("stats", pa.string()),
        pa.field("deletionVector", DELETION_VECTOR),
        pa.field("version", pa.int64(), nullable=False),
    ]
)


class _Remove(Remove, frozen=True, kw_only=True):
    """Writers repeat the file's statistics here, by which a feed skips removed files."""

    stats: str | None = None


class _Line(Wire, frozen=True, kw_only=True):
    add: Add | None = None
    remove: _Remove | None = None
    cdc: Cdc | None = None
    protocol: Protocol | None = None
    meta_data: Metadata | None = None
    commit_info: msgspec.Raw = msgspec.Raw(b"")


class _HeadLine(Wire, frozen=True, kw_only=True):
    protocol: Protocol | None = None
    meta_data: Metadata | None = None


_LINES = msgspec.json.Decoder(_Line)
_HEAD_LINES = msgspec.json.Decoder(_HeadLine)


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """What one version did.

    Attributes:
        version: The version.
        added: Its `add` actions that change data (`CHANGED_FILES`).
        removed: Its `remove` actions that change data.
        recorded: Its `cdc` actions.
        protocol: The protocol that it sets, if it does.
        metadata: The metadata that it sets, if it does.
        info: Its commitInfo, if it has one.
        order: Of `added` and `removed` together, in the order of the log, whether each was removed; None: it is not
            known, or nothing was removed.
    """

    version: int
    added: pa.Table
    removed: pa.Table
    recorded: pa.Table
    protocol: Protocol | None
    metadata: Metadata | None
    info: CommitInfo | None
    order: pa.BooleanArray | None = None


def read_changes(store: Store, commits: Sequence[ObjectInfo]) -> list[CommitChanges]:
    """What some commits did, in their order; each is read once, several at a time where the store is far.

    Raises:
        CorruptTable: A commit is damaged.
        NotFound: It went away since it was listed (`missing-version`).
    """

    def read_one(commit: ObjectInfo) -> CommitChanges:
        return parse_changes(load_commit(store, commit), commit.path, commit_version(commit))

    return map_parallel(read_one, commits, 1) if is_near(store.url) else map_parallel(read_one, commits)


def load_commit(store: Store, commit: ObjectInfo) -> bytes:
    """The bytes of a commit that was listed.

    Raises:
        NotFound: Somebody cleaned the log meanwhile (`missing-version`).
    """
    try:
        return store.get(commit.path)
    except NotFound:
        version = commit_version(commit)
        raise NotFound(
            f"the commit of version {version} is gone", code="missing-version", path=commit.path, version=version
        ) from None


def parse_changes(data: bytes, path: str, version: int) -> CommitChanges:
    """Reads a log entry; lines of other actions are left out.

    Args:
        data: New-line delimited JSON.
        path: The file, for errors.
        version: Its version.

    Raises:
        CorruptTable: A line is damaged (`damaged-line`).
    """
    lines = list(decode_lines(data, _LINES, path, version))
    # "either of `add` and `remove` with `dataChange=false` [...] only rearranges existing data": no rows changed.
    adds = [line.add for line in lines if line.add is not None and line.add.data_change]
    removes = [line.remove for line in lines if line.remove is not None and line.remove.data_change]
    cdcs = [line.cdc for line in lines if line.cdc is not None]
    infos = [line.commit_info for line in lines if line.commit_info]
    files = (line.add or line.remove for line in lines)
    order = [isinstance(file, _Remove) for file in files if file is not None and file.data_change]
    return CommitChanges(
        version=version,
        added=_table(adds, version, [a.modification_time for a in adds]),
        removed=_table(removes, version, [None] * len(removes)),
        recorded=_recorded(cdcs, version),
        protocol=next((line.protocol for line in reversed(lines) if line.protocol is not None), None),
        metadata=next((line.meta_data for line in reversed(lines) if line.meta_data is not None), None),
        info=parse_commit_info(infos[0]) if infos else None,
        order=pa.array(order, pa.bool_()) if removes else None,
    )


def parse_head(data: bytes, path: str, version: int) -> tuple[Protocol | None, Metadata | None]:
    """The protocol and the metadata that a log entry sets; lines of files are not decoded.

    Raises:
        CorruptTable: A line that sets them is damaged (`damaged-line`).
    """
    lines = [
        decode_line(text, _HEAD_LINES, number, path, version)
        for number, text in split_lines(data)
        if b'"metaData"' in text or b'"protocol"' in text
    ]
    return (
        next((line.protocol for line in reversed(lines) if line.protocol is not None), None),
        next((line.meta_data for line in reversed(lines) if line.meta_data is not None), None),
    )


def _table(actions: Sequence[Add] | Sequence[_Remove], version: int, modified: Sequence[int | None]) -> pa.Table:
    if not actions:
        return CHANGED_FILES.empty_table()
    columns = [
        string_column([a.path for a in actions]),
        map_column([a.partition_values for a in actions]),
        long_column([a.size for a in actions]),
        long_column(modified),
        string_column([a.stats for a in actions]),
        deletion_vector_column([a.deletion_vector for a in actions]),
        long_column([version] * len(actions)),
    ]
    return pa.Table.from_arrays(columns, schema=CHANGED_FILES)


def _recorded(actions: Sequence[Cdc], version: int) -> pa.Table:
    if not actions:
        return CHANGED_FILES.empty_table()
    columns = [
        string_column([a.path for a in actions]),
        map_column([a.partition_values for a in actions]),
        long_column([a.size for a in actions]),
        pa.nulls(len(actions), pa.int64()),
        pa.nulls(len(actions), pa.string()),
        pa.nulls(len(actions), DELETION_VECTOR),
        long_column([version] * len(actions)),
    ]
    return pa.Table.from_arrays(columns, schema=CHANGED_FILES)
