"""The builder behind DeltaTable.optimize, with the methods of `delta.tables.DeltaOptimizeBuilder` 4.4."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.counterparts.raising import raises_counterparts
from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.delta.delta_errors import WrongType
from alluvium.api.delta.optimize.frame import optimized_frame
from alluvium.api.delta.optimize.settings import file_sizes, wants_statistics
from alluvium.commands.optimize.optimize import OptimizeRequest, optimize_table
from alluvium.plan.changes import Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.ddl import parse_column_path
from alluvium.spark.statements.resolve import Qualifier


@raises_counterparts("optimize")
@dataclass(frozen=True, slots=True)
class DeltaOptimizeBuilder:
    """Files written anew, the rows as they are; see `DeltaTable.optimize`.

    Nothing happens before `executeCompaction` or `executeZOrderBy`. Both answer one row, `path` and `metrics`.
    """

    _spark: SparkSession
    _access: TableAccess
    _name: Qualifier
    _where: tuple[str, ...] = ()

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Takes the partitions for which a condition is true, and leaves the others as they are.

        Args:
            partitionFilter: SQL text that names partition columns alone. A second one is a further condition.
        """
        if not isinstance(partitionFilter, str):
            raise WrongType(f"'partitionFilter' must be str, not {type(partitionFilter).__name__}", code="wrong-type")
        return replace(self, _where=(*self._where, partitionFilter))

    def executeCompaction(self, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> DataFrame | Preview:
        """Puts small files of each partition together.

        Args:
            dry_run: Only tell which files would be written anew.
            retry: How often a commit that lost a race is tried again.

        Raises:
            InvalidRequest: The condition names a column that is none of the partition columns (`predicate-on-data`), or
                does not resolve (`invalid-expression`).
            UnsupportedFeature: The table is clustered (`clustered-table`).
            CommitConflict: Another writer changed the table's description meanwhile.
        """
        return self._execute((), dry_run, retry)

    def executeZOrderBy(
        self,
        *cols: str | list[str] | tuple[str, ...],
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> DataFrame | Preview:
        """Writes all files of each partition anew, rows near each other that are alike in all of some columns.

        Args:
            *cols: The columns, or one list of them; dotted for members of structs. Without any, files are only put
                together.
            dry_run: Only tell which files would be written anew.
            retry: How often a commit that lost a race is tried again.

        Raises:
            InvalidRequest: As of `executeCompaction`; or a column is unknown, a partition column, without order, or has
                no statistics (`invalid-zorder-column`).
            UnsupportedFeature: The table is clustered (`clustered-table`).
            CommitConflict: Another writer changed the table's description meanwhile.
        """
        return self._execute(tuple(parse_column_path(name) for name in _names(cols)), dry_run, retry)

    def executePurge(self, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> DataFrame | Preview:
        """Writes files anew that hold more than the table shows: deleted rows, dropped columns, types since widened.

        It is `REORG TABLE ... APPLY (PURGE)`, which has no method in `delta.tables`.

        Args:
            dry_run: Only tell which files would be written anew.
            retry: How often a commit that lost a race is tried again.

        Raises:
            InvalidRequest: As of `executeCompaction`.
            UnsupportedFeature: The table is clustered (`clustered-table`).
            CommitConflict: Another writer changed the table's description meanwhile.
        """
        return self._execute((), dry_run, retry, purges=True)

    def _execute(
        self, order_by: tuple[tuple[str, ...], ...], dry_run: bool, retry: RetryPolicy, purges: bool = False
    ) -> DataFrame | Preview:
        snapshot = self._access.snapshot()
        request = OptimizeRequest(
            self._name,
            self._access.engine,
            self._where,
            order_by,
            purges,
            file_sizes(self._spark, snapshot.config.metadata.configuration),
            wants_statistics(self._spark),
        )
        done = optimize_table(self._spark, snapshot, request, dry_run, retry)
        return done if isinstance(done, Preview) else optimized_frame(self._spark, snapshot.store.uri(""), done)


def _names(cols: tuple[str | list[str] | tuple[str, ...], ...]) -> list[str]:
    given = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
    for name in given:
        if not isinstance(name, str):
            raise WrongType(f"columns to order by must be str, not {type(name).__name__}", code="wrong-type")
    return [name for name in given if isinstance(name, str)]
