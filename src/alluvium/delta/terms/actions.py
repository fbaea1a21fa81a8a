"""The actions of one commit, files as Arrow tables, and their form in a log entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.terms.spec import (
    CHANGE_FILES,
    FILES,
    TOMBSTONES,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Txn,
    format_actions,
)
from alluvium.schema.types import JsonValue

_encode = msgspec.json.Encoder().encode


def _no_files() -> pa.Table:
    return FILES.empty_table()


def _no_tombstones() -> pa.Table:
    return TOMBSTONES.empty_table()


def _no_change_files() -> pa.Table:
    return CHANGE_FILES.empty_table()


@dataclass(frozen=True, slots=True)
class Actions:
    """What a commit does, beside its commitInfo.

    Attributes:
        protocol: New protocol, if it changes.
        metadata: New metadata, if it changes.
        added: Schema `FILES`.
        removed: Schema `TOMBSTONES`.
        txns: Transaction identifiers to set.
        domains: Domains to set or remove.
        info: What features have to say in the commit's commitInfo.
        change_files: Schema `CHANGE_FILES`.
        restores: Whether the commit brings an older version back: rows then go because they were not there yet.
    """

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    added: pa.Table = field(default_factory=_no_files)
    removed: pa.Table = field(default_factory=_no_tombstones)
    txns: tuple[Txn, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    info: Mapping[str, JsonValue] = field(default_factory=dict)
    change_files: pa.Table = field(default_factory=_no_change_files)
    restores: bool = False


def with_tags(actions: Actions, tags: Mapping[str, str]) -> Actions:
    """The actions, with more tags in the commit's commitInfo."""
    known = actions.info.get("tags")
    merged: dict[str, JsonValue] = {**(known if isinstance(known, dict) else {}), **tags}
    return replace(actions, info={**actions.info, "tags": merged})


def format_entry(commit_info: Mapping[str, JsonValue], actions: Actions) -> bytes:
    """The log entry: one JSON document a line, commitInfo first, as in-commit timestamps will require.

    Specification: "Delta Log Entries".
    """
    single = [a for a in (actions.metadata, actions.protocol) if a is not None]
    head = format_actions([CommitInfo({**actions.info, **commit_info}), *single, *actions.txns, *actions.domains])
    files = [
        *format_file_actions("add", actions.added),
        *format_file_actions("remove", actions.removed),
        *format_file_actions("cdc", actions.change_files),
    ]
    return head + b"".join(line + b"\n" for line in files)


def format_file_actions(kind: str, files: pa.Table) -> Iterator[bytes]:
    """A line for each row; fields that are null are left out, as every Delta writer does."""
    maps = [f.name for f in files.schema if pa.types.is_map(f.type)]
    for batch in files.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            document = {name: value for name, value in row.items() if value is not None}
            for name in maps:
                if name in document:
                    document[name] = dict(document[name])
            if "deletionVector" in document:
                vector = document["deletionVector"]
                document["deletionVector"] = {k: v for k, v in vector.items() if v is not None}
            yield _encode({kind: document})


def tombstones_of(files: pa.Table, deletion_ms: int, data_change: bool = True) -> pa.Table:
    """The remove actions for live files, with all that `extendedFileMetadata` promises.

    Args:
        files: Schema `FILES`.
        deletion_ms: Time of the removal, milliseconds since 1970 UTC.
        data_change: False when the rows live on in other files.
    """
    count = files.num_rows
    computed = {
        "deletionTimestamp": pa.repeat(pa.scalar(deletion_ms, pa.int64()), count),
        "dataChange": pa.repeat(pa.scalar(data_change), count),
        # "When `true` the fields `partitionValues`, `size`, and `tags` are present"
        "extendedFileMetadata": pa.repeat(pa.scalar(True), count),
    }
    columns = [
        computed[f.name]
        if f.name in computed
        else (files.column(f.name).cast(f.type) if f.name in files.column_names else pa.nulls(count, f.type))
        for f in TOMBSTONES
    ]
    return pa.Table.from_arrays(columns, schema=TOMBSTONES)


def total(column: pa.ChunkedArray) -> int:
    """The sum of an integer column, 0 for none."""
    return int(pc.sum(column).as_py() or 0)
