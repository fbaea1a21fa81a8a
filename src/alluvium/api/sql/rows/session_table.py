"""A Paimon table as statements change its rows: by the session that they came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession

from alluvium.api.engine import session_opener
from alluvium.api.names.paimon_access import PaimonAccess
from alluvium.api.paimon.paimon_merge import PaimonMergeBuilder
from alluvium.api.paimon.paimon_table import PaimonTable
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.plan.changes import Committed, Preview


@dataclass(frozen=True, slots=True)
class SessionTable:
    """The verbs that `DeltaTable` has, too.

    Attributes:
        spark: The session.
        table: The table, under the name that the statement gives it.
    """

    spark: SparkSession
    table: PaimonTable

    @classmethod
    def of(cls, access: PaimonAccess, name: tuple[str, ...] | None) -> SessionTable:
        """The table, its columns called by a name; None: by themselves."""
        # A branch is no other table: without its name the verb would change the main one.
        table = PaimonTable(session_opener(access.spark, None)(access.url), branch=access.branch or MAIN_BRANCH)
        return cls(access.spark, table if name is None else table._named(name))

    def delete(self, condition: Column | None = None, dry_run: bool = False) -> Committed | Preview:
        """As of `PaimonTable.delete`."""
        return self.table.delete(condition, dry_run=dry_run, spark=self.spark)

    def update(
        self, condition: Column | None, set: Mapping[str, Column | str], dry_run: bool = False
    ) -> Committed | Preview:
        """As of `PaimonTable.update`."""
        return self.table.update(condition, set, dry_run=dry_run, spark=self.spark)

    def merge(self, source: DataFrame, condition: Column) -> PaimonMergeBuilder:
        """As of `PaimonTable.merge`."""
        return self.table.merge(source, condition, spark=self.spark)
