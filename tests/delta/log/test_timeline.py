from __future__ import annotations

import os
from pathlib import Path

import pytest

from alluvium.delta.features.log.in_commit_timestamp import Enablement
from alluvium.delta.log.checkpoint import CheckpointOptions, format_checkpoint
from alluvium.delta.log.names import checkpoint_paths, commit_path
from alluvium.delta.log.segment import list_log, list_segment
from alluvium.delta.log.state import load_state
from alluvium.delta.log.timeline import (
    CommitTime,
    commit_timestamps,
    file_times,
    format_moment,
    read_commit_infos,
    read_in_commit_timestamp,
    version_among,
    version_at,
)
from alluvium.delta.terms.spec import CommitInfo
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.open import open_store
from alluvium.storage.store import ObjectInfo


@pytest.fixture
def table(log, tmp_path: Path):
    """A table on disk, where files have the times that a test gives them."""
    log.store = open_store(str(tmp_path))
    log.commits(4)

    def set_times(*times_ms: int) -> None:
        for version, time_ms in enumerate(times_ms):
            os.utime(tmp_path / commit_path(version), ns=(time_ms * 10**6, time_ms * 10**6))

    return log.store, set_times


def test_times_increase(table) -> None:
    store, set_times = table
    set_times(1_000, 900, 900, 2_000)
    assert [(time.version, time.timestamp_ms) for time in commit_timestamps(store)] == [
        (0, 1_000), (1, 1_001), (2, 1_002), (3, 2_000),
    ]  # fmt: skip


@pytest.mark.parametrize(("time_ms", "version"), [(1_000, 0), (1_999, 0), (2_000, 1), (3_500, 2), (4_000, 3)])
def test_the_newest_version_at_or_before_a_time(table, time_ms: int, version: int) -> None:
    store, set_times = table
    set_times(1_000, 2_000, 3_000, 4_000)
    assert version_at(store, time_ms) == version


@pytest.mark.parametrize("time_ms", [999, 4_001, -(10**18), 10**18])
def test_a_time_outside_of_the_history(table, time_ms: int) -> None:
    store, set_times = table
    set_times(1_000, 2_000, 3_000, 4_000)
    with pytest.raises(
        NotFound, match=r"versions 0 \(1970-01-01 00:00:01.000.* to 3 \(1970-01-01 00:00:04.000"
    ) as caught:
        version_at(store, time_ms)
    assert caught.value.code == "missing-version"


def test_versions_that_cannot_be_read_do_not_count(table) -> None:
    store, set_times = table
    set_times(1_000, 2_000, 3_000, 4_000)
    state = load_state(store, list_segment(store, 2), lambda protocol: None)
    store.put(checkpoint_paths(2)[0], format_checkpoint(state, CheckpointOptions(0, 0)))
    store.delete(commit_path(0))
    assert version_at(store, 3_000) == 2
    with pytest.raises(NotFound, match="versions 2 "):
        version_at(store, 2_500)


def test_no_table(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        version_at(open_store(str(tmp_path)), 1)
    assert caught.value.code == "not-a-table"


def test_commit_infos(table) -> None:
    store, set_times = table
    path = commit_path(1)
    store.put(path, b'{"txn":{"appId":"commitInfo","version":1}}\n{"commitInfo":{"operation":"WRITE","x":[1]}}\n')
    set_times(1_000, 2_000, 3_000, 4_000)
    assert read_commit_infos(store) == [
        (3, None, 4_000),
        (2, None, 3_000),
        (1, CommitInfo({"operation": "WRITE", "x": [1]}), 2_000),
        (0, None, 1_000),
    ]
    assert [version for version, _, _ in read_commit_infos(store, [0, 2, 77])] == [2, 0]


def test_a_damaged_commit_info_is_named(table) -> None:
    store, _ = table
    store.put(commit_path(1), b'{"commitInfo":{')
    with pytest.raises(CorruptTable) as caught:
        read_commit_infos(store)
    assert (caught.value.code, caught.value.version) == ("damaged-line", 1)


def carrying(log, count: int, first: int = 0, padding: int = 0) -> None:
    """Commits of which each carries its version in seconds, from `first` on."""
    for version in range(count):
        content = {"inCommitTimestamp": 1_000 * version} if version >= first else {"timestamp": 1}
        adds = [log.add(f"f{version}-{n}", stats="x" * 100) for n in range(padding)]
        log.commit(version, [CommitInfo(content), *(log.head() if version == 0 else []), *adds])


@pytest.mark.parametrize("padding", [1, 700])
def test_commits_that_carry_their_time_are_searched(log, padding: int) -> None:
    """Large ones by their first line: "The `commitInfo` action must be the first action in the commit." """
    carrying(log, 9, padding=padding)
    for time_ms in range(0, 8_001, 250):
        assert version_at(log.store, time_ms, Enablement(0, None)) == time_ms // 1_000
    for time_ms in (-1, 8_001):
        with pytest.raises(NotFound, match=r"versions 0 .* to 8"):
            version_at(log.store, time_ms, Enablement(0, None))


def test_few_commits_are_read(log) -> None:
    carrying(log, 200)
    read: list[str] = []
    get = log.store.get
    log.store.get = lambda path: read.append(path) or get(path)
    assert version_at(log.store, 123_400, Enablement(0, None)) == 123
    assert len(read) <= 10


def test_a_commit_info_that_is_not_first_is_found_all_the_same(log) -> None:
    adds = [log.add(f"f{n}", stats="x" * 100) for n in range(700)]
    log.commit(0, [*log.head(), *adds, CommitInfo({"inCommitTimestamp": 77})])
    assert read_in_commit_timestamp(log.store, list_log(log.store).commits[0]) == 77


@pytest.mark.parametrize("content", [{}, {"inCommitTimestamp": "1"}, {"inCommitTimestamp": None}])
def test_a_commit_that_lacks_its_time(log, content: dict[str, object]) -> None:
    carrying(log, 1)
    log.commit(1, [CommitInfo(content), log.add("f")])
    with pytest.raises(CorruptTable) as caught:
        version_at(log.store, 10, Enablement(0, None))
    assert (caught.value.code, caught.value.version) == ("no-in-commit-timestamp", 1)
    # The history is for people to look at: such a commit has its file's time there.
    infos = read_commit_infos(log.store, in_commit=Enablement(0, None))
    assert [(version, time_ms == 0) for version, _, time_ms in infos] == [(1, False), (0, True)]


@pytest.mark.parametrize(
    ("times", "expected"),
    [([], []), ([5], [5]), ([5, 5, 5], [5, 6, 7]), ([5, 3, 6, 20], [5, 6, 7, 20]), ([5, 6, 7], [5, 6, 7]), ([-3, -9], [-3, -2])],
)  # fmt: skip
def test_each_commit_is_younger_than_the_one_before(times: list[int], expected: list[int]) -> None:
    commits = {3 + n: ObjectInfo(commit_path(3 + n), 1, time_ms) for n, time_ms in enumerate(times)}
    assert file_times(commits) == tuple(CommitTime(3 + n, time_ms) for n, time_ms in enumerate(expected))


def test_a_time_among_those_of_some_versions() -> None:
    times = [CommitTime(4, 1_000), CommitTime(5, 2_000), CommitTime(9, 5_000)]
    for time_ms in range(1_000, 5_001, 100):
        assert version_among(times, time_ms) == max(t.version for t in times if t.timestamp_ms <= time_ms)
    for time_ms, side in ((999, "before the first version"), (5_001, "after the newest version")):
        with pytest.raises(NotFound) as caught:
            version_among(times, time_ms)
        error = caught.value
        assert error.code == "missing-version" and f"{format_moment(time_ms)} lies {side}" in error.message
        assert "versions 4 (1970-01-01 00:00:01.000+00:00) to 9 (1970-01-01 00:00:05.000+00:00)" in error.message
        assert error.hint == "ask for a time from 1970-01-01 00:00:01.000+00:00 to 1970-01-01 00:00:05.000+00:00"
    with pytest.raises(NotFound, match="no version's commit is left") as missing:
        version_among([], 1)
    assert missing.value.code == "missing-version"


def test_moments_that_no_calendar_has() -> None:
    assert format_moment(0) == "1970-01-01 00:00:00.000+00:00" and format_moment(1_001).endswith("01.001+00:00")
    assert [format_moment(sign * 10**18) for sign in (1, -1)] == ["1000000000000000000 ms", "-1000000000000000000 ms"]


@pytest.mark.parametrize("first", [1, 4, 8])
def test_versions_from_before_commits_carried_their_time(table, log, first: int) -> None:
    """ "only table versions less than `delta.inCommitTimestampEnablementVersion` should be considered" before the time
    of that version, and those from there on after it.
    """
    store, set_times = table
    carrying(log, 9, first)
    set_times(*(100_000 + 1_000 * n for n in range(9)))
    # The files of the later ones are of times that nobody asks for; the first ones have none but these.
    enabled = Enablement(first, 1_000 * first)
    for version in range(first, 9):
        assert version_at(store, 1_000 * version, enabled) == version
        assert version_at(store, 1_000 * version + 999 * (version < 8), enabled) == version
    before = Enablement(first, 10**9)
    for version in range(first):
        assert version_at(store, 100_000 + 1_000 * version, before) == version
    # A time after the last of them, but before the first that carries one, is the last one's.
    assert version_at(store, 10**9 - 1, before) == first - 1
    with pytest.raises(NotFound, match=f"versions 0 .* to {first - 1}"):
        version_at(store, 99_999, before)


def test_a_history_has_the_times_that_commits_carry_from_a_version_on(table, log) -> None:
    store, set_times = table
    carrying(log, 4, 2)
    set_times(11, 12, 13, 14)
    for enabled, expected in (
        (None, [14, 13, 12, 11]),
        (Enablement(2, 2_000), [3_000, 2_000, 12, 11]),
        (Enablement(3, 0), [3_000, 13, 12, 11]),
    ):
        assert [time_ms for _, _, time_ms in read_commit_infos(store, in_commit=enabled)] == expected


@pytest.mark.parametrize("size", [(1 << 16) - 1, 1 << 16, (1 << 16) + 1])
def test_the_first_line_of_a_large_commit_is_enough(log, size: int) -> None:
    """Of one whose first line alone is larger all is read."""
    for head in ({"inCommitTimestamp": 5}, {"x": "y" * size, "inCommitTimestamp": 5}):
        log.commit(0, [CommitInfo(head), *log.head(), log.add("f", stats="x" * size)])
        commit = list_log(log.store).commits[0]
        assert commit.size > 1 << 16 or size < 1 << 16
        assert read_in_commit_timestamp(log.store, commit) == 5


def test_a_table_of_one_version(log) -> None:
    log.commits(1)
    time_ms = list_log(log.store).commits[0].modified_ms
    assert version_at(log.store, time_ms) == 0
    carrying(log, 1)
    assert version_at(log.store, 0, Enablement(0, None)) == 0
    for enabled in (None, Enablement(0, None)):
        with pytest.raises(NotFound, match=r"versions 0 .* to 0"):
            version_at(log.store, -1, enabled)
