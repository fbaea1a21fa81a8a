"""Points of history by all that names them: options, times from behind, watermarks, tags; and what errors say of those there are."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from alluvium.errors import InvalidRequest, NotFound
from alluvium.paimon.log.travel import (
    At,
    find_since,
    find_since_watermark,
    find_snapshot,
    find_until_watermark,
    kept_by,
    list_tags,
    parse_at,
    read_changelog,
    read_snapshot,
    read_snapshots,
)
from alluvium.paimon.terms.spec import SnapshotDocument
from alluvium.storage.stores.memory import MemoryStore

FOLDERS = {"main": "", "b": "branch/branch-b/"}


def document(number: int, time_ms: int = 0, watermark: int | None = None) -> bytes:
    said: dict[str, Any] = {
        "version": 3, "id": number, "schemaId": 0, "baseManifestList": "base", "deltaManifestList": "delta",
        "commitUser": "somebody", "commitIdentifier": number, "commitKind": "APPEND", "timeMillis": time_ms,
    }  # fmt: skip
    return json.dumps(said if watermark is None else {**said, "watermark": watermark}).encode()


def history(
    times: dict[int, int], watermarks: dict[int, int | None] | None = None, branch: str = "main"
) -> MemoryStore:
    """Snapshots at these times, by their numbers."""
    store = MemoryStore(str(uuid.uuid4()), "t")
    for number, time_ms in times.items():
        data = document(number, time_ms, (watermarks or {}).get(number))
        store.put(f"{FOLDERS[branch]}snapshot/snapshot-{number}", data)
    return store


def tag(store: MemoryStore, name: str, number: int, watermark: int | None = None, branch: str = "main") -> None:
    store.put(f"{FOLDERS[branch]}tag/tag-{name}", document(number, 0, watermark))


@pytest.mark.parametrize("branch", ["main", "b"])
def test_times_beside_a_plain_loop(branch: str) -> None:
    lot = random.Random(3)
    for count in (0, 1, 2, 3, 5, 8):
        first = lot.randint(1, 4)
        times = sorted(lot.randint(0, 12) for _ in range(count))
        store = history({first + n: time for n, time in enumerate(times)}, branch=branch)
        for moment in range(-1, 14):
            since = [first + n for n, time in enumerate(times) if time >= moment]
            until = [first + n for n, time in enumerate(times) if time <= moment]
            if since:
                assert find_since(store, moment, branch).id == since[0]
            else:
                with pytest.raises(NotFound) as caught:
                    find_since(store, moment, branch)
                last = f"the latest snapshot was made at {times[-1]} ms" if times else "the table has no snapshot"
                assert (caught.value.code, caught.value.hint) == ("snapshot-not-found", last)
            if until:
                found = find_snapshot(store, At(timestamp_ms=moment), branch)
                assert found is not None and found.id == until[-1]
            else:
                with pytest.raises(NotFound) as caught:
                    find_snapshot(store, At(timestamp_ms=moment), branch)
                begun = f"the earliest snapshot was made at {times[0]} ms" if times else "the table has no snapshot"
                assert (caught.value.code, caught.value.hint) == ("no-snapshot-before", begun)


@pytest.mark.parametrize("branch", ["main", "b"])
def test_watermarks_beside_a_plain_loop(branch: str) -> None:
    lot = random.Random(4)
    for _ in range(12):
        marks = {n: lot.choice([None, lot.randint(-5, 9)]) for n in range(1, lot.randint(1, 6))}
        store = history(dict.fromkeys(marks, 0), marks, branch)
        kept = {f"t{n}": (lot.randint(7, 9), lot.choice([None, lot.randint(-5, 9)])) for n in range(lot.randint(0, 3))}
        for name, (number, mark) in kept.items():
            tag(store, name, number, mark, branch)
        known = [(mark, n) for n, mark in marks.items() if mark is not None]
        with_tags = known + [(mark, n) for n, mark in kept.values() if mark is not None]
        for wanted in range(-7, 11):
            until = [n for mark, n in known if mark <= wanted]
            at = [n for mark, n in known if mark >= wanted]
            since = sorted(one for one in with_tags if one[0] >= wanted)
            latest = f"the latest watermark is {max(known)[0]}" if known else "no snapshot has a watermark"
            assert asked(find_since_watermark, store, wanted, branch) == (since[0][1] if since else None)
            assert asked(find_until_watermark, store, wanted, branch) == (until[-1] if until else None)
            assert asked(find_snapshot, store, At(watermark=wanted), branch) == (at[0] if at else None)
            if not at:
                with pytest.raises(NotFound) as caught:
                    find_snapshot(store, At(watermark=wanted), branch)
                assert caught.value.hint == latest
        with pytest.raises(NotFound) as caught:
            find_until_watermark(store, -99, branch)
        least = f"the earliest watermark is {min(known)[0]}" if known else "no snapshot has a watermark"
        assert caught.value.hint == least
        with pytest.raises(NotFound) as caught:
            find_since_watermark(store, 99, branch)
        most = f"the latest watermark is {max(with_tags)[0]}" if with_tags else "no snapshot has a watermark"
        assert caught.value.hint == most


def asked(find: Callable[..., SnapshotDocument | None], *arguments: object) -> int | None:
    try:
        found = find(*arguments)
    except NotFound as error:
        assert error.code == "snapshot-not-found"
        return None
    return None if found is None else found.id


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, At()),
        ({"scan.snapshot-id": "7"}, At(snapshot_id=7)),
        ({"scan.tag-name": "7"}, At(tag="7")),
        ({"scan.version": "7"}, At(version="7")),
        ({"scan.watermark": "-7"}, At(watermark=-7)),
        ({"scan.timestamp-millis": "1500"}, At(timestamp_ms=1500)),
        ({"scan.timestamp": "1970-01-01 00:00:01.2345"}, At(timestamp_ms=1234)),
        ({"scan.timestamp": "1969-12-31 23:59:59.9995"}, At(timestamp_ms=-1)),
        ({"scan.mode": "latest"}, At()),
    ],
)
def test_options_that_name_a_point(options: dict[str, str], wanted: At) -> None:
    assert parse_at(At(), options) == wanted
    assert wanted.is_latest is (wanted == At())


def test_times_are_of_the_zone_of_whoever_asks() -> None:
    options = {"scan.timestamp": "1970-01-01 01:00:00"}
    assert parse_at(At(), options, "Europe/Berlin") == At(timestamp_ms=0)
    assert parse_at(At(), options, "America/New_York") == At(timestamp_ms=6 * 3_600_000)


def test_more_than_one_point_is_none() -> None:
    for at, options, named in (
        (At(snapshot_id=1), {"scan.tag-name": "a"}, "scan.tag-name"),
        (At(timestamp_ms=0), {"scan.timestamp-millis": "0"}, "scan.timestamp-millis"),
        (At(), {"scan.version": "1", "scan.watermark": "1"}, "scan.version"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            parse_at(at, options)
        assert caught.value.code == "version-and-timestamp"
        assert named in (caught.value.hint or "")
    for name, code in (("snapshot-id", "version"), ("watermark", "version"), ("timestamp-millis", "version"), ("timestamp", "timestamp")):  # fmt: skip
        with pytest.raises(InvalidRequest) as caught:
            parse_at(At(), {f"scan.{name}": "soon"})
        assert caught.value.code == f"invalid-{code}" and f"scan.{name}" in caught.value.message
    assert parse_at(At(tag="a"), {"scan.mode": "x"}) == At(tag="a")


@pytest.mark.parametrize("branch", ["main", "b"])
def test_what_is_said_of_a_snapshot_that_is_not_there(branch: str) -> None:
    store = history({4: 0, 5: 0, 6: 0}, branch=branch)
    for number, code in ((3, "snapshot-expired"), (1, "snapshot-expired"), (0, "snapshot-not-found"),
                         (-1, "snapshot-not-found"), (7, "snapshot-not-found")):  # fmt: skip
        for act in (
            lambda number=number: read_snapshot(store, number, branch),
            lambda number=number: read_changelog(store, number, branch),
            lambda number=number: find_snapshot(store, At(snapshot_id=number), branch),
        ):
            with pytest.raises(NotFound) as caught:
                act()
            assert (caught.value.code, caught.value.version) == (code, number)
            assert caught.value.hint == "snapshots 4 to 6 exist"
    assert [one.id for one in read_snapshots(store, branch)] == [4, 5, 6]
    other = "b" if branch == "main" else "main"
    with pytest.raises(NotFound) as caught:
        read_snapshot(store, 4, other)
    assert (caught.value.code, caught.value.version, caught.value.hint) == ("snapshot-not-found", 4, None)
    assert read_snapshots(store, other) == [] and find_snapshot(store, At(), other) is None


@pytest.mark.parametrize("branch", ["main", "b"])
def test_a_changelog_stands_in_for_its_snapshot_alone(branch: str) -> None:
    store = history({3: 30}, branch=branch)
    store.put(f"{FOLDERS[branch]}changelog/changelog-2", document(2, 20))
    store.put(f"{FOLDERS[branch]}changelog/changelog-3", document(3, 99))
    assert [read_changelog(store, n, branch).time_millis for n in (2, 3)] == [20, 30]
    with pytest.raises(NotFound) as caught:
        read_changelog(store, 1, branch)
    assert caught.value.code == "snapshot-expired"


@pytest.mark.parametrize("branch", ["main", "b"])
def test_which_tag_keeps_a_snapshot_and_which_tags_there_are(branch: str) -> None:
    store = history({3: 0}, branch=branch)
    with pytest.raises(NotFound) as caught:
        find_snapshot(store, At(tag="x"), branch)
    assert (caught.value.code, caught.value.hint) == ("tag-not-found", "the table has no tags")
    for name, number in (("one", 1), ("uno", 1), ("three", 3)):
        tag(store, name, number, branch=branch)
    assert [kept_by(store, number, branch) for number in (1, 2, 3)] == [sorted(list_tags(store, branch))[0], None, None]
    for n in range(20):
        tag(store, f"zz{n:02}", 3, branch=branch)
    with pytest.raises(NotFound) as caught:
        find_snapshot(store, At(tag="x"), branch)
    named = (caught.value.hint or "").removeprefix("tags: ").split(", ")
    assert len(named) == 12 and set(named) < set(list_tags(store, branch))
    for version in ("x", "12x", "watermark-"):
        with pytest.raises(NotFound) as caught:
            find_snapshot(store, At(version=version), branch)
        assert caught.value.code == "tag-not-found"
