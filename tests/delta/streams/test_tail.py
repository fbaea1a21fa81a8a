"""The end of a log as a stream follows it: what is there, what is gone, and whether it is the same log."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from stream_log import Log, add

import alluvium
from alluvium.delta.log.names import commit_path
from alluvium.delta.log.read import commit_version
from alluvium.delta.streams import tail as module
from alluvium.delta.streams.tail import LogTail
from alluvium.errors import InvalidRequest, NotFound
from alluvium.storage.store import ObjectInfo
from alluvium.storage.stores.memory import MemoryStore


def test_commits_are_read_once() -> None:
    log = Log("tail-once", add("a"))
    tail = LogTail(log.store)
    commits = tail.commits(0)
    first = tail.read(commits)
    log.commit(add("b"))
    again = tail.read(tail.commits(0))
    assert again[0] is first[0]
    assert [c.version for c in again] == [0, 1]
    assert tail.newest == 1


def test_what_is_gone() -> None:
    log = Log("tail-gone", add("a"))
    for name in "bcd":
        log.commit(add(name))
    log.lose(0, 1, 2)
    with pytest.raises(NotFound) as caught:
        LogTail(log.store).commits(1)
    assert (caught.value.code, caught.value.version) == ("stream-lost-data", 1)
    assert "3" in caught.value.message
    assert len(LogTail(log.store).commits(1, fails_on_loss=False)) == 1


def test_a_log_that_was_rolled_back_or_made_anew() -> None:
    log = Log("tail-anew", add("a"))
    log.commit(add("b"))
    tail = LogTail(log.store)
    assert tail.commits(2) == []
    log.lose(1)
    with pytest.raises(InvalidRequest) as caught:
        tail.commits(2)
    assert caught.value.code == "different-table"
    log.lose(0)
    with pytest.raises(NotFound) as gone:
        tail.commits(2)
    assert gone.value.code == "not-a-table"


def test_a_commit_that_was_copied_or_touched_is_what_it_was(tmp_path: Path) -> None:
    """A backup that was restored, `cp`, `touch`: "begin with a new checkpoint" would bring all rows again."""
    alluvium.write(pa.table({"id": [0]}), tmp_path / "t")
    rows = alluvium.open(tmp_path / "t").follow(wait_s=0.01)
    assert next(rows)[1].num_rows == 1
    for number in (1, 2, 3):
        alluvium.write(pa.table({"id": [number]}), tmp_path / "t", mode="append")
        assert next(rows)[1].column("id").to_pylist() == [number]
        commit = tmp_path / f"t/_delta_log/{number:020d}.json"
        if number == 1:
            os.utime(commit)
        else:
            content = commit.read_bytes()
            commit.unlink()
            commit.write_bytes(content if number == 2 else content.replace(b"WRITE", b"WROTE"))
    with pytest.raises(InvalidRequest) as caught:
        next(rows)
    assert caught.value.code == "different-table"


def appended(name: str, count: int) -> Log:
    """Versions 0 to `count` - 1, each of which adds a file that has its number for a name."""
    log = Log(name, add("0"))
    for version in range(1, count):
        log.commit(add(str(version)))
    return log


def versions(commits: Sequence[ObjectInfo]) -> list[int]:
    return [commit_version(info) for info in commits]


def test_commits_from_one_version_to_another() -> None:
    log = appended("tail-range", 5)
    for start in range(6):
        for end in (None, *range(start - 1, 5)):
            tail = LogTail(log.store)
            found = tail.commits(start, end)
            assert versions(found) == list(range(start, 5 if end is None else end + 1))
            # The log was looked at to its end all the same.
            assert tail.newest == 4
            assert versions(tail.seen(start)) == list(range(start, 5))
            assert versions(tail.seen(start - 1)) == list(range(max(0, start - 1), 5))
            assert [change.added["path"].to_pylist() for change in tail.read(found)] == [
                [str(v)] for v in versions(found)
            ]


def test_the_newest_version_that_was_seen_stays() -> None:
    log = appended("tail-newest", 3)
    tail = LogTail(log.store)
    assert tail.newest == -1
    for start, newest in ((1, 2), (3, 2), (0, 2)):
        tail.commits(start)
        assert tail.newest == newest
    behind = LogTail(log.store)
    behind.commits(3)
    assert behind.newest == 2


def test_which_commit_is_gone() -> None:
    def gone(tail: LogTail, start: int, end: int | None = None) -> tuple[int | None, bool]:
        with pytest.raises(NotFound) as caught:
            tail.commits(start, end)
        assert caught.value.code == "stream-lost-data"
        return caught.value.version, "the next one that is there is 4" in caught.value.message

    log = appended("tail-which", 6)
    assert gone(LogTail(log.store), 3, 6) == (6, False)
    log.lose(2, 3)
    tail = LogTail(log.store)
    assert gone(tail, 1) == gone(tail, 2) == (2, True)
    assert gone(tail, 3) == (3, True)
    assert versions(tail.commits(4)) == [4, 5]
    assert versions(tail.commits(1, 1)) == [1]
    assert gone(tail, 1, 2) == (2, False)
    assert versions(LogTail(log.store).commits(1, fails_on_loss=False)) == [1, 4, 5]


@pytest.mark.parametrize("replaced", [1, 2, 3])
@pytest.mark.parametrize("kind", ["same", "other", "longer"])
def test_a_commit_that_is_written_anew(replaced: int, kind: str) -> None:
    """The last version that was read, or that which is read: as before, or the table is another."""
    log = appended(f"tail-anew-{replaced}-{kind}", 4)
    tail = LogTail(log.store)
    first = tail.read(tail.commits(2))
    path = commit_path(replaced)
    data = log.store.get(path)
    log.store.delete(path)
    log.store.put(path, {"same": data, "other": data.replace(b"WRITE", b"WROTE"), "longer": data + b"\n"}[kind])
    if replaced == 3 or (replaced == 2 and kind == "same"):
        again = tail.read(tail.commits(2))
        assert again[0] is first[0]
        return
    # Of version 1 nothing was read, so that nobody can tell whether it is the same.
    with pytest.raises(InvalidRequest) as caught:
        tail.commits(2)
    assert (caught.value.code, caught.value.version) == ("different-table", replaced)
    assert f"last its version {replaced}," in caught.value.message


def test_a_log_that_ends_before_what_was_read() -> None:
    log = appended("tail-shorter", 3)
    for start, other in ((3, False), (4, True), (6, True)):
        tail = LogTail(log.store)
        if not other:
            assert tail.commits(start) == []
            continue
        with pytest.raises(InvalidRequest) as caught:
            tail.commits(start)
        assert (caught.value.code, caught.value.version) == ("different-table", start - 1)
    empty = LogTail(MemoryStore("tail-empty", "/t"))
    assert empty.commits(0) == [] and empty.newest == -1
    for start in (1, 2):
        with pytest.raises(NotFound) as gone:
            empty.commits(start)
        assert gone.value.code == "not-a-table"


class Hours:
    """A clock that stands still but for those who sleep."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_a_far_store_is_not_asked_for_news_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Hours()
    monkeypatch.setattr(module, "time", clock)
    log = appended("tail-far", 2)
    near = LogTail(log.store)
    for _ in range(3):
        near.commits(2)
    assert clock.slept == []
    monkeypatch.setattr(module, "is_near", lambda url: False)
    tail = LogTail(log.store)
    assert versions(tail.commits(0)) == [0, 1] and clock.slept == []
    # There was news; what is asked for by its end is there, and no question for news.
    tail.commits(2)
    tail.commits(0, 1)
    assert clock.slept == []
    tail.commits(2)
    assert clock.slept == []
    clock.now += 0.1
    tail.commits(2)
    assert clock.slept == [pytest.approx(0.15)]
    clock.now += 9
    tail.commits(2)
    assert sum(clock.slept) == pytest.approx(0.15)
    log.commit(add("2"))
    assert versions(tail.commits(2)) == [2]
    slept = len(clock.slept)
    # A stream of changes stays in the last version that it has read, which is no news the second time.
    assert versions(tail.commits(2)) == [2] and len(clock.slept) == slept
    tail.commits(2)
    assert len(clock.slept) == slept + 1


@pytest.mark.parametrize(
    ("limit", "value", "kept"), [("_KEPT", 2, 2), ("_KEPT", 256, 5), ("_KEPT_BYTES", 0, 0), ("_KEPT_BYTES", 1 << 20, 5)]
)
def test_what_is_kept_of_commits_has_a_bound(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int, kept: int
) -> None:
    """The oldest go first; what was asked for is given whole."""
    monkeypatch.setattr(module, limit, value)
    log = appended(f"tail-kept-{limit}-{value}", 5)
    tail = LogTail(log.store)
    commits = tail.commits(0)
    first = tail.read(commits)
    assert [change.version for change in first] == [0, 1, 2, 3, 4]
    again = tail.read(list(reversed(commits)))
    assert [change.version for change in again] == [4, 3, 2, 1, 0]
    assert sum(one is other for one, other in zip(first, reversed(again), strict=True)) == kept
    assert module._KEPT_BYTES <= 64 << 20


def test_commits_just_as_large_as_may_be_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    log = appended("tail-exact", 3)
    tail = LogTail(log.store)
    commits = tail.commits(1)
    for missing, kept in ((0, 2), (1, 1)):
        monkeypatch.setattr(module, "_KEPT_BYTES", sum(info.size for info in commits) - missing)
        first = LogTail(log.store)
        before = first.read(commits)
        after = first.read(commits)
        assert sum(one is other for one, other in zip(before, after, strict=True)) == kept
