"""Manifest lists, manifests and index manifests to Arrow; the live files of a snapshot.

Specification: `org.apache.paimon.manifest`. Four containers occur: Avro, Avro of Paimon 1.0 and before (every record
in a union with null), ORC and Parquet; the first bytes of a file say which, never an option of the table.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import orc

from alluvium.codecs.avro.avro_columns import Unreadable, read_columns, typed_columns
from alluvium.codecs.avro.avro_container import MAGIC, parse_schema, read_avro, read_blocks
from alluvium.codecs.footers.orc_footer import read_sound_tail
from alluvium.codecs.footers.orc_stripe import StripeGuard
from alluvium.codecs.footers.parquet_footer import ensure_members
from alluvium.errors import DECODE_ERRORS, CorruptTable, NotFound, UnsupportedFeature
from alluvium.paimon.files.recent_lists import recall, remember
from alluvium.paimon.files.unknown_fields import ensure_members_known, other_paths, others_type, pack
from alluvium.paimon.terms.spec import (
    ENTRIES,
    INDEX_ENTRIES,
    MANIFESTS,
    SCANNED_ENTRIES,
    SnapshotDocument,
)
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import Store

log = logging.getLogger("alluvium")

#: The columns of `unknown_fields`.
_OTHERS = ("others", "others_type")
#: Blocks that are worth decoding together: about as many records are read for the price of one.
_FEWEST_BLOCKS = 16
#: Bytes of blocks that are decoded together.
_BYTES_AT_ONCE = 64 << 20
#: Where in a record each of our columns stands.
_MANIFEST_PATHS = {
    "file_name": ("_FILE_NAME",),
    "file_size": ("_FILE_SIZE",),
    "num_added_files": ("_NUM_ADDED_FILES",),
    "num_deleted_files": ("_NUM_DELETED_FILES",),
    "schema_id": ("_SCHEMA_ID",),
    "partition_min": ("_PARTITION_STATS", "_MIN_VALUES"),
    "partition_max": ("_PARTITION_STATS", "_MAX_VALUES"),
    "partition_nulls": ("_PARTITION_STATS", "_NULL_COUNTS"),
}
_ENTRY_PATHS = {
    "kind": ("_KIND",),
    "partition": ("_PARTITION",),
    "bucket": ("_BUCKET",),
    "total_buckets": ("_TOTAL_BUCKETS",),
    "stats_min": ("_FILE", "_VALUE_STATS", "_MIN_VALUES"),
    "stats_max": ("_FILE", "_VALUE_STATS", "_MAX_VALUES"),
    "stats_nulls": ("_FILE", "_VALUE_STATS", "_NULL_COUNTS"),
    "key_stats_min": ("_FILE", "_KEY_STATS", "_MIN_VALUES"),
    "key_stats_max": ("_FILE", "_KEY_STATS", "_MAX_VALUES"),
    "key_stats_nulls": ("_FILE", "_KEY_STATS", "_NULL_COUNTS"),
}
_INDEX_PATHS = {"ranges": ("_DELETIONS_VECTORS_RANGES",)}
#: Of the form of records: that of manifests and their lists, and that of index manifests. Java reads no other.
_VERSION, _INDEX_VERSION = 2, 1
_VERSION_PATH = ("_VERSION",)
#: What every record says of a file, whatever else it leaves out.
_NEEDED = ("kind", "file_name")


def _path(name: str, known: Mapping[str, tuple[str, ...]], prefix: tuple[str, ...]) -> tuple[str, ...]:
    return known.get(name, (*prefix, f"_{name.upper()}"))


def read_manifest_list(store: Store, name: str) -> pa.Table:
    """The manifests (`MANIFESTS`) of a list."""
    return load_manifest_list(store, name)[1]


def load_manifest_list(store: Store, name: str) -> tuple[bytes, pa.Table]:
    """The bytes of a list, and its manifests (`MANIFESTS`)."""
    place = f"manifest/{name}"
    data = _load(store, place)
    found = recall(data)
    if found is None:
        found = _parsed(data, place, MANIFESTS, lambda column: _path(column, _MANIFEST_PATHS, ()))
        remember(data, found)
    return data, found


def read_manifest(store: Store, name: str) -> pa.Table:
    """The entries (`ENTRIES`) of a manifest, additions and deletions, in order."""
    return _read(store, name, ENTRIES, _entry_path)


def read_manifests(store: Store, names: Sequence[str]) -> pa.Table:
    """The entries (`ENTRIES`) of several manifests, in order."""
    return decode_manifests(load_manifests(store, names))


def decode_manifests(files: Sequence[tuple[str, bytes]]) -> pa.Table:
    """The same of manifests that are loaded: path and bytes of each."""
    return pa.concat_tables([ENTRIES.empty_table(), *_decoded(files, ENTRIES)])


def load_manifests(store: Store, names: Sequence[str]) -> list[tuple[str, bytes]]:
    """Path and bytes of some manifests, in order."""
    return map_parallel(lambda name: (f"manifest/{name}", _load(store, f"manifest/{name}")), names)


def scan_manifest(store: Store, name: str) -> pa.Table:
    """What scans look at (`SCANNED_ENTRIES`) of the entries of a manifest."""
    return _read(store, name, SCANNED_ENTRIES, _entry_path)


def read_index_manifest(store: Store, name: str) -> pa.Table:
    """The index files (`INDEX_ENTRIES`) of a snapshot; each index manifest is a full list."""
    return _index_files(store, name, INDEX_ENTRIES)


def scan_index_manifest(store: Store, name: str) -> pa.Table:
    """The same, as far as readers look at it: without what is only carried on when it is written anew."""
    return _index_files(store, name, pa.schema([f for f in INDEX_ENTRIES if f.name not in _OTHERS]))


def _index_files(store: Store, name: str, wanted: pa.Schema) -> pa.Table:
    entries = _read(store, name, wanted, lambda column: _path(column, _INDEX_PATHS, ()), _INDEX_VERSION)
    return entries.filter(pc.equal(entries["kind"], 0))


def read_entries(store: Store, lists: Iterable[str]) -> pa.Table:
    """The entries (`ENTRIES`) of all manifests of some manifest lists, in order."""
    return _entries(store, lists, ENTRIES)


def scan_entries(store: Store, lists: Iterable[str]) -> pa.Table:
    """What scans look at (`SCANNED_ENTRIES`) of the entries of all manifests of some manifest lists, in order."""
    return _entries(store, lists, SCANNED_ENTRIES)


def _entries(store: Store, lists: Iterable[str], wanted: pa.Schema) -> pa.Table:
    names: list[str] = []
    for one in lists:
        names += read_manifest_list(store, one)["file_name"].to_pylist()
    return pa.concat_tables([wanted.empty_table(), *_decoded(load_manifests(store, names), wanted)])


def _decoded(files: Sequence[tuple[str, bytes]], wanted: pa.Schema) -> Iterator[pa.Table]:
    """The entries of manifests, in order. Avro manifests of one schema are decoded together."""
    held: list[_Held] = []
    schema, size_bytes = b"", 0
    for place, data in files:
        if data[:4] != MAGIC:
            yield from _together(held, schema, wanted)
            held, size_bytes = [], 0
            yield _parsed(data, place, wanted, _entry_path)
            continue
        own, blocks = read_blocks(data, place)
        if held and (own != schema or size_bytes > _BYTES_AT_ONCE):
            yield from _together(held, schema, wanted)
            held, size_bytes = [], 0
        schema = own
        held.append((place, data, blocks))
        size_bytes += sum(len(block) for _, block in blocks)
    yield from _together(held, schema, wanted)


#: A manifest: its path, its bytes, and its blocks with how many records each has.
_Held = tuple[str, bytes, list[tuple[int, bytes]]]


def _together(held: Sequence[_Held], schema: bytes, wanted: pa.Schema) -> Iterator[pa.Table]:
    found = _at_once(held, schema, wanted)
    if found is not None:
        yield found
        return
    # One large manifest before many small ones, as a merge leaves it, does not keep these from being decoded together.
    runs = [list(run) for _, run in itertools.groupby(held, _scale)]
    for run in runs:
        found = _at_once(run, schema, wanted) if len(runs) > 1 else None
        if found is not None:
            yield found
            continue
        for place, data, _ in run:
            yield _parsed(data, place, wanted, _entry_path)


def _scale(held: _Held) -> int:
    return max((count for count, _ in held[2]), default=0).bit_length()


def _at_once(held: Sequence[_Held], schema: bytes, wanted: pa.Schema) -> pa.Table | None:
    """The entries of manifests that are decoded together; None: that is not worth it, or cannot be done."""
    blocks = [block for _, _, own in held for block in own]
    counts = [count for count, _ in blocks]
    if sum(counts) < _FEWEST_BLOCKS * max(counts, default=1):
        return None
    known = pa.schema([f for f in wanted if f.name not in _OTHERS])
    paths = [_entry_path(f.name) for f in known]
    try:
        if _says_more(schema, wanted):
            return None
        found = read_columns(parse_schema(schema), blocks, [*paths, _VERSION_PATH])
        _ensure_version(found[_VERSION_PATH], _VERSION, held[0][0])
        made = _with_others(typed_columns(found, paths, known, sum(counts)), wanted, [], None, held[0][0])
        return None if any(made[name].null_count for name in _NEEDED if name in made.column_names) else made
    except (Unreadable, UnsupportedFeature, pa.ArrowException, ValueError, KeyError, TypeError):
        # The reader of single records says which of the files it is, and what is wrong.
        log.debug("manifests are read record by record: %s", [place for place, _, _ in held])
        return None


def _says_more(schema: bytes, wanted: pa.Schema) -> bool:
    """Whether records have fields that are wanted though nobody here knows them."""
    if _OTHERS[0] not in wanted.names:
        return False
    return others_type(parse_schema(schema), [_entry_path(f.name) for f in wanted]) is not None


def _with_others(table: pa.Table, wanted: pa.Schema, records: list[object], kind: str | None, place: str) -> pa.Table:
    """The table with the columns of what has no column, if they are wanted; `kind` None: there is nothing."""
    if _OTHERS[0] not in wanted.names:
        return table
    nothing = [pa.nulls(table.num_rows, wanted.field(name).type) for name in _OTHERS]
    try:
        columns = nothing if kind is None else pack(records, kind)
    except CorruptTable as error:
        raise CorruptTable(error.message, code="damaged-manifest", path=place) from None
    for name, values in zip(_OTHERS, columns, strict=True):
        table = table.append_column(wanted.field(name), values)
    return table.select(wanted.names)


@contextmanager
def _sound_types(place: str) -> Iterator[None]:
    try:
        yield
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        # What no record holds, no decoder looks at.
        raise CorruptTable(f"its types are none: {error!r}", code="damaged-manifest", path=place) from None


def _entry_path(column: str) -> tuple[str, ...]:
    return _path(column, _ENTRY_PATHS, ("_FILE",))


def live_entries(entries: pa.Table) -> pa.Table:
    """What additions and deletions leave, in order of the additions.

    Specification, `FileEntry.mergeEntries`: an addition inserts, a deletion removes, by the file's identity.
    """
    deletes = pc.equal(entries["kind"], 1)
    if not pc.any(deletes).as_py():
        return entries
    # A file may be deleted and added again (it moves up a level under its name), so the last word counts.
    identity = pc.binary_join_element_wise(
        pc.fill_null(pc.cast(entries["bucket"], pa.string()), ""),
        pc.fill_null(pc.cast(entries["level"], pa.string()), ""),
        entries["file_name"],
        pc.fill_null(entries["external_path"], ""),
        "\x00",
    )
    partition = entries["partition"].combine_chunks().dictionary_encode("encode").indices.cast(pa.string())
    key = pc.binary_join_element_wise(partition, identity, "\x00")
    codes = pa.chunked_array([key]).combine_chunks() if isinstance(key, pa.Array) else key.combine_chunks()
    numbers = codes.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    last = np.zeros(numbers.max(initial=-1) + 1, np.int64)
    last[numbers] = np.arange(len(numbers))
    keep = np.zeros(len(numbers), bool)
    keep[last] = True
    keep &= ~np.asarray(deletes.combine_chunks().to_numpy(zero_copy_only=False), bool)
    return entries.filter(pa.array(keep))


def snapshot_entries(store: Store, document: SnapshotDocument) -> pa.Table:
    """The live data files of a snapshot: "fold of all entries of base list then delta list, in order"."""
    entries = scan_entries(store, (document.base_manifest_list, document.delta_manifest_list))
    return live_entries(entries)


def _read(
    store: Store, name: str, schema: pa.Schema, path_of: Callable[[str], tuple[str, ...]], version: int = _VERSION
) -> pa.Table:
    place = f"manifest/{name}"
    return _parsed(_load(store, place), place, schema, path_of, version)


def _load(store: Store, place: str) -> bytes:
    try:
        return store.get(place)
    except NotFound:
        raise NotFound(
            "a manifest that the snapshot names does not exist",
            code="missing-manifest",
            path=place,
            hint="the snapshot may have expired while it was read, or somebody deleted the file",
        ) from None


def _parsed(
    data: bytes, place: str, schema: pa.Schema, path_of: Callable[[str], tuple[str, ...]], version: int = _VERSION
) -> pa.Table:
    found = _unchecked(data, place, schema, path_of, version)
    lacking = [name for name in _NEEDED if name in found.column_names and found[name].null_count]
    if lacking:
        raise CorruptTable(f"a record does not say its {lacking[0]}", code="damaged-manifest", path=place)
    return found


def _unchecked(
    data: bytes, place: str, schema: pa.Schema, path_of: Callable[[str], tuple[str, ...]], version: int
) -> pa.Table:
    for form, (magic, _) in _COLUMNAR.items():
        if data.startswith(magic):
            return _from_columns(form, data, place, schema, path_of, version)
    if data[:4] == MAGIC:
        own, records = read_avro(data, place)
        (versions,) = _columns(records, [_VERSION_PATH])
        _ensure_version(_array(versions, pa.int64(), place), version, place)
        known = pa.schema([f for f in schema if f.name not in _OTHERS])
        paths = [path_of(f.name) for f in known]
        kind = None
        if len(known) < len(schema):
            with _sound_types(place):
                _ensure_members_known(own, known, path_of, place)
                kind = others_type(own, paths)
        return _with_others(_typed(_columns(records, paths), known, place), schema, records, kind, place)
    raise CorruptTable("it is no Avro, ORC or Parquet file", code="damaged-manifest", path=place)


def _ensure_version(versions: pa.Array | None, version: int, place: str) -> None:
    """What a later version says by the same names may mean something else.

    Raises:
        UnsupportedFeature: Records of another version (`"manifest-version"`).
    """
    others = pa.array([], pa.int64()) if versions is None else pc.unique(versions).drop_null()
    others = others.filter(pc.not_equal(others, version))
    if len(others):
        raise UnsupportedFeature(
            f"a manifest has records of version {others[0]}: {version} is known",
            code="manifest-version",
            path=place,
            features=("manifest-version",),
            hint="read the table with the engine that wrote it, or with a newer version of this library",
        )


def _columns(records: list[object], paths: Sequence[tuple[str, ...]]) -> list[list[object]]:
    """The values at some paths of all records; records on the way are looked up once."""
    found: dict[tuple[str, ...], list[object]] = {(): records}
    for path in paths:
        for depth in range(1, len(path) + 1):
            if path[:depth] not in found:
                found[path[:depth]] = _members(found[path[: depth - 1]], path[depth - 1])
    return [found[path] for path in paths]


def _members(values: list[object], name: str) -> list[object]:
    get: Callable[[Any], object] = itemgetter(name)
    try:
        return list(map(get, values))
    except (KeyError, TypeError):
        # Fields newer than the writer are absent, and so may be the record around one.
        return [value.get(name) if isinstance(value, dict) else None for value in values]


def _typed(columns: Sequence[list[object]], schema: pa.Schema, place: str) -> pa.Table:
    arrays = [_array(values, f.type, place) for values, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: list[object], kind: pa.DataType, place: str) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise CorruptTable(f"its records are malformed: {error}", code="damaged-manifest", path=place) from None


def _read_orc(source: pa.BufferReader) -> pa.Table:
    StripeGuard(source, read_sound_tail(source)).ensure_all_sound()
    return orc.ORCFile(source).read()


def _read_parquet(source: pa.BufferReader) -> pa.Table:
    file = pq.ParquetFile(source)
    ensure_members(file.schema_arrow)
    count = sum(file.metadata.row_group(number).num_rows for number in range(file.num_row_groups))
    if count > source.size():
        # Each names a file or a manifest; Arrow takes memory for as many as it is told of.
        raise ValueError(f"{count} records do not go into {source.size()} bytes")
    # Of no columns Arrow reads as many rows as it is told of.
    return file.read(use_threads=False) if file.schema_arrow.names else pa.table({})


#: How files in columns begin, and how they are read.
_COLUMNAR: Mapping[str, tuple[bytes, Callable[[pa.BufferReader], pa.Table]]] = {
    "ORC": (b"ORC", _read_orc),
    "Parquet": (b"PAR1", _read_parquet),
}


def _from_columns(
    form: str, data: bytes, place: str, schema: pa.Schema, path_of: Callable[[str], tuple[str, ...]], version: int
) -> pa.Table:
    _, read = _COLUMNAR[form]
    try:
        table = read(pa.BufferReader(data))
        _ensure_version(_member(table, _VERSION_PATH, pa.int64()), version, place)
        known = pa.schema([f for f in schema if f.name not in _OTHERS])
        found = pa.Table.from_arrays([_member(table, path_of(f.name), f.type) for f in known], schema=known)
        # Names that are no text.
        found.validate(full=True)
        if len(known) < len(schema):
            _ensure_known(form, table.schema, [path_of(f.name) for f in known], place)
            fields = {"fields": [_as_avro(f) for f in table.schema]}
            _ensure_members_known(fields, known, path_of, place)
        return _with_others(found, schema, [], None, place)
    # That names stand twice, is one more kind of ValueError.
    except (pa.ArrowException, OSError, ValueError, CorruptTable, *DECODE_ERRORS) as error:
        raise CorruptTable(f"the {form} file cannot be read: {error}", code="damaged-manifest", path=place) from None


def _ensure_known(form: str, found: pa.Schema, known: Sequence[tuple[str, ...]], place: str) -> None:
    """Of manifests in columns only what has columns here can be written anew."""
    others = other_paths({"fields": [_as_avro(f) for f in found]}, known)
    if others:
        raise UnsupportedFeature(
            f"a manifest in {form} has fields that are not known here, so it cannot be written anew",
            code="unknown-manifest-field",
            path=place,
            features=tuple(".".join(path) for path in others),
            hint="compact the table with the engine that wrote them",
        )


def _ensure_members_known(own: Any, known: pa.Schema, path_of: Callable[[str], tuple[str, ...]], place: str) -> None:
    try:
        ensure_members_known(own, {path_of(f.name): f.type for f in known})
    except UnsupportedFeature as error:
        error.path = place
        raise


def _as_avro(f: pa.Field) -> dict[str, Any]:
    """The names of a field and those within."""
    if pa.types.is_struct(f.type):
        return {"name": f.name, "type": {"fields": [_as_avro(inner) for inner in f.type]}}
    if pa.types.is_list(f.type):
        return {"name": f.name, "type": {"items": _as_avro(f.type.value_field)["type"]}}
    return {"name": f.name, "type": str(f.type)}


def _member(table: pa.Table, path: tuple[str, ...], kind: pa.DataType) -> pa.Array:
    if not _has(table.column_names, path[0]):
        return pa.nulls(table.num_rows, kind)
    values = table[path[0]].combine_chunks()
    for name in path[1:]:
        if not pa.types.is_struct(values.type) or not _has([f.name for f in values.type], name):
            return pa.nulls(table.num_rows, kind)
        values = pc.struct_field(values, [name])
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        return pa.array(values.to_pylist(), kind)
    return values.cast(kind, safe=False)


def _has(names: Sequence[str], name: str) -> bool:
    if names.count(name) > 1:
        raise ValueError(f"two fields are called {name!r}")
    return name in names
