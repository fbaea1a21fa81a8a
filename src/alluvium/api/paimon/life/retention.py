"""What expires of a table, and what is cleaned up."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa

from alluvium.api.paimon.life.history import TableHistory
from alluvium.api.paimon.life.times import Duration, When, duration_ms, millis_of
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon.log import consumers
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema.logical import logical_schema
from alluvium.paimon.terms.life_options import keeps_changelogs
from alluvium.paimon.upkeep.copy_table import Copied, copy_table
from alluvium.paimon.upkeep.life.marks import mark_partition_done, parse_partition
from alluvium.paimon.upkeep.life.purge import Purged, purge_files
from alluvium.paimon.upkeep.removal.expire import Expired, expire_changelogs, expire_snapshots, repair_earliest
from alluvium.paimon.upkeep.removal.expire_partitions import ExpiredPartitions, expire_partitions, partition_expiry
from alluvium.paimon.upkeep.removal.missing import Missing, remove_missing_files
from alluvium.paimon.upkeep.removal.orphans import Orphans, remove_orphan_files
from alluvium.paimon.upkeep.removal.retention import changelog_retention, snapshot_retention
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.locating import locating
from alluvium.storage.open import open_store

_DAY_MS = 86_400_000


class TableRetention(TableHistory):
    """What `PaimonTable` does about what is old. No Spark is needed."""

    _storage_options: Mapping[str, str] | None

    def expire_snapshots(
        self,
        retain_max: int | None = None,
        retain_min: int | None = None,
        older_than: When | None = None,
        max_deletes: int | None = None,
        dry_run: bool = False,
    ) -> Expired:
        """Lets snapshots expire, with the files that no snapshot, tag, branch or changelog needs any more.

        Args:
            retain_max: So many stay at most; None: `snapshot.num-retained.max`.
            retain_min: So many stay in any case; None: `snapshot.num-retained.min`.
            older_than: Only older ones go, but for those beyond `retain_max`; None: by `snapshot.time-retained`.
            max_deletes: So many go at most; None: `snapshot.expire.limit`.
            dry_run: Only say which.

        Returns:
            Their ids, and the files that went.

        Raises:
            InvalidRequest: The numbers make no sense (`"invalid-retention"`).
        """
        with locating(self._store, None):
            options, now_ms = self._own_schema().options, _now_ms()
            before_ms = None if older_than is None else millis_of(older_than, "older_than")
            retention = snapshot_retention(options, now_ms).given(retain_max, retain_min, before_ms, max_deletes)
            keeps = keeps_changelogs(options)
            return expire_snapshots(self._store, retention, self._branch, keeps, dry_run)

    def expire_changelogs(
        self,
        retain_max: int | None = None,
        retain_min: int | None = None,
        older_than: When | None = None,
        max_deletes: int | None = None,
        delete_all: bool = False,
        dry_run: bool = False,
    ) -> Expired:
        """Lets changelogs expire that have outlived their snapshots (`changelog.num-retained.*`).

        Args:
            retain_max: As of `expire_snapshots`, and so are the following.
            retain_min: Snapshots count, too.
            older_than: None: by `changelog.time-retained`.
            max_deletes: So many go at most.
            delete_all: All of them go, also those that consumers have not read.
            dry_run: Only say which.

        Raises:
            InvalidRequest: The numbers make no sense (`"invalid-retention"`), or all are to go, and some to stay
                (`"contradicting-options"`).
        """
        said = (retain_max, retain_min, older_than, max_deletes)
        if delete_all and any(one is not None for one in said):
            raise InvalidRequest(
                "delete_all leaves nothing that retain_max, retain_min, older_than or max_deletes could keep",
                code="contradicting-options",
                url=self._store.url,
            )
        with locating(self._store, None):
            retention = None
            if not delete_all:
                before_ms = None if older_than is None else millis_of(older_than, "older_than")
                retention = changelog_retention(self._own_schema().options, _now_ms())
                retention = retention.given(retain_max, retain_min, before_ms, max_deletes)
            return expire_changelogs(self._store, retention, self._branch, dry_run)

    def expire_partitions(
        self,
        expiration_time: Duration | None = None,
        timestamp_formatter: str | None = None,
        timestamp_pattern: str | None = None,
        expire_strategy: str | None = None,
        max_expires: int | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> ExpiredPartitions:
        """Takes partitions out of the table whose time is over, by one commit.

        Args:
            expiration_time: How old they become (`"7 d"`); None: `partition.expiration-time`.
            timestamp_formatter: How times are written (`"yyyyMMdd"`); None: `partition.timestamp-formatter`.
            timestamp_pattern: How a time is put together (`"$day $hour:00:00"`); None: `partition.timestamp-pattern`.
            expire_strategy: `"values-time"` or `"update-time"`; None: `partition.expiration-strategy`.
            max_expires: So many go at most; None: `partition.expiration-max-num`.
            dry_run: Only say which.
            retry: How often, when others write to them, too.

        Raises:
            InvalidRequest: The table has no partitions, or nobody says after what time.
            CommitConflict: Others wrote to them every time.
        """
        with locating(self._store, None):
            now = dt.datetime.now()
            expiry = partition_expiry(
                self._own_schema().options,
                now,
                expiration_time_ms=duration_ms(expiration_time, "expiration_time"),
                strategy=expire_strategy,
                pattern=timestamp_pattern,
                formatter=timestamp_formatter,
                most=max_expires,
            )
            return expire_partitions(load_snapshot(self._store, At(), self._branch), expiry, dry_run, retry)

    def remove_orphan_files(self, older_than: When | None = None, dry_run: bool = False) -> Orphans:
        """Deletes files of the table's folders that no snapshot, tag, branch or changelog names.

        Args:
            older_than: Only older files; None: a day. Younger ones may belong to a commit that is under way.
            dry_run: Only say which.

        Raises:
            InvalidRequest: The time is not past.
            CorruptTable: It cannot be told what the table needs; nothing was deleted.
        """
        with locating(self._store, None):
            now_ms = _now_ms()
            before_ms = now_ms - _DAY_MS if older_than is None else millis_of(older_than, "older_than")
            return remove_orphan_files(self._store, self._own_schema(), before_ms, now_ms, dry_run)

    def remove_unexisting_files(self, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> Missing:
        """Takes data files out of the newest state that are not there any more: their rows are lost, the others can be
        read again. Of rows with a primary key older ones that such files hid may show again.

        Args:
            dry_run: Only say which.
            retry: How often a lost commit is tried again.

        Raises:
            StorageError: It cannot be told of a file whether it is there; nothing was committed.
            UnsupportedFeature: The table has data evolution.
            CommitConflict: Others wrote meanwhile.
        """
        return remove_missing_files(load_snapshot(self._store, At(), self._branch), dry_run, retry)

    def purge_files(self, retry: RetryPolicy = DEFAULT_RETRY) -> Purged:
        """Takes all rows out of the table, and its past with them: branches, tags, consumers, changelogs, all snapshots
        but that of the empty state, and every file that these named. Nothing brings them back.

        No writer may be at work: his files go, too.

        Args:
            retry: How often it is tried again when others commit.

        Returns:
            The snapshot, and the names of what went.

        Raises:
            InvalidRequest: The table shows the rows of a branch, as its fallback (`"branch-in-use"`).
            CommitConflict: Others committed every time; the table is as it was.
        """
        self._ensure_own_main("emptied")
        with locating(self._store, None):
            return purge_files(self._store, retry)

    def copy(
        self,
        target: str,
        where: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Copied:
        """Copies the newest state, file by file, to where nothing is, or to an earlier copy, which becomes equal.

        The past, tags and branches are not copied. Files that the copy has already are left as they are.

        Args:
            target: The URL of the copy.
            where: SQL text about partition keys: only these partitions; others that an earlier copy has stay there.
            storage_options: Credentials and settings of the target's object store; None: as of this table.
            retry: How often it is tried again when others commit to the copy.

        Returns:
            The snapshot of the copy, and what was copied.

        Raises:
            InvalidRequest: Something else is at the target (`"incompatible-target"`).
            UnsupportedFeature: The condition is not about partition keys alone.
            CommitConflict: Others wrote to the copy every time.
        """
        options = self._storage_options if storage_options is None else storage_options
        own = partial(open_store, storage_options=self._storage_options)
        with locating(self._store, None):
            snapshot = load_snapshot(self._store, At(), self._branch, open_elsewhere=own)
            condition = None if where is None else parse_predicate(where, logical_schema(snapshot.schema))
            return copy_table(snapshot, open_store(target, options), condition, retry)

    def _ensure_own_main(self, done: str) -> None:
        if self._branch != MAIN_BRANCH:
            raise UnsupportedFeature(
                f"the branch {self._branch!r} is not {done} by itself",
                code="unsupported-branch",
                features=("branches",),
                hint="delete_branch deletes it",
            )

    def repair_earliest_snapshot(self, snapshot_id: int) -> int:
        """Has the hint `EARLIEST`, by which Java finds the oldest snapshot, name one that is there.

        Alluvium lists the snapshots, and never needs it.

        Returns:
            The snapshot that the hint named before; the oldest where it named none.

        Raises:
            NotFound: There is no such snapshot (`"snapshot-not-found"`, `"snapshot-expired"`).
        """
        with locating(self._store, None):
            return repair_earliest(self._store, snapshot_id, self._branch)

    def mark_partition_done(self, partitions: str | Sequence[str]) -> list[str]:
        """Marks partitions by a file `_SUCCESS` in the folder of each.

        Args:
            partitions: `"day=1,hour=2"`; several in a list, or with `;` between them.

        Returns:
            The paths of the marks.

        Raises:
            InvalidRequest: It is no partition of the table (`"invalid-partition"`).
        """
        texts = partitions.split(";") if isinstance(partitions, str) else list(partitions)
        with locating(self._store, None):
            schema = self._own_schema()
            wanted = [parse_partition(text, schema) for text in texts]
            return [mark_partition_done(self._store, schema, one) for one in wanted]

    def consumers(self) -> pa.Table:
        """How far readers of streams have come: `consumer_id`, `next_snapshot_id`."""
        with locating(self._store, None):
            found = consumers.list_consumers(self._store, self._branch)
        return pa.table(
            {
                "consumer_id": pa.array([one.name for one in found], pa.string()),
                "next_snapshot_id": pa.array([one.next_snapshot for one in found], pa.int64()),
            }
        )

    def reset_consumer(self, consumer_id: str, next_snapshot_id: int | None = None) -> None:
        """Has a consumer go on at a snapshot; without one it is forgotten."""
        with locating(self._store, None):
            consumers.reset_consumer(self._store, consumer_id, next_snapshot_id, self._branch)

    def clear_consumers(
        self, including_consumers: str | None = None, excluding_consumers: str | None = None
    ) -> list[str]:
        """Forgets consumers; their names.

        Args:
            including_consumers: A regular expression of names; None: all.
            excluding_consumers: A regular expression of names that stay.
        """
        with locating(self._store, None):
            return consumers.clear_consumers(self._store, including_consumers, excluding_consumers, self._branch)


def _now_ms() -> int:
    return int(time.time() * 1000)
