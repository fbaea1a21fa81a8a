"""A commit's files in the order in which offsets of a stream count them, and the commit cut between two of them. Pure.

As in the reference, what was added and what was removed are counted together, as they stand in the log.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.log.read_changes import CommitChanges


def files_of(commit: CommitChanges) -> pa.Table:
    """The files that a commit added and removed (`CHANGED_FILES`), as they are counted."""
    if commit.order is None:
        return pa.concat_tables([commit.added, commit.removed])
    # Stable: behind each other the added ones, then the removed ones; undone, as the log has them.
    grouped = pc.sort_indices(pc.cast(commit.order, pa.int8()))
    return pa.concat_tables([commit.added, commit.removed]).take(pc.sort_indices(grouped))


def added_before(commit: CommitChanges, count: int) -> int:
    """How many of the first few files were added."""
    if commit.order is None:
        return min(count, int(commit.added.num_rows))
    first = commit.order.slice(0, count)
    return len(first) - int(first.true_count)


def part_of(commit: CommitChanges, first: int, count: int) -> CommitChanges:
    """The commit, as if it had named only some of its files, from one on."""
    added, end = added_before(commit, first), added_before(commit, first + count)
    removed = first - added
    return replace(
        commit,
        added=commit.added.slice(added, end - added),
        removed=commit.removed.slice(removed, count - (end - added)),
        order=None if commit.order is None else commit.order.slice(first, count),
    )
