"""Which snapshots are kept, for how long, and for whom: the rules of the memory, beside a clock of the test's own."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from alluvium.delta.log.segment import LogSegment
from alluvium.delta.view import recent
from alluvium.delta.view.recent import RecentSnapshots
from alluvium.storage.store import ObjectInfo

#: When files are listed here, in milliseconds.
NOW = 1_000_000


@dataclass(frozen=True)
class State:
    segment: LogSegment
    files: pa.Table
    tombstones: pa.Table


@dataclass(frozen=True)
class Place:
    url: str = "memory://x/t"


@dataclass(frozen=True)
class Snapshot:
    """What the memory looks at."""

    store: Place
    state: State


def info(name: str, modified_ms: int = 0, size: int = 1, identity: str = "i") -> ObjectInfo:
    return ObjectInfo(name, size, modified_ms, identity)


def segment_of(*commits: ObjectInfo, checkpoint: tuple[ObjectInfo, ...] = ()) -> LogSegment:
    return LogSegment(len(commits) - 1, None, checkpoint, commits, 0)


def made(segment: LogSegment, size_bytes: int = 8, url: str = "memory://x/t", tombstones: int = 0) -> Any:
    files, gone = (pa.table({"x": pa.array([0] * (count // 8), pa.int64())}) for count in (size_bytes, tombstones))
    return Snapshot(Place(url), State(segment, files, gone))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [50.0]

    class Time:
        @staticmethod
        def monotonic() -> float:
            return now[0]

    monkeypatch.setattr(recent, "time", Time)
    return now


PLAIN = segment_of(info("0"), info("1"))


def kept(key: str, segment: LogSegment, snapshot: Any, listed_ms: int = NOW) -> bool:
    memory: RecentSnapshots[Any] = RecentSnapshots()
    memory.keep(key, segment, snapshot, listed_ms)
    return memory.find(key, segment) is snapshot


def test_of_the_same_files_or_of_more(clock: list[float]) -> None:
    memory: RecentSnapshots[Any] = RecentSnapshots()
    snapshot = made(PLAIN)
    memory.keep("k", PLAIN, snapshot, NOW)
    assert memory.find("k", PLAIN) is snapshot
    assert memory.find("k", segment_of(info("0"), info("1"), info("2"))) is snapshot
    others = (
        segment_of(info("0")), segment_of(info("0"), info("2")), segment_of(info("1"), info("0")), segment_of(info("0"), info("1", size=2)),
        segment_of(info("0"), info("1", modified_ms=5)), segment_of(info("0"), info("1", identity="j")), segment_of(),
        segment_of(info("0"), info("1"), checkpoint=(info("c"),)),
    )  # fmt: skip
    assert [memory.find("k", one) for one in others] == [None] * len(others)
    assert memory.find("other", PLAIN) is None
    memory.clear()
    assert memory.find("k", PLAIN) is None
    with_checkpoint = segment_of(info("3"), checkpoint=(info("c"), info("d")))
    assert kept("k", with_checkpoint, made(with_checkpoint))
    newer = made(PLAIN)
    memory.keep("k", PLAIN, snapshot, NOW)
    memory.keep("k", PLAIN, newer, NOW)
    assert memory.find("k", PLAIN) is newer


@pytest.mark.parametrize(
    ("url", "identity", "settled_ms"),
    [
        ("memory://x/t", "i", 50),
        ("/x/t", "i", 50),
        ("file:/x/t", "i", 50),
        ("memory://x/t", "", 2_000),
        ("s3://b/t", "i", 2_000),
        ("s3://b/t", "", 2_000),
    ],
)
def test_files_that_have_just_changed_are_not_known(url: str, identity: str, settled_ms: int) -> None:
    """By their time alone somebody could have put others in their place; near ones that tell themselves apart settle sooner."""
    for age, fine in ((settled_ms, True), (settled_ms - 1, False), (0, False), (settled_ms + 1, True)):
        for place in range(3):
            infos = [info(str(n), NOW - 10_000 if n != place else NOW - age) for n in range(3)]
            infos[1] = replace(infos[1], identity=identity)
            segment = segment_of(*infos[1:], checkpoint=(infos[0],))
            assert kept("k", segment, made(segment, url=url)) == fine, (age, place)


def test_a_log_without_files_is_as_old_as_its_listing() -> None:
    assert not kept("k", segment_of(), made(segment_of()))


def test_what_was_read_from_other_files_is_not_kept() -> None:
    assert kept("k", PLAIN, made(PLAIN))
    assert not kept("k", PLAIN, made(segment_of(info("0"), info("1"), checkpoint=(info("c"),))))
    assert not kept("k", PLAIN, made(replace(PLAIN, version=9)))


def test_how_large_one_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what was removed."""
    monkeypatch.setattr(recent, "MAX_BYTES", 80)
    for files, gone, fine in ((80, 0, True), (40, 40, True), (88, 0, False), (0, 88, False), (48, 40, False)):
        assert kept("k", PLAIN, made(PLAIN, files, tombstones=gone)) == fine


@pytest.mark.parametrize("seed", range(10))
def test_who_is_let_go(seed: int, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a plain list: who was idle for long, then the oldest while they are too many or too large."""
    most, most_bytes = 4, 200
    monkeypatch.setattr(recent, "MAX_SNAPSHOTS", most)
    monkeypatch.setattr(recent, "MAX_BYTES", most_bytes)
    lot = random.Random(seed)
    memory: RecentSnapshots[Any] = RecentSnapshots()
    known: list[tuple[str, float, int]] = []
    for _ in range(120):
        clock[0] += lot.choice([0, 1, 300, 450.0, 900.0, 901.0])
        key = lot.choice("abcdefg")
        if lot.random() < 0.5:
            found = memory.find(key, PLAIN)
            place = next((n for n, one in enumerate(known) if one[0] == key), None)
            assert (found is not None) == (place is not None), key
            if place is not None:
                _, _, size = known.pop(place)
                known.append((key, clock[0], size))
            continue
        size = 8 * lot.randint(1, 12)
        memory.keep(key, PLAIN, made(PLAIN, size), NOW)
        known = [one for one in known if one[0] != key] + [(key, clock[0], size)]
        for one in list(known):
            too_many = len(known) > most or sum(each[2] for each in known) > most_bytes
            if clock[0] - one[1] > recent.MAX_IDLE_S or too_many:
                known.remove(one)
    assert recent.MAX_IDLE_S == 900


def test_what_all_of_them_may_hold() -> None:
    assert (recent.MAX_BYTES, recent.MAX_SNAPSHOTS, recent.SETTLED_MS, recent.SETTLED_NEAR_MS) == (
        512 << 20,
        64,
        2_000,
        50,
    )
