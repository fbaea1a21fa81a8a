"""A table is emptied with all its past; what it is stays, and it goes on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, ks, make, open_target

from alluvium.api.paimon.life.procedures import run_procedure
from alluvium.errors import CommitConflict, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.names import list_branches
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import list_snapshots, list_tags
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.upkeep.life import purge
from alluvium.plan.retry import RetryPolicy
from alluvium.storage.open import open_store


def full(path: Path) -> PaimonTable:
    store = make(str(path / "t"), "day")
    append(open_target(store), [{"k": 1, "day": "a"}])
    table = PaimonTable.forPath(store.url)
    table.create_tag("one")
    table.create_branch("b", "one")
    table.reset_consumer("reader", 1)
    append(open_target(store), [{"k": 2, "day": "b"}])
    table.alter([SchemaChange.add_column("note", "STRING")])
    (path / "t/changelog").mkdir()
    (path / "t/changelog/changelog-1").write_bytes((path / "t/snapshot/snapshot-1").read_bytes())
    (path / "t/manifest/stray").write_bytes(b"x")
    return table


def test_nothing_is_left_but_what_the_table_is(tmp_path: Path) -> None:
    table = full(tmp_path)
    assert run_procedure("purge_files", table.url, {}, {}) == [{"result": "Success"}]
    store = open_store(table.url)
    assert ks(store) == [] and list_snapshots(store) == [3]
    assert (list_tags(store), list_branches(store), table.consumers().num_rows) == ([], [], 0)
    left = sorted(info.path for info in store.list_tree(""))
    document = load_snapshot(store).document
    assert document is not None and document.total_record_count == 0
    named = {"schema/schema-0", "schema/schema-1", "snapshot/snapshot-3", "snapshot/EARLIEST", "snapshot/LATEST"}
    assert named <= set(left)
    assert {path.partition("/")[0] for path in left} <= {"schema", "snapshot", "manifest"}
    assert "manifest/stray" not in left
    append(open_target(store), [{"k": 9, "day": "c"}])
    assert ks(store) == [9]
    assert table.purge_files().version == 5 and ks(store) == []


def test_a_table_that_never_had_a_snapshot(tmp_path: Path) -> None:
    table = PaimonTable.create(str(tmp_path / "t"), pa.schema([("k", pa.int32())]))
    table.create_branch("b")
    done = table.purge_files()
    assert (done.version, done.branches) == (None, ("b",)) and list_branches(open_store(table.url)) == []


def test_a_branch_is_not_emptied(tmp_path: Path) -> None:
    full(tmp_path)
    with pytest.raises(UnsupportedFeature):
        PaimonTable.forPath(str(tmp_path / "t"), branch="b").purge_files()


def test_rows_that_come_meanwhile_go_or_nothing_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = full(tmp_path)
    publish, store = purge.publish, open_store(table.url)
    before = [True, True]

    def late(*arguments: object) -> object:
        if before:
            before.pop()
            append(open_target(store), [{"k": 40, "day": "a"}])
        return publish(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(purge, "publish", late)
    with pytest.raises(CommitConflict):
        table.purge_files(retry=RetryPolicy(max_repeats=0))
    assert ks(store) == [1, 2, 40] and list_tags(store) == ["one"]
    assert table.purge_files().version == 5 and ks(store) == []
