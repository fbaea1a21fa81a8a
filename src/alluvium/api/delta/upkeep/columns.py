"""What changes the description of a DeltaTable: columns, constraints, properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from alluvium.api.counterparts.raising import raises_counterparts
from alluvium.api.delta.alter import Alteration, PositionLike
from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.delta.delta_columns import fields_of, named_types, our_type
from alluvium.commands.constraint import add_checked_constraint
from alluvium.commands.rewrite import remove_mapping
from alluvium.delta.terms.mapping import MODE
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy


@raises_counterparts()
class ColumnVerbs:
    """Columns, constraints and properties as methods; they are not in `delta.tables`, where SQL changes them."""

    _spark: SparkSession
    _access: TableAccess

    def addColumns(
        self,
        cols: StructType | Sequence[StructField] | Mapping[str, str | DataType],
        position: PositionLike = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Adds nullable columns.

        Args:
            cols: Fields, or dotted name to type.
            position: `"first"` or `"after x"`; last by default.
            dry_run: Only tell what would change.
            retry: How often to try.
        """
        wanted = named_types(cols) if isinstance(cols, Mapping) else fields_of(cols)
        return self._alteration().add_columns(wanted, position, dry_run, retry)

    def renameColumn(
        self, name: str, newName: str, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Renames a column (dotted when nested; `newName` is its last part) of a table with column mapping."""
        return self._alteration().rename_column(name, newName, dry_run, retry)

    def dropColumns(
        self, *names: str, ifExists: bool = False, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Drops columns (dotted when nested) of a table with column mapping."""
        return self._alteration().drop_columns(*names, if_exists=ifExists, dry_run=dry_run, retry=retry)

    def alterColumn(
        self,
        name: str,
        type: str | DataType | None = None,
        comment: str | None = None,
        nullable: bool | None = None,
        position: PositionLike = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Widens a column's type, comments or moves it, drops NOT NULL; see `Alteration.alter_column`."""
        wanted = None if type is None else our_type(type)
        return self._alteration().alter_column(name, wanted, comment, nullable, position, dry_run, retry)

    def addConstraint(
        self, name: str, expr: str, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Adds a CHECK constraint, after Spark has checked the rows that are there.

        Raises:
            InvalidRequest: Rows violate it (`constraint-violated`), it is no condition (`invalid-constraint`), or there
                is one of that name.
        """
        return add_checked_constraint(
            self._spark, self._access.snapshot(), name, expr, self._access.engine, dry_run, retry
        )

    def dropConstraint(
        self, name: str, ifExists: bool = False, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Drops a CHECK constraint."""
        return self._alteration().drop_constraint(name, ifExists, dry_run, retry)

    def setProperties(
        self, properties: Mapping[str, str], dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Sets table properties, and upgrades the protocol as far as they need.

        `delta.columnMapping.mode` = `none`, set alone, has all files written anew under the columns' names.
        """
        said = {name.lower(): str(value).strip().lower() for name, value in properties.items()}
        snapshot = self._access.snapshot()
        if said == {MODE.lower(): "none"} and snapshot.config.mapping_mode != "none" and not dry_run:
            return remove_mapping(self._spark, snapshot, self._access.engine, keeps_property=True, retry=retry)
        return self._alteration().set_properties(properties, dry_run, retry)

    def unsetProperties(
        self, *names: str, ifExists: bool = True, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Removes table properties; without `delta.columnMapping.mode` all files are written anew."""
        snapshot = self._access.snapshot()
        is_mode = [name.lower() for name in names] == [MODE.lower()]
        if is_mode and snapshot.config.mapping_mode != "none" and not dry_run:
            return remove_mapping(self._spark, snapshot, self._access.engine, keeps_property=False, retry=retry)
        return self._alteration().unset_properties(*names, if_exists=ifExists, dry_run=dry_run, retry=retry)

    def _alteration(self) -> Alteration:
        return Alteration(self._access.snapshot, self._access.engine)
