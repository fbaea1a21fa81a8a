"""Many manifests read together are those that are read one by one, in order; what is no manifest is named."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from alluvium.codecs.avro.avro_container import format_avro, read_avro
from alluvium.errors import CorruptTable, NotFound, UnsupportedFeature
from alluvium.paimon.files.manifest import (
    decode_manifests,
    live_entries,
    load_manifest_list,
    load_manifests,
    read_entries,
    read_index_manifest,
    read_manifest,
    read_manifest_list,
    read_manifests,
    scan_entries,
    scan_index_manifest,
    scan_manifest,
    snapshot_entries,
)
from alluvium.paimon.files.manifest_write import format_index_manifest, format_manifest, format_manifest_list
from alluvium.paimon.terms.spec import ENTRIES, INDEX_ENTRIES, MANIFESTS, SCANNED_ENTRIES, SnapshotDocument
from alluvium.storage.stores.memory import MemoryStore

ROW = bytes(12)


def entry(name: str, **said: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        **dict.fromkeys(ENTRIES.names), "kind": 0, "partition": ROW, "bucket": 0, "total_buckets": 1, "file_size": 1,
        "row_count": 2, "min_key": ROW, "max_key": ROW, "stats_min": ROW, "stats_max": ROW, "min_sequence_number": 0,
        "max_sequence_number": 1, "schema_id": 0, "level": 0, "extra_files": [], "key_stats_min": ROW, "key_stats_max": ROW,
    }  # fmt: skip
    return {**usual, "file_name": name, **said}


def manifest(rows: list[dict[str, Any]], codec: str = "null") -> bytes:
    return format_manifest(pa.Table.from_pylist(rows, schema=ENTRIES), codec)


def as_later(data: bytes) -> bytes:
    """As a later writer has it: with one more field."""
    schema, records = read_avro(data, "m")
    schema["fields"].append({"name": "_LATER", "type": ["null", "long"], "default": None})
    return format_avro(schema, [{**one, "_LATER": n} for n, one in enumerate(records)])


def as_orc(data: bytes, write: Callable[..., None] = orc.write_table) -> bytes:
    _, records = read_avro(data, "m")
    kept = [{"_VERSION": one["_VERSION"], "_KIND": one["_KIND"], "_PARTITION": one["_PARTITION"], "_BUCKET": one["_BUCKET"],
             "_FILE": {"_FILE_NAME": one["_FILE"]["_FILE_NAME"], "_ROW_COUNT": one["_FILE"]["_ROW_COUNT"]}} for one in records]  # fmt: skip
    sink = pa.BufferOutputStream()
    write(pa.Table.from_pylist(kept), sink)
    return bytes(sink.getvalue().to_pybytes())


def as_parquet(data: bytes) -> bytes:
    return as_orc(data, pq.write_table)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "t")


def put_list(store: MemoryStore, name: str, manifests: list[str]) -> None:
    rows = [
        {**dict.fromkeys(MANIFESTS.names), "file_name": one, "file_size": 1, "num_added_files": 1, "num_deleted_files": 0,
         "schema_id": 0, "partition_min": ROW, "partition_max": ROW, "partition_nulls": []}
        for one in manifests
    ]  # fmt: skip
    store.put(f"manifest/{name}", format_manifest_list(pa.Table.from_pylist(rows, schema=MANIFESTS), "null"))


@pytest.mark.parametrize("seed", range(4))
def test_together_as_one_by_one(store: MemoryStore, seed: int) -> None:
    """Of one schema, of two, in ORC and Parquet among them; large ones and small ones."""
    lot, names = random.Random(seed), []
    for number in range(30):
        count = lot.choice([1, 1, 1, 2, 3, 40])
        data = manifest([entry(f"f{number}-{n}", row_count=n) for n in range(count)], lot.choice(["null", "zstandard"]))
        form = lot.choice([bytes, bytes, bytes, as_later, as_orc, as_parquet] if seed else [bytes])
        store.put(f"manifest/m{number}", form(data))
        names.append(f"m{number}")
    wanted = pa.concat_tables([read_manifest(store, name) for name in names])
    files = load_manifests(store, names)
    assert [path for path, _ in files] == [f"manifest/{name}" for name in names]
    for found in (read_manifests(store, names), decode_manifests(files)):
        assert found.schema == ENTRIES and found.to_pylist() == wanted.to_pylist()
    put_list(store, "first", names[:9])
    put_list(store, "second", names[9:])
    assert read_entries(store, ("first", "second")).to_pylist() == wanted.to_pylist()
    scanned = scan_entries(store, ("first", "second"))
    assert scanned.schema == SCANNED_ENTRIES and scanned.to_pylist() == wanted.select(SCANNED_ENTRIES.names).to_pylist()
    assert scan_entries(store, ()).num_rows == 0 and read_manifests(store, []).schema == ENTRIES
    document = SnapshotDocument(1, 0, "first", "second", "user", 1, "APPEND", 0)
    assert snapshot_entries(store, document).to_pylist() == scanned.to_pylist()


@pytest.mark.parametrize("seed", range(3))
def test_what_is_live_beside_a_plain_dict(seed: int) -> None:
    """The last word on each file counts; files stand in the order of their last additions."""
    lot = random.Random(seed)
    for _ in range(20):
        rows = [
            entry(lot.choice("ab"), kind=lot.randint(0, 1), bucket=lot.randint(0, 1), level=lot.randint(0, 1),
                  partition=lot.choice([ROW, b"p" * 12]), external_path=lot.choice([None, "s3://x"]), file_size=n)
            for n in range(lot.randint(0, 30))
        ]  # fmt: skip
        last: dict[Any, dict[str, Any]] = {}
        for row in rows:
            identity = tuple(row[name] for name in ("partition", "bucket", "level", "file_name", "external_path"))
            last.pop(identity, None)
            last[identity] = row
        found = live_entries(pa.Table.from_pylist(rows, schema=ENTRIES))
        wanted = [row["file_size"] for row in last.values() if not row["kind"]]
        if any(row["kind"] for row in rows):
            assert found["file_size"].to_pylist() == wanted
        else:
            # Where nothing is deleted, nobody has said anything twice.
            assert found.num_rows == len(rows)


def test_a_list_is_read_with_its_bytes(store: MemoryStore) -> None:
    put_list(store, "list", ["a", "b"])
    data, found = load_manifest_list(store, "list")
    assert data == store.get("manifest/list") and found["file_name"].to_pylist() == ["a", "b"]
    assert read_manifest_list(store, "list") == found and found.schema == MANIFESTS


READERS = {
    "manifest": [read_manifest, scan_manifest, lambda store, name: read_manifests(store, [name])],
    "list": [read_manifest_list],
    "index": [read_index_manifest, scan_index_manifest],
}


@pytest.mark.parametrize("kind", READERS)
def test_what_is_no_manifest(store: MemoryStore, kind: str) -> None:
    for read in READERS[kind]:
        with pytest.raises(NotFound) as missing:
            read(store, "none")
        assert (missing.value.code, missing.value.path) == ("missing-manifest", "manifest/none")
        assert "expired" in (missing.value.hint or "")
        for data in (b"", b"PAR1", b"PAR1" * 9, b"Ob", b"OR", b"ORC", b"Obj\x01", b"Obj\x01" * 9):
            store.put("manifest/broken", data)
            with pytest.raises(CorruptTable) as broken:
                read(store, "broken")
            # Of what is Avro its own reader says what is wrong.
            code = "damaged-file" if data.startswith(b"Obj") else "damaged-manifest"
            assert (broken.value.code, broken.value.path) == (code, "manifest/broken")


@pytest.mark.parametrize(("kind", "version"), [("manifest", 2), ("list", 2), ("index", 1)])
@pytest.mark.parametrize("other", [0, 1, 2, 3])
def test_records_of_another_version(store: MemoryStore, kind: str, version: int, other: int) -> None:
    if kind == "list":
        put_list(store, "x", ["a"])
    elif kind == "manifest":
        store.put("manifest/x", manifest([entry("a")]))
    else:
        row = {
            "kind": 0,
            "partition": ROW,
            "bucket": 0,
            "index_type": "HASH",
            "file_name": "i",
            "file_size": 4,
            "row_count": 1,
        }
        store.put("manifest/x", format_index_manifest(pa.Table.from_pylist([row], schema=INDEX_ENTRIES), "null"))
    schema, records = read_avro(store.get("manifest/x"), "x")
    store.put("manifest/x", format_avro(schema, [{**one, "_VERSION": other} for one in records]))
    for read in READERS[kind]:
        if other == version:
            assert read(store, "x").num_rows == 1
            continue
        with pytest.raises(UnsupportedFeature) as caught:
            read(store, "x")
        assert (caught.value.code, caught.value.path) == ("manifest-version", "manifest/x")
        assert f"version {other}: {version} is known" in caught.value.message


@pytest.mark.parametrize("form", [as_orc, as_parquet])
def test_manifests_in_columns_say_less(store: MemoryStore, form: Callable[[bytes], bytes]) -> None:
    store.put("manifest/o", form(manifest([entry("a", row_count=7, bucket=3), entry("b", kind=1)])))
    found = read_manifest(store, "o")
    assert (found["file_name"].to_pylist(), found["kind"].to_pylist()) == (["a", "b"], [0, 1])
    assert (found["row_count"].to_pylist(), found["bucket"].to_pylist()) == ([7, 2], [3, 0])
    assert found["file_size"].null_count == found["stats_min"].null_count == 2 and found.schema == ENTRIES
