"""How the groups of a merge are dealt out to tasks, so that no row has to move between them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.plan.scan import KeyMerge, ScanPart

#: Bytes of files that a task merges, as `spark.sql.files.maxPartitionBytes`.
TASK_BYTES = 128 << 20
#: Tasks are branches of the plan: more would take longer to plan than an exchange to run.
MAX_TASKS = 32


def task_ranges(parts: Sequence[ScanPart], merge: KeyMerge, parallelism: int) -> list[tuple[int, int]]:
    """Ranges of group numbers, both ends included, one a task; none where groups are too few or too uneven.

    Rows merge within a group, so that a task that reads whole groups merges them alone. An exchange of the rows is
    better where the machine would wait for one task of many.

    Args:
        parts: Parts of equal `merge`.
        merge: Theirs.
        parallelism: Tasks that run at once.
    """
    totals = group_sizes(parts, merge)
    sizes = totals["size_sum"].to_numpy()
    total = int(sizes.sum())
    if not total:
        return []
    full = -(-total // TASK_BYTES)
    count = min(len(sizes), MAX_TASKS, max(parallelism, full))
    if count < min(parallelism, full):
        return []
    # The task of a group is the one in whose share of the bytes its middle lies.
    middles = np.cumsum(sizes) - sizes / 2
    task = np.minimum((middles * count / total).astype(np.int64), count - 1)
    largest = int(np.bincount(task, sizes).max())
    if largest > TASK_BYTES and largest > 2 * total / parallelism:
        return []
    groups = totals["group"].to_numpy()
    bounds = np.flatnonzero(np.diff(task, prepend=-1, append=count))
    return [(int(groups[a]), int(groups[b - 1])) for a, b in itertools.pairwise(bounds)]


def group_sizes(parts: Sequence[ScanPart], merge: KeyMerge) -> pa.Table:
    """Columns `group` and `size_sum`, in the order of the groups."""
    members = [pc.struct_field(part.files["constants"].combine_chunks(), merge.group) for part in parts]
    sizes = [part.files["size"].combine_chunks() for part in parts]
    table = pa.table({"group": pa.concat_arrays(members), "size": pa.concat_arrays(sizes)})
    return table.group_by("group").aggregate([("size", "sum")]).sort_by("group")
