from __future__ import annotations

import os
from pathlib import Path

import pytest

from alluvium.delta.log.checkpoint import format_checkpoint
from alluvium.delta.log.names import checkpoint_paths, commit_path
from alluvium.delta.log.segment import list_segment
from alluvium.delta.log.state import load_state
from alluvium.delta.log.timeline import commit_timestamps, read_commit_infos, version_at
from alluvium.delta.spec import CommitInfo
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.open import open_store


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
    store.put(checkpoint_paths(2)[0], format_checkpoint(state, 0, 0))
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
