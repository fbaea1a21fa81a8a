"""Which versions a range means. The rules were measured with delta-spark 4.4, as the specification is silent."""

from __future__ import annotations

import itertools
import random

import pytest

from alluvium.delta.changes.bounds import Bound, Clock, Range, resolve_range
from alluvium.delta.features.log.in_commit_timestamp import Enablement
from alluvium.delta.log.names import commit_path
from alluvium.errors import InvalidRequest, NotFound
from alluvium.storage.store import ObjectInfo
from alluvium.storage.stores.memory import MemoryStore

LATEST = 4


def clock(first: int = 0, missing: int | None = None) -> Clock:
    """Version n was committed n seconds after 1970, in milliseconds."""
    versions = (v for v in range(first, LATEST + 1) if v != missing)
    commits = {v: ObjectInfo(commit_path(v), 1, v * 1000) for v in versions}
    return Clock(MemoryStore("bounds", "/t"), commits, None)


def at(milliseconds: int) -> Bound:
    return Bound(timestamp_ms=milliseconds)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (Bound(1), Bound(2), (1, 2)),
        (Bound(4), None, (4, 4)),
        (Bound(3), Bound(9), (3, 4)),
        (at(-100), None, (0, 4)),
        (at(1000), at(2000), (1, 2)),
        (at(1010), at(2010), (2, 2)),
        (at(4000), None, (4, 4)),
        (Bound(0), at(3999), (0, 3)),
        (at(2500), Bound(3), (3, 3)),
    ],
)
def test_ranges(start: Bound, end: Bound | None, expected: tuple[int, int]) -> None:
    assert resolve_range(clock(), LATEST, start, end) == Range(*expected)


def test_two_times_between_two_commits_are_an_empty_range() -> None:
    assert resolve_range(clock(), LATEST, at(1010), at(1020)).is_empty


@pytest.mark.parametrize(
    ("start", "end"),
    [(Bound(5), None), (Bound(5), Bound(5)), (at(4010), None), (at(3000), at(4010)), (Bound(0), at(-10))],
)
def test_ranges_beyond_the_table(start: Bound, end: Bound | None) -> None:
    with pytest.raises(NotFound) as caught:
        resolve_range(clock(), LATEST, start, end)
    assert caught.value.code == "missing-version"


def test_ranges_beyond_the_latest_version_are_empty_where_that_is_allowed() -> None:
    assert resolve_range(clock(), LATEST, Bound(5), None, allow_out_of_range=True).is_empty
    assert resolve_range(clock(), LATEST, at(4010), None, allow_out_of_range=True).is_empty
    assert resolve_range(clock(), LATEST, at(3000), at(9000), allow_out_of_range=True) == Range(3, 4)


@pytest.mark.parametrize(("start", "end"), [(Bound(3), Bound(1)), (at(2000), at(1000)), (at(1020), at(1010))])
def test_a_range_that_ends_before_it_starts(start: Bound, end: Bound) -> None:
    with pytest.raises(InvalidRequest) as caught:
        resolve_range(clock(), LATEST, start, end)
    assert caught.value.code == "invalid-range"


def test_a_commit_that_is_gone() -> None:
    with pytest.raises(NotFound) as caught:
        resolve_range(clock(missing=2), LATEST, Bound(1), None)
    assert (caught.value.version, caught.value.path) == (2, commit_path(2))
    assert resolve_range(clock(missing=2), LATEST, Bound(3), None) == Range(3, 4)


def test_times_of_files_before_in_commit_timestamps_do_not_reach_into_theirs() -> None:
    """ "If `timestamp X` >= `delta.inCommitTimestampEnablementTimestamp`, only table versions >=
    `delta.inCommitTimestampEnablementVersion` should be considered for the query."
    """
    commits = {v: ObjectInfo(commit_path(v), 1, 9_000) for v in range(3)}
    own = Clock(MemoryStore("bounds", "/t"), commits, Enablement(1, 5_000))
    own.learn(1, 5_000)
    own.learn(2, 6_000)
    assert resolve_range(own, 2, at(5_000), at(5_500)) == Range(1, 1)
    assert [own.time_of(v) for v in range(3)] == [9_000, 5_000, 6_000]


def test_a_log_without_commits() -> None:
    with pytest.raises(NotFound) as caught:
        resolve_range(Clock(MemoryStore("bounds", "/t"), {}, None), LATEST, Bound(0), None)
    assert caught.value.code == "not-a-table"


def beside(times: dict[int, int], latest: int, start: Bound, end: Bound | None, late: bool) -> tuple[int, int] | str:
    """The same by a plain loop: the range, or the code of the error. `times`: when versions count as committed."""
    first = start.version
    if first is None:
        assert start.timestamp_ms is not None
        first = next((v for v, ms in times.items() if ms >= start.timestamp_ms), max(times) + 1)
    if first > latest:
        return (first, first - 1) if late else "missing-version"
    last = latest if end is None else end.version
    if last is None:
        assert end is not None and end.timestamp_ms is not None
        until = [v for v, ms in times.items() if ms <= end.timestamp_ms]
        if not until or (end.timestamp_ms > times[latest] and not late):
            return "missing-version"
        last = until[-1]
        if start.timestamp_ms is not None:
            if start.timestamp_ms > end.timestamp_ms:
                return "invalid-range"
            if last == first - 1:
                return first, last
    if last < first:
        return "invalid-range"
    last = min(last, latest)
    return (first, last) if all(v in times for v in range(first, last + 1)) else "missing-version"


@pytest.mark.parametrize("seed", range(40))
def test_random_ranges_beside_a_loop(seed: int) -> None:
    lot = random.Random(seed)
    first, count = lot.choice([0, 0, 3]), lot.randint(1, 6)
    moments = itertools.accumulate(lot.randint(1, 3) for _ in range(count))
    times = dict(zip(range(first, first + count), moments, strict=True))
    latest = max(times)
    if lot.random() < 0.3 and count > 2:
        del times[lot.randrange(first, latest)]
    own = Clock(MemoryStore("bounds", "/t"), {v: ObjectInfo(commit_path(v), 1, ms) for v, ms in times.items()}, None)

    def bound() -> Bound:
        by_version = lot.random() < 0.4
        return Bound(lot.randint(0, latest + 2)) if by_version else at(lot.randint(-1, max(times.values()) + 3))

    for _ in range(60):
        start, end, late = bound(), lot.choice([None, bound()]), lot.random() < 0.5
        expected = beside(times, latest, start, end, late)
        try:
            found = resolve_range(own, latest, start, end, allow_out_of_range=late)
        except (NotFound, InvalidRequest) as error:
            assert error.code == expected, (start, end, late)
        else:
            assert (found.first, found.last) == expected, (start, end, late)
            assert found.is_empty == (found.last < found.first)


def test_what_is_said_of_a_range_that_is_not_there() -> None:
    def said(start: Bound, end: Bound | None, own: Clock | None = None) -> tuple[str, str | None, int | None]:
        with pytest.raises((NotFound, InvalidRequest)) as caught:
            resolve_range(own or clock(), LATEST, start, end)
        return caught.value.message, caught.value.hint, caught.value.version

    second = "1970-01-01 00:00:0{}.000"
    message, _, version = said(Bound(7), None)
    assert (
        version == 7 and "start version 7" in message and "latest version 4" in message and second.format(4) in message
    )
    message, _, version = said(at(6_000), None)
    assert version is None and second.format(6) in message and second.format(4) in message
    message, hint, _ = said(Bound(1), at(500), clock(first=1))
    assert "before version 1" in message and hint is not None and second.format(1) in hint
    message, hint, _ = said(Bound(1), at(7_000))
    assert second.format(7) in message and second.format(4) in message and "leave the end out" in str(hint)
    message, _, _ = said(Bound(3), Bound(1))
    assert "ends (version 1) before it starts (version 3)" in message
    message, _, _ = said(at(3_000), at(1_000))
    assert f"ends ({second.format(1)}" in message and f"starts ({second.format(3)}" in message
    message, hint, version = said(Bound(0), None, clock(first=2))
    assert (version, hint) == (0, "ask for changes from version 2 on") and "version 0 " in message
    message, hint, version = said(Bound(1), None, clock(missing=4))
    assert (version, hint) == (4, None)


def test_times_that_commits_carry_are_read_once() -> None:
    """And only of the versions that must carry one, be a file's time what it may."""
    store = MemoryStore("bounds-carried", "/t")
    for version in range(3):
        store.put(commit_path(version), b'{"commitInfo":{"inCommitTimestamp":%d}}' % (100 + version))
    commits = {v: ObjectInfo(commit_path(v), 1, 9_000 + v) for v in range(3)}
    own = Clock(store, commits, Enablement(1, 101))
    assert [own.is_carried(v) for v in range(3)] == [False, True, True]
    assert [own.time_of(v) for v in range(3)] == [9_000, 101, 102]
    assert [own.ordered_time_of(v) for v in range(3)] == [100, 101, 102]
    own.learn(2, 555)
    for version in range(3):
        store.delete(commit_path(version))
    assert [own.time_of(v) for v in range(3)] == [9_000, 101, 555]
    # Where it is not said since when, files' times count as they are.
    assert Clock(store, commits, Enablement(1, None)).ordered_time_of(0) == 9_000
    assert Clock(store, commits, None).ordered_time_of(2) == 9_002
    assert not any(Clock(store, commits, None).is_carried(v) for v in range(3))


def test_a_file_s_time_is_cut_only_where_it_reaches_into_the_others() -> None:
    commits = {v: ObjectInfo(commit_path(v), 1, 1_000 * (v + 1)) for v in range(4)}
    own = Clock(MemoryStore("bounds", "/t"), commits, Enablement(3, 2_500))
    assert [own.ordered_time_of(v) for v in range(3)] == [1_000, 2_000, 2_499]
