"""Manifests, lists and index manifests as another reader sees them: every field under its name, none forgotten."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.errors import CorruptTable
from alluvium.paimon.files.manifest import (
    live_entries,
    read_index_manifest,
    read_manifest,
    read_manifest_list,
    scan_manifest,
)
from alluvium.paimon.files.manifest_merge import ManifestWriter, merge_manifests, remaining_entries
from alluvium.paimon.files.manifest_write import (
    codec_of,
    describe_manifest,
    format_index_manifest,
    format_manifest,
    format_manifest_list,
)
from alluvium.paimon.schema import DataField, TableSchema, number_fields, parse_type
from alluvium.paimon.terms.spec import ENTRIES, INDEX_ENTRIES, MANIFESTS, SCANNED_ENTRIES
from alluvium.schema import types as t
from alluvium.storage.stores.local import LocalStore

NO_ROW = bytes(12)


def of_int(*numbers: int | None) -> bytes:
    """A binary row of integers."""
    arrays = [pa.array([n], pa.int32()) for n in numbers]
    row: bytes = encode_rows(arrays, [(t.INTEGER, 0)] * len(numbers))[0].as_py()
    return row


#: An entry in which no two values are alike.
FULL: dict[str, Any] = {
    "kind": 1, "partition": of_int(7), "bucket": 3, "total_buckets": 4, "file_name": "data-1.parquet",
    "file_size": 11, "row_count": 12, "min_key": b"k1", "max_key": b"k2", "stats_min": b"v1", "stats_max": b"v2",
    "stats_nulls": [13, None], "min_sequence_number": 14, "max_sequence_number": 15, "schema_id": 16, "level": 5,
    "extra_files": ["x.index"], "creation_time": 1_700_000_000_123, "delete_row_count": 17, "file_source": 1,
    "value_stats_cols": ["a", "b"], "external_path": "s3://elsewhere/data-1.parquet", "first_row_id": 18,
    "write_cols": ["a"], "key_stats_min": b"s1", "key_stats_max": b"s2", "key_stats_nulls": [19],
    "embedded_file_index": b"index",
}  # fmt: skip
#: One that says no more than it must.
BARE: dict[str, Any] = {
    **dict.fromkeys(ENTRIES.names), "kind": 0, "partition": NO_ROW, "bucket": 0, "total_buckets": 1,
    "file_name": "data-2.orc", "file_size": 1, "row_count": 2, "min_key": NO_ROW, "max_key": NO_ROW,
    "stats_min": NO_ROW, "stats_max": NO_ROW, "min_sequence_number": 0, "max_sequence_number": 1, "schema_id": 0,
    "level": 0, "extra_files": [], "key_stats_min": NO_ROW, "key_stats_max": NO_ROW,
}  # fmt: skip


def entries(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([{**dict.fromkeys(ENTRIES.names), **row} for row in rows], schema=ENTRIES)


def records(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


def test_an_entry_as_another_reader_sees_it() -> None:
    full, bare = records(format_manifest(entries(FULL, BARE), "null"))
    file = full.pop("_FILE")
    assert full == {"_VERSION": 2, "_KIND": 1, "_PARTITION": of_int(7), "_BUCKET": 3, "_TOTAL_BUCKETS": 4}
    moment = file.pop("_CREATION_TIME")
    assert int(moment.timestamp() * 1000) == 1_700_000_000_123
    assert file == {
        "_FILE_NAME": "data-1.parquet", "_FILE_SIZE": 11, "_ROW_COUNT": 12, "_MIN_KEY": b"k1", "_MAX_KEY": b"k2",
        "_KEY_STATS": {"_MIN_VALUES": b"s1", "_MAX_VALUES": b"s2", "_NULL_COUNTS": [19]},
        "_VALUE_STATS": {"_MIN_VALUES": b"v1", "_MAX_VALUES": b"v2", "_NULL_COUNTS": [13, None]},
        "_MIN_SEQUENCE_NUMBER": 14, "_MAX_SEQUENCE_NUMBER": 15, "_SCHEMA_ID": 16, "_LEVEL": 5,
        "_EXTRA_FILES": ["x.index"], "_DELETE_ROW_COUNT": 17, "_EMBEDDED_FILE_INDEX": b"index", "_FILE_SOURCE": 1,
        "_VALUE_STATS_COLS": ["a", "b"], "_EXTERNAL_PATH": "s3://elsewhere/data-1.parquet", "_FIRST_ROW_ID": 18,
        "_WRITE_COLS": ["a"],
    }  # fmt: skip
    assert {name for name, value in bare["_FILE"].items() if value is None} == {
        "_CREATION_TIME", "_DELETE_ROW_COUNT", "_EMBEDDED_FILE_INDEX", "_FILE_SOURCE", "_VALUE_STATS_COLS",
        "_EXTERNAL_PATH", "_FIRST_ROW_ID", "_WRITE_COLS",
    }  # fmt: skip


def test_names_of_records_are_those_that_java_looks_for() -> None:
    """Avro resolves records by name: those of Paimon have one each."""
    schema = fastavro.reader(io.BytesIO(format_manifest(entries(FULL), "null"))).writer_schema
    assert schema["name"] == "org.apache.paimon.avro.generated.record"
    (file,) = (f["type"] for f in schema["fields"] if f["name"] == "_FILE")
    names = {
        f["name"]: f["type"]["name"] for f in file["fields"] if isinstance(f["type"], dict) and "name" in f["type"]
    }
    prefix = "org.apache.paimon.avro.generated.record__FILE"
    assert file["name"] == prefix
    assert names == {"_KEY_STATS": f"{prefix}__KEY_STATS", "_VALUE_STATS": f"{prefix}__VALUE_STATS"}
    (created,) = (f["type"] for f in file["fields"] if f["name"] == "_CREATION_TIME")
    assert created == ["null", {"type": "long", "logicalType": "timestamp-millis"}]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_entries_there_and_back(tmp_path: Path, codec: str) -> None:
    store = LocalStore(str(tmp_path))
    store.put("manifest/m", format_manifest(entries(FULL, BARE), codec))
    assert read_manifest(store, "m").to_pylist() == entries(FULL, BARE).to_pylist()
    assert scan_manifest(store, "m").to_pylist() == entries(FULL, BARE).select(SCANNED_ENTRIES.names).to_pylist()


@pytest.mark.parametrize(
    ("said", "codec"),
    [
        ("zstd", "zstandard"),
        ("none", "null"),
        ("null", "null"),
        ("snappy", "snappy"),
        ("deflate", "deflate"),
        ("lzo", "zstandard"),
    ],
)
def test_names_of_codecs(said: str, codec: str) -> None:
    assert codec_of({"manifest.compression": said}) == codec
    assert codec_of({}) == "zstandard"


LINE: dict[str, Any] = {
    "file_name": "manifest-1", "file_size": 21, "num_added_files": 22, "num_deleted_files": 23, "schema_id": 24,
    "partition_min": of_int(1), "partition_max": of_int(9), "partition_nulls": [25], "min_bucket": 26,
    "max_bucket": 27, "min_level": 28, "max_level": 29, "min_row_id": 30, "max_row_id": 31,
}  # fmt: skip


def lines(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([{**dict.fromkeys(MANIFESTS.names), **row} for row in rows], schema=MANIFESTS)


def test_a_list_as_another_reader_sees_it(tmp_path: Path) -> None:
    bare = {"file_name": "m2", "file_size": 1, "num_added_files": 0, "num_deleted_files": 0, "schema_id": 0}
    data = format_manifest_list(lines(LINE, bare), "null")
    full, second = records(data)
    assert full.pop("_PARTITION_STATS") == {
        "_MIN_VALUES": of_int(1), "_MAX_VALUES": of_int(9), "_NULL_COUNTS": [25],
    }  # fmt: skip
    assert full == {
        "_VERSION": 2, "_FILE_NAME": "manifest-1", "_FILE_SIZE": 21, "_NUM_ADDED_FILES": 22, "_NUM_DELETED_FILES": 23,
        "_SCHEMA_ID": 24, "_MIN_BUCKET": 26, "_MAX_BUCKET": 27, "_MIN_LEVEL": 28, "_MAX_LEVEL": 29, "_MIN_ROW_ID": 30,
        "_MAX_ROW_ID": 31,
    }  # fmt: skip
    assert second["_PARTITION_STATS"] == {"_MIN_VALUES": NO_ROW, "_MAX_VALUES": NO_ROW, "_NULL_COUNTS": None}
    assert [second[name] for name in ("_MIN_BUCKET", "_MAX_LEVEL", "_MIN_ROW_ID", "_MAX_ROW_ID")] == [None] * 4
    store = LocalStore(str(tmp_path))
    store.put("manifest/list", data)
    assert read_manifest_list(store, "list").to_pylist()[0] == {**LINE, "others": None, "others_type": None}


def test_an_index_manifest_as_another_reader_sees_it(tmp_path: Path) -> None:
    row = {
        "kind": 0, "partition": of_int(7), "bucket": 3, "index_type": "DELETION_VECTORS", "file_name": "index-1",
        "file_size": 41, "row_count": 42, "external_path": "s3://e/index-1",
        "ranges": [{"f0": "a", "f1": 1, "f2": 43, "_CARDINALITY": 44}, {"f0": "b", "f1": 45, "f2": 46, "_CARDINALITY": None}],
    }  # fmt: skip
    gone = {**row, "kind": 1, "file_name": "index-0"}
    rows = [{**dict.fromkeys(INDEX_ENTRIES.names), **one} for one in (gone, row)]
    data = format_index_manifest(pa.Table.from_pylist(rows, schema=INDEX_ENTRIES), "null")
    _, found = records(data)
    assert found == {
        "_VERSION": 1, "_KIND": 0, "_PARTITION": of_int(7), "_BUCKET": 3, "_INDEX_TYPE": "DELETION_VECTORS",
        "_FILE_NAME": "index-1", "_FILE_SIZE": 41, "_ROW_COUNT": 42, "_DELETIONS_VECTORS_RANGES": row["ranges"],
        "_EXTERNAL_PATH": "s3://e/index-1",
    }  # fmt: skip
    store = LocalStore(str(tmp_path))
    store.put("manifest/index", data)
    # What a compaction has taken out is no index file any more.
    assert [r["file_name"] for r in read_index_manifest(store, "index").to_pylist()] == ["index-1"]


def schema_of(*keys: str, kind: str = "INT", **options: str) -> TableSchema:
    fields = number_fields(
        [DataField(0, "k", parse_type("INT")), *(DataField(0, key, parse_type(kind)) for key in keys)]
    )
    return TableSchema.create(fields, keys, (), options)


def test_the_line_of_a_manifest() -> None:
    rows = [
        {
            **BARE,
            "partition": of_int(p, q),
            "bucket": b,
            "level": level,
            "kind": kind,
            "first_row_id": first,
            "row_count": n,
        }
        for p, q, b, level, kind, first, n in (
            (5, None, 2, 0, 0, 100, 10),
            (3, 8, 4, 5, 1, 40, 5),
            (5, 9, 0, 1, 0, 104, 2),
        )
    ]
    (line,) = describe_manifest("m", 77, entries(*rows), schema_of("p", "q")).to_pylist()
    assert line == {
        "file_name": "m", "file_size": 77, "num_added_files": 2, "num_deleted_files": 1, "schema_id": 0,
        "partition_min": of_int(3, 8), "partition_max": of_int(5, 9), "partition_nulls": [0, 1], "min_bucket": 0,
        "max_bucket": 4, "min_level": 0, "max_level": 5, "min_row_id": 40, "max_row_id": 109, "others": None,
        "others_type": None,
    }  # fmt: skip
    rows[1]["first_row_id"] = None
    (line,) = describe_manifest("m", 77, entries(*rows), schema_of()).to_pylist()
    assert (line["min_row_id"], line["max_row_id"]) == (None, None)
    assert (line["partition_min"], line["partition_max"], line["partition_nulls"]) == (NO_ROW, NO_ROW, [])


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [([1.5, -2.0], -2.0, 1.5), ([0.0, 1.0], -0.0, 1.0), ([-1.0, -0.0], -1.0, 0.0), ([None], None, None)],
)
def test_bounds_of_zero_hold_both_its_signs(values: list[float | None], low: float | None, high: float | None) -> None:
    """Java orders -0.0 before 0.0."""
    partitions = encode_rows([pa.array(values, pa.float64())], [(t.DOUBLE, 0)]).to_pylist()
    rows = [{**BARE, "partition": partition} for partition in partitions]
    (line,) = describe_manifest("m", 1, entries(*rows), schema_of("p", kind="DOUBLE")).to_pylist()
    for end, expected in (("min", low), ("max", high)):
        bits = line[f"partition_{end}"][12:20]
        assert bits == (struct.pack("<d", expected) if expected is not None else bytes(8))


@pytest.mark.parametrize(
    ("name", "value"),
    [("bucket", 1), ("level", 1), ("partition", of_int(1)), ("external_path", "s3://e/a"), ("file_name", "b")],
)
def test_what_tells_one_file_from_another(name: str, value: Any) -> None:
    """A deletion takes out the file of its identity, and no other that is like it in all but one thing."""
    added = {**BARE, "file_name": "a"}
    other = {**added, name: value}
    gone = {**other, "kind": 1}
    for keeps in (live_entries, remaining_entries):
        found = keeps(entries(added, other, gone)).to_pylist()
        assert [row[name] for row in found if row["kind"] == 0] == [added[name]]
        assert len(found) == 1
    # Before the addition it speaks of an older one.
    assert live_entries(entries(gone, other)).num_rows == 1
    assert remaining_entries(entries(gone, other)).num_rows == 2


def stored_manifests(store: LocalStore, sizes: list[int]) -> pa.Table:
    """Manifests of one entry each, said to be of these sizes."""
    rows = []
    for number, size in enumerate(sizes):
        store.put(f"manifest/m{number}", format_manifest(entries({**BARE, "file_name": f"f{number}"}), "null"))
        rows.append(
            {"file_name": f"m{number}", "file_size": size, "num_added_files": 1, "num_deleted_files": 0, "schema_id": 0}
        )
    return lines(*rows)


@pytest.mark.parametrize(
    ("sizes", "least", "expected"),
    [
        # Below the target and fewer than the least count: as they are.
        ([10, 10, 10], 4, [1, 1, 1]),
        ([10, 10, 10], 3, [3]),
        ([10], 1, [1]),
        # Together they reach the target: merged however few; the rest begins anew.
        ([400, 400, 199], 30, [1, 1, 1]),
        ([400, 400, 200], 30, [3]),
        ([400, 400, 200, 10, 10], 30, [3, 1, 1]),
        ([400, 400, 200, 10, 10], 2, [3, 2]),
        ([400, 400, 200, 400, 400, 200, 10], 30, [3, 3, 1]),
        # Half of the target is enough to stand alone, and what stands before it is merged.
        ([499, 10], 30, [1, 1]),
        ([500, 10, 10], 2, [1, 2]),
        ([10, 10, 500, 10], 30, [2, 1, 1]),
        ([10, 500, 10, 10], 2, [1, 1, 2]),
        ([500, 500], 1, [1, 1]),
        # What stands alone does not count for those behind it.
        ([600, 300, 300, 10], 30, [1, 1, 1, 1]),
        ([300, 600, 300, 300, 400], 30, [1, 1, 3]),
        ([], 1, []),
    ],
)  # fmt: skip
def test_which_manifests_become_one(tmp_path: Path, sizes: list[int], least: int, expected: list[int]) -> None:
    store = LocalStore(str(tmp_path))
    # A thousand times what is said, so that the real entries are no matter.
    schema = schema_of(**{"manifest.target-file-size": "1000000 b", "manifest.merge-min-count": str(least)})
    writer = ManifestWriter(schema)
    merged = merge_manifests(store, stored_manifests(store, [1000 * size for size in sizes]), writer)
    names = merged["file_name"].to_pylist()
    held = [row["file_name"] for name in names for row in _entries_of(store, writer, name)]
    assert held == [f"f{number}" for number in range(len(sizes))]
    assert merged["num_added_files"].to_pylist() == expected
    # One that stays by itself is not written anew.
    assert len(writer.parts) == sum(count > 1 for count in expected)


def _entries_of(store: LocalStore, writer: ManifestWriter, name: str) -> list[dict[str, Any]]:
    for path, data in writer.parts:
        store.put(path, data)
    return list(read_manifest(store, name).to_pylist())


def test_entries_are_cut_into_manifests_of_about_one_size() -> None:
    """Five hundred entries, of which a hundred make up the target: five manifests, not four and a rest."""
    rows = entries(*({**BARE, "file_name": f"f{number:04}"} for number in range(500)))
    hundred = len(format_manifest(rows.slice(0, 100), "null"))
    for target, expected in (
        (hundred, [100] * 5),
        (hundred * 2 - 1, [167, 167, 166]),
        (1, [1] * 500),
        (hundred * 9, [500]),
    ):
        writer = ManifestWriter(
            schema_of(**{"manifest.compression": "null", "manifest.target-file-size": f"{target} b"})
        )
        found = writer.add_entries(rows)
        assert found["num_added_files"].to_pylist() == expected
        assert found["file_size"].to_pylist() == [len(data) for _, data in writer.parts]
        assert [f"manifest/{name}" for name in found["file_name"].to_pylist()] == [path for path, _ in writer.parts]
    assert ManifestWriter(schema_of()).add_entries(rows.slice(0, 0)).num_rows == 0


def test_names_of_one_attempt_never_meet() -> None:
    one, other = ManifestWriter(schema_of()), ManifestWriter(schema_of())
    names = [writer.add(kind, b"x") for writer in (one, other) for kind in ("manifest", "manifest", "manifest-list")]
    assert len(set(names)) == 6
    assert names[0].endswith("-0") and names[1].endswith("-1") and names[2].startswith("manifest-list-")
    assert names[0].removesuffix("0") == names[1].removesuffix("1")


def test_damage_names_the_manifest(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    for data in (b"", b"xyz", b"ORC", b"Obj\x01", format_manifest(entries(FULL), "null")[:-20]):
        store.put("manifest/m", data)
        with pytest.raises(CorruptTable) as caught:
            read_manifest(store, "m")
        assert caught.value.path == "manifest/m"
