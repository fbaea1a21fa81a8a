"""Tables followed without Spark."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.api.delta.table import Table
from alluvium.errors import InvalidRequest
from alluvium.storage.open import open_store


def append(path: Path, *ids: int) -> None:
    commit_rows(open_target(open_store(str(path))), list(ids))


def opened(path: Path) -> Table:
    view = alluvium.open(str(path))
    assert isinstance(view, Table)
    return view


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
    assert [rows["id"].to_pylist() for _, rows in opened(tmp_path).follow(1, wait_s=None)] == [[2]]
    late = opened(tmp_path).follow("latest", wait_s=0.01)
    append(tmp_path, 3)
    assert next(late)[1]["id"].to_pylist() == [3]


def test_what_is_no_offset(tmp_path: Path) -> None:
    append(tmp_path, 1)
    with pytest.raises(InvalidRequest) as caught:
        opened(tmp_path).follow("soon")
    assert caught.value.code == "invalid-offset"
    with pytest.raises(InvalidRequest) as feed:
        opened(tmp_path).follow(changes=True)
    assert feed.value.code == "change-feed-disabled"
