"""What `PaimonTable` does with rows: deletes, updates, merges, compacts them by a session."""

from __future__ import annotations

import copy
import datetime as dt
import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.terms.durations import ensure_duration
from alluvium.paimon.upkeep.compact_manifests import compact_manifests
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from typing_extensions import Self

    from alluvium.api.paimon.paimon_merge import PaimonMergeBuilder


class RowVerbs:
    """Verbs over the rows of the newest state; mixed into `PaimonTable`."""

    _store: Store
    _storage_options: Mapping[str, str] | None
    _branch: str
    _options: Mapping[str, str]
    _name: tuple[str, ...] | None = None

    def alias(self, aliasName: str) -> Self:
        """The same table under a name, by which conditions and values may call its columns."""
        return self._named((aliasName,))

    def _named(self, name: tuple[str, ...]) -> Self:
        named = copy.copy(self)
        named._name = name
        return named

    def delete(
        self,
        condition: Column | str | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
        spark: SparkSession | None = None,
    ) -> Committed | Preview:
        """Deletes the rows for which a condition is true, all without one; of keys by rows that take them back.

        Of a table without a primary key files are written anew without them, or get deletion vectors where it has
        `deletion-vectors.enabled`. Of keys no file is written anew; a compaction leaves out what is gone.

        Args:
            condition: SQL text or a column.
            dry_run: Only count the rows.
            retry: How often a commit that lost a race is tried again, and the verb carried out anew.
            spark: The session that reads and writes the rows; None: the active one.

        Returns:
            The snapshot, and metrics (`numDeletedRows`); `attempts` is 0 where no row was to go.

        Raises:
            InvalidRequest: The condition does not resolve (`"invalid-expression"`), or there is no session
                (`"no-session"`).
            UnsupportedFeature: `"unsupported-row-change"`: rows of the table do not change by their keys.
            CommitConflict: Another writer changed the table, and repeating was of no avail.
        """
        return self._change("DELETE", condition, {}, dry_run, retry, spark)

    def update(
        self,
        condition: Column | str | None = None,
        set: Mapping[str, Column | str] | None = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
        spark: SparkSession | None = None,
    ) -> Committed | Preview:
        """Sets columns in the rows for which a condition is true, in all rows without one; of keys by new rows.

        Where a `sequence.field` orders the rows of a key, a value set to an older one leaves the row as it was.

        Args:
            condition: SQL text or a column.
            set: Column to its new value: SQL text or a column over the row's old values.
            dry_run: Only count the rows.
            retry: As of `delete`.
            spark: As of `delete`.

        Returns:
            As of `delete`, with `numUpdatedRows`.

        Raises:
            InvalidRequest: As of `delete`; a column is unknown or set twice, or a key (`"key-changed"`).
            UnsupportedFeature: As of `delete`.
            CommitConflict: As of `delete`.
        """
        if not set:
            raise InvalidRequest(
                "update sets no column", code="invalid-expression", hint='update("k = 1", {"n": "n + 1"})'
            )
        return self._change("UPDATE", condition, set, dry_run, retry, spark)

    def merge(
        self, source: DataFrame, condition: Column | str, spark: SparkSession | None = None
    ) -> PaimonMergeBuilder:
        """A builder of a merge: what the rows of a source do to those of the table that they match.

        Args:
            source: The rows that come. One that is not deterministic is computed once.
            condition: Which of them match which rows of the table, by both's aliases.
            spark: As of `delete`.

        Example:
            >>> merge = table.alias("t").merge(updates.alias("s"), "t.id = s.id")
            >>> merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        """
        self._ensure_main()
        # Loaded by name: tables are made and altered where pyspark is not installed.
        merging = importlib.import_module("alluvium.api.paimon.paimon_merge")
        builder: PaimonMergeBuilder = merging.merge_builder(
            self._store, self._storage_options, source, condition, self._name, spark
        )
        return builder

    def compact(
        self,
        where: str | None = None,
        retry: RetryPolicy = DEFAULT_RETRY,
        spark: SparkSession | None = None,
        order_strategy: str | None = None,
        order_by: Sequence[str] = (),
        compact_strategy: str = "full",
        partition_idle_time: str | None = None,
    ) -> Committed:
        """Compacts a table: of keys each bucket becomes one sorted run at the top level, one row a key.

        Rows that wait (`bucket = -2`) come into buckets first, which are compacted as their writer would do it then.
        Rows whose time has passed (`record-level.expire-time`) are left out.
        Of tables without a primary key small files become larger ones where they are enough,
        and those of which much is deleted (`compaction.delete-ratio-threshold`) lose it; of those with data evolution
        the files of columns come together, too. With an order all their rows are written anew in it. What was deleted
        is gone from
        the new files. Writers are not in the way: what they add meanwhile stays as it is. Files that need not change
        come to another level as they are; with `changelog-producer` = `lookup` or `full-compaction` files are
        written that tell how rows changed.

        Args:
            where: SQL text about partition keys: only these partitions.
            retry: How often, when others compact, too.
            spark: The session that merges the rows; None: the active one.
            order_strategy: Of tables without a primary key: `"order"` (by one column after the other), `"zorder"` or
                `"hilbert"` (along a curve through all of them); None: rows stay as they are.
            order_by: The columns.
            compact_strategy: `"full"`, or `"minor"`: of keys what a writer would do by itself, by the number and the
                sizes of a bucket's sorted runs.
            partition_idle_time: Only partitions that nothing was written to for so long (`"1 d"`).

        Returns:
            The snapshot; `attempts` is 0 where there was nothing to compact.

        Raises:
            InvalidRequest: There is no session (`"no-session"`), the condition does not resolve, there is nothing
                to order by (`"invalid-order-by"`), or no such strategy (`"invalid-option"`).
            UnsupportedFeature: `"unsupported-compaction"`: what the table asks of a compaction is not done here.
            CommitConflict: Another compaction won every time.
        """
        self._ensure_main()
        if compact_strategy.lower() not in ("full", "minor"):
            raise InvalidRequest(
                f"there is no compact_strategy {compact_strategy!r}", code="invalid-option", hint="full or minor"
            )
        idle_since_ms = None
        if partition_idle_time is not None:
            # Manifests have times of the wall clock.
            now = dt.datetime.now().replace(tzinfo=dt.timezone.utc).timestamp()
            idle_since_ms = int(now * 1000) - ensure_duration("partition_idle_time", partition_idle_time)
        # Loaded by name, as for rows.
        rows = importlib.import_module("alluvium.api.paimon.paimon_rows")
        ordering = None
        if order_strategy is not None and order_strategy.lower() != "none":
            names = (order_by,) if isinstance(order_by, str) else tuple(order_by)
            ordering = rows.Ordering(order_strategy.lower(), names)
        is_full = compact_strategy.lower() == "full"
        done: Committed = rows.compact(
            self._store, self._storage_options, where, retry, spark, ordering, is_full, idle_since_ms, self._options
        )
        return done

    def rescale(
        self,
        bucket_num: int | None = None,
        where: str | None = None,
        retry: RetryPolicy = DEFAULT_RETRY,
        spark: SparkSession | None = None,
    ) -> Committed:
        """Divides the rows of a table with fixed buckets anew, and replaces them by themselves.

        The table's option `bucket` stays as it is, as in Java: alter it first, for rows are written to partitions that
        have as many buckets as it says, and to no others.

        Args:
            bucket_num: How many buckets there shall be; None: as many as the option says, which `bucket = -2` does not.
            where: SQL text about partition keys: only these partitions.
            retry: How often a commit that lost a race is tried again.
            spark: The session that moves the rows; None: the active one.

        Returns:
            The snapshot, an overwrite.

        Raises:
            InvalidRequest: `"no-snapshot"`, `"invalid-bucket"`, or as of `compact`.
            UnsupportedFeature: `"unsupported-rescale"`: the table's buckets are not fixed, or rows wait for theirs.
            CommitConflict: Somebody else wrote to the partitions meanwhile.

        Example:
            >>> table.alter([SchemaChange.set_option("bucket", "8")])
            >>> table.rescale()
        """
        self._ensure_main()
        rows = importlib.import_module("alluvium.api.paimon.paimon_rows")
        done: Committed = rows.rescale(self._store, self._storage_options, bucket_num, where, retry, spark)
        return done

    def analyze(
        self,
        columns: Sequence[str] | None = None,
        retry: RetryPolicy = DEFAULT_RETRY,
        spark: SparkSession | None = None,
    ) -> Committed:
        """Computes statistics of the newest state and commits them: what `system("statistics")` shows.

        They are the number of rows, and of each column how many values are distinct (about), null, the least and the
        greatest, and how long they are. Later snapshots of the same schema keep them.

        Args:
            columns: Of which columns; None: of all of plain types; (): of none, the number of rows alone.
            retry: How often a commit that lost a race is tried again.
            spark: The session that reads the rows; None: the active one.

        Returns:
            The snapshot, which holds the same rows; `attempts` is 0 where there are none yet.

        Raises:
            InvalidRequest: There is no session (`"no-session"`), or no such column (`"column-missing"`).
            UnsupportedFeature: A named column has no statistics (`"unsupported-type"`).
        """
        self._ensure_main()
        rows = importlib.import_module("alluvium.api.paimon.paimon_rows")
        done: Committed = rows.analyze(self._store, columns, retry, spark, self._storage_options)
        return done

    def compact_manifests(self, retry: RetryPolicy = DEFAULT_RETRY) -> Committed:
        """Writes the manifests anew, in as few objects as they fit into and without files that are gone.

        Readers then find their files by fewer requests. No row is read or written, and no session needed.

        Args:
            retry: How often a commit that lost a race is tried again.

        Returns:
            The snapshot; `attempts` is 0 where there is nothing to merge.

        Raises:
            CommitConflict: Others were faster every time.
        """
        return compact_manifests(load_snapshot(self._store, At(), self._branch, self._options), retry)

    def _ensure_main(self) -> None:
        """Rows of a branch are written by appends only; these verbs would change those of the main one."""
        if self._branch != MAIN_BRANCH:
            raise UnsupportedFeature(
                f"rows of the branch {self._branch!r} are appended to, not changed or compacted",
                code="unsupported-branch",
                features=("branches",),
                hint="fast_forward makes the branch the main one; its rows can be changed there",
            )

    def _change(
        self,
        verb: str,
        condition: Column | str | None,
        values: Mapping[str, Column | str],
        dry_run: bool,
        retry: RetryPolicy,
        spark: SparkSession | None,
    ) -> Committed | Preview:
        self._ensure_main()
        # Loaded by name: tables are made and altered where pyspark is not installed.
        rows = importlib.import_module("alluvium.api.paimon.paimon_rows")
        done: Committed | Preview = rows.change_rows(
            self._store, self._storage_options, verb, condition, values, dry_run, retry, spark, self._name
        )
        return done
