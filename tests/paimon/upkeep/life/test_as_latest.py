"""A state of the past is the newest again, by a commit: rows, vectors, ids, and what came between stays readable."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, ks, make, open_target
from pyroaring import BitMap64

import alluvium
from alluvium.api.paimon.life.procedures import run_procedure
from alluvium.errors import CommitConflict, InvalidRequest, NotFound
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At, list_snapshots, list_tags
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.upkeep.life import as_latest
from alluvium.plan.changes import TOUCHED_FILES, EditRows, NewFiles, Operation, ReadScope, Replace
from alluvium.plan.retry import RetryPolicy
from alluvium.storage.store import Store


def three(path: Path, **options: str) -> tuple[PaimonTable, Store]:
    store = make(str(path / "t"), **options)
    for k in (1, 2):
        append(open_target(store), [{"k": k}])
    append(open_target(store), [{"k": 30}], Replace())
    return PaimonTable.forPath(store.url), store


def test_what_was_is_the_newest_again(tmp_path: Path) -> None:
    table, store = three(tmp_path)
    done = run_procedure("rollback_to_as_latest", table.url, {"snapshot_id": 2}, {})
    assert done == [{"previous_snapshot_id": 3, "rolled_back_snapshot_id": 2, "current_snapshot_id": 4}]
    assert ks(store) == [1, 2] and ks(store, version=3) == [30] and list_snapshots(store) == [1, 2, 3, 4]
    document = load_snapshot(store).document
    assert document is not None
    assert (document.commit_kind, document.total_record_count, document.delta_record_count) == ("OVERWRITE", 2, 1)
    # A tag keeps the files for engines that look at neighbours alone, and all else expires.
    (kept,) = list_tags(store)
    assert kept.startswith("rollback-to-as-latest-2-")
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert list_snapshots(store) == [4] and ks(store) == [1, 2]
    append(open_target(store), [{"k": 5}])
    assert ks(store) == [1, 2, 5]


def test_travelling_to_it_shows_the_columns_that_it_had(tmp_path: Path) -> None:
    """As in Java the new snapshot is of the schema of the one whose state it is; the newest state is read by the newest."""
    table, store = three(tmp_path)
    old = table.schema.names
    table.alter([SchemaChange.add_column("note", "STRING")])
    append(open_target(store), [{"k": 4, "note": "x"}])
    assert table.rollback_to_as_latest(snapshot_id=2).current == 5
    assert [row["schema_id"] for row in alluvium.open(table.url).system("snapshots").to_pylist()] == [0, 0, 0, 1, 0]
    assert alluvium.open(table.url, version=5).schema.names == old
    assert alluvium.open(table.url).schema.names == (*old, "note")
    assert table.rollback_to_as_latest(snapshot_id=4).current == 6
    assert alluvium.open(table.url, version=6).schema.names == (*old, "note")


def test_by_a_tag_whose_snapshot_has_expired(tmp_path: Path) -> None:
    table, store = three(tmp_path)
    table.create_tag("old", 1)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert (table.rollback_to_as_latest(tag="old").current, ks(store), list_tags(store)) == (4, [1], ["old"])
    again = table.rollback_to_as_latest(snapshot_id=1)
    assert (again.previous, again.restored, again.current) == (4, 1, 5) and ks(store) == [1]


def test_vectors_come_back_with_their_files_and_go_with_them(tmp_path: Path) -> None:
    store = make(str(tmp_path / "t"), **{"deletion-vectors.enabled": "true"})
    table = PaimonTable.forPath(store.url)
    append(open_target(store), [{"k": k} for k in range(4)])
    (path,) = alluvium.open(table.url).files()["path"].to_pylist()

    def delete(position: int, at: str = path) -> None:
        touched = pa.table([pa.array([at]), pa.array([BitMap64([position]).serialize()])], schema=TOUCHED_FILES)
        open_target(store).commit(EditRows(NewFiles.none(), touched, Operation("DELETE"), ReadScope.table()))

    delete(0)
    delete(1)
    assert ks(store) == [2, 3]
    assert table.rollback_to_as_latest(snapshot_id=2).current == 4 and ks(store) == [1, 2, 3]
    assert table.rollback_to_as_latest(snapshot_id=1).current == 5 and ks(store) == [0, 1, 2, 3]
    assert table.rollback_to_as_latest(snapshot_id=3).current == 6 and ks(store) == [2, 3]
    delete(2)
    assert ks(store) == [3]


def test_ids_are_kept_and_never_given_again(tmp_path: Path) -> None:
    table, store = three(tmp_path, **{"row-tracking.enabled": "true"})

    def ids() -> list[tuple[int, int, int]]:
        rows = alluvium.open(table.url).to_arrow(columns=["k", "_ROW_ID", "_SEQUENCE_NUMBER"]).to_pylist()
        return sorted((row["k"], row["_ROW_ID"], row["_SEQUENCE_NUMBER"]) for row in rows)

    table.rollback_to_as_latest(snapshot_id=2)
    assert ids() == [(1, 0, 1), (2, 1, 2)]
    append(open_target(store), [{"k": 5}])
    assert ids() == [(1, 0, 1), (2, 1, 2), (5, 3, 5)]


def test_a_state_of_an_earlier_schema(tmp_path: Path) -> None:
    table, _ = three(tmp_path)
    table.alter([SchemaChange.add_column("note", "STRING")])
    done = table.rollback_to_as_latest(snapshot_id=2)
    rows = alluvium.open(table.url).to_arrow(columns=["k", "note"]).to_pylist()
    assert sorted(rows, key=str) == [{"k": 1, "note": None}, {"k": 2, "note": None}]
    # Travelling there shows what it showed.
    assert alluvium.open(table.url, version=done.current).schema.to_arrow().names[-1] == "day"


def test_what_is_refused(tmp_path: Path) -> None:
    table, store = three(tmp_path)
    for given, kind, code in [
        ({}, InvalidRequest, "contradicting-options"),
        ({"tag": "x", "snapshot_id": 1}, InvalidRequest, "contradicting-options"),
        ({"tag": "x"}, NotFound, "tag-not-found"),
        ({"snapshot_id": 9}, NotFound, "snapshot-not-found"),
    ]:
        with pytest.raises(kind) as raised:
            run_procedure("rollback_to_as_latest", table.url, given, {})
        assert raised.value.code == code
    empty = PaimonTable.create(str(tmp_path / "empty"), pa.schema([("k", pa.int32())]))
    with pytest.raises(NotFound):
        empty.rollback_to_as_latest(snapshot_id=1)
    assert list_tags(store) == [] and list_snapshots(store) == [1, 2, 3]


@pytest.mark.parametrize("repeats", [0, 3])
def test_whoever_commits_meanwhile_is_in_the_past_or_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeats: int
) -> None:
    table, store = three(tmp_path)
    publish, before = as_latest.publish, [True]

    def late(*arguments: object) -> object:
        if before.pop() if before else False:
            append(open_target(store), [{"k": 40}])
        return publish(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(as_latest, "publish", late)
    retry = RetryPolicy(max_repeats=repeats)
    if not repeats:
        with pytest.raises(CommitConflict):
            table.rollback_to_as_latest(snapshot_id=2, retry=retry)
        assert ks(store) == [30, 40] and list_tags(store) == []
        return
    done = table.rollback_to_as_latest(snapshot_id=2, retry=retry)
    assert (done.previous, done.current) == (4, 5)
    assert ks(store) == [1, 2] and ks(store, version=4) == [30, 40]
    assert load_snapshot(store, At()).version == 5
