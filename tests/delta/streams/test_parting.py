"""Commits cut at every place, beside a plain list of their files."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from alluvium.delta.log.read_changes import CHANGED_FILES, CommitChanges
from alluvium.delta.streams.parting import added_before, files_of, part_of


def files(names: list[str]) -> pa.Table:
    return pa.Table.from_pylist([{"path": name, "version": 3} for name in names], CHANGED_FILES)


def commit(removed: list[bool], is_ordered: bool) -> tuple[CommitChanges, list[str]]:
    """A commit, and its files in the order in which they are counted."""
    named = [f"{'r' if gone else 'a'}{place}" for place, gone in enumerate(removed)]
    added, gone = ([name for name in named if name[0] == kind] for kind in "ar")
    order = pa.array(removed, pa.bool_()) if is_ordered else None
    made = CommitChanges(3, files(added), files(gone), files([]), None, None, None, order)
    return made, named if is_ordered else added + gone


@pytest.mark.parametrize("is_ordered", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_parts_are_those_of_the_list(seed: int, is_ordered: bool) -> None:
    lot = random.Random(seed)
    whole, names = commit([lot.random() < 0.4 for _ in range(seed)], is_ordered)
    assert files_of(whole)["path"].to_pylist() == names
    for first in range(len(names) + 1):
        assert added_before(whole, first) == sum(name[0] == "a" for name in names[:first])
        for count in range(len(names) - first + 1):
            part = part_of(whole, first, count)
            chosen = names[first : first + count]
            assert files_of(part)["path"].to_pylist() == chosen
            assert part.added["path"].to_pylist() == [name for name in chosen if name[0] == "a"]
            assert part.removed["path"].to_pylist() == [name for name in chosen if name[0] == "r"]
            assert (part.order is None) == (whole.order is None) and part.version == 3
    assert added_before(whole, len(names) + 5) == whole.added.num_rows
