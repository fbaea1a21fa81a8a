"""Points of random histories: which snapshot a reader gets, beside plain loops over a list."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from alluvium.errors import InvalidRequest, NotFound
from alluvium.paimon.log.names import directory, ensure_name, list_branches, list_names, list_numbers, renamed_mark
from alluvium.paimon.log.travel import (
    At,
    find_since,
    find_since_watermark,
    find_snapshot,
    find_until_watermark,
    kept_by,
    list_snapshots,
    parse_at,
    read_changelog,
)
from alluvium.paimon.terms.spec import SnapshotDocument
from alluvium.storage.stores.memory import MemoryStore


@dataclass(frozen=True)
class Known:
    id: int
    time_ms: int
    watermark: int | None


def put(store: MemoryStore, path: str, one: Known) -> None:
    document = {"version": 3, "id": one.id, "schemaId": 0, "baseManifestList": "b", "deltaManifestList": "d", "commitUser": "u",
                "commitIdentifier": one.id, "commitKind": "APPEND", "timeMillis": one.time_ms}  # fmt: skip
    store.put(path, json.dumps(document | ({} if one.watermark is None else {"watermark": one.watermark})).encode())


def history(seed: int, branch: str) -> tuple[MemoryStore, list[Known], dict[str, Known]]:
    """Snapshots, the oldest of which may have expired, and tags of some of them."""
    lot, store = random.Random(seed), MemoryStore(uuid.uuid4().hex, "/t")
    time_ms, every = 100, []
    for number in range(1, lot.randint(1, 12)):
        time_ms += lot.choice([0, 1, 5])
        every.append(Known(number, time_ms, lot.choice([None, *range(4)])))
    there = every[lot.randint(0, len(every)) :]
    tags = {f"t{n}": lot.choice(every) for n in range(lot.randint(0, 3))} if every else {}
    for one in there:
        put(store, f"{directory(branch, 'snapshot')}/snapshot-{one.id}", one)
    for name, one in tags.items():
        put(store, f"{directory(branch, 'tag')}/tag-{name}", one)
    # What is none of the table's snapshots.
    for name in ("LATEST", "EARLIEST", "snapshot-", "snapshot-01", "snapshot-x", "snapshot-99999999999999999999"):
        store.put(f"{directory(branch, 'snapshot')}/{name}", b"1")
    return store, there, tags


def told(act: Callable[[], SnapshotDocument | None]) -> int | str | None:
    try:
        document = act()
    except NotFound as error:
        return error.code
    return None if document is None else document.id


@pytest.mark.parametrize("branch", ["main", "b"])
@pytest.mark.parametrize("seed", range(10))
def test_beside_a_list(seed: int, branch: str) -> None:
    store, there, tags = history(seed, branch)
    ids = [one.id for one in there]
    assert list_snapshots(store, branch) == ids
    assert told(lambda: find_snapshot(store, At(), branch)) == (ids[-1] if ids else None)
    for time_ms in range(99, (there[-1].time_ms if there else 99) + 3):
        until, since = ([o.id for o in there if o.time_ms <= time_ms], [o.id for o in there if o.time_ms >= time_ms])
        assert told(lambda t=time_ms: find_snapshot(store, At(timestamp_ms=t), branch)) == (
            until[-1] if until else "no-snapshot-before"
        )
        assert told(lambda t=time_ms: find_since(store, t, branch)) == (since[0] if since else "snapshot-not-found")
    for mark in range(-1, 6):
        reached = [o.id for o in there if o.watermark is not None and o.watermark >= mark]
        assert told(lambda m=mark: find_snapshot(store, At(watermark=m), branch)) == (
            reached[0] if reached else "snapshot-not-found"
        )
        before = [o.id for o in there if o.watermark is not None and o.watermark <= mark]
        assert told(lambda m=mark: find_until_watermark(store, m, branch)) == (
            before[-1] if before else "snapshot-not-found"
        )
        kept = sorted(
            (o.watermark, o.id) for o in (*there, *tags.values()) if o.watermark is not None and o.watermark >= mark
        )
        assert told(lambda m=mark: find_since_watermark(store, m, branch)) == (
            kept[0][1] if kept else "snapshot-not-found"
        )
    for number in range(15):
        code = "snapshot-expired" if ids and 0 < number < ids[0] else "snapshot-not-found"
        assert told(lambda n=number: find_snapshot(store, At(snapshot_id=n), branch)) == (
            number if number in ids else code
        )
        names = sorted(name for name, one in tags.items() if one.id == number)
        assert kept_by(store, number, branch) == (None if number in ids or not names else names[0])


def test_a_changelog_outlives_its_snapshot() -> None:
    store = MemoryStore(uuid.uuid4().hex, "/t")
    put(store, "snapshot/snapshot-4", Known(4, 400, None))
    put(store, "changelog/changelog-3", Known(3, 300, None))
    put(store, "changelog/changelog-4", Known(4, 0, None))
    put(store, "branch/branch-b/changelog/changelog-2", Known(2, 200, None))
    assert read_changelog(store, 3).time_millis == 300 and read_changelog(store, 4).time_millis == 400
    assert read_changelog(store, 2, "b").time_millis == 200
    assert told(lambda: read_changelog(store, 2)) == "snapshot-expired"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, At()), ({"scan.snapshot-id": "7"}, At(snapshot_id=7)), ({"scan.tag-name": "7"}, At(tag="7")),
        ({"scan.timestamp-millis": "70"}, At(timestamp_ms=70)), ({"scan.timestamp": "1970-01-01 00:00:01.5"}, At(timestamp_ms=1500)),
        ({"scan.timestamp": "1970-01-01T02:00:00+02:00"}, At(timestamp_ms=0)), ({"scan.watermark": "-3"}, At(watermark=-3)),
        ({"scan.version": "x"}, At(version="x")), ({"scan.mode": "latest"}, At()),
        ({"scan.snapshot-id": "x"}, "invalid-version"), ({"scan.watermark": "1.5"}, "invalid-version"),
        ({"scan.timestamp": "noon"}, "invalid-timestamp"), ({"scan.version": "1", "scan.watermark": "2"}, "version-and-timestamp"),
    ],
    ids=str,
)  # fmt: skip
def test_points_by_options(options: dict[str, str], expected: At | str) -> None:
    if isinstance(expected, str):
        with pytest.raises(InvalidRequest) as caught:
            parse_at(At(), options)
        assert caught.value.code == expected
        return
    assert parse_at(At(), options) == expected and expected.is_latest == (expected == At())
    if not expected.is_latest:
        with pytest.raises(InvalidRequest) as caught:
            parse_at(At(snapshot_id=1), options)
        assert caught.value.code == "version-and-timestamp"


def test_times_in_the_sessions_zone() -> None:
    assert parse_at(At(), {"scan.timestamp": "1970-01-01 02:00:00"}, "Africa/Cairo") == At(timestamp_ms=0)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "\x00", "../c"])
def test_names_that_lead_elsewhere(name: str) -> None:
    for act in (lambda: ensure_name(name, "tag"), lambda: directory(name, "tag"), lambda: renamed_mark(name)):
        with pytest.raises(InvalidRequest) as caught:
            act()
        assert caught.value.code == "invalid-name"


def test_where_files_are() -> None:
    assert directory("main", "tag") == "tag" and directory("b", "tag") == "branch/branch-b/tag"
    assert [ensure_name(name, "tag") for name in ("...", "a.b", " ", "ü")] == ["...", "a.b", " ", "ü"]
    assert renamed_mark("b").startswith("branch/branch-b/")


def test_numbers_and_names_of_files() -> None:
    store = MemoryStore(uuid.uuid4().hex, "/t")
    for name in (
        "c-0",
        "c-10",
        "c-9",
        "c-09",
        "c-9223372036854775807",
        "c-9223372036854775808",
        "c-",
        "c--1",
        "c-1 ",
        "d-5",
        "xc-3",
        "c-٣",
    ):
        store.put(f"f/{name}", b"")
    assert list_numbers(store, "f", "c-") == [0, 9, 10, 2**63 - 1]
    assert sorted(list_names(store, "f", "d-")) == ["5"] and list_names(store, "f", "z") == []


def test_branches_are_folders_with_something_in_them() -> None:
    store = MemoryStore(uuid.uuid4().hex, "/t")
    for path in ("branch-b/schema/schema-0", "branch-a/snapshot/snapshot-1", "branch-a/tag/tag-x", "branch-c/consumer/consumer-1",
                 "branchd/schema/schema-0", "branch-e/_renamed", "branch-f-g/tag/tag-x"):  # fmt: skip
        store.put(f"branch/{path}", b"")
    assert list_branches(store) == ["a", "b", "f-g"]
