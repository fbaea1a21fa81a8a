"""Which versions a range means. The rules were measured with delta-spark 4.4, as the specification is silent."""

from __future__ import annotations

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
