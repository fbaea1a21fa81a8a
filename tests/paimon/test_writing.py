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
from paimon_rows import append, open_target, stage

import alluvium
from alluvium.codecs.avro_container import read_avro
from alluvium.codecs.binary_row import decode_rows
from alluvium.codecs.parquet_footer import ColumnStats, FileFooter
from alluvium.errors import CommitConflict, CorruptTable, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.expr.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.file_stats import value_stats
from alluvium.paimon.manifest import read_manifest
from alluvium.paimon.manifest_merge import remaining_entries
from alluvium.paimon.manifest_write import format_index_manifest
from alluvium.paimon.schema import DataField, SchemaChange, TableSchema, parse_type
from alluvium.paimon.snapshot import load_snapshot
from alluvium.paimon.spec import INDEX_ENTRIES
from alluvium.paimon.target import PaimonTarget
from alluvium.plan.changes import Replace
from alluvium.schema import types as t
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

BUCKETS = {"bucket": "2", "bucket-key": "k"}
FIELDS = [("k", "INT"), ("s", "STRING"), ("day", "STRING")]


def make(url: str, *keys: str, **options: str) -> Store:
    fields = [DataField(0, name, parse_type(kind)) for name, kind in FIELDS]
    PaimonTable.create(url, fields, keys, options=options)
    return open_store(url)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make(str(tmp_path / "t"), "day")


def ks(store: Store, **at: Any) -> list[int]:
    return sorted(alluvium.open(store.url, **at).to_arrow(columns=["k"])["k"].to_pylist())


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


def schema_of(**options: str) -> TableSchema:
    fields = [DataField(n, name, parse_type(kind)) for n, (name, kind) in enumerate([("a", "INT"), ("s", "STRING")])]
    return TableSchema.create(fields, options=options)


def texts(low: str, high: str) -> FileFooter:
    return FileFooter(3, {("a",): ColumnStats(t.INTEGER, 1, 2, 0), ("s",): ColumnStats(t.STRING, low, high, 1)})


@pytest.mark.parametrize(
    ("high", "cut"),
    [
        ("short", "short"),
        ("Two roads diverged", "Two roads diverh"),
        ("é" * 20, "é" * 15 + "ê"),
        ("a" * 15 + "\U0010ffff" * 2, "a" * 14 + "b"),
        ("\ud7ff" * 20, "\ud7ff" * 15 + "\ue000"),
        ("\U0010ffff" * 20, None),
    ],
)
def test_texts_are_cut(high: str, cut: str | None) -> None:
    """ "truncated to 16 chars by default, max value incremented in its last char" """
    stats = value_stats(schema_of(), [texts("a" * 20, high)])
    types = [(t.INTEGER, 0), (t.STRING, 0)]
    assert decode_rows(stats.high, types)[1].to_pylist() == [cut]
    # Without an upper bound there is no lower one either, as in Java.
    assert decode_rows(stats.low, types)[1].to_pylist() == [None if cut is None else "a" * 16]
    assert (stats.columns, stats.nulls.to_pylist()) == (None, [[0, 1]])


def test_modes_of_statistics() -> None:
    """ "modes none/counts/full/truncate(n), per column `fields.<c>.stats-mode`" """
    footer = texts("a" * 20, "b" * 20)
    full = value_stats(schema_of(**{"fields.s.stats-mode": "full"}), [footer])
    assert decode_rows(full.low, [(t.INTEGER, 0), (t.STRING, 0)])[1].to_pylist() == ["a" * 20]
    counts = value_stats(schema_of(**{"metadata.stats-mode": "counts"}), [footer])
    assert decode_rows(counts.low, [(t.INTEGER, 0)])[0].to_pylist() == [None]
    assert counts.nulls.to_pylist() == [[0, 1]]
    none = value_stats(schema_of(**{"metadata.stats-mode": "none", "fields.s.stats-mode": "truncate(3)"}), [footer])
    assert none.columns == ("s",)
    assert decode_rows(none.high, [(t.STRING, 0)])[0].to_pylist() == ["bbc"]
    first = value_stats(schema_of(**{"metadata.stats-keep-first-n-columns": "1"}), [footer])
    assert first.columns == ("a",)
    sparse = value_stats(schema_of(**{"metadata.stats-mode": "none", "metadata.stats-dense-store": "false"}), [footer])
    assert (sparse.columns, sparse.nulls.to_pylist()) == (None, [[None, None]])
    nothing = value_stats(schema_of(**{"metadata.stats-mode": "none"}), [footer])
    assert (nothing.columns, nothing.low.to_pylist()) == ((), [bytes(12)])


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"manifest.format": "orc"}, "unsupported-option"),
        ({"data-file.external-paths": "s3://x/y", "data-file.external-paths.strategy": "round-robin"}, "unsupported-option"),
    ],
)  # fmt: skip
def test_tables_that_are_not_written(tmp_path: Path, options: dict[str, str], code: str) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, pa.schema([("k", pa.int32())]), options=options)
    with pytest.raises(UnsupportedFeature) as caught:
        stage(open_target(open_store(url)), [{"k": 1}])
    assert caught.value.code == code


@pytest.mark.parametrize("kind", ["BLOB"])
def test_columns_that_are_not_written(tmp_path: Path, kind: str) -> None:
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    fields = [DataField(0, "k", parse_type("INT")), DataField(1, "x", parse_type(kind))]
    PaimonTable.create(str(tmp_path / "t"), fields, options=options)
    with pytest.raises(UnsupportedFeature) as caught:
        stage(open_target(open_store(str(tmp_path / "t"))), [{"k": 1}])
    assert (caught.value.code, caught.value.column) == ("unsupported-type", "x")


@pytest.mark.parametrize("kind", ["TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(0)"])
def test_columns_that_spark_cannot_write_are_planned_in_arrow(tmp_path: Path, kind: str) -> None:
    fields = [DataField(0, "k", parse_type("INT")), DataField(1, "x", parse_type(kind))]
    PaimonTable.create(str(tmp_path / "t"), fields)
    plan = open_target(open_store(str(tmp_path / "t"))).plan_write(None, ())
    assert plan.files is not None
    assert [f.metadata[b"PARQUET:field_id"] for f in plan.files] == [b"0", b"1"]
    assert plan.schema.fields[1].type in (t.INTEGER, t.TIMESTAMP_NTZ, t.TIMESTAMP)


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


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_manifests_of_other_formats_are_not_mixed(tmp_path: Path, form: str) -> None:
    """Java reads every manifest of a table as `manifest.format` says, and fails over one in another format."""
    store = make(str(tmp_path / "t"), **{"manifest.format": form})
    known = sorted(info.path for info in store.list_tree(""))
    with pytest.raises(UnsupportedFeature) as caught:
        append(open_target(store), [{"k": 1}])
    assert caught.value.code == "unsupported-option"
    assert sorted(i.path for i in store.list_tree("") if not i.path.startswith("_staging")) == known


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_files_of_other_formats(tmp_path: Path, form: str) -> None:
    """Statistics are of the rows: they skip what they may, in every type, and what several parts make has counts."""
    url = str(tmp_path / "t")
    kinds = {"k": "INT", "t": "TIMESTAMP(3)", "c": "TIME(3)", "d": "DECIMAL(38, 10)", "s": "STRING", "f": "DOUBLE",
             "b": "BYTES", "a": {"type": "ARRAY", "element": "INT"}, "z": "TIMESTAMP(6) WITH LOCAL TIME ZONE"}  # fmt: skip
    fields = [DataField(0, name, parse_type(kind)) for name, kind in kinds.items()]
    PaimonTable.create(url, fields, options={"file.format": form})
    store = open_store(url)
    rows = [
        {"k": n, "t": dt.datetime(2024, 1, 1, 0, 0, n, 5000), "c": n, "d": Decimal(n) / 8, "s": f"text {n} " * 4,
         "f": n / 2, "b": bytes([n]), "a": [n, None], "z": dt.datetime(2024, 1, n + 1, tzinfo=dt.timezone.utc)}
        for n in range(4)
    ]  # fmt: skip
    for row in rows:
        append(open_target(store), [row, {"k": row["k"]}])
    entries = load_snapshot(store).entries
    assert {name.rpartition(".")[2] for name in entries["file_name"].to_pylist()} == {form}
    assert entries["stats_nulls"].to_pylist() == [[0, *[1] * 8]] * 4
    table = alluvium.open(url)
    found = table.to_arrow().sort_by("k").to_pylist()
    given = [{**row, "c": dt.time(0, 0, 0, 1000 * row["c"])} for row in rows]
    assert [row for row in found if row["a"]] == given
    assert len([row for row in found if row["d"] is None]) == 4
    for where in ("d = 0.25", "t > timestamp_ntz'2024-01-01 00:00:02'", "s = 'text 2 text 2 text 2 text 2 '", "f = 1.0",
                  "z = timestamp'2024-01-03 00:00:00Z'"):  # fmt: skip
        left = [row["k"] for row in table.to_arrow(where=where).to_pylist()]
        assert left[0] == 2, where
        # Of floats nobody believes an upper bound: others leave NaN out.
        assert table.files(where=where).num_rows == len(left) or where.startswith("f"), where
    append(open_target(store), [{"k": 9}], Replace())
    assert ks(store) == [9]


@pytest.mark.parametrize(
    ("form", "name", "kind", "code"),
    [("avro", "a b", "INT", "unsupported-name"), ("lance", "k", "INT", "unsupported-file-format")],
)
def test_what_a_format_has_no_form_for(tmp_path: Path, form: str, name: str, kind: str, code: str) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, [DataField(0, name, parse_type(kind))])
    with pytest.raises(UnsupportedFeature) as caught:
        stage(open_target(open_store(url), **{"file.format": form}), [])
    assert caught.value.code == code


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


def test_options_for_parquet_are_those_of_its_layout(tmp_path: Path) -> None:
    layout = {"parquet.block.size": "1048576", "parquet.enable.dictionary#s": "false"}
    odd = {"parquet.write.support.class": "a.b.C", "parquet.hadoop.vectored.io.enabled": "true"}
    plan = open_target(make(str(tmp_path / "t"), **layout, **odd)).plan_write(None, ())
    told = {name: value for name, value in plan.options if name.startswith("parquet.")}
    assert told == {**layout, "parquet.compression.codec.zstd.level": "1"}
    # Without it files would be written that everybody can read.
    for name in ("parquet.crypto.factory.class", "parquet.encryption.footer.key"):
        target = open_target(make(str(tmp_path / name), **{name: "a.b.C"}))
        with pytest.raises(UnsupportedFeature) as caught:
            target.plan_write(None, ())
        assert caught.value.code == "encrypted-files"
