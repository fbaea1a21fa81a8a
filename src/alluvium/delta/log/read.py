"""Commits to actions: files as Arrow batches, the few others as structs.

Specification: "Delta Log Entries".
"""

from __future__ import annotations

import re
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
import pyarrow as pa

from alluvium.codecs.columns import boolean_column, long_column, string_column
from alluvium.delta.log.columns import Nulls, deletion_vector_column, map_column
from alluvium.delta.log.names import CommitName, CompactedName, parse_name
from alluvium.delta.terms.lines import BYTE_ORDER_MARK, damaged_line, decode_line, split_lines
from alluvium.delta.terms.spec import (
    FILES,
    STRING_MAP,
    TOMBSTONES,
    Add,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    RowIdHighWaterMark,
    Txn,
    Wire,
    parse_metadata,
)
from alluvium.errors import DECODE_ERRORS, CorruptTable
from alluvium.storage.paths import is_near
from alluvium.storage.store import ObjectInfo, Store

#: Position of an action in the log, beside the columns of `FILES` and `TOMBSTONES` until files are reconciled.
ORDER = pa.field("order", pa.int64(), nullable=False)

# JSON decoded at once, in bytes: small, as everything that lies between the file and the columns is waste.
_BLOCK = 1 << 19
_READERS = 8
# One pass; a search for each of the pairs takes ten times as long.
_BLANK_START = re.compile(rb"\n[ \t\r\n]")
_T = TypeVar("_T")


class _Line(Wire, frozen=True):
    """What of a line matters for the state. `cdc` and `commitInfo` do not: they are skipped undecoded."""

    add: Add | None = None
    remove: Remove | None = None
    txn: Txn | None = None
    domain_metadata: DomainMetadata | None = None
    protocol: Protocol | None = None
    # Not decoded unless it is the newest: only that one counts (there are tables whose first one has no schema yet).
    meta_data: msgspec.Raw = msgspec.Raw(b"")
    row_id_high_water_mark: RowIdHighWaterMark | None = None


class _ProtocolLine(Wire, frozen=True):
    protocol: Protocol | None = None


_LINES = msgspec.json.Decoder(_Line)
_PROTOCOL_LINES = msgspec.json.Decoder(_ProtocolLine)


@dataclass(slots=True)
class CommitActions:
    """What a run of commits says; of actions that replace each other the newest.

    Attributes:
        adds: Batches of `FILES` and `ORDER`.
        removes: Batches of `TOMBSTONES` and `ORDER`.
        protocol: The newest protocol, if there is one.
        metadata: The newest metadata, if there is one.
        txns: By application.
        domains: By domain; removed ones too, which hide earlier ones.
        row_id_high_water_mark: The newest, if there is one.
        metadata_damage: Why the newest metadata cannot be read, if so.
        damage: The first damage that was met. It is not raised at once, as the newest protocol is to be judged first:
            a table of a protocol that we do not know may well look damaged to us.
        lines: How many lines there were, with those that were skipped.
        singles: How many actions that replace each other were seen, the replaced ones included.
    """

    adds: list[pa.RecordBatch] = field(default_factory=list)
    removes: list[pa.RecordBatch] = field(default_factory=list)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    txns: dict[str, Txn] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    row_id_high_water_mark: RowIdHighWaterMark | None = None
    metadata_damage: CorruptTable | None = None
    damage: CorruptTable | None = None
    lines: int = 0
    singles: int = 0

    def followed_by(self, later: CommitActions) -> CommitActions:
        """What both say together; `later` was read with this one's `lines` before it."""
        says_metadata = later.metadata is not None or later.metadata_damage is not None
        newest = later if says_metadata else self
        return CommitActions(
            adds=[*self.adds, *later.adds],
            removes=[*self.removes, *later.removes],
            protocol=later.protocol or self.protocol,
            metadata=later.metadata or self.metadata,
            txns={**self.txns, **later.txns},
            domains={**self.domains, **later.domains},
            row_id_high_water_mark=later.row_id_high_water_mark or self.row_id_high_water_mark,
            metadata_damage=newest.metadata_damage,
            damage=self.damage or later.damage,
            lines=later.lines,
            singles=self.singles + later.singles,
        )


@dataclass(frozen=True, slots=True)
class _Piece:
    """Whole lines of a commit."""

    commit: ObjectInfo
    first_line: int
    data: bytes
    breaks: int


def _begin(commit: ObjectInfo, data: bytes) -> _Piece:
    """A commit, or its first lines."""
    if not data:
        # It is a version without actions, as for the reference implementation; but no known writer means to write one.
        warnings.warn(
            f"{commit.path} is empty: its writer may have died, and what it wrote is then not in the table",
            stacklevel=2,
        )
    return _piece(commit, 1, data.removeprefix(BYTE_ORDER_MARK))


def _piece(commit: ObjectInfo, first_line: int, data: bytes) -> _Piece:
    return _Piece(commit, first_line, data, data.count(b"\n"))


def read_commits(store: Store, commits: Sequence[ObjectInfo], lines_before: int = 0) -> CommitActions:
    """Reads commits in ascending order; log compactions and checkpoints in JSON, which look alike, too.

    Args:
        store: The table's objects.
        commits: The files.
        lines_before: Lines of the log that were read before these.
    """
    actions = CommitActions(lines=lines_before)
    nulls = Nulls()
    for pieces in _blocks(_pieces(store, commits)):
        if actions.damage is None:
            try:
                lines = _decode(pieces)
            except CorruptTable as damage:
                actions.damage = damage
            else:
                _collect(actions, lines, actions.lines, nulls)
                _collect_metadata(actions, lines, pieces)
                actions.lines += len(lines)
                continue
        actions.protocol = _find_protocol(pieces) or actions.protocol
    return actions


def commit_version(commit: ObjectInfo) -> int:
    """The version of a commit by its file name."""
    name = parse_name(commit.path.rpartition("/")[2])
    if not isinstance(name, CommitName):
        raise CorruptTable("not the name of a commit", code="invalid-name", path=commit.path)
    return name.version


def _version_of(info: ObjectInfo) -> int | None:
    """The version of a commit, the last one of a compaction, that of a checkpoint; for errors."""
    name = parse_name(info.path.rpartition("/")[2])
    if name is None:
        return None
    return name.end if isinstance(name, CompactedName) else name.version


def read_each(store: Store, objects: Sequence[ObjectInfo], limit_bytes: int) -> Iterator[tuple[ObjectInfo, bytes]]:
    """Objects in order, the next ones being fetched meanwhile.

    Args:
        store: Where they are.
        objects: What to read.
        limit_bytes: How much may be fetched ahead.
    """
    if len(objects) < 2 or is_near(store.url):
        yield from ((info, store.get(info.path)) for info in objects)
        return
    with ThreadPoolExecutor(_READERS) as pool:
        ahead: deque[tuple[ObjectInfo, Future[bytes]]] = deque()
        waiting = 0
        for info in objects:
            ahead.append((info, pool.submit(store.get, info.path)))
            waiting += info.size
            while ahead and (waiting > limit_bytes or len(ahead) > 4 * _READERS):
                first, data = ahead.popleft()
                waiting -= first.size
                yield first, data.result()
        while ahead:
            first, data = ahead.popleft()
            yield first, data.result()


def _pieces(store: Store, commits: Sequence[ObjectInfo]) -> Iterator[_Piece]:
    small: list[ObjectInfo] = []
    for commit in commits:
        if commit.size <= _BLOCK:
            small.append(commit)
            continue
        yield from (_begin(info, data) for info, data in read_each(store, small, 4 * _BLOCK))
        small = []
        yield from _stream(store, commit)
    yield from (_begin(info, data) for info, data in read_each(store, small, 4 * _BLOCK))


def _stream(store: Store, commit: ObjectInfo) -> Iterator[_Piece]:
    """A large commit in pieces that end where lines end."""
    rest: list[bytes | memoryview] = []
    first_line = 1
    with store.open_input(commit.path) as source:
        while data := source.read(_BLOCK):
            end = data.rfind(b"\n") + 1
            if end == 0:
                rest.append(data)
                continue
            whole = b"".join((*rest, memoryview(data)[:end]))
            piece = _begin(commit, whole) if first_line == 1 else _piece(commit, first_line, whole)
            rest = [memoryview(data)[end:]] if end < len(data) else []
            first_line += piece.breaks
            yield piece
    if rest:
        last = b"".join(rest)
        yield _begin(commit, last) if first_line == 1 else _piece(commit, first_line, last)


def _blocks(pieces: Iterator[_Piece]) -> Iterator[list[_Piece]]:
    """Pieces of small commits together, so that a batch is never a handful of rows."""
    block: list[_Piece] = []
    size = 0
    for piece in pieces:
        block.append(piece)
        size += len(piece.data)
        if size >= _BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _decode(pieces: list[_Piece]) -> list[_Line]:
    # No line more than there is: counting them below finds documents that share one.
    data = b"".join(p.data if p.data.endswith(b"\n") or p is pieces[-1] else p.data + b"\n" for p in pieces)
    try:
        lines = _LINES.decode_lines(data)
    except DECODE_ERRORS as error:
        raise _damage(pieces, error) from None
    # The decoder takes a line break for white space: two documents in a line, or one over two lines, pass it.
    breaks = sum(p.breaks for p in pieces) + sum(not p.data.endswith(b"\n") for p in pieces)
    is_plain = len(lines) == breaks and not _has_blank_lines(data)
    if not is_plain and len(lines) != _count_documents(data):
        raise _damage(pieces, None)
    return lines


def _has_blank_lines(data: bytes) -> bool:
    """Whether a line may be blank; each would make up for one that holds two documents."""
    return data[:1].isspace() or _BLANK_START.search(data) is not None


def _count_documents(data: bytes) -> int:
    return sum(1 for _ in split_lines(data, first=1))


def _damage(pieces: list[_Piece], error: Exception | None) -> CorruptTable:
    """Finds the line: only now, as blocks that are right need not be looked at line by line."""
    for piece in pieces:
        for number, text in split_lines(piece.data, piece.first_line):
            try:
                decode_line(text, _LINES, number, piece.commit.path, _version_of(piece.commit))
            except CorruptTable as damage:
                return damage
    first = pieces[0].commit
    return CorruptTable(
        f"the log entry is damaged: {error or 'its lines are not one document each'}",
        code="damaged-line", path=first.path, version=_version_of(first),
    )  # fmt: skip


def _find_protocol(pieces: list[_Piece]) -> Protocol | None:
    """The newest protocol in lines of which some are damaged."""
    found = None
    for piece in pieces:
        for text in piece.data.split(b"\n"):
            if b'"protocol"' in text:
                try:
                    found = _PROTOCOL_LINES.decode(text).protocol or found
                except DECODE_ERRORS:
                    continue
    return found


def _collect(actions: CommitActions, lines: list[_Line], order: int, nulls: Nulls) -> None:
    adds, of_adds = _present([line.add for line in lines], order)
    removes, of_removes = _present([line.remove for line in lines], order)
    if adds:
        actions.adds.append(_add_batch(of_adds, adds, nulls))
    if removes:
        actions.removes.append(_remove_batch(of_removes, removes, nulls))
    if len(adds) + len(removes) == len(lines):
        return
    for line in lines:
        # "The latest `protocol` action seen wins"
        actions.protocol = line.protocol or actions.protocol
        actions.row_id_high_water_mark = line.row_id_high_water_mark or actions.row_id_high_water_mark
        single = (line.protocol, line.row_id_high_water_mark, line.txn, line.domain_metadata)
        actions.singles += len(single) - single.count(None) + _is_said(line.meta_data)
        # "For `txn` actions, the latest `version` seen for a given `appId` wins": seen last, for
        # "it would be valid for the `version` to decrease".
        if line.txn is not None:
            actions.txns[line.txn.app_id] = line.txn
        if line.domain_metadata is not None:
            actions.domains[line.domain_metadata.domain] = line.domain_metadata


def _present(found: list[_T | None], order: int) -> tuple[list[_T], Sequence[int]]:
    """The actions of one kind in some lines, and their places in the log."""
    present = [action for action in found if action is not None]
    if len(present) == len(found):
        return present, range(order, order + len(found))
    return present, [n for n, action in enumerate(found, order) if action is not None] if present else ()


def _collect_metadata(actions: CommitActions, lines: list[_Line], pieces: list[_Piece]) -> None:
    """ "The latest `metaData` action seen wins" """
    raw = next((line.meta_data for line in reversed(lines) if _is_said(line.meta_data)), None)
    if raw is None:
        return
    try:
        actions.metadata, actions.metadata_damage = parse_metadata(raw), None
    except DECODE_ERRORS as error:
        where = next(piece for piece in reversed(pieces) if bytes(raw) in piece.data)
        line = where.first_line + where.data[: where.data.rfind(bytes(raw))].count(b"\n")
        actions.metadata_damage = damaged_line(line, error, where.commit.path, _version_of(where.commit))


def _is_said(raw: msgspec.Raw) -> bool:
    return bool(raw) and bytes(raw) != b"null"


def _add_batch(order: Sequence[int], adds: list[Add], nulls: Nulls) -> pa.RecordBatch:
    def optional(values: Sequence[_T], data_type: pa.DataType, build: Callable[[Sequence[_T]], pa.Array]) -> pa.Array:
        return nulls.take(len(values), data_type) if values.count(None) == len(values) else build(values)

    columns = [
        string_column([a.path for a in adds]),
        map_column([a.partition_values for a in adds]),
        long_column([a.size for a in adds]),
        long_column([a.modification_time for a in adds]),
        boolean_column([a.data_change for a in adds]),
        optional([a.stats for a in adds], pa.string(), string_column),
        optional([a.tags for a in adds], STRING_MAP, map_column),
        optional([a.deletion_vector for a in adds], FILES.field("deletionVector").type, deletion_vector_column),
        optional([a.base_row_id for a in adds], pa.int64(), long_column),
        optional([a.default_row_commit_version for a in adds], pa.int64(), long_column),
        optional([a.clustering_provider for a in adds], pa.string(), string_column),
        long_column(order),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=FILES.append(ORDER))


def _remove_batch(order: Sequence[int], removes: list[Remove], nulls: Nulls) -> pa.RecordBatch:
    def optional(values: Sequence[_T], data_type: pa.DataType, build: Callable[[Sequence[_T]], pa.Array]) -> pa.Array:
        return nulls.take(len(values), data_type) if values.count(None) == len(values) else build(values)

    columns = [
        string_column([r.path for r in removes]),
        optional([r.deletion_timestamp for r in removes], pa.int64(), long_column),
        boolean_column([r.data_change for r in removes]),
        optional([r.extended_file_metadata for r in removes], pa.bool_(), boolean_column),
        optional([r.partition_values for r in removes], STRING_MAP, map_column),
        optional([r.size for r in removes], pa.int64(), long_column),
        optional([r.tags for r in removes], STRING_MAP, map_column),
        optional([r.deletion_vector for r in removes], TOMBSTONES.field("deletionVector").type, deletion_vector_column),
        optional([r.base_row_id for r in removes], pa.int64(), long_column),
        optional([r.default_row_commit_version for r in removes], pa.int64(), long_column),
        long_column(order),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=TOMBSTONES.append(ORDER))
