"""Partitions are taken out of a table by a commit, as by DELETE of all their rows. Older snapshots have them still.

Specification: `BatchTableCommit.truncatePartitions`, `FileStoreCommitImpl.dropPartitions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from alluvium.errors import CommitConflict, InvalidRequest
from alluvium.paimon.commit.draft import Draft, Replaced
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.upkeep.again import again
from alluvium.paimon.write.target import publish
from alluvium.plan.changes import Committed
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy

#: From the values of partitions, a row each, to the places of some of them.
Choose = Callable[[pa.Table], Sequence[int]]


def drop_partitions(snapshot: Snapshot, choose: Choose, retry: RetryPolicy = DEFAULT_RETRY) -> Committed:
    """Takes all files of partitions out of the newest state, those that readers are not shown yet among them.

    Args:
        snapshot: The newest state.
        choose: Which partitions go; asked anew where somebody wrote to one of them meanwhile.
        retry: How often.

    Returns:
        The snapshot; `attempts` is 0 where none is to go.

    Raises:
        CommitConflict: Somebody did every time.
        InvalidRequest: The table has no partitions (`"no-partitions"`).
    """
    if not snapshot.schema.partition_keys:
        raise InvalidRequest("the table is not partitioned", code="no-partitions", url=snapshot.store.url)

    def attempt() -> Committed:
        nonlocal snapshot
        entries = snapshot.entries
        rows = entries["partition"].combine_chunks().dictionary_encode().dictionary
        chosen = choose(partitions_of(entries, snapshot.schema).values)
        if not chosen:
            return Committed.nothing(snapshot.version or 0)
        gone = Replaced(partitions=rows.take(pa.array(chosen, pa.int64())))
        draft = Draft(snapshot.schema, ENTRIES.empty_table(), gone)
        try:
            published = publish(snapshot.store, draft, snapshot, retry)
        except CommitConflict:
            snapshot = load_snapshot(snapshot.store, At(), snapshot.branch, time_zone=snapshot.time_zone)
            raise
        # Which files went, the snapshot tells.
        done = Committed.nothing(published.entry.version)
        return Committed(done.version, done.files, {}, published.attempts)

    return again(attempt, retry, "partitions are dropped")
