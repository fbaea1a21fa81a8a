"""The builder behind `optimize` without a session, with the methods of `delta.tables.DeltaOptimizeBuilder` 4.4."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

import pyarrow as pa

from alluvium.api.arguments import plain
from alluvium.api.delta.optimize.metrics import RESULT, optimized_row
from alluvium.commands.rows_here.optimize import OptimizeAsked, optimize_here
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import UnsupportedFeature, WrongType
from alluvium.plan.changes import Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.arrow import schema_to_arrow


@dataclass(frozen=True, slots=True)
class OptimizeBuilder:
    """Files written anew, the rows as they are; see `PortableDeltaTable.optimize`.

    Nothing happens before `executeCompaction`, whose answer is one row, `path` and `metrics`, as Arrow.
    """

    _opened: Callable[[], Snapshot]
    _asked: OptimizeAsked

    def where(self, partitionFilter: str) -> OptimizeBuilder:
        """Takes the partitions for which a condition is true, and leaves the others as they are.

        Args:
            partitionFilter: SQL text that names partition columns alone. A second one is a further condition.
        """
        if not isinstance(partitionFilter, str):
            raise WrongType(f"'partitionFilter' must be str, not {type(partitionFilter).__name__}")
        return replace(self, _asked=replace(self._asked, where=(*self._asked.where, plain(partitionFilter))))

    def executeCompaction(
        self,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
        full: bool = False,
        measure: bool = False,
    ) -> pa.Table | Preview:
        """Puts small files of each partition together; files with many deleted rows are written without these.

        Args:
            dry_run: Only tell which files would be written anew.
            retry: How often a commit that lost a race is tried again.
            full: Of a clustered table, which needs Spark.
            measure: Of a clustered table, too.

        Raises:
            InvalidRequest: The condition does not parse, or names a column that is none of the partition columns
                (`predicate-on-data`).
            UnsupportedFeature: Rows of the table are kept in order, have variants, or only Spark understands the
                condition (`needs-spark`); or the table is clustered, and there is a condition (`clustered-table`).
            CommitConflict: Another writer changed the table's description meanwhile.
        """
        if measure:
            _needs_spark("executeCompaction(measure=True)")
        return self._execute(replace(self._asked, full=full), dry_run, retry)

    def executePurge(self, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> pa.Table | Preview:
        """Writes files anew that hold more than the table shows: deleted rows, dropped columns, types since widened.

        Arguments and errors as of `executeCompaction`, but that rows of clustered and sorted tables stay in the order
        that they have.
        """
        return self._execute(replace(self._asked, purges=True), dry_run, retry)

    def executeZOrderBy(self, *cols: object, **named: object) -> NoReturn:
        """Refused: rows are put in order by Spark.

        Raises:
            UnsupportedFeature: Always (`needs-spark`).
        """
        _needs_spark("executeZOrderBy")

    def executeSortBy(self, *cols: object, **named: object) -> NoReturn:
        """Refused: rows are put in order by Spark.

        Raises:
            UnsupportedFeature: Always (`needs-spark`).
        """
        _needs_spark("executeSortBy")

    def _execute(self, asked: OptimizeAsked, dry_run: bool, retry: RetryPolicy) -> pa.Table | Preview:
        snapshot = self._opened()
        done = optimize_here(snapshot, asked, dry_run, retry)
        if isinstance(done, Preview):
            return done
        row = optimized_row(snapshot.store.uri(""), done)
        return pa.Table.from_pylist([{name: row[name] for name in RESULT.names}], schema_to_arrow(RESULT))


def _needs_spark(method: str) -> NoReturn:
    raise UnsupportedFeature(
        f"{method} needs Spark",
        code="needs-spark",
        hint=f"DeltaTable.forPath(spark, path).optimize().{method.partition('(')[0]}(...)",
    )
