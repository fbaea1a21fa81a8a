"""Checkpoints of every kind to actions: files as Arrow batches, the few others as structs.

Specification: "Checkpoints", "Sidecar Files", "Checkpoint Schema".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import reduce

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from alluvium.codecs.columns import integer_column
from alluvium.codecs.footers.parquet_footer import ensure_members
from alluvium.delta.log.columns import Nulls, conform, conform_fitting, holding_all, settled
from alluvium.delta.log.names import CheckpointName, parse_name
from alluvium.delta.log.read import read_commits
from alluvium.delta.log.replay import without_repeats
from alluvium.delta.log.sidecar import parse_json_head, sidecar_file
from alluvium.delta.terms.spec import (
    FILES,
    TOMBSTONES,
    CheckpointMetadata,
    DomainMetadata,
    Metadata,
    Protocol,
    RowIdHighWaterMark,
    Sidecar,
    Txn,
    Wire,
    parse_metadata,
)
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import ObjectInfo, Store

# Small batches on one thread: what a reader holds beside the result is what it costs.
_ROWS = 8192
_SAMPLE = 256
_BUFFER = 1 << 19
# Files up to this size come by one request instead of one a column.
_WHOLE = 4 << 20
# Parts and sidecars read at once: hides the latency of a store, and each holds its own columns in memory.
_FILES_AT_ONCE = 4

#: What of a file action must be text.
_TEXTS = {"path", "partitionValues", "deletionVector"}
#: What a file may do without, and what tells nothing where it is no text: some writers cut it within a character.
_OPTIONAL_TEXTS = {"stats", "tags", "stats_parsed"}

_HEAD: dict[str, type[Wire]] = {
    "protocol": Protocol,
    "metaData": Metadata,
    "txn": Txn,
    "domainMetadata": DomainMetadata,
    "rowIdHighWaterMark": RowIdHighWaterMark,
    "checkpointMetadata": CheckpointMetadata,
    "sidecar": Sidecar,
}


@dataclass(slots=True)
class CheckpointHead:
    """What a checkpoint holds beside files.

    Attributes:
        protocol: The protocol of its version.
        metadata: The metadata of its version.
        txns: By application.
        domains: By domain.
        row_id_high_water_mark: If there is one.
        sidecars: Where more of its files are listed (feature `v2Checkpoint`).
        lists_files: Whether it may list files itself.
        rows: Of its own files, as far as they are in Parquet.
        is_second_kind: Whether it says so of itself (feature `v2Checkpoint`).
    """

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    txns: dict[str, Txn] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    row_id_high_water_mark: RowIdHighWaterMark | None = None
    sidecars: list[Sidecar] = field(default_factory=list)
    lists_files: bool = True
    rows: int = 0
    is_second_kind: bool = False


def read_checkpoint_head(store: Store, checkpoint: Sequence[ObjectInfo]) -> CheckpointHead:
    """Reads all but the files.

    Raises:
        CorruptTable: A file is damaged, or protocol or metadata are missing (`damaged-checkpoint`).
    """
    head = CheckpointHead()
    for info in checkpoint:
        with _reporting_damage(info):
            if info.path.endswith(".json"):
                found = parse_json_head(store.get(info.path), info.path)
                head.lists_files = found.lists_files
                _take(head, found.actions, info)
            else:
                _read_head(store, info, head)
    if checkpoint and (head.protocol is None or head.metadata is None):
        missing = "protocol" if head.protocol is None else "metaData"
        raise _damaged(checkpoint[0], f"it holds no {missing} action")
    return head


def file_sources(checkpoint: Sequence[ObjectInfo], head: CheckpointHead) -> list[ObjectInfo]:
    """The files that list the checkpoint's files: its own and sidecars.

    "Having partial add and remove file actions in V2 Checkpoint and partial entries in sidecar files is not allowed":
    what a careless writer puts in both places is read all the same, as losing files would be worse.

    Args:
        checkpoint: Its files.
        head: What `read_checkpoint_head` gave for them.
    """
    own = checkpoint if head.lists_files else ()
    sources = [*own, *(sidecar_file(sidecar, checkpoint[0].path) for sidecar in head.sidecars)]
    # Of equal sidecars a writer may list one twice; its files count once.
    return list({info.path: info for info in sources}.values())


def stream_checkpoint(store: Store, info: ObjectInfo, kind: str) -> Iterator[pa.RecordBatch]:
    """What a Parquet file of a checkpoint lists, some thousand rows at a time.

    Args:
        store: The table's objects.
        info: One of those that `file_sources` gave.
        kind: `add` for files (`FILES`, perhaps `stats_parsed`), `remove` for tombstones (`TOMBSTONES`).

    Raises:
        CorruptTable: It is damaged, or gone (`damaged-checkpoint`).
    """
    with _reporting_damage(info), _open(store, info) as source:
        yield from _file_actions(source, source.schema_arrow, kind, FILES if kind == "add" else TOMBSTONES, Nulls())


def count_checkpoint_rows(store: Store, sources: Sequence[ObjectInfo]) -> int:
    """How many rows files of a checkpoint have, by the footers of those in Parquet.

    Raises:
        CorruptTable: One is damaged, or gone (`damaged-checkpoint`).
    """

    def count(info: ObjectInfo) -> int:
        if info.path.endswith(".json"):
            return 0
        with _reporting_damage(info), store.open_input(info.path) as source:
            return int(pq.read_metadata(source).num_rows)

    return sum(map_parallel(count, sources))


def read_checkpoint_files(
    store: Store, sources: Sequence[ObjectInfo]
) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """Reads the files: batches of `FILES` and of `TOMBSTONES`.

    The first have a column `stats_parsed` too, where a file's statistics stand in that form only.

    Args:
        store: The table's objects.
        sources: What `file_sources` gave, or some of it.

    Raises:
        CorruptTable: A file is damaged, or a sidecar is gone (`damaged-checkpoint`).
    """
    nulls = Nulls()
    parts = map_parallel(lambda info: _read_files(store, info, nulls), sources, _FILES_AT_ONCE)
    adds, removes = ([batch for part in parts for batch in part[side]] for side in (0, 1))
    # A writer that lists a file twice means it once, and so does the reference.
    return unified(without_repeats(adds)), without_repeats(removes)


def _read_files(store: Store, info: ObjectInfo, nulls: Nulls) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    with _reporting_damage(info):
        if info.path.endswith(".json"):
            return _read_json_files(store, info)
        with _open(store, info) as source:
            # Built anew by pyarrow at each access.
            written = source.schema_arrow
            adds = list(_file_actions(source, written, "add", FILES, nulls))
            return adds, list(_file_actions(source, written, "remove", TOMBSTONES, nulls))


def _read_json_files(store: Store, info: ObjectInfo) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """ "each row in the checkpoint corresponds to a single action": in JSON, a line does, as in a commit."""
    actions = read_commits(store, [info])
    if actions.damage is not None:
        raise actions.damage
    return (
        [pa.RecordBatch.from_arrays(batch.columns[: len(FILES)], schema=FILES) for batch in actions.adds],
        [pa.RecordBatch.from_arrays(batch.columns[: len(TOMBSTONES)], schema=TOMBSTONES) for batch in actions.removes],
    )


def _damaged(info: ObjectInfo, problem: object) -> CorruptTable:
    return CorruptTable(
        f"the checkpoint is damaged: {problem}",
        code="damaged-checkpoint",
        path=info.path,
        hint="delete it if all commits before it are there, or restore it from a copy",
    )


@contextmanager
def _reporting_damage(info: ObjectInfo) -> Iterator[None]:
    try:
        yield
    except CorruptTable as error:
        raise error if error.code == "damaged-checkpoint" else _damaged(info, error.message) from None
    # What pyarrow raises on damaged files is not one kind; a file that is gone since it was listed is as bad.
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, RecursionError, msgspec.MsgspecError) as error:
        raise _damaged(info, error) from None
    except NotFound as error:
        raise _damaged(info, error.message) from None


@contextmanager
def _open(store: Store, info: ObjectInfo) -> Iterator[pq.ParquetFile]:
    with ExitStack() as closing:
        if info.size <= _WHOLE:
            file = pq.ParquetFile(pa.BufferReader(store.get(info.path)))
        else:
            source = closing.enter_context(store.open_input(info.path))
            # Buffered, not pre-buffered: the columns that are read may be large, and are wanted piece by piece.
            file = pq.ParquetFile(source, buffer_size=_BUFFER, pre_buffer=False)
        ensure_members(file.schema_arrow)
        yield file


def _read_head(store: Store, info: ObjectInfo, head: CheckpointHead) -> None:
    with _open(store, info) as source:
        head.rows += int(source.metadata.num_rows)
        written = set(source.schema_arrow.names)
        names = [name for name in _HEAD if name in written]
        # Of no columns Arrow takes memory for as many batches as a row group is said to have.
        for batch in source.iter_batches(_ROWS, use_threads=False, columns=names) if names else ():
            for name in names:
                column = batch.column(name)
                if column.null_count == len(column):
                    continue
                rows = column.filter(column.is_valid()).to_pylist()
                _take(head, (_convert(row, column.type, _HEAD[name]) for row in rows), info)


def _convert(row: object, data_type: pa.DataType, kind: type[Wire]) -> Wire:
    """A row of a struct column as the struct of the log."""
    document = _without_pairs(row, data_type)
    # As JSON, so that fields that we do not know are kept as those of a commit are.
    described = parse_metadata(msgspec.json.encode(document)) if kind is Metadata else None
    return msgspec.convert(document, kind) if described is None else described


def _without_pairs(value: object, data_type: pa.DataType) -> object:
    """Arrow gives maps as lists of pairs, and names members that are null."""
    if pa.types.is_struct(data_type) and isinstance(value, dict):
        return {f.name: _without_pairs(value[f.name], f.type) for f in data_type if value[f.name] is not None}
    if pa.types.is_map(data_type) and isinstance(value, list):
        return dict(value)
    return value


def _take(head: CheckpointHead, actions: Iterable[Wire], info: ObjectInfo) -> None:
    for action in actions:
        if isinstance(action, Protocol):
            head.protocol = action
        elif isinstance(action, Metadata):
            head.metadata = action
        elif isinstance(action, Txn):
            head.txns[action.app_id] = action
        elif isinstance(action, DomainMetadata):
            head.domains[action.domain] = action
        elif isinstance(action, RowIdHighWaterMark):
            head.row_id_high_water_mark = action
        elif isinstance(action, Sidecar):
            head.sidecars.append(action)
            head.is_second_kind = True
        elif isinstance(action, CheckpointMetadata):
            head.is_second_kind = True
            _ensure_own_version(action, info)


def _ensure_own_version(found: CheckpointMetadata, info: ObjectInfo) -> None:
    """ "`n` is the snapshot version that this checkpoint represents", and the content says `version`, too."""
    name = parse_name(info.path.rpartition("/")[2])
    if isinstance(name, CheckpointName) and name.version != found.version:
        raise _damaged(info, f"it holds version {found.version}, its name says {name.version}")


def _file_actions(
    source: pq.ParquetFile, written: pa.Schema, kind: str, schema: pa.Schema, nulls: Nulls
) -> Iterator[pa.RecordBatch]:
    if kind not in written.names:
        return
    there = {f.name for f in written.field(kind).type}
    names = [f.name for f in schema if f.name in there]
    parsed = "stats_parsed" if kind == "add" and "stats_parsed" in there and _lacks_stats(source, there) else None
    wanted = [f"{kind}.{name}" for name in (*names, *([parsed] if parsed else []))]
    if not wanted:
        raise ValueError(f"its column {kind!r} has no member that is known")
    for batch in source.iter_batches(_ROWS, use_threads=False, columns=wanted):
        rows = batch.column(kind)
        valid = rows.filter(rows.is_valid()) if rows.null_count else rows
        if len(valid):
            found = _batch(valid, schema, parsed, nulls)
            # At once: of millions of equal rows, which take next to no room in a file, one is kept a batch.
            yield from without_repeats([found]) if _seems_repeated(found.column("path")) else [found]
        # The allocator would otherwise keep three times what a batch needs.
        pa.default_memory_pool().release_unused()


def _seems_repeated(file_paths: pa.Array) -> bool:
    """Whether the first paths of a batch are fewer than they should be; all of them are looked at in the end."""
    some = file_paths.slice(0, _SAMPLE)
    return int(pc.count_distinct(some).as_py()) < len(some)


def checkpoint_rows(rows: pa.StructArray) -> pa.RecordBatch:
    """The structs of a checkpoint's column `add` as a batch of `FILES`, and `stats_parsed` where they have it.

    Raises:
        CorruptTable: They are not what the specification says (`damaged-checkpoint`).
    """
    parsed = "stats_parsed" if rows.type.get_field_index("stats_parsed") >= 0 else None
    try:
        return _batch(rows.filter(rows.is_valid()), FILES, parsed, Nulls())
    except (pa.ArrowException, ValueError, TypeError, KeyError) as error:
        raise CorruptTable(f"a part of the checkpoint is damaged: {error}", code="damaged-checkpoint") from None


def _lacks_stats(source: pq.ParquetFile, there: set[str]) -> bool:
    """Whether a file has no statistics as JSON, so that those in columns are worth reading."""
    if "stats" not in there:
        return True
    for batch in source.iter_batches(_ROWS, use_threads=False, columns=["add.path", "add.stats"]):
        path, stats = batch.column("add").flatten()
        if stats.null_count > path.null_count:
            return True
    return False


def _batch(rows: pa.StructArray, schema: pa.Schema, parsed: str | None, nulls: Nulls) -> pa.RecordBatch:
    members = dict(zip((f.name for f in rows.type), rows.flatten(), strict=True))
    if members["path"].null_count:
        raise ValueError("a file has no path")
    for name in _TEXTS & members.keys():
        # Parquet does not look whether they are UTF-8.
        members[name].validate(full=True)
    for name in _OPTIONAL_TEXTS & members.keys():
        members[name] = _null_where_no_text(members[name])
    columns = [
        _kept(conform(members[f.name], f.type), nulls) if f.name in members else nulls.take(len(rows), f.type)
        for f in schema
    ]
    vectors = schema.get_field_index("deletionVector")
    columns[vectors] = _null_where_empty(columns[vectors])
    if parsed is None:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    return pa.RecordBatch.from_arrays(
        [*columns, members[parsed]], schema=schema.append(pa.field(parsed, members[parsed].type))
    )


def _null_where_empty(vectors: pa.StructArray) -> pa.StructArray:
    """Some writers leave a struct without content instead of a null, and it would count as a vector."""
    if vectors.null_count == len(vectors):
        return vectors
    is_filled = reduce(pc.or_, (pc.is_valid(member) for member in vectors.flatten()))
    if pc.sum(is_filled).as_py() == len(vectors) - vectors.null_count:
        return vectors
    return pc.if_else(is_filled, vectors, pa.scalar(None, vectors.type))


def _null_where_no_text(values: pa.Array) -> pa.Array:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        if len(values) == 1:
            return pa.nulls(1, values.type)
        half = len(values) // 2
        # Values that lie elsewhere are not looked at twice.
        parts = (values.take(integer_column(np.arange(*ends))) for ends in ((0, half), (half, len(values))))
        return pa.concat_arrays([_null_where_no_text(part) for part in parts])
    return values


def _kept(column: pa.Array, nulls: Nulls) -> pa.Array:
    return nulls.take(len(column), column.type) if column.null_count == len(column) else settled(column)


def unified(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """All batches with the same columns: a part of a checkpoint may have `stats_parsed` where another has not, or of
    another type.
    """
    place = len(FILES)
    parsed = [batch.schema.field(place) for batch in batches if batch.num_columns > place]
    if not parsed:
        return batches
    shared = parsed[0].with_type(holding_all([found.type for found in parsed]))
    schema = pa.schema([*(batches[0].schema.field(i) for i in range(place)), shared])
    return [
        pa.RecordBatch.from_arrays(
            [
                *batch.columns[:place],
                conform_fitting(batch.column(place), shared.type)
                if batch.num_columns > place
                else pa.nulls(batch.num_rows, shared.type),
            ],
            schema=schema,
        )
        for batch in batches
    ]
