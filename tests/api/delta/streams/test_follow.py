"""Tables followed without Spark."""

from __future__ import annotations

import itertools
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from faulty_store import FaultyStore
from plain_writer import commit_rows, open_target

import alluvium
from alluvium import DeltaTable
from alluvium.api.delta.streams.follow import follow_table
from alluvium.api.delta.table import Table
from alluvium.delta.log.names import commit_path
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import InvalidRequest, NotFound
from alluvium.storage.open import open_store
from alluvium.storage.store import ObjectInfo


def append(path: Path, *ids: int) -> None:
    commit_rows(open_target(open_store(str(path))), list(ids))


def opened(path: Path) -> Table:
    view = alluvium.open(str(path))
    assert isinstance(view, Table)
    return view


class Watched(FaultyStore):
    """A log of which somebody takes version 1 away after so many looks at it."""

    cleaned_after = 1 << 30

    @property
    def listed(self) -> list[str]:
        return [path for verb, path in self.requests if verb == "list_from"]

    def list_from(self, directory: str, start: str = "") -> list[ObjectInfo]:
        if len(self.listed) == self.cleaned_after:
            self.delete(commit_path(1))
        return super().list_from(directory, start)


def test_from_the_first_row_on(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    append(tmp_path, 3)
    seen = opened(tmp_path).follow(wait_s=0.01)
    first = [next(seen) for _ in range(2)]
    assert sorted(itertools.chain(*(rows["id"].to_pylist() for _, rows in first))) == [1, 2, 3]
    append(tmp_path, 4)
    offset, rows = next(seen)
    assert rows["id"].to_pylist() == [4]
    append(tmp_path, 5)
    # Another process goes on from what was stored.
    (pair,) = opened(tmp_path).follow(offset, wait_s=None)
    assert pair[1]["id"].to_pylist() == [5]
    assert list(opened(tmp_path).follow(pair[0], wait_s=None)) == []


def test_each_offset_is_one_to_go_on_from(tmp_path: Path) -> None:
    for n in range(3):
        append(tmp_path, *range(n * 70_000, (n + 1) * 70_000))
    pairs = list(opened(tmp_path).follow(wait_s=None))
    assert len(pairs) > 3
    everything = [row for _, rows in pairs for row in rows["id"].to_pylist()]
    assert len(everything) == 210_000
    for number, (offset, _) in enumerate(pairs):
        rest = opened(tmp_path).follow(offset, wait_s=None)
        read = sum(rows.num_rows for _, rows in pairs[: number + 1])
        assert [row for _, rows in rest for row in rows["id"].to_pylist()] == everything[read:]


def test_from_a_version_on(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    for start in (1, np.int64(1)):
        assert [rows["id"].to_pylist() for _, rows in opened(tmp_path).follow(start, wait_s=None)] == [[2]]
    late = opened(tmp_path).follow("latest", wait_s=0.01)
    append(tmp_path, 3)
    assert next(late)[1]["id"].to_pylist() == [3]


def test_the_feed_from_the_version_on_that_switched_it_on(tmp_path: Path) -> None:
    """Found by the model, seed 15: the version before, of which nothing is read, was asked for the feed, too."""
    append(tmp_path, 1)
    alluvium.alter(str(tmp_path)).set_properties({"delta.enableChangeDataFeed": "true"})
    append(tmp_path, 2)
    seen = opened(tmp_path).follow(1, changes=True, wait_s=None)
    assert [(r["id"], r["_change_type"]) for _, rows in seen for r in rows.to_pylist()] == [(2, "insert")]
    with pytest.raises(InvalidRequest) as caught:
        list(opened(tmp_path).follow(0, changes=True, wait_s=None))
    assert caught.value.code == "change-feed-disabled"


def test_a_log_that_is_cleaned_up_meanwhile(tmp_path: Path) -> None:
    """Between the look for its end and that for its files."""
    for n in range(4):
        append(tmp_path, n)
    store = Watched(open_store(str(tmp_path)))
    seen = follow_table(load_snapshot(store), open_store, 1, {}, False, None)
    # Once for the columns, once for the end; then for the files.
    store.cleaned_after = len(store.listed) + 2
    with pytest.raises(NotFound) as caught:
        list(seen)
    assert caught.value.code == "stream-lost-data"


def test_what_is_no_offset(tmp_path: Path) -> None:
    append(tmp_path, 1)
    with pytest.raises(InvalidRequest) as caught:
        opened(tmp_path).follow("soon")
    assert caught.value.code == "invalid-offset"
    with pytest.raises(InvalidRequest) as feed:
        opened(tmp_path).follow(changes=True)
    assert feed.value.code == "change-feed-disabled"
    offset, _ = next(opened(tmp_path).follow(wait_s=None))
    for rows in ('"x"', "-1", "1.5"):
        with pytest.raises(InvalidRequest) as rest:
            opened(tmp_path).follow(f'{offset[:-1]},"rows":{rows}}}')
        assert rest.value.code == "invalid-offset"


@pytest.mark.parametrize("start", [1.5, True, b"1", Decimal(1), -1, np.float64(1)])
def test_what_is_no_start(tmp_path: Path, start: object) -> None:
    append(tmp_path, 1)
    with pytest.raises(InvalidRequest) as caught:
        opened(tmp_path).follow(start)  # type: ignore[arg-type]
    assert caught.value.code in ("invalid-start", "invalid-option")


def test_two_starts_exclude_each_other(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    for start in (1, "latest"):
        with pytest.raises(InvalidRequest) as caught:
            opened(tmp_path).follow(start, startingversion=0)
        assert caught.value.code == "version-and-timestamp"


@pytest.mark.parametrize("wait_s", [-1, "1", float("nan")])
def test_what_is_no_wait(tmp_path: Path, wait_s: object) -> None:
    append(tmp_path, 1)
    with pytest.raises(InvalidRequest) as caught:
        opened(tmp_path).follow(wait_s=wait_s)  # type: ignore[arg-type]
    assert caught.value.code == "invalid-wait"


@pytest.mark.parametrize("is_running", [True, False])
def test_vectors_that_the_table_got_or_gave_up_later(tmp_path: Path, is_running: bool) -> None:
    """Files of several versions are read whatever features the version has that the reader knows of."""
    append(tmp_path, 1, 2, 3)
    seen = opened(tmp_path).follow(0, wait_s=0.01, ignoreChanges=True)
    assert is_running is False or next(seen)[1].num_rows == 3
    alluvium.alter(str(tmp_path)).set_properties({"delta.enableDeletionVectors": "true"})
    DeltaTable.forPath(str(tmp_path)).delete("id = 1")
    if not is_running:
        DeltaTable.forPath(str(tmp_path)).delete()
        alluvium.alter(str(tmp_path)).drop_feature("deletionVectors")
        seen = opened(tmp_path).follow(0, wait_s=0.01, ignoreChanges=True)
        assert next(seen)[1].num_rows == 3
    assert sorted(next(seen)[1]["id"].to_pylist()) == [2, 3]
