from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from alluvium.delta.log.names import LAST_CHECKPOINT_PATH, checkpoint_paths, commit_path, parse_name
from alluvium.delta.log.segment import LogSegment, list_commits_after, list_segment
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.open import open_store


def versions(segment: LogSegment) -> list[int]:
    return [parse_name(info.path.rpartition("/")[2]).version for info in segment.commits]


def test_without_a_checkpoint_all_commits_count(log) -> None:
    log.commits(3)
    segment = list_segment(log.store)
    assert (segment.version, segment.checkpoint_version, versions(segment)) == (2, None, [0, 1, 2])
    assert segment.timestamp_ms == log.store.head(commit_path(2)).modified_ms


def test_the_newest_checkpoint_at_or_before_the_version_is_used(log) -> None:
    log.commits(6)
    log.checkpoint(2)
    log.checkpoint(4)
    assert list_segment(log.store).checkpoint_version == 4
    assert versions(list_segment(log.store)) == [5]
    assert (list_segment(log.store, 3).checkpoint_version, versions(list_segment(log.store, 3))) == (2, [3])
    assert versions(list_segment(log.store, 2)) == []


@pytest.mark.parametrize(
    "hint",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b'{"version":-1,"size":1}',
        b'{"version":3,"size":1}',
        b'{"version":999,"size":1}',
        b'{"version":99999999999999999999,"size":1}',
        b'{"version":2,"size":1,"parts":7}',
        b'{"version":"2","size":1}',
    ],
)
def test_the_hint_is_never_trusted(log, hint: bytes) -> None:
    log.commits(5)
    log.checkpoint(2)
    log.store.put(LAST_CHECKPOINT_PATH, hint)
    assert (list_segment(log.store).version, list_segment(log.store).checkpoint_version) == (4, 2)
    assert list_segment(log.store, 1).checkpoint_version is None


def test_a_hint_that_is_old_finds_the_newer_checkpoint(log) -> None:
    log.commits(5)
    log.checkpoint(1)
    log.checkpoint(3)
    log.store.put(LAST_CHECKPOINT_PATH, b'{"version":1,"size":1}')
    assert list_segment(log.store).checkpoint_version == 3


def test_only_complete_checkpoints_are_used(log) -> None:
    """ "readers must only use a complete checkpoint, wherein all fragments are present" """
    log.commits(4)
    for path in (*checkpoint_paths(3, 3)[:2], *checkpoint_paths(3, 2)[1:]):
        log.store.put(path, b"x")
    assert list_segment(log.store).checkpoint_version is None
    log.store.put(checkpoint_paths(3, 3)[2], b"x")
    segment = list_segment(log.store)
    assert [info.path for info in segment.checkpoint] == list(checkpoint_paths(3, 3))


def test_an_empty_checkpoint_does_not_count(log) -> None:
    log.commits(4)
    log.store.put(checkpoint_paths(3)[0], b"")
    assert list_segment(log.store).checkpoint_version is None


def test_a_checkpoint_alone_is_a_table(log) -> None:
    log.commits(3)
    log.checkpoint(2)
    for version in range(3):
        log.store.delete(commit_path(version))
    segment = list_segment(log.store)
    assert (segment.version, segment.commits) == (2, ())
    assert segment.timestamp_ms == segment.checkpoint[0].modified_ms


def test_a_gap_after_the_checkpoint(log) -> None:
    """ "contiguous, monotonically-increasing integers" """
    log.commits(6)
    log.checkpoint(2)
    log.store.delete(commit_path(4))
    with pytest.raises(CorruptTable) as caught:
        list_segment(log.store)
    assert (caught.value.code, caught.value.version, caught.value.path) == ("gap-in-log", 4, commit_path(4))
    assert list_segment(log.store, 3).version == 3


def test_a_gap_before_the_checkpoint_does_not_hurt_later_versions(log) -> None:
    log.commits(6)
    log.checkpoint(4)
    log.store.delete(commit_path(2))
    assert list_segment(log.store).version == 5
    assert list_segment(log.store, 1).version == 1
    with pytest.raises(CorruptTable, match="commit 2 is missing"):
        list_segment(log.store, 3)


def test_the_first_commits_are_gone_and_no_checkpoint_is_there(log) -> None:
    log.commits(4)
    log.store.delete(commit_path(0))
    with pytest.raises(CorruptTable, match=r"commit 0 is missing .* first commit there is 1"):
        list_segment(log.store)


@pytest.mark.parametrize("version", [0, 1, 5, 2**63 - 1, 2**70, -1])
def test_a_version_that_does_not_exist(log, version: int) -> None:
    log.commits(5)
    log.checkpoint(2)
    for gone in (0, 1):
        log.store.delete(commit_path(gone))
    with pytest.raises(NotFound, match="versions 2 to 4") as caught:
        list_segment(log.store, version)
    assert caught.value.code == "missing-version"


@pytest.mark.parametrize("version", [None, 0, -1])
def test_no_table(log, version: int | None) -> None:
    with pytest.raises(NotFound) as caught:
        list_segment(log.store, version)
    assert caught.value.code == "not-a-table"
    log.store.put("_delta_log/readme.txt", b"x")
    log.store.put("_delta_log/_last_checkpoint", b'{"version":2,"size":1}')
    with pytest.raises(NotFound) as caught:
        list_segment(log.store, version)
    assert caught.value.code == "not-a-table"


def test_litter_changes_nothing(log) -> None:
    log.commits(2)
    before = list_segment(log.store)
    for name in ("5.json", "00000000000000000005.json.tmp", "_tmp/00000000000000000002.json", "x.json"):
        log.store.put(f"_delta_log/{name}", b"litter")
    assert list_segment(log.store) == before


def test_new_commits(log) -> None:
    log.commits(4)
    segment = list_segment(log.store, 1)
    assert [info.path for info in list_commits_after(log.store, segment)] == [commit_path(2), commit_path(3)]
    assert list_commits_after(log.store, list_segment(log.store)) == ()
    log.store.delete(commit_path(2))
    with pytest.raises(CorruptTable) as caught:
        list_commits_after(log.store, segment)
    assert caught.value.code == "gap-in-log"


#: Puts commits as fast as it can: a folder is no longer what its listing began with.
_COMMITS = """
import os, sys
for version in range(100, 3000):
    path = f"{sys.argv[1]}/{version:020}.json"
    open(path + ".tmp", "w").close()
    os.rename(path + ".tmp", path)
"""


def test_a_commit_that_comes_while_the_folder_is_listed(tmp_path: Path) -> None:
    folder = tmp_path / "t" / "_delta_log"
    folder.mkdir(parents=True)
    for version in range(100):
        (folder / f"{version:020}.json").touch()
    store = open_store(str(tmp_path / "t"))
    with subprocess.Popen([sys.executable, "-c", _COMMITS, str(folder)]) as committing:
        segments = [list_segment(store)]
        while committing.poll() is None:
            after = list_commits_after(store, segments[-1])
            segments.append(list_segment(store))
            assert after is not None
    versions = [segment.version for segment in segments]
    assert versions == sorted(versions) and len(set(versions)) > 2
