"""The builder behind DeltaTable.optimize, with the methods of `delta.tables.DeltaOptimizeBuilder` 4.4."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.arguments import plain
from alluvium.api.counterparts.raising import raises_counterparts
from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.delta.optimize.frame import optimized_frame
from alluvium.api.delta.optimize.settings import cube_sizes, file_sizes, wants_statistics
from alluvium.commands.optimize.optimize import OptimizeRequest, optimize_table
from alluvium.errors import WrongType
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
    _full: bool = False
    _measures: bool = False
    _sort_by: tuple[str, ...] = ()

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Takes the partitions for which a condition is true, and leaves the others as they are.

        Args:
            partitionFilter: SQL text that names partition columns alone. A second one is a further condition.
        """
        if not isinstance(partitionFilter, str):
            raise WrongType(f"'partitionFilter' must be str, not {type(partitionFilter).__name__}")
        return replace(self, _where=(*self._where, plain(partitionFilter)))

    def executeCompaction(
        self,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
        full: bool = False,
        measure: bool = False,
    ) -> DataFrame | Preview:
        """Puts small files of each partition together; of a clustered table, clusters what came since it was clustered.

        Args:
            dry_run: Only tell which files would be written anew.
            retry: How often a commit that lost a race is tried again.
            full: Of a clustered table, also what was clustered by other columns (`OPTIMIZE t FULL`).
            measure: Of a clustered table, add a column `lookUps`: for each clustering column how many files were opened
                for one of its values, on average, and how many are now.

        Raises:
            InvalidRequest: The condition names a column that is none of the partition columns (`predicate-on-data`), or
                does not resolve (`invalid-expression`).
            UnsupportedFeature: There is a condition, and the table is clustered, or `full`, and it is not
                (`clustered-table`).
            CommitConflict: Another writer changed the table's description meanwhile.
        """
        return replace(self, _full=self._full or full, _measures=measure)._execute((), dry_run, retry)

    def executeZOrderBy(
        self,
        *cols: str | list[str] | tuple[str, ...],
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
        measure: bool = False,
    ) -> DataFrame | Preview:
        """Writes all files of each partition anew, rows near each other that are alike in all of some columns.

        Args:
            *cols: The columns, or one list of them; dotted for members of structs. Without any, files are only put
                together.
            dry_run: Only tell which files would be written anew.
            retry: How often a commit that lost a race is tried again.
            measure: Add a column `lookUps`: for each of the columns how many files were opened for one of its values,
                on average, and how many are now.

        Raises:
            InvalidRequest: As of `executeCompaction`; or a column is unknown, a partition column, without order, or has
                no statistics (`invalid-zorder-column`).
            UnsupportedFeature: The table is clustered (`clustered-table`).
            CommitConflict: Another writer changed the table's description meanwhile.
        """
        order_by = tuple(parse_column_path(name) for name in _names(cols))
        return replace(self, _measures=measure)._execute(order_by, dry_run, retry)

    def executeSortBy(
        self,
        *cols: str | list[str] | tuple[str, ...],
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
        measure: bool = False,
    ) -> DataFrame | Preview:
        """Writes all files of each partition anew, rows in the order of some columns, from file to file.

        It is not in `delta.tables`. A table whose property `alluvium.sortBy` names columns is kept in their order by
        every write and by `executeCompaction`.

        Args:
            *cols: The columns at the top level, or one list of them; without any those of the property.
            dry_run: Only tell which files would be written anew.
            retry: How often a commit that lost a race is tried again.
            measure: As of `executeZOrderBy`.

        Raises:
            InvalidRequest: As of `executeCompaction`; a column is unknown or without order (`invalid-sort-column`), or
                the table is clustered (`contradicting-options`).
            CommitConflict: Another writer changed the table's description meanwhile.
        """
        sort_by = tuple(_names(cols))
        return replace(self, _measures=measure, _sort_by=sort_by)._execute((), dry_run, retry)

    def executePurge(self, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> DataFrame | Preview:
        """Writes files anew that hold more than the table shows: deleted rows, dropped columns, types since widened.

        It is `REORG TABLE ... APPLY (PURGE)`, which has no method in `delta.tables`.

        Args:
            dry_run: Only tell which files would be written anew.
            retry: How often a commit that lost a race is tried again.

        Raises:
            InvalidRequest: As of `executeCompaction`.
            UnsupportedFeature: There is a condition, and the table is clustered (`clustered-table`).
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
            self._sort_by,
            purges,
            file_sizes(self._spark, snapshot.config.metadata.configuration),
            wants_statistics(self._spark),
            self._full,
            cube_sizes(self._spark),
            measures=self._measures,
        )
        done = optimize_table(self._spark, snapshot, request, dry_run, retry)
        if isinstance(done, Preview):
            return done
        return optimized_frame(self._spark, snapshot.store.uri(""), done, self._measures)


def _names(cols: tuple[str | list[str] | tuple[str, ...], ...]) -> list[str]:
    given = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
    for name in given:
        if not isinstance(name, str):
            raise WrongType(f"columns to order by must be str, not {type(name).__name__}")
    return [name for name in given if isinstance(name, str)]
