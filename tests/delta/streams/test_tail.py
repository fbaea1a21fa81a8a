from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from stream_log import Log, add

import alluvium
from alluvium.delta.streams.tail import LogTail
from alluvium.errors import InvalidRequest, NotFound


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
