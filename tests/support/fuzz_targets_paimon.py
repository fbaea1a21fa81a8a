"""Targets of the fuzzer: what lies beside the rows of a Paimon table, each with one file of a table as the input."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence

import msgspec
import pyarrow as pa
from fuzz_paimon import PaimonFuzzTable, append_table, dynamic_table, keyed_table
from fuzz_targets_files import orc_file, parquet
from pyroaring import BitMap64

import alluvium
from alluvium.codecs.avro.avro_container import read_avro
from alluvium.errors import AlluviumError
from alluvium.paimon.features.deletion_vectors import format_vectors, parse_vector, vector_masks
from alluvium.paimon.files.hash_index import hash_entries, read_hashes
from alluvium.paimon.files.manifest import (
    decode_manifests,
    live_entries,
    read_index_manifest,
    read_manifest_list,
    scan_manifest,
)
from alluvium.paimon.files.manifest_write import format_index_manifest, format_manifest, format_manifest_list
from alluvium.paimon.log.consumers import list_consumers
from alluvium.paimon.log.history import read_history
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema.arrow import schema_to_arrow
from alluvium.paimon.schema.checks import check_schema
from alluvium.paimon.schema.logical import logical_schema
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.type_json import format_type, parse_type
from alluvium.paimon.streams.offset import Offset, format_offset, parse_offset
from alluvium.paimon.terms.spec import parse_snapshot
from alluvium.paimon.view.scan import plan_scan

Made = tuple[Sequence[bytes], Callable[[bytes], str]]


def _snapshots() -> Made:
    """The newest snapshot: its state and its history."""
    table = keyed_table()
    store = table.store()
    path = f"snapshot/snapshot-{table.newest}"

    def act(data: bytes) -> str:
        store.put(path, data)
        parse_snapshot(data, path)
        snapshot = load_snapshot(store)
        read_history(snapshot).validate(full=True)
        plan_scan(snapshot)
        return "ok"

    return [table.files[name] for name in table.files if name.startswith("snapshot/snapshot-")], act


def _tags() -> Made:
    table = append_table("parquet")
    store = table.store()

    def act(data: bytes) -> str:
        store.put("tag/tag-x", data)
        plan_scan(load_snapshot(store, At(tag="x")))
        return "ok"

    document = table.files["snapshot/snapshot-1"]
    return [document, document.rstrip()[:-1] + b', "tagCreateTime": [2024, 1, 1, 0, 0], "tagTimeRetained": 5.0}'], act


def _schemas() -> Made:
    """A schema file: read, checked, shown, written again."""
    table = keyed_table()

    def act(data: bytes) -> str:
        schema = TableSchema.parse(data, "schema/schema-0")
        again = TableSchema.parse(schema.format(), "schema/schema-0")
        assert again.fields == schema.fields and again.options == schema.options
        list(check_schema(schema))
        logical_schema(schema)
        schema_to_arrow(schema.fields)
        return "ok"

    tables = (table, append_table("orc"), dynamic_table())
    return [one.files["schema/schema-0"] for one in tables], act


def _table_schemas() -> Made:
    """The same through a table."""
    table = append_table("parquet")
    store = table.store()

    def act(data: bytes) -> str:
        store.put("schema/schema-0", data)
        plan_scan(load_snapshot(store))
        return "ok"

    return [table.files["schema/schema-0"]], act


def _types() -> Made:
    decoder = msgspec.json.Decoder()

    def act(data: bytes) -> str:
        try:
            node = decoder.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return "no document"
        found = parse_type(node)
        assert parse_type(format_type(found)) == found
        return "ok"

    return [
        b'{"type":"ROW","fields":[{"id":1,"name":"a","type":"INT NOT NULL","description":"x","defaultValue":"1"}]}',
        b'{"type":"ARRAY NOT NULL","element":{"type":"MAP","key":"STRING","value":"DECIMAL(10, 2)"}}',
        b'{"type":"VECTOR","element":"FLOAT","length":3}', b'"TIMESTAMP(3) WITH LOCAL TIME ZONE"', b'{"type":"MULTISET","element":"INT"}',
    ], act  # fmt: skip


def _manifest_lists() -> Made:
    table = keyed_table()
    store = table.store()
    document = parse_snapshot(table.files[f"snapshot/snapshot-{table.newest}"], "x")
    name = document.base_manifest_list

    def act(data: bytes) -> str:
        store.put(f"manifest/{name}", data)
        read_manifest_list(store, name).validate(full=True)
        return "ok"

    lists = [read_manifest_list(store, one) for one in (name, document.delta_manifest_list)]
    whole = pa.concat_tables(lists)
    return [format_manifest_list(one, codec) for one in (whole, lists[1]) for codec in ("null", "zstandard")], act


def _entries(table: PaimonFuzzTable) -> pa.Table:
    names = sorted(name for name in table.files if name.startswith("manifest/manifest-") and "list" not in name)
    entries = [decode_manifests([(name, table.files[name])]) for name in names]
    return pa.concat_tables(entries)


def _manifests() -> Made:
    """A manifest with all of its table's entries, by both ways to decode it."""
    seeds = [format_manifest(_entries(table).slice(0, 1), "null") for table in (keyed_table(), append_table("parquet"))]
    many = format_manifest(_entries(append_table("parquet")).slice(0, 2), "zstandard")
    store = append_table("parquet").store()

    def act(data: bytes) -> str:
        # Of so many alike the columns are read together.
        code = "ok"
        store.put("manifest/x", data)
        for ask in (
            lambda: decode_manifests([("x", data)]), lambda: decode_manifests([("x", data)] * 16),
            lambda: scan_manifest(store, "x"),
        ):  # fmt: skip
            try:
                found = ask()
                found.validate(full=True)
                live_entries(found)
            except AlluviumError as error:
                code = error.code
        return code

    return [
        *seeds,
        many,
        *(_in_columns(one, make) for one in (seeds[0], many) for make in (orc_file, parquet)),
    ], act


def _in_columns(manifest: bytes, make: Callable[[pa.Table], bytes]) -> bytes:
    """The same records in a file of columns."""
    _, records = read_avro(manifest, "m")
    rows = pa.Table.from_pylist(records)
    kinds = {f.name: f.type for f in rows.schema}
    kept = ("_FILE_NAME", "_ROW_COUNT", "_LEVEL")
    kinds["_FILE"] = pa.struct([f for f in kinds["_FILE"] if f.name in kept])
    return make(pa.Table.from_pylist(records, schema=pa.schema(kinds)))


def _planned() -> Made:
    """A manifest of a table of which a scan is planned, with statistics, keys and partitions in rows of bytes."""
    table = keyed_table()
    store = table.store()
    entries = live_entries(_entries(table))
    document = parse_snapshot(table.files[f"snapshot/snapshot-{table.newest}"], "x")
    listed = read_manifest_list(store, document.delta_manifest_list).slice(0, 1)
    name = listed["file_name"][0].as_py()
    base = read_manifest_list(store, document.base_manifest_list).slice(0, 0)
    store.put(f"manifest/{document.base_manifest_list}", format_manifest_list(base, "null"))
    store.put(f"manifest/{document.delta_manifest_list}", format_manifest_list(listed, "null"))

    def act(data: bytes) -> str:
        store.put(f"manifest/{name}", data)
        view = alluvium.open(store.url)
        view.files("id > 3 and day = 'a'").validate(full=True)
        plan = plan_scan(load_snapshot(store))
        return "empty" if not plan.parts else "ok"

    return [format_manifest(entries, "null")], act


def _index_manifests() -> Made:
    tables = (append_table("parquet"), dynamic_table())
    store = tables[0].store()
    document = parse_snapshot(tables[0].files[f"snapshot/snapshot-{tables[0].newest}"], "x")
    seeds = []
    for table in tables:
        for name in table.files:
            if name.startswith("manifest/index-manifest"):
                own = table.store()
                seeds.append(format_index_manifest(read_index_manifest(own, name.partition("/")[2]), "null"))

    def act(data: bytes) -> str:
        store.put(f"manifest/{document.index_manifest}", data)
        snapshot = load_snapshot(store)
        masks = vector_masks(snapshot)
        if masks is not None:
            masks.load(masks.ranges["name"].to_pylist())
        read_hashes(store, hash_entries(store, snapshot.document))
        return "ok"

    return seeds, act


def _vectors() -> Made:
    """The body of a vector, its length and checksum right."""

    def act(data: bytes) -> str:
        parse_vector(len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big"), "x")
        return "ok"

    seeds = []
    for wide in (False, True):
        for rows in ([1, 3], range(0, 900, 3), range(100, 900)):
            content, _ = format_vectors({"x": (BitMap64(rows).serialize(), len(rows))}, wide)
            seeds.append(content[5:-4])
    return seeds, act


def _vector_files() -> Made:
    """A whole index file of vectors, as it stands."""
    table = append_table("parquet")
    store = table.store()
    path = next(name for name in table.files if name.startswith("index/"))
    masks = vector_masks(load_snapshot(store))
    assert masks is not None

    def act(data: bytes) -> str:
        store.put(path, data)
        masks.load(masks.ranges["name"].to_pylist())
        return "ok"

    return [table.files[path]], act


def _hashes() -> Made:
    table = dynamic_table()
    store = table.store()
    entries = hash_entries(store, load_snapshot(store).document)
    path = f"index/{entries['file_name'][0].as_py()}"

    def act(data: bytes) -> str:
        store.put(path, data)
        read_hashes(store, entries)
        return "ok"

    return [table.files[path], b""], act


def _offsets() -> Made:
    def act(data: bytes) -> str:
        found = parse_offset(data.decode(errors="replace"))
        assert parse_offset(format_offset(found)) == found
        return "ok"

    return [format_offset(Offset(*more)).encode() for more in ((1,), (7, True), (9,))], act


def _consumers() -> Made:
    store = append_table("parquet").store()

    def act(data: bytes) -> str:
        store.put("consumer/consumer-x", data)
        list_consumers(store)
        return "ok"

    return [b'{"nextSnapshot": 3}'], act


MAKERS: Mapping[str, Callable[[], Made]] = {
    "paimon-snapshot": _snapshots,
    "paimon-tag": _tags,
    "paimon-schema": _schemas,
    "paimon-table-schema": _table_schemas,
    "paimon-type-json": _types,
    "paimon-manifest-list": _manifest_lists,
    "paimon-manifest": _manifests,
    "paimon-planned": _planned,
    "paimon-index-manifest": _index_manifests,
    "paimon-vector": _vectors,
    "paimon-vector-file": _vector_files,
    "paimon-hashes": _hashes,
    "paimon-offset": _offsets,
    "paimon-consumer": _consumers,
}
