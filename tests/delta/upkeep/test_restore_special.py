"""RESTORE on special tables: vectors, row tracking, mapped columns, files outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from delta_values import make_metadata
from pyroaring import BitMap64

from alluvium.delta.features.log.checkpoint_protection import PROPERTY as PROTECTED_BEFORE
from alluvium.delta.log.names import commit_path
from alluvium.delta.rows.vector_files import write_vectors
from alluvium.delta.terms.spec import (
    Action,
    Add,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    format_actions,
)
from alluvium.delta.upkeep.restore import restore
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import NotFound
from alluvium.plan.changes import Committed
from alluvium.storage.stores.local import LocalStore

VECTORS = Protocol(
    min_reader_version=3, min_writer_version=7, reader_features=("deletionVectors",),
    writer_features=("deletionVectors",),
)  # fmt: skip
TRACKING = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("domainMetadata", "rowTracking"))
MAPPED = Protocol(min_reader_version=2, min_writer_version=5)
PROTECTED = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("checkpointProtection",))


class Table:
    """A table whose commits a test spells out; its data files hold nothing."""

    def __init__(self, root: Path, protocol: Protocol, metadata: Metadata | None = None) -> None:
        self.store = LocalStore(str(root))
        self.versions = 0
        self.commit(protocol, metadata or make_metadata())

    def commit(self, *actions: Action) -> int:
        self.store.put(commit_path(self.versions), format_actions(actions))
        self.versions += 1
        return self.versions - 1

    def add(self, path: str, vector: DeletionVector | None = None, base_row_id: int | None = None) -> Add:
        if "://" not in path and not path.startswith(("/", "file:")):
            self.store.put(path, b"12345")
        return Add(
            path=path, partition_values={}, size=5, modification_time=1, data_change=True,
            stats='{"numRecords":9}', deletion_vector=vector, base_row_id=base_row_id,
            default_row_commit_version=None if base_row_id is None else 0,
        )  # fmt: skip

    def back_to(self, version: int) -> Committed:
        parameters = {"version": version, "timestamp": None}
        done = restore(load_snapshot(self.store), load_snapshot(self.store, version), parameters, "tests")
        assert isinstance(done, Committed)
        return done

    def live(self) -> list[tuple[str, int | None]]:
        rows = load_snapshot(self.store).files.to_pylist()
        return sorted((row["path"], (row["deletionVector"] or {}).get("offset")) for row in rows)


def remove(add: Add) -> Remove:
    return Remove(path=add.path, deletion_timestamp=2, data_change=True, deletion_vector=add.deletion_vector)


def two_vectors(table: Table) -> tuple[list[DeletionVector], str]:
    """Two vectors that differ by their place in one file alone."""
    bitmaps = [BitMap64([row]) for row in (1, 2)]
    vectors, path = write_vectors(table.store, [(bitmap.serialize(), 1) for bitmap in bitmaps])
    assert path is not None
    return vectors, path


def test_vectors_that_share_a_file(tmp_path: Path) -> None:
    table = Table(tmp_path, VECTORS)
    (first, second), _ = two_vectors(table)
    old = table.add("a", first)
    then = table.commit(old)
    table.commit(remove(old), table.add("a", second))
    done = table.back_to(then)
    assert table.live() == [("a", first.offset)]
    assert (done.metrics["numRestoredFiles"], done.metrics["numRemovedFiles"]) == ("1", "1")


def test_a_vector_that_is_gone(tmp_path: Path) -> None:
    """The version could not be read; it stays where it is."""
    table = Table(tmp_path, VECTORS)
    (first, _), path = two_vectors(table)
    masked = table.add("a", first)
    then = table.commit(masked)
    table.commit(remove(masked))
    table.store.delete(path)
    with pytest.raises(NotFound, match="files of deletion vectors") as caught:
        table.back_to(then)
    assert (caught.value.code, caught.value.path, caught.value.version) == ("missing-file", path, then)
    assert load_snapshot(table.store).version == table.versions - 1


def test_a_vector_of_no_rows_needs_no_file(tmp_path: Path) -> None:
    table = Table(tmp_path, VECTORS)
    vector = DeletionVector(storage_type="u", path_or_inline_dv="0" * 20, offset=1, size_in_bytes=0, cardinality=0)
    masked = table.add("a", vector)
    then = table.commit(masked)
    table.commit(remove(masked))
    table.back_to(then)
    assert table.live() == [("a", 1)]


def test_another_spelling_is_the_same_file(tmp_path: Path) -> None:
    table = Table(tmp_path, VECTORS)
    table.store.put("année", b"12345")
    plain = table.add("année")
    then = table.commit(plain)
    table.commit(table.add("ann%C3%A9e"))
    done = table.back_to(then)
    assert (done.metrics["numRestoredFiles"], done.metrics["numRemovedFiles"]) == ("0", "0")
    assert len(table.live()) == 1


def test_row_ids_go_on_where_they_were(tmp_path: Path) -> None:
    """Ids that were given after the old version stay given: its mark must not come back."""
    table = Table(tmp_path, TRACKING)

    def mark(highest: int) -> DomainMetadata:
        return DomainMetadata(
            domain="delta.rowTracking", configuration=f'{{"rowIdHighWaterMark":{highest}}}', removed=False
        )

    other = DomainMetadata(domain="mine", configuration="old", removed=False)
    then = table.commit(table.add("a", base_row_id=0), mark(8), other)
    newer = DomainMetadata(domain="mine", configuration="new", removed=False)
    table.commit(table.add("b", base_row_id=9), mark(17), newer)
    table.back_to(then)
    domains = load_snapshot(table.store).state.domains
    assert domains["delta.rowTracking"].configuration == '{"rowIdHighWaterMark":17}'
    assert domains["mine"].configuration == "old"
    assert table.live() == [("a", None)]


@pytest.mark.parametrize(("then", "now", "kept"), [("3", "7", "7"), (None, "7", "7"), ("9", "7", "9")])
def test_ids_of_columns_are_never_given_twice(tmp_path: Path, then: str | None, now: str, kept: str) -> None:
    """`delta.columnMapping.maxColumnId` does not fall."""
    name = "delta.columnMapping.maxColumnId"

    def metadata(highest: str | None) -> Metadata:
        return make_metadata(properties={} if highest is None else {name: highest})

    table = Table(tmp_path, MAPPED, metadata(then))
    table.commit(metadata(now))
    table.back_to(0)
    assert load_snapshot(table.store).config.metadata.configuration[name] == kept


def test_files_outside_of_the_table(tmp_path: Path) -> None:
    outside = tmp_path / "else where" / "b.parquet"
    outside.parent.mkdir()
    outside.write_bytes(b"12345")
    table = Table(tmp_path / "t", MAPPED)
    inside, elsewhere = table.add("a"), table.add(f"file:{str(outside).replace(' ', '%20')}")
    then = table.commit(inside, elsewhere)
    table.commit(remove(inside), remove(elsewhere))
    assert table.back_to(then).metrics["numRestoredFiles"] == "2"
    table.versions += 1
    table.commit(remove(inside), remove(elsewhere))
    outside.unlink()
    with pytest.raises(NotFound) as caught:
        table.back_to(then)
    assert caught.value.path is not None and caught.value.path.endswith("else where/b.parquet")


def test_domains_of_the_old_version_come_back_but_row_ids_go_on(tmp_path: Path) -> None:
    """The old version had no mark yet, and one domain that is the same today: neither is said anew."""
    table = Table(tmp_path, TRACKING)
    same = DomainMetadata(domain="same", configuration="s", removed=False)
    gone = DomainMetadata(domain="newer", configuration="n", removed=False)
    then = table.commit(table.add("a"), same)
    mark = DomainMetadata(domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":17}', removed=False)
    table.commit(mark, gone)
    table.back_to(then)
    domains = load_snapshot(table.store).state.domains
    assert {name: d.configuration for name, d in domains.items()} == {
        "delta.rowTracking": '{"rowIdHighWaterMark":17}', "same": "s",
    }  # fmt: skip
    said = [json.loads(line) for line in table.store.get(commit_path(table.versions)).splitlines()]
    assert [a["domainMetadata"]["domain"] for a in said if "domainMetadata" in a] == ["newer"]


def test_before_it_was_clustered_a_table_is_clustered_by_no_column(tmp_path: Path) -> None:
    """It goes on supporting clustering, and so says by which columns: as the reference has it."""
    clustering = Protocol(
        min_reader_version=1, min_writer_version=7, writer_features=("appendOnly", "clustering", "domainMetadata")
    )
    table = Table(tmp_path, clustering)
    then = table.commit(table.add("a"))
    by_id = '{"clusteringColumns":[["id"]],"domainName":"delta.clustering"}'
    table.commit(DomainMetadata(domain="delta.clustering", configuration=by_id, removed=False))
    table.back_to(then)
    domain = load_snapshot(table.store).state.domains["delta.clustering"]
    assert json.loads(domain.configuration) == {"clusteringColumns": [], "domainName": "delta.clustering"}


@pytest.mark.parametrize(("then", "now", "kept"), [(None, "4", "4"), ("2", "4", "4"), ("6", "4", "6")])
def test_what_protects_the_log_outlives_the_version_that_said_it(
    tmp_path: Path, then: str | None, now: str, kept: str
) -> None:
    """A feature was dropped at once behind the old version: its history, which is still there, stays protected."""

    def metadata(before: str | None) -> Metadata:
        return make_metadata(properties={} if before is None else {PROTECTED_BEFORE: before})

    table = Table(tmp_path, PROTECTED, metadata(then))
    table.commit(metadata(now))
    table.back_to(0)
    assert load_snapshot(table.store).config.metadata.configuration[PROTECTED_BEFORE] == kept


def test_files_behind_a_linked_folder_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many files a listing is looked through, which follows no links."""
    monkeypatch.setattr("alluvium.delta.upkeep.missing_files._FEW", 0)
    (tmp_path / "disk").mkdir()
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "p=1").symlink_to(tmp_path / "disk")
    table = Table(tmp_path / "t", MAPPED)
    file = table.add("p=1/a")
    then = table.commit(file)
    table.commit(remove(file))
    assert table.back_to(then).metrics["numRestoredFiles"] == "1"
    table.versions += 1
    table.commit(remove(file))
    (tmp_path / "disk" / "a").unlink()
    with pytest.raises(NotFound):
        table.back_to(then)
