"""Commits to Paimon tables without Spark: entries, statistics, manifests, snapshots, conflicts."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from faulty_store import Fault, FaultyStore
from paimon_rows import append, ks, make, open_target, stage

import alluvium
from alluvium.codecs.avro.avro_container import read_avro
from alluvium.errors import CommitConflict, CorruptTable, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.files.manifest import read_manifest
from alluvium.paimon.files.manifest_merge import remaining_entries
from alluvium.paimon.files.manifest_write import format_index_manifest
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import DataField, SchemaChange, parse_type
from alluvium.paimon.terms.spec import INDEX_ENTRIES
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import Replace
from alluvium.schema import types as t
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

BUCKETS = {"bucket": "2", "bucket-key": "k"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make(str(tmp_path / "t"), "day")


def document(store: Store, number: int) -> dict[str, Any]:
    return json.loads(store.get(f"snapshot/snapshot-{number}"))


def test_snapshots_say_what_java_says(store: Store) -> None:
    append(open_target(store), [{"k": 1, "day": "a"}, {"k": 2, "day": "b"}])
    append(open_target(store), [{"k": 3, "day": "a"}])
    first, second = document(store, 1), document(store, 2)
    assert list(first) == list(second)
    assert {name: first[name] for name in ("version", "id", "schemaId", "commitIdentifier", "commitKind")} == {
        "version": 3, "id": 1, "schemaId": 0, "commitIdentifier": 2**63 - 1, "commitKind": "APPEND",
    }  # fmt: skip
    assert (second["totalRecordCount"], second["deltaRecordCount"], second["nextRowId"]) == (3, 1, 0)
    for kind in ("base", "delta"):
        # "When the ...Size fields are present readers use them as the exact length"
        assert store.head(f"manifest/{second[f'{kind}ManifestList']}").size == second[f"{kind}ManifestListSize"]
    assert (store.get("snapshot/EARLIEST"), store.get("snapshot/LATEST")) == (b"1", b"2")
    assert first["commitUser"] != second["commitUser"]
    assert [info.path for info in store.list_tree("_staging")] == []


def test_manifests_have_the_form_of_java(store: Store) -> None:
    append(open_target(store), [{"k": 1, "day": "a"}, {"k": 2, "day": None}])
    _, (line,) = read_avro(store.get(f"manifest/{document(store, 1)['deltaManifestList']}"), "x")
    schema, entries = read_avro(store.get(f"manifest/{line['_FILE_NAME']}"), "x")
    assert (line["_NUM_ADDED_FILES"], line["_PARTITION_STATS"]["_NULL_COUNTS"], line["_MIN_BUCKET"]) == (2, [1], 0)
    assert line["_FILE_SIZE"] == store.head(f"manifest/{line['_FILE_NAME']}").size
    assert (schema["name"], schema["namespace"]) == ("record", "org.apache.paimon.avro.generated")
    (file_type,) = (f["type"] for f in schema["fields"] if f["name"] == "_FILE")
    assert file_type["name"] == "record__FILE"
    for entry in entries:
        file = entry["_FILE"]
        assert (entry["_VERSION"], entry["_KIND"], entry["_BUCKET"], entry["_TOTAL_BUCKETS"]) == (2, 0, 0, -1)
        # "min/max key empty rows, key stats empty, level 0, sequence = running row count of the bucket"
        assert file["_MIN_KEY"] == file["_MAX_KEY"] == file["_KEY_STATS"]["_MIN_VALUES"] == bytes(12)
        assert (file["_LEVEL"], file["_MIN_SEQUENCE_NUMBER"], file["_MAX_SEQUENCE_NUMBER"]) == (0, 0, 0)
        assert (file["_FILE_SOURCE"], file["_DELETE_ROW_COUNT"], file["_VALUE_STATS_COLS"]) == (0, 0, None)
        assert abs(file["_CREATION_TIME"] / 1000 - dt.datetime.now().replace(tzinfo=dt.timezone.utc).timestamp()) < 600


def test_overwrites(store: Store) -> None:
    append(open_target(store), [{"k": n, "day": "abc"[n % 3]} for n in range(6)])
    append(open_target(store), [{"k": 10, "day": "a"}], Replace(dynamic=True))
    assert ks(store) == [1, 2, 4, 5, 10]
    where = parse_predicate("day >= 'b'", load_snapshot_schema(store), "UTC")
    done = append(open_target(store), [{"k": 11, "day": "c"}], Replace(where, "day >= 'b'"))
    assert (ks(store), done.metrics["numRemovedFiles"]) == ([10, 11], "2")
    append(open_target(store), [{"k": 12, "day": "z"}], Replace())
    assert ks(store) == [12]
    assert (document(store, 4)["commitKind"], document(store, 4)["deltaRecordCount"]) == ("OVERWRITE", -1)
    assert (document(store, 4)["totalRecordCount"], ks(store, version=1)) == (1, [0, 1, 2, 3, 4, 5])
    others = parse_predicate("k = 12", load_snapshot_schema(store), "UTC")
    with pytest.raises(UnsupportedFeature):
        append(open_target(store), [{"k": 13, "day": "z"}], Replace(others, "k = 12"))


def load_snapshot_schema(store: Store) -> t.Struct:
    return open_target(store).schema


def test_what_the_caller_is_told(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, pa.schema([("k", pa.int32()), ("d", pa.date32())]), ["d"])
    done = append(open_target(open_store(url)), [{"k": 1, "d": dt.date(2024, 1, 2)}, {"k": 2, "d": None}])
    listed = alluvium.open(url).files().select(done.files.column_names)
    assert done.files.to_pylist() == listed.to_pylist()


def test_overwriting_nothing_with_nothing(store: Store) -> None:
    assert append(open_target(store), []).attempts == 0
    assert append(open_target(store), [], Replace(dynamic=True)).attempts == 0
    assert store.list_from("snapshot") == []
    append(open_target(store), [{"k": 1, "day": "a"}])
    append(open_target(store), [], Replace())
    assert ks(store) == []


def test_appends_never_conflict(store: Store) -> None:
    winner = open_target(store)
    race = Fault(1, verb="put_if_absent", meanwhile=lambda: append(winner, [{"k": 1, "day": "a"}]) and None)
    done = append(open_target(FaultyStore(store, race)), [{"k": 2, "day": "a"}])
    assert (done.version, done.attempts, ks(store)) == (2, 2, [1, 2])
    # What the lost attempt wrote is gone: two snapshots with two lists and a manifest each.
    assert len(list(store.list_tree("manifest"))) == 6


def test_overwrites_conflict_with_what_they_did_not_see(store: Store) -> None:
    append(open_target(store), [{"k": 1, "day": "a"}, {"k": 2, "day": "b"}])
    late, later, latest = open_target(store), open_target(store), open_target(store)
    append(open_target(store), [{"k": 3, "day": "a"}])
    files = len(list(store.list_tree("day=a")))
    with pytest.raises(CommitConflict) as caught:
        append(late, [{"k": 4, "day": "a"}], Replace(dynamic=True))
    assert [c.rule for c in caught.value.conflicts] == ["concurrent-append"]
    assert len(list(store.list_tree("day=a"))) == files
    # Other partitions are nobody's business.
    assert append(later, [{"k": 5, "day": "b"}], Replace(dynamic=True)).attempts == 1
    with pytest.raises(CommitConflict) as caught:
        append(latest, [{"k": 6, "day": "b"}], Replace(dynamic=True))
    assert [c.rule for c in caught.value.conflicts] == ["concurrent-append", "concurrent-delete-delete"]
    assert ks(store) == [1, 3, 5]


def test_the_same_commit_again(store: Store) -> None:
    one, other = open_target(store), open_target(store)
    append(one, [{"k": 1, "day": "a"}], txn=("job", 3))
    with pytest.raises(CommitConflict) as caught:
        append(other, [{"k": 1, "day": "a"}], txn=("job", 3))
    assert caught.value.code == "concurrent-transaction"
    assert append(open_target(store), [{"k": 2, "day": "a"}], txn=("job", 4)).version == 2
    assert (document(store, 2)["commitUser"], document(store, 2)["commitIdentifier"]) == ("job", 4)


def test_altered_meanwhile(tmp_path: Path) -> None:
    store = make(str(tmp_path / "t"), **BUCKETS)
    append(open_target(store), [{"k": 1}])
    before, again = open_target(store), open_target(store)
    PaimonTable.forPath(store.url).alter([SchemaChange.add_column("x", "INT"), SchemaChange.drop_column("s")])
    append(open_target(store), [{"k": 2, "x": 5}])
    assert append(before, [{"k": 3, "s": "gone"}]).attempts == 1
    table = alluvium.open(store.url)
    assert document(store, 3)["schemaId"] == 1
    found = table.to_arrow(columns=["k", "x"]).to_pylist()
    assert sorted((row["k"], row["x"]) for row in found) == [(1, None), (2, 5), (3, None)]
    PaimonTable.forPath(store.url).alter([SchemaChange.set_option("bucket", "4")])
    append(open_target(store), [{"k": 9, "x": 5}], Replace())
    with pytest.raises(CommitConflict) as caught:
        append(again, [{"k": 4, "s": "x"}])
    assert caught.value.code == "metadata-changed"
    assert ks(store) == [9]


def test_sequence_numbers_of_buckets(tmp_path: Path) -> None:
    store = make(str(tmp_path / "t"), **BUCKETS)
    one, other = open_target(store), open_target(store)
    append(one, [{"k": n} for n in range(20)])
    append(other, [{"k": n} for n in range(20)])
    runs: dict[int, list[tuple[int, int]]] = {}
    for entry in load_snapshot(store).entries.to_pylist():
        runs.setdefault(entry["bucket"], []).append((entry["min_sequence_number"], entry["max_sequence_number"]))
    assert sorted(runs) == [0, 1]
    for (first, last), (second, end) in (sorted(ends) for ends in runs.values()):
        assert first == 0 and second == last + 1 and end - second == last


def test_only_manifests_of_the_written_partitions_are_read(tmp_path: Path) -> None:
    store = make(str(tmp_path / "t"), "day", **BUCKETS)
    for n, day in enumerate(["a", "c", "e", None]):
        append(open_target(store), [{"k": n, "day": day}])
    counting = FaultyStore(store)
    append(open_target(counting), [{"k": 9, "day": "c"}])
    read = [path for verb, path in counting.requests if verb == "get" and path.startswith("manifest/manifest-")]
    # That of its partition, and the one whose bounds say nothing.
    assert len([path for path in read if "list" not in path]) == 2
    append(open_target(store), [{"k": 10, "day": None}])
    places = [(e["partition"], e["bucket"], e["min_sequence_number"]) for e in load_snapshot(store).entries.to_pylist()]
    assert len(set(places)) == 6


def test_branches_have_their_own_snapshots(store: Store) -> None:
    """ "a branch has its own schema/snapshot/tag files; its manifests and data lie in the main table's directories" """
    append(open_target(store), [{"k": 1, "day": "a"}])
    for kind, name in (("schema", "schema-0"), ("snapshot", "snapshot-1")):
        store.put(f"branch/branch-b/{kind}/{name}", store.get(f"{kind}/{name}"))
    branch = load_snapshot(store, branch="b")
    append(PaimonTarget(store, branch.schema, branch), [{"k": 2, "day": "a"}])
    append(open_target(store), [{"k": 3, "day": "a"}])
    assert (ks(store), ks(store, branch="b")) == ([1, 3], [1, 2])
    assert store.get("branch/branch-b/snapshot/LATEST") == b"2"


def test_another_number_of_buckets(tmp_path: Path) -> None:
    """ "total buckets of a partition unchanged (except OVERWRITE)" """
    store = make(str(tmp_path / "t"), "day", **BUCKETS)
    append(open_target(store), [{"k": 1, "day": "a"}])
    PaimonTable.forPath(store.url).alter([SchemaChange.set_option("bucket", "3")])
    with pytest.raises(InvalidRequest) as caught:
        append(open_target(store), [{"k": 1, "day": "a"}])
    assert caught.value.code == "bucket-change"
    append(open_target(store), [{"k": 2, "day": "b"}])
    append(open_target(store), [{"k": 3, "day": "a"}], Replace(dynamic=True))
    assert ks(store) == [2, 3]


def test_small_manifests_are_merged(tmp_path: Path) -> None:
    """ "Manifests: merged when >= `manifest.merge-min-count` 30 small (<8 MB)" """
    store = make(str(tmp_path / "t"), "day", **{"manifest.merge-min-count": "4", "manifest.compression": "null"})
    for n in range(11):
        append(open_target(store), [{"k": n, "day": "a"}], Replace(dynamic=True) if n == 6 else None)
        assert alluvium.open(store.url).system("manifests").num_rows <= 5
    assert ks(store) == [6, 7, 8, 9, 10]
    assert ks(store, version=6) == [0, 1, 2, 3, 4, 5]
    entries = load_snapshot(store).entries
    assert (entries.num_rows, document(store, 11)["totalRecordCount"]) == (5, 5)


def test_large_manifests_are_cut(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(
        url, pa.schema([("k", pa.int32()), ("day", pa.string())]), ["day"],
        options={"manifest.target-file-size": "2 kb", "manifest.compression": "null"},
    )  # fmt: skip
    store = open_store(url)
    append(open_target(store), [{"k": n, "day": str(n)} for n in range(60)])
    sizes = alluvium.open(url).system("manifests")["file_size"].to_pylist()
    assert len(sizes) > 5 and max(sizes) < 3 * 2048 and ks(store) == list(range(60))


def entry(kind: int, name: str) -> dict[str, Any]:
    return {"kind": kind, "partition": b"", "bucket": 0, "level": 0, "file_name": name}


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("+a +b", "+a +b"),
        ("+a -a +b", "+b"),
        ("-a +b", "-a +b"),
        ("-a +a", "-a +a"),
        ("-a +a -a", "-a"),
        ("+a -a +a", "+a"),
        ("-a +a -a +a", "-a +a"),
    ],
)
def test_what_merged_manifests_say(given: str, left: str) -> None:
    rows = [entry("+-".index(text[0]), text[1]) for text in given.split()]
    schema = pa.schema([("kind", pa.int8()), ("partition", pa.binary()), ("bucket", pa.int32()), ("level", pa.int32()),
                        ("file_name", pa.string()), ("external_path", pa.string())])  # fmt: skip
    found = remaining_entries(pa.Table.from_pylist(rows, schema=schema)).to_pylist()
    assert " ".join("+-"[row["kind"]] + row["file_name"] for row in found) == left


def test_deletion_vectors_of_replaced_partitions_go(store: Store) -> None:
    append(open_target(store), [{"k": 1, "day": "a"}, {"k": 2, "day": "b"}])
    partitions = {e["file_name"]: e["partition"] for e in load_snapshot(store).entries.to_pylist()}
    from_java = index_manifest(store, list(partitions.items()))
    assert from_java == 2
    append(open_target(store), [{"k": 3, "day": "a"}])
    assert document(store, 2)["indexManifest"] == "index-manifest-x-0"
    append(open_target(store), [{"k": 4, "day": "a"}], Replace(dynamic=True))
    name = document(store, 3)["indexManifest"]
    _, (kept,) = read_avro(store.get(f"manifest/{name}"), "x")
    assert kept["_DELETIONS_VECTORS_RANGES"][0]["f1"] == 1
    append(open_target(store), [{"k": 5, "day": "a"}], Replace())
    assert "indexManifest" not in document(store, 4)


def index_manifest(store: Store, files: list[tuple[str, bytes]]) -> int:
    """Gives the first snapshot an index manifest with a vector for each file."""
    rows = [
        {"kind": 0, "partition": partition, "bucket": 0, "index_type": "DELETION_VECTORS", "file_name": f"index-{n}",
         "file_size": 9, "row_count": 1, "ranges": [{"f0": name, "f1": 1, "f2": 9, "_CARDINALITY": 1}]}
        for n, (name, partition) in enumerate(files)
    ]  # fmt: skip
    entries = pa.Table.from_pylist(rows, schema=INDEX_ENTRIES)
    store.put("manifest/index-manifest-x-0", format_index_manifest(entries, "zstandard"))
    said = {**document(store, 1), "indexManifest": "index-manifest-x-0"}
    store.put("snapshot/snapshot-1", json.dumps(said).encode())
    return entries.num_rows


def test_damaged_manifests_stop_a_write_that_leaves_nothing(store: Store) -> None:
    append(open_target(store), [{"k": 1, "day": "a"}])
    name = f"manifest/{document(store, 1)['deltaManifestList']}"
    data = store.get(name)
    target = open_target(store)
    changes = stage(target, [{"k": 2, "day": "a"}])
    known = sorted(info.path for info in store.list_tree("") if not info.path.startswith("_staging"))
    for broken in (data[:-9], None):
        store.delete(name) if broken is None else store.put(name, broken)
        with pytest.raises(NotFound if broken is None else CorruptTable):
            target.commit(changes)
        store.put(name, data)
        assert sorted(info.path for info in store.list_tree("") if not info.path.startswith("_staging")) == known
        changes = stage(target, [{"k": 2, "day": "a"}])
    assert target.commit(changes).version == 2


def test_many_files_are_fast(tmp_path: Path) -> None:
    """A commit on top of a table of 100,000 files reads none of their entries."""
    store = make(str(tmp_path / "t"), "day")
    append(open_target(store), [{"k": 1, "day": "a"}])
    name = alluvium.open(store.url).system("manifests")["file_name"][0].as_py()
    assert read_manifest(store, name).num_rows == 1
    store.delete(f"manifest/{name}")
    assert append(open_target(store), [{"k": 2, "day": "a"}]).version == 2


def test_columns_of_several_parts_become_texts(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, pa.schema([("k", pa.int32()), ("a", pa.list_(pa.int32()))]))
    append(open_target(open_store(url)), [{"k": 1, "a": [1, None]}, {"k": 2, "a": None}])
    PaimonTable.forPath(url).alter([SchemaChange.update_column_type("a", "STRING")])
    append(open_target(open_store(url)), [{"k": 3, "a": "x"}])
    found = alluvium.open(url).to_arrow(columns=["k", "a"]).sort_by("k")
    assert found["a"].to_pylist() == ["[1, null]", None, "x"]
    for where, wanted in (("a = '[1, null]'", [1]), ("a is null", [2]), ("a > 'w'", [3])):
        assert alluvium.open(url).to_arrow(columns=["k"], where=where)["k"].to_pylist() == wanted


def test_nulls_that_a_cast_makes_are_found(tmp_path: Path) -> None:
    """Null counts are those of the type that a file was written with."""
    url = str(tmp_path / "t")
    fields = [DataField(0, "k", parse_type("INT")), DataField(0, "v", parse_type("DECIMAL(10, 2)"))]
    PaimonTable.create(url, fields, ())
    append(open_target(open_store(url)), [{"k": 1, "v": Decimal("12345.67")}, {"k": 2, "v": Decimal("1.00")}])
    assert alluvium.open(url).to_arrow(where="v is null").num_rows == 0
    PaimonTable.forPath(url).alter([SchemaChange.update_column_type("v", "DECIMAL(12, 2)")])
    assert alluvium.open(url).files("v is null").num_rows == 0
    PaimonTable.forPath(url).alter([SchemaChange.update_column_type("v", "DECIMAL(4, 2)")])
    assert alluvium.open(url).to_arrow(where="v is null").to_pylist() == [{"k": 1, "v": None}]
    assert alluvium.open(url).to_arrow(where="v is not null")["k"].to_pylist() == [2]


def test_a_condition_that_is_not_understood_replaces_nothing(store: Store) -> None:
    append(open_target(store), [{"k": 1, "day": "a1"}, {"k": 2, "day": "b1"}])
    target = open_target(store)
    for text in ("day rlike '^a'", "day ilike 'A%'", "day = 'a1' and s rlike 'x'", "cast(day as int) = 1"):
        condition = Replace(parse_predicate(text, target.schema), text)
        with pytest.raises(UnsupportedFeature) as caught:
            target.plan_write(condition, ())
        assert caught.value.code in ("replace-where-undecided", "replace-where-data"), text
        with pytest.raises(UnsupportedFeature):
            append(target, [], condition)
    assert ks(store) == [1, 2] and document(store, 1)["id"] == 1
