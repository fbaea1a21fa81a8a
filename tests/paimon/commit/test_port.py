"""What a commit lands on: the newest state, though the one that it was made on has expired, or was rolled back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target

import alluvium
from alluvium.api.paimon.paimon_pins import open_pinned, paimon_pins
from alluvium.commit.loop import Entry
from alluvium.errors import CommitConflict
from alluvium.paimon import PaimonTable
from alluvium.paimon.commit.assemble import assemble
from alluvium.paimon.commit.draft import Draft
from alluvium.paimon.commit.port import point_to
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.view.source import PaimonSource
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


def make(url: str) -> Store:
    PaimonTable.create(url, pa.schema([("k", pa.int32()), ("day", pa.string())]), ["day"])
    return open_store(url)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make(str(tmp_path / "t"))


def ks(store: Store, **at: Any) -> list[int]:
    return sorted(alluvium.open(store.url, **at).to_arrow(columns=["k"])["k"].to_pylist())


def expire(store: Store, *numbers: int) -> None:
    """As `ExpireSnapshots` leaves a table: without the snapshots, and without the manifests that they alone name."""
    for number in numbers:
        document = json.loads(store.get(f"snapshot/snapshot-{number}"))
        store.delete(f"manifest/{document['baseManifestList']}")
        store.delete(f"manifest/{document['deltaManifestList']}")
        store.delete(f"snapshot/snapshot-{number}")
    store.put("snapshot/EARLIEST", str(max(numbers) + 1).encode())


def roll_back(store: Store, last: int, to: int) -> None:
    for number in range(last, to, -1):
        store.delete(f"snapshot/snapshot-{number}")
    store.put("snapshot/LATEST", str(to).encode())


def fill(store: Store, *ks_: int) -> None:
    for k in ks_:
        append(open_target(store), [{"k": k, "day": "a"}])


def test_the_place_behind_an_expired_base_is_not_taken(store: Store) -> None:
    fill(store, 1)
    late = open_target(store)
    fill(store, 2, 3, 4)
    expire(store, 1, 2, 3)
    done = append(late, [{"k": 5, "day": "a"}])
    assert (done.version, ks(store), store.get("snapshot/LATEST")) == (5, [1, 2, 3, 4, 5], b"5")
    assert [info.path for info in store.list_from("snapshot", "snapshot-")] == [
        "snapshot/snapshot-4", "snapshot/snapshot-5",
    ]  # fmt: skip


@pytest.mark.parametrize("given", [{"replace": Replace()}, {"txn": ("job", 1)}], ids=["overwrite", "transaction"])
def test_what_depends_on_expired_commits_conflicts(store: Store, given: dict[str, Any]) -> None:
    fill(store, 1)
    late = open_target(store)
    fill(store, 2, 3, 4)
    expire(store, 1, 2, 3)
    files = len(list(store.list_tree("day=a")))
    with pytest.raises(CommitConflict) as caught:
        append(late, [{"k": 5, "day": "a"}], **given)
    assert caught.value.code == "history-lost"
    assert (ks(store), len(list(store.list_tree("day=a")))) == ([1, 2, 3, 4], files)


def pin(store: Store, **options: str) -> None:
    """As `ALTER TABLE ... SET` leaves it: a schema whose options are more."""
    said = json.loads(store.get("schema/schema-0"))
    said["options"] |= {name.replace("_", "-").replace("scan-", "scan."): value for name, value in options.items()}
    store.put("schema/schema-1", json.dumps({**said, "id": 1}).encode())


PINS = [
    {"scan_snapshot_id": "5"}, {"scan_tag_name": "kept"}, {"scan_version": "kept"},
    {"scan_timestamp": "2000-01-01 00:00:00"}, {"scan_timestamp_millis": "1"}, {"scan_watermark": "7"},
]  # fmt: skip


@pytest.mark.parametrize("options", PINS, ids=lambda options: next(iter(options)))
def test_the_newest_state_is_not_the_one_that_readers_are_pinned_to(store: Store, options: dict[str, str]) -> None:
    """The table's own point in time says what is read where nobody names one, not what commits land on."""
    fill(store, 1, 2, 3, 4, 5, 6)
    store.put("tag/tag-kept", store.get("snapshot/snapshot-2"))
    expire(store, 1, 3, 4)
    store.delete("snapshot/snapshot-2")
    pin(store, **options)
    fill(store, 7)
    assert (max(info.path for info in store.list_from("snapshot", "snapshot-")), store.get("snapshot/LATEST")) == (
        "snapshot/snapshot-7", b"7",
    )  # fmt: skip
    assert ks(store, version=7) == [1, 2, 3, 4, 5, 6, 7]
    assert ks(store, options={"scan.snapshot-id": "6"}) == [1, 2, 3, 4, 5, 6]
    # A worker's copy of an opened state is that state.
    source = PaimonSource(load_snapshot(store, At(snapshot_id=6)))
    pins = {name.casefold(): value for name, value in paimon_pins(source).items()}
    assert open_pinned(store, pins, "UTC", open_store).snapshot.version == 6
    assert source.snapshot.state(7).version == 7


def test_readers_are_where_the_table_pins_them(store: Store) -> None:
    fill(store, 1, 2, 3)
    pin(store, scan_snapshot_id="2")
    assert (ks(store), ks(store, version=3)) == ([1, 2], [1, 2, 3])
    assert alluvium.open(store.url).refresh().version == 2


def test_no_snapshot_goes_below_another(store: Store) -> None:
    """Were an old state taken for the newest, its next place might be free, and the commit in no newer state."""
    fill(store, 1, 2, 3, 4)
    target = open_target(store)
    old = load_snapshot(store, At(snapshot_id=1))
    expire(store, 1, 2)
    with pytest.raises(CommitConflict) as caught:
        assemble(Draft(target.table, ENTRIES.empty_table()), old)
    assert caught.value.code == "history-lost"


def test_after_a_rollback(store: Store) -> None:
    fill(store, 1, 2, 3)
    late, overwriting = open_target(store), open_target(store)
    roll_back(store, last=3, to=1)
    assert append(late, [{"k": 5, "day": "a"}]).version == 2
    assert ks(store) == [1, 5]
    with pytest.raises(CommitConflict) as caught:
        append(overwriting, [{"k": 6, "day": "a"}], Replace())
    assert caught.value.code == "history-lost"


def test_after_a_rollback_and_other_commits(store: Store) -> None:
    fill(store, 1, 2)
    overwriting = open_target(store)
    roll_back(store, last=2, to=1)
    fill(store, 7)
    with pytest.raises(CommitConflict) as caught:
        append(overwriting, [{"k": 6, "day": "a"}], Replace())
    assert caught.value.code == "history-lost"
    assert ks(store) == [1, 7]


@pytest.mark.parametrize("rows", [(), (9,)], ids=["empty", "filled"])
def test_a_table_made_anew(tmp_path: Path, store: Store, rows: tuple[int, ...]) -> None:
    fill(store, 1)
    late = open_target(store)
    for info in list(store.list_tree("")):
        store.delete(info.path)
    make(str(tmp_path / "t"))
    fill(store, *rows)
    known = sorted(info.path for info in store.list_tree(""))
    with pytest.raises(CommitConflict) as caught:
        append(late, [{"k": 2, "day": "a"}])
    assert caught.value.code == "table-replaced"
    assert ks(store) == list(rows)
    left = sorted(info.path for info in store.list_tree("") if not info.path.startswith("_staging"))
    assert left == known


def test_the_hint_never_leads_back(store: Store) -> None:
    fill(store, 1, 2, 3)
    point_to(store, Entry(2, "snapshot/snapshot-2", b""), "main")
    assert store.get("snapshot/LATEST") == b"3"
    # A hint to what is not there is wrong: it is put right.
    for number, hint in enumerate((b"9", b"x", b"9" * 5000), 4):
        store.put("snapshot/LATEST", hint)
        fill(store, number)
        assert store.get("snapshot/LATEST") == str(number).encode()
    assert ks(store) == [1, 2, 3, 4, 5, 6]
