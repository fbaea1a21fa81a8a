"""Manifests and lists that are joined as they stand: beside what decoding them and writing them anew gives."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from faulty_store import FaultyStore
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.codecs.avro.avro_container import AvroContainer, WriterSchema, format_avro, joined_avro, read_avro
from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.errors import CorruptTable
from alluvium.paimon.files.manifest import decode_manifests, load_manifest_list, read_manifest, read_manifest_list
from alluvium.paimon.files.manifest_merge import ManifestWriter, merge_manifests
from alluvium.paimon.files.manifest_write import (
    describe_joined,
    describe_manifest,
    format_manifest,
    format_manifest_list,
    joined_manifest_lists,
    joined_manifests,
)
from alluvium.paimon.schema import DataField, TableSchema, number_fields, parse_type
from alluvium.paimon.terms.spec import ENTRIES, MANIFESTS
from alluvium.schema import types as t
from alluvium.storage.stores.local import LocalStore

KINDS = {"p": t.INTEGER, "q": t.DOUBLE}
ENTRY = st.fixed_dictionaries(
    {
        "p": st.none() | st.integers(-2, 2),
        "q": st.none() | st.sampled_from([-1.5, -0.0, 0.0, 2.0, float("nan")]),
        "bucket": st.integers(-2, 3),
        "level": st.integers(0, 5),
        "row_count": st.integers(1, 9),
        "first_row_id": st.integers(0, 90),
    }
)


def schema(*keys: str, **options: str) -> TableSchema:
    named = [("k", "INT"), *((key, "INT" if key == "p" else "DOUBLE") for key in keys)]
    fields = number_fields([DataField(0, name, parse_type(kind)) for name, kind in named])
    return TableSchema.create(fields, keys, (), {name.replace("_", "-"): value for name, value in options.items()})


def partition(keys: tuple[str, ...], values: dict[str, Any]) -> bytes:
    if not keys:
        return bytes(12)
    arrays = [pa.array([values[key]], pa.int32() if key == "p" else pa.float64()) for key in keys]
    row: bytes = encode_rows(arrays, [(KINDS[key], 0) for key in keys])[0].as_py()
    return row


def entries(keys: tuple[str, ...], files: list[dict[str, Any]], name: str, has_ids: bool, kind: int = 0) -> pa.Table:
    bare = {"kind": kind, "total_buckets": 1, "file_size": 1, "schema_id": 0, "extra_files": []}
    rows = bytes(12)
    bare |= dict.fromkeys(("min_key", "max_key", "stats_min", "stats_max", "key_stats_min", "key_stats_max"), rows)
    bare |= {"min_sequence_number": 0, "max_sequence_number": 0}
    found = [
        {
            **dict.fromkeys(ENTRIES.names), **bare, "file_name": f"{name}-{n}", "partition": partition(keys, file),
            **{key: file[key] for key in ("bucket", "level", "row_count")},
            "first_row_id": file["first_row_id"] if has_ids else None,
        }
        for n, file in enumerate(files)
    ]  # fmt: skip
    return pa.Table.from_pylist(found, schema=ENTRIES)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(
    st.sampled_from([(), ("p",), ("p", "q")]),
    st.lists(st.tuples(st.lists(ENTRY, min_size=1, max_size=4), st.booleans()), min_size=2, max_size=4),
    st.sampled_from(["null", "zstandard", "deflate"]),
)
def test_a_joined_manifest_is_the_one_that_would_be_written(
    keys: tuple[str, ...], parts: list[tuple[list[dict[str, Any]], bool]], codec: str
) -> None:
    tables = [entries(keys, files, f"m{n}", has_ids) for n, (files, has_ids) in enumerate(parts)]
    data = joined_manifests([(f"m{n}", format_manifest(table, codec)) for n, table in enumerate(tables)], "zstandard")
    assert data is not None
    together = pa.concat_tables(tables)
    assert read_avro(data, "joined")[1] == read_avro(format_manifest(together, "null"), "whole")[1]
    lines = pa.concat_tables([describe_manifest(f"m{n}", 1, table, schema(*keys)) for n, table in enumerate(tables)])
    joined = describe_joined("joined", 7, lines, schema(*keys))
    assert joined is not None and joined.schema.equals(MANIFESTS)
    assert joined.to_pylist() == describe_manifest("joined", 7, together, schema(*keys)).to_pylist()


def stored(store: LocalStore, tables: list[pa.Table], table_schema: TableSchema) -> pa.Table:
    lines = []
    for n, table in enumerate(tables):
        data = format_manifest(table, "zstandard")
        store.put(f"manifest/m{n}", data)
        lines.append(describe_manifest(f"m{n}", len(data), table, table_schema))
    return pa.concat_tables(lines)


FILE = {"p": 1, "q": 0.0, "bucket": 0, "level": 0, "row_count": 3, "first_row_id": 0}
LEAST_TWO = {"manifest.merge_min_count": "2"}


@pytest.mark.parametrize("way", ["as written", "a deletion", "an older line", "another writer"])
def test_merging_by_either_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """What can be joined is not decoded; and what cannot, is."""
    local, table_schema = LocalStore(str(tmp_path)), schema("p", **LEAST_TWO)
    tables = [entries(("p",), [{**FILE, "p": n}], "f", False) for n in range(3)]
    if way == "a deletion":
        tables[2] = entries(("p",), [{**FILE, "p": 0}], "f", False, kind=1)
    lines = stored(local, tables, table_schema)
    if way == "an older line":
        place = lines.schema.get_field_index("min_level")
        lines = lines.set_column(place, lines.schema.field(place), pa.nulls(3, pa.int32()))
    if way == "another writer":
        own, records = read_avro(local.get("manifest/m1"), "m1")
        local.put("manifest/m1", format_avro({**own, "doc": "of another"}, records, "null"))
    decoded = []

    def decode(files: list[tuple[str, bytes]]) -> pa.Table:
        decoded.append(files)
        return decode_manifests(files)

    monkeypatch.setattr("alluvium.paimon.files.manifest_merge.decode_manifests", decode)
    store = FaultyStore(local)
    writer = ManifestWriter(table_schema)
    (line,) = merge_manifests(store, lines, writer).to_pylist()
    reads = list(store.requests)
    ((path, data),) = writer.parts
    local.put(path, data)
    found = read_manifest(local, line["file_name"])
    assert [row["partition"] for row in found.to_pylist()] == [
        partition(("p",), {"p": n}) for n in ((1,) if way == "a deletion" else (0, 1, 2))
    ]
    # Each is read once, whichever way it goes.
    assert sorted(path for verb, path in reads if verb == "get") == [f"manifest/m{n}" for n in range(3)]
    again = describe_manifest(line["file_name"], len(data), found, table_schema)
    assert line == again.to_pylist()[0] and bool(decoded) == (way != "as written")


def test_what_would_be_too_large_is_cut(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    lines = stored(store, [entries((), [FILE] * 40, f"f{n}", False) for n in range(2)], schema())
    target = f"{3 * max(lines['file_size'].to_pylist())} b"
    # Not compressed they are larger by much.
    options = {"manifest.target_file_size": target, "manifest.compression": "null", **LEAST_TWO}
    writer = ManifestWriter(schema(**options))
    merged = merge_manifests(store, lines, writer)
    assert merged.num_rows == len(writer.parts) >= 2 and sum(merged["num_added_files"].to_pylist()) == 80


def test_lists_are_joined_or_told_to_be_of_another_writer(tmp_path: Path) -> None:
    store, table_schema = LocalStore(str(tmp_path)), schema()
    lines = [describe_manifest(f"m{n}", n, entries((), [FILE], "f", False), table_schema) for n in range(3)]
    lists = [("a", format_manifest_list(pa.concat_tables(lines[:2]), "zstandard"))]
    lists.append(("b", format_manifest_list(lines[2], "null")))
    data = joined_manifest_lists(lists, "zstandard")
    assert data is not None
    store.put("manifest/joined", data)
    assert read_manifest_list(store, "joined").equals(pa.concat_tables(lines))
    assert load_manifest_list(store, "joined")[0] == data
    own, records = read_avro(lists[1][1], "b")
    assert joined_manifest_lists([lists[0], ("b", format_avro({**own, "doc": ""}, records))], "zstandard") is None


def test_blocks_are_filled_and_damage_names_its_file() -> None:
    one = WriterSchema.of({"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]})
    containers = [(f"c{n}", format_avro(one, [{"n": n}] * 3000)) for n in range(3)]
    data = joined_avro(one, containers, "zstandard")
    assert data is not None
    assert [row["n"] for row in read_avro(data, "x")[1]] == [0] * 3000 + [1] * 3000 + [2] * 3000
    container = AvroContainer(one)
    container.add_blocks([(1, b"\x02"), (1, b"\x04")])
    container.close_block()
    assert read_avro(b"".join(container.parts), "x")[1] == [{"n": 1}, {"n": 2}]
    with pytest.raises(CorruptTable) as caught:
        joined_avro(one, [containers[0], ("c1", containers[1][1][:-3])], "zstandard")
    assert caught.value.path == "c1"


@pytest.mark.parametrize("is_slow", [False, True])
def test_threads_sync_where_a_disk_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_slow: bool) -> None:
    store, threads, real = LocalStore(str(tmp_path)), [], os.fsync
    store.put("m/x", b"")

    def sync(descriptor: int) -> None:
        threads.append(threading.get_ident())
        real(descriptor)
        time.sleep(0.005 if is_slow else 0)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr("alluvium.storage.stores.local_files._QUICK_S", 0.004 if is_slow else 60)
    store.put_new([(f"m/{n}", b"1") for n in range(4)])
    assert len(threads) == 5 and threads[0] == threading.get_ident()
    assert (set(threads[1:]) == {threads[0]}) == (not is_slow)
