"""A table copied file by file: rows, schemas, vectors and ids are those of the source, and an earlier copy follows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, ks, make, open_target
from pyroaring import BitMap64

import alluvium
from alluvium.api.paimon.life.procedures import run_procedure
from alluvium.errors import AlluviumError, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.commit.assemble import removed_entries
from alluvium.paimon.commit.draft import Draft, Replaced
from alluvium.paimon.files.manifest import read_index_manifest
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import list_snapshots
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.write.target import publish
from alluvium.plan.changes import TOUCHED_FILES, EditRows, NewFiles, Operation, ReadScope, Replace
from alluvium.plan.retry import DEFAULT_RETRY
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


def source(path: Path, **options: str) -> tuple[PaimonTable, Store]:
    store = make(str(path / "t"), "day", **options)
    for day, k in (("a", 1), ("b", 2), ("a", 3)):
        append(open_target(store), [{"k": k, "day": day}])
    return PaimonTable.forPath(store.url), store


def rows(url: str) -> list[dict[str, object]]:
    return sorted(alluvium.open(url).to_arrow().to_pylist(), key=lambda row: row["k"])


def test_a_copy_and_what_it_becomes(tmp_path: Path) -> None:
    table, store = source(tmp_path)
    table.create_tag("one", 1)
    table.alter([SchemaChange.add_column("note", "STRING")])
    append(open_target(store), [{"k": 4, "day": "c", "note": "x"}])
    copied = str(tmp_path / "copy")
    assert run_procedure("copy", table.url, {"target_table": copied}, {}) == [{"result": True}]
    target = open_store(copied)
    assert rows(copied) == rows(table.url) and list_snapshots(target) == [1]
    assert alluvium.open(copied).system("schemas").num_rows == 2 and PaimonTable.forPath(copied).tags().num_rows == 0
    # Nothing of the source is needed any more.
    own = PaimonTable.forPath(copied)
    append(open_target(target), [{"k": 5, "day": "a", "note": None}])
    assert ks(target) == [1, 2, 3, 4, 5] and ks(store) == [1, 2, 3, 4]
    # Copied again it is as the source, and only what is new comes.
    append(open_target(store), [{"k": 6, "day": "d", "note": None}])
    done = table.copy(copied)
    assert (done.files, done.version, ks(target)) == (1, 3, [1, 2, 3, 4, 6])
    assert (table.copy(copied).files, list_snapshots(target)) == (0, [1, 2, 3])
    append(open_target(store), [{"k": 7, "day": "e", "note": None}], Replace())
    table.copy(copied)
    assert ks(target) == [7] and own.schema.find("note") is not None


def test_partitions_alone(tmp_path: Path) -> None:
    table, store = source(tmp_path)
    copied = str(tmp_path / "copy")
    assert table.copy(copied, where="day = 'a'").files == 2 and ks(open_store(copied)) == [1, 3]
    append(open_target(store), [{"k": 9, "day": "b"}])
    append(open_target(store), [{"k": 8, "day": "a"}])
    assert table.copy(copied, where="day = 'b'").files == 2 and ks(open_store(copied)) == [1, 2, 3, 9]
    with pytest.raises(UnsupportedFeature) as raised:
        table.copy(str(tmp_path / "other"), where="k = 1")
    assert raised.value.code == "replace-where-data" and not (tmp_path / "other").exists()


def test_vectors_are_copied(tmp_path: Path) -> None:
    table, store = source(tmp_path, **{"deletion-vectors.enabled": "true"})
    append(open_target(store), [{"k": k, "day": "b"} for k in range(10, 14)])
    copied = str(tmp_path / "copy")

    def delete(position: int) -> None:
        files = alluvium.open(table.url).files().to_pylist()
        path = next(one["path"] for one in files if one["num_rows"] > 1)
        touched = pa.table([pa.array([path]), pa.array([BitMap64([position]).serialize()])], schema=TOUCHED_FILES)
        open_target(store).commit(EditRows(NewFiles.none(), touched, Operation("DELETE"), ReadScope.table()))

    delete(1)
    table.copy(copied, where="day = 'b'")
    assert ks(open_store(copied)) == [2, 10, 12, 13]
    delete(2)
    table.copy(copied)
    assert ks(open_store(copied)) == [1, 2, 3, 10, 13]
    # The vectors of what is not copied anew stay.
    delete(3)
    table.copy(copied, where="day = 'a'")
    assert ks(open_store(copied)) == [1, 2, 3, 10, 13]


def test_keys_and_their_dynamic_buckets(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.int32()), ("v", pa.string())])
    table = PaimonTable.create(str(tmp_path / "t"), schema, primary_keys=["k"], options={"bucket": "-1"})
    store = open_store(table.url)
    append(open_target(store), [{"k": k, "v": "old"} for k in range(5)])
    append(open_target(store), [{"k": 3, "v": "new"}])
    copied = str(tmp_path / "copy")
    table.copy(copied)
    assert rows(copied) == rows(table.url)
    append(open_target(open_store(copied)), [{"k": 4, "v": "newest"}, {"k": 9, "v": "x"}])
    assert [row["v"] for row in rows(copied)] == ["old", "old", "old", "new", "newest", "x"]


def test_ids_are_those_of_the_source(tmp_path: Path) -> None:
    table, _ = source(tmp_path, **{"row-tracking.enabled": "true"})
    copied = str(tmp_path / "copy")
    table.copy(copied)
    names = ["k", "_ROW_ID", "_SEQUENCE_NUMBER"]
    own, other = (alluvium.open(url).to_arrow(columns=names).to_pylist() for url in (table.url, copied))
    assert sorted(own, key=str) == sorted(other, key=str)
    append(open_target(open_store(copied)), [{"k": 4, "day": "a"}])
    assert {row["_ROW_ID"] for row in alluvium.open(copied).to_arrow(columns=names).to_pylist()} == {0, 1, 2, 3}


def test_a_branch_and_an_empty_table(tmp_path: Path) -> None:
    table, _ = source(tmp_path)
    table.create_tag("one", 1)
    table.create_branch("b", "one")
    PaimonTable.forPath(table.url, branch="b").copy(str(tmp_path / "of branch"))
    assert ks(open_store(str(tmp_path / "of branch"))) == [1]
    empty = PaimonTable.create(str(tmp_path / "empty"), pa.schema([("k", pa.int32())]))
    assert empty.copy(str(tmp_path / "e")).version is None
    assert PaimonTable.forPath(str(tmp_path / "e")).schema.fields == empty.schema.fields


def test_what_is_refused(tmp_path: Path) -> None:
    table, _ = source(tmp_path)
    PaimonTable.create(str(tmp_path / "other"), pa.schema([("x", pa.int32())]))
    for target in (table.url, f"{table.url}/inside", str(tmp_path), str(tmp_path / "other")):
        with pytest.raises(InvalidRequest) as raised:
            table.copy(target)
        assert raised.value.code == "incompatible-target", target
    with pytest.raises(NotFound):
        run_procedure("copy", str(tmp_path / "nothing"), {"target_table": str(tmp_path / "x")}, {})
    table.create_branch("b")
    table.alter([SchemaChange.set_option("scan.fallback-branch", "b")])
    with pytest.raises(UnsupportedFeature) as shown:
        table.copy(str(tmp_path / "x"))
    assert shown.value.code == "unsupported-copy" and not (tmp_path / "x").exists()


def test_a_file_that_is_gone_makes_no_copy(tmp_path: Path) -> None:
    table, store = source(tmp_path)
    store.delete(alluvium.open(table.url).files()["path"][0].as_py())
    with pytest.raises(AlluviumError):
        table.copy(str(tmp_path / "copy"))
    assert load_snapshot(open_store(str(tmp_path / "copy"))).document is None


def test_a_copy_that_reads_its_files_otherwise_is_none(tmp_path: Path) -> None:
    """Java leaves the vectors of a table aside that has them not enabled: rows that are gone would be back."""
    table, store = source(tmp_path, **{"deletion-vectors.modifiable": "true"})
    copied = str(tmp_path / "copy")
    table.copy(copied)
    own = PaimonTable.forPath(copied)
    own.alter([SchemaChange.set_option("snapshot.num-retained.max", "50")])
    table.alter([SchemaChange.set_option("snapshot.num-retained.max", "20")])
    append(open_target(store), [{"k": 4, "day": "a"}])
    assert table.copy(copied).files == 1 and own.schema.options["snapshot.num-retained.max"] == "50"
    own.alter([SchemaChange.set_option("snapshot.num-retained.max", "51")])
    table.alter([SchemaChange.set_option("deletion-vectors.enabled", "true")])
    with pytest.raises(InvalidRequest) as raised:
        table.copy(copied)
    assert raised.value.code == "incompatible-target" and "deletion-vectors.enabled" in raised.value.message
    assert ks(open_store(copied)) == [1, 2, 3, 4]


def test_keys_of_a_partition_without_files_are_those_of_the_source(tmp_path: Path) -> None:
    """Of a bucket there is one list of keys; Java refuses a table with two."""
    schema = pa.schema([("k", pa.int32()), ("p", pa.string())])
    table = PaimonTable.create(
        str(tmp_path / "t"), schema, partition_keys=["p"], primary_keys=["k", "p"], options={"bucket": "-1"}
    )
    append(open_target(open_store(table.url)), [{"k": k, "p": p} for k in range(3) for p in "ab"])
    target = open_store(str(tmp_path / "copy"))
    table.copy(target.url)
    # A compaction has found all rows of a partition deleted.
    before = load_snapshot(target)
    entries = removed_entries(before, Replaced()).slice(0, 1)
    gone = Draft(
        before.schema, ENTRIES.empty_table(), Replaced(files=entries["file_name"].combine_chunks()), compacts=True
    )
    publish(target, gone, before, DEFAULT_RETRY)
    assert len(ks(target)) == 3
    for where in ("p = 'a'", "p = 'b'", None):
        table.copy(target.url, where)
        document = load_snapshot(target).document
        assert document is not None and document.index_manifest is not None
        assert read_index_manifest(target, document.index_manifest).num_rows == 2, where
    assert len(ks(target)) == 6
