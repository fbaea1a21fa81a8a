"""Snapshots expire by numbers, age, consumers; what tags, branches and changelogs need stays, and all else goes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from paimon_rows import append, ks, make, open_target

import alluvium
from alluvium.errors import CorruptTable, InvalidRequest, NotFound
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.travel import list_snapshots
from alluvium.paimon.upkeep.removal.retention import Retention
from alluvium.plan.changes import Replace


@pytest.mark.parametrize(
    ("most", "least", "older", "limit", "consumed", "kept"),
    [
        (100, 1, 0, 50, None, 1),
        (3, 1, 0, 50, None, 8),
        (3, 1, 0, 2, None, 3),
        (100, 4, 999, 50, None, 7),
        (100, 1, 55, 50, None, 6),
        (1, 1, 0, 50, 5, 5),
        (1, 1, 0, 50, 90, 10),
    ],
)
def test_what_stays(most: int, least: int, older: int, limit: int, consumed: int | None, kept: int) -> None:
    """Snapshots 1 to 10 of the times 10 to 100."""
    retention = Retention(most, least, older, limit)
    assert retention.first_kept(list(range(1, 11)), 10, lambda n: n * 10, consumed) == kept


def overwritten(url: str) -> PaimonTable:
    store = make(url, "day")
    for n in range(4):
        append(open_target(store), [{"k": n, "day": "d"}], Replace())
    return PaimonTable.forPath(url)


def data_files(url: str) -> int:
    return len(list(Path(url).rglob("*.parquet")))


def test_files_go_with_the_last_who_needs_them(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = overwritten(url)
    table.create_tag("one", 1)
    table.create_tag("two", 2)
    table.create_branch("b", "two")
    done = table.expire_snapshots(retain_max=1, retain_min=1)
    assert done.ids == (1, 2, 3)
    assert data_files(url) == 3
    with pytest.raises(NotFound) as raised:
        alluvium.open(url, version=3)
    assert raised.value.code == "snapshot-expired"
    table.delete_tag("one", "two", "never-there")
    assert data_files(url) == 2, "the branch needs the files of its tag"
    assert ks(table._store, branch="b") == [1]
    table.delete_branch("b")
    time.sleep(0.01)
    orphans = table.remove_orphan_files(int(time.time() * 1000) - 1, dry_run=True)
    assert orphans.count > 0
    assert table.remove_orphan_files(int(time.time() * 1000) - 1).count == orphans.count, "a dry run removes nothing"
    assert table.remove_orphan_files(int(time.time() * 1000) - 1).count == 0
    assert ks(table._store) == [3]


def test_a_dry_run_and_bad_numbers_change_nothing(tmp_path: Path) -> None:
    table = overwritten(str(tmp_path / "t"))
    assert table.expire_snapshots(retain_max=1, retain_min=1, dry_run=True).ids == (1, 2, 3)
    for wrong in ({"retain_max": 1, "retain_min": 2}, {"retain_min": 0}):
        with pytest.raises(InvalidRequest) as raised:
            table.expire_snapshots(**wrong)
        assert raised.value.code == "invalid-retention"
    assert list_snapshots(table._store) == [1, 2, 3, 4]


def test_a_consumer_keeps_what_it_has_not_read(tmp_path: Path) -> None:
    table = overwritten(str(tmp_path / "t"))
    table.reset_consumer("c", 3)
    assert table.consumers().to_pylist() == [{"consumer_id": "c", "next_snapshot_id": 3}]
    assert table.expire_snapshots(retain_max=1, retain_min=1).ids == (1, 2)
    (tmp_path / "t" / "consumer" / "consumer-d").write_text("{")
    with pytest.raises(CorruptTable):
        table.expire_snapshots(retain_max=1, retain_min=1)
    assert sorted(table.clear_consumers(excluding_consumers="d")) == ["c"]
    table.reset_consumer("d")
    assert table.expire_snapshots(retain_max=1, retain_min=1).ids == (3,)


def test_changelogs_outlive_their_snapshots(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    store = make(url, "day", **{"changelog.num-retained.min": "20", "changelog.num-retained.max": "30"})
    for n in range(3):
        append(open_target(store), [{"k": n, "day": "d"}])
    table = PaimonTable.forPath(url)
    assert table.expire_snapshots(retain_max=1, retain_min=1).ids == (1, 2)
    assert sorted(p.name for p in Path(url, "changelog").iterdir()) == [
        "EARLIEST",
        "LATEST",
        "changelog-1",
        "changelog-2",
    ]
    assert table.remove_orphan_files(int(time.time() * 1000) - 1, dry_run=True).count == 0
    assert table.expire_changelogs(delete_all=True).ids == (1, 2)
    assert ks(store) == [0, 1, 2]


def test_orphans_are_old_and_lie_where_files_of_tables_lie(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = overwritten(url)
    for place in ("day=d/bucket-0/data-x.parquet", "manifest/manifest-x", "snapshot/.snapshot-1.tmp", "notes/x", "x"):
        Path(url, place).parent.mkdir(parents=True, exist_ok=True)
        Path(url, place).write_bytes(b"1")
    assert table.remove_orphan_files().count == 0
    with pytest.raises(InvalidRequest):
        table.remove_orphan_files("2999-01-01")
    time.sleep(0.01)
    found = table.remove_orphan_files(int(time.time() * 1000) - 1)
    assert sorted(found.files["path"].to_pylist()) == [
        "day=d/bucket-0/data-x.parquet", "manifest/manifest-x", "snapshot/.snapshot-1.tmp",
    ]  # fmt: skip
    assert ks(table._store, version=1) == [0]


def test_no_orphan_is_looked_for_where_it_cannot_be_told(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = overwritten(url)
    Path(url, "manifest/stray").write_bytes(b"1")
    for manifest in Path(url, "manifest").glob("manifest-*-0"):
        manifest.unlink()
    time.sleep(0.01)
    with pytest.raises(CorruptTable) as raised:
        table.remove_orphan_files(int(time.time() * 1000) - 1)
    assert raised.value.code == "missing-manifest"
    assert Path(url, "manifest/stray").exists()
