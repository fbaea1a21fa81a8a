"""What snapshots say of the ones before them, and how manifests grow: the smallest and the largest numbers."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from faulty_store import FaultyStore
from paimon_rows import append, open_target, stage
from pyroaring import BitMap64

import alluvium
from alluvium.codecs.avro.avro_container import format_avro, read_avro
from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.errors import CommitConflict, CorruptTable, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.files.manifest import read_manifest
from alluvium.paimon.files.partition_bounds import may_hold
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import DataField, SchemaChange, parse_type
from alluvium.plan.changes import TOUCHED_FILES, EditRows, NewFiles, Operation, Overwrite, ReadScope, Replace
from alluvium.schema.types import DOUBLE, FLOAT, INTEGER
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


def make(tmp_path: Path, *keys: str, **options: str) -> Store:
    url = str(tmp_path / "t")
    fields = [DataField(0, name, parse_type(kind)) for name, kind in (("k", "INT"), ("day", "STRING"))]
    PaimonTable.create(url, fields, keys, options=options)
    return open_store(url)


def document(store: Store, number: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(store.get(f"snapshot/snapshot-{number}"))
    return found


def put_document(store: Store, number: int, **said: Any) -> None:
    kept = {name: value for name, value in {**document(store, number), **said}.items() if value is not None}
    store.put(f"snapshot/snapshot-{number}", json.dumps(kept).encode())


def manifests(store: Store) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = alluvium.open(store.url).system("manifests").to_pylist()
    return rows


def ks(store: Store) -> list[int]:
    return sorted(alluvium.open(store.url).to_arrow(columns=["k"])["k"].to_pylist())


def test_two_files_of_a_bucket_in_one_commit(tmp_path: Path) -> None:
    """ "sequence = running row count of the bucket": no two rows of a bucket have the same number."""
    store = make(tmp_path, bucket="1", **{"bucket-key": "k"})
    for start in (0, 10):
        target = open_target(store)
        parts = [stage(target, [{"k": start + n} for n in range(first, last)]) for first, last in ((0, 1), (1, 4))]
        files = pa.concat_tables([part.new.table for part in parts])
        footers = tuple(footer for part in parts for footer in part.new.footers)
        target.commit(replace(parts[0], new=NewFiles(files, footers)))
    entries = load_snapshot(store).entries
    runs = sorted(zip(*(entries[f"{end}_sequence_number"].to_pylist() for end in ("min", "max")), strict=True))
    assert runs == [(0, 0), (1, 3), (4, 4), (5, 7)]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_buckets_of_partitions_that_are_no_number(tmp_path: Path, kind: pa.DataType) -> None:
    """Bounds of partitions are in Java's order: NaN is the greatest. Others may leave it out, as ours did."""
    url = str(tmp_path / "t")
    schema = pa.schema([("k", pa.int32()), ("p", kind)])
    PaimonTable.create(url, schema, ["p"], options={"bucket": "1", "bucket-key": "k"})
    store = open_store(url)
    nan = float("nan")
    for k, values in enumerate([(nan, 5.0), (nan, 1.0), (1.0, -0.0)]):
        append(open_target(store), [{"k": k, "p": value} for value in values])
    entries = load_snapshot(store).entries
    assert sorted(entries["min_sequence_number"].to_pylist()) == [0, 0, 0, 0, 1, 1]
    bounds = [(line["min_partition_stats"], line["max_partition_stats"]) for line in manifests(store)]
    assert bounds == [("{5.0}", "{NaN}"), ("{1.0}", "{NaN}"), ("{-0.0}", "{1.0}")]
    known = pa.table({end: encode_rows([pa.array([5.0], kind)], [(FLOAT if kind == pa.float32() else DOUBLE, 0)])
                      for end in ("partition_min", "partition_max")})  # fmt: skip
    wanted = entries["partition"].combine_chunks().take(pa.array([0, 1, 2, 3])).unique()
    assert may_hold(known, load_snapshot(store).schema, wanted).to_pylist() == [True]


def test_manifests_that_may_hold_a_partition(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, pa.schema([("k", pa.int32()), ("p", pa.int32())]), ["p"], options={"bucket": "-1"})
    schema = load_snapshot(open_store(url)).schema

    def rows(*values: int) -> pa.Array:
        return encode_rows([pa.array(values, pa.int32())], [(INTEGER, 0)])

    known = pa.table({"partition_min": rows(1, 4, 5, 6, 1), "partition_max": rows(4, 5, 5, 9, 9)})
    assert may_hold(known, schema, rows(5)).to_pylist() == [False, True, True, False, True]
    assert may_hold(known, schema, rows(2, 3)).to_pylist() == [True, False, False, False, True]


def test_a_clock_that_goes_back(tmp_path: Path) -> None:
    """Time travel looks for a time among snapshots in the order of their ids."""
    store = make(tmp_path)
    append(open_target(store), [{"k": 1}])
    first = document(store, 1)["timeMillis"]
    assert abs(first - time.time() * 1000) < 600_000
    later = first + 3_600_000
    put_document(store, 1, timeMillis=later)
    append(open_target(store), [{"k": 2}])
    assert document(store, 2)["timeMillis"] == later


@pytest.mark.parametrize("altered", [False, True])
def test_what_is_kept_of_the_snapshot_before(tmp_path: Path, altered: bool) -> None:
    """Statistics of an ANALYZE are of one schema; a watermark goes on in any case."""
    store = make(tmp_path)
    append(open_target(store), [{"k": 1}])
    put_document(store, 1, statistics="stat-1", watermark=77)
    if altered:
        PaimonTable.forPath(store.url).alter([SchemaChange.add_column("x", "INT")])
    append(open_target(store), [{"k": 2}])
    assert document(store, 2).get("statistics") == (None if altered else "stat-1")
    assert (document(store, 2)["watermark"], document(store, 2)["schemaId"]) == (77, int(altered))


def test_counts_that_nobody_told(tmp_path: Path) -> None:
    """Snapshots before version 3 need not say how many rows there are."""
    store = make(tmp_path)
    append(open_target(store), [{"k": 1}, {"k": 2}])
    put_document(store, 1, totalRecordCount=None, deltaRecordCount=None, version=None, nextRowId=None)
    append(open_target(store), [{"k": 3}])
    assert (document(store, 2)["totalRecordCount"], document(store, 2)["deltaRecordCount"]) == (3, 1)


@pytest.mark.parametrize(
    ("user", "identifier", "clashes"),
    [("job", 3, True), ("job", 4, True), ("job", 2, False), ("other", 3, False), ("other", 9, False)],
)
def test_two_users(tmp_path: Path, user: str, identifier: int, clashes: bool) -> None:
    store = make(tmp_path)
    late = open_target(store)
    append(open_target(store), [{"k": 1}], txn=(user, identifier))
    if clashes:
        with pytest.raises(CommitConflict) as caught:
            append(late, [{"k": 2}], txn=("job", 3))
        assert caught.value.code == "concurrent-transaction"
        assert ks(store) == [1]
    else:
        assert append(late, [{"k": 2}], txn=("job", 3)).version == 2
        assert ks(store) == [1, 2]


@pytest.mark.long
def test_manifests_are_merged_up_to_their_target(tmp_path: Path) -> None:
    """As many as reach the target become one; half of it is enough to be left alone."""
    store = make(tmp_path, "day", **{"manifest.compression": "null"})
    append(open_target(store), [{"k": 0, "day": "a"}])
    size = manifests(store)[0]["file_size"]
    target = size * 5 // 2
    PaimonTable.forPath(store.url).alter([SchemaChange.set_option("manifest.target-file-size", f"{target} b")])
    counts = []
    for k in range(1, 30):
        append(open_target(store), [{"k": k, "day": "a"}])
        counts.append([m["num_added_files"] for m in manifests(store)])
    # The first three reach it: they are one once the next commit comes, and go on as such.
    assert counts[:4] == [[1, 1], [1, 1, 1], [3, 1], [3, 1, 1]]
    assert all(sum(found) == k + 2 for k, found in enumerate(counts))
    assert max(map(len, counts)) < 10
    full = [m for m in manifests(store) if 2 * m["file_size"] >= target]
    assert full
    assert all(m["file_size"] < 2 * target for m in full)
    counting = FaultyStore(store)
    append(open_target(counting), [{"k": 30, "day": "a"}])
    read = [path for verb, path in counting.requests if verb == "get"]
    assert not [m for m in full if f"manifest/{m['file_name']}" in read]
    assert {m["file_name"] for m in full} <= {m["file_name"] for m in manifests(store)}
    assert ks(store) == list(range(31))
    append(open_target(store), [{"k": 99, "day": "b"}], Replace())
    assert ks(store) == [99]


def test_small_manifests_before_a_large_one_are_merged(tmp_path: Path) -> None:
    store = make(tmp_path, "day", **{"manifest.compression": "null", "manifest.target-file-size": "16 kb"})
    for k in range(3):
        append(open_target(store), [{"k": k, "day": "a"}])
    append(open_target(store), [{"k": k, "day": str(k)} for k in range(10, 40)])
    append(open_target(store), [{"k": 3, "day": "a"}])
    assert [m["num_added_files"] for m in manifests(store)] == [3, 30, 1]
    assert len(ks(store)) == 34


def test_records_of_a_wrong_type(tmp_path: Path) -> None:
    """A count too great for its column is damage, said with the manifest's name."""
    store = make(tmp_path)
    append(open_target(store), [{"k": 1}])
    name = f"manifest/{manifests(store)[0]['file_name']}"
    schema, records = read_avro(store.get(name), name)
    for field in schema["fields"]:
        if field["name"] == "_BUCKET":
            field["type"] = "long"
    records[0]["_BUCKET"] = 1 << 40
    store.put(name, format_avro(schema, records))
    for read in (lambda: read_manifest(store, name.rpartition("/")[2]), alluvium.open(store.url).to_arrow):
        with pytest.raises(CorruptTable) as caught:
            read()
        assert (caught.value.code, caught.value.path) == ("damaged-manifest", name)


def test_fields_that_may_be_missing_have_defaults(tmp_path: Path) -> None:
    """ "default": null, or a reader with a newer schema could not read what lacks the field."""
    store = make(tmp_path, "day")
    append(open_target(store), [{"k": 1, "day": "a"}])
    name = f"manifest/{manifests(store)[0]['file_name']}"
    schema, _ = read_avro(store.get(name), name)
    (file,) = (f["type"]["fields"] for f in schema["fields"] if f["name"] == "_FILE")
    optional = {f["name"]: f for f in file if isinstance(f["type"], list)}
    assert len(optional) == 8
    assert all("default" in f and f["default"] is None for f in optional.values())
    assert all("default" not in f for f in file if not isinstance(f["type"], list))


def test_errors_of_a_table_without_snapshots_name_no_version(tmp_path: Path) -> None:
    store = make(tmp_path)
    with pytest.raises(Exception, match="statistics") as caught:
        stage(open_target(store, **{"metadata.stats-mode": "most"}), [{"k": 1}])
    assert getattr(caught.value, "version", None) is None
    put = make(tmp_path / str(uuid.uuid4()))
    append(open_target(put), [{"k": 1}])
    with pytest.raises(Exception, match="statistics") as caught:
        stage(open_target(put, **{"metadata.stats-mode": "most"}), [{"k": 1}])
    assert getattr(caught.value, "version", None) == 1


def test_offsets_of_a_log_stay(tmp_path: Path) -> None:
    """Java, `FileStoreCommitImpl`: what the snapshot before tells of a log beside the table, the next one tells, too."""
    store = make(tmp_path)
    append(open_target(store), [{"k": 1, "day": "a"}])
    put_document(store, 1, logOffsets={"0": 7, "1": 9})
    append(open_target(store), [{"k": 2, "day": "a"}])
    assert document(store, 2)["logOffsets"] == {"0": 7, "1": 9}


def test_files_beside_snapshots_that_are_called_almost_like_them(tmp_path: Path) -> None:
    store = make(tmp_path)
    append(open_target(store), [{"k": 1, "day": "a"}])
    data = store.get("snapshot/snapshot-1")
    for name in ("\u0663", "02", "9" * 20, str(1 << 63), "2.tmp", "-1", "+3", "1_0"):
        store.put(f"snapshot/snapshot-{name}", data)
    assert ks(store) == [1]
    append(open_target(store), [{"k": 2, "day": "a"}])
    assert ks(store) == [1, 2]
    assert document(store, 2)["id"] == 2


@pytest.mark.parametrize("reads", [True, False])
def test_rows_that_readers_are_not_shown_are_not_replaced_by_what_they_see(tmp_path: Path, reads: bool) -> None:
    url = str(tmp_path / "t")
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    PaimonTable.create(url, pa.schema([("k", pa.int32()), ("day", pa.string())]), [], ["k"], options)
    store = open_store(url)
    append(open_target(store), [{"k": 1, "day": "a"}])
    target = open_target(store)
    changes = stage(target, [{"k": 2, "day": "a"}], Replace())
    assert isinstance(changes, Overwrite)
    if reads:
        with pytest.raises(UnsupportedFeature) as caught:
            target.commit(replace(changes, read=ReadScope.table()))
        assert (caught.value.code, load_snapshot(store).version) == ("hidden-rows", 1)
    else:
        target.commit(changes)
        assert load_snapshot(store).version == 2


def test_vectors_are_switched_off_while_rows_are_deleted_by_them(tmp_path: Path) -> None:
    """Readers of such a table look for none: the rows would be there."""
    store = make(tmp_path, **{"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"})
    append(open_target(store), [{"k": k, "day": "a"} for k in range(3)])
    target = open_target(store)
    (path,) = alluvium.open(store.url).files()["path"].to_pylist()
    touched = pa.table([[path], [BitMap64([1]).serialize()]], schema=TOUCHED_FILES)
    PaimonTable.forPath(store.url).alter([SchemaChange.set_option("deletion-vectors.enabled", "false")])
    with pytest.raises(CommitConflict) as caught:
        target.commit(EditRows(NewFiles.none(), touched, Operation("DELETE"), ReadScope.table()))
    assert (caught.value.code, ks(store)) == ("metadata-changed", [0, 1, 2])
