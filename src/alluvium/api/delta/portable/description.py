"""Methods of a table without a session that change what it says of itself: columns, constraints, properties."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from alluvium.api.arguments import property_texts, text_of, texts_of
from alluvium.api.delta.alter import Alteration, PositionLike
from alluvium.commands.rows_here.constraint import add_constraint_here
from alluvium.delta.terms.mapping import MODE
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import UnsupportedFeature, WrongType
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.arrow import from_arrow
from alluvium.schema.types import DataType, Field


class _Table(Protocol):
    """What the methods need of the table whose they are."""

    def alter(self) -> Alteration: ...

    def _snapshot(self) -> Snapshot: ...

    def _engine(self) -> str: ...


class DescriptionVerbs:
    """The methods of `DeltaTable` beyond rows, by the verbs of `alluvium.alter`."""

    __slots__ = ()

    def addColumns(
        self: _Table,
        cols: Mapping[str, str | DataType] | Sequence[Field] | pa.Schema | object,
        position: PositionLike = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Adds nullable columns.

        Args:
            cols: Dotted name to type (Spark SQL text), an Arrow schema, or PySpark's fields.
            position: `"first"` or `"after x"`; last by default.
            dry_run: Only tell what would change.
            retry: How often to try.

        Raises:
            InvalidRequest: Something else, or the table does not allow the change.
        """
        return self.alter().add_columns(_columns(cols), position, dry_run, retry)

    def renameColumn(
        self: _Table, name: str, newName: str, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Renames a column (dotted when nested; `newName` is its last part) of a table with column mapping."""
        return self.alter().rename_column(name, newName, dry_run, retry)

    def dropColumns(
        self: _Table, *names: str, ifExists: bool = False, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Drops columns (dotted when nested) of a table with column mapping."""
        return self.alter().drop_columns(*names, if_exists=ifExists, dry_run=dry_run, retry=retry)

    def alterColumn(
        self: _Table,
        name: str,
        type: str | DataType | None = None,
        comment: str | None = None,
        nullable: bool | None = None,
        position: PositionLike = None,
        dry_run: bool = False,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> Committed | Preview:
        """Widens a column's type, comments or moves it, drops NOT NULL; see `Alteration.alter_column`."""
        return self.alter().alter_column(name, _type(type), comment, nullable, position, dry_run, retry)

    def addConstraint(
        self: _Table, name: str, expr: str, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Adds a CHECK constraint, after the rows that are there were checked.

        Raises:
            InvalidRequest: Rows violate it (`constraint-violated`), it is no condition, or there is one of that name.
            UnsupportedFeature: Only Spark evaluates it (`needs-spark`).
            CommitConflict: Another writer changed the table meanwhile.
        """
        name, expr = text_of(name, "name"), text_of(expr, "expr")
        return add_constraint_here(self._snapshot(), name, expr, self._engine(), dry_run, retry)

    def dropConstraint(
        self: _Table, name: str, ifExists: bool = False, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Drops a CHECK constraint."""
        return self.alter().drop_constraint(name, ifExists, dry_run, retry)

    def setProperties(
        self: _Table, properties: Mapping[str, str], dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Sets table properties, and upgrades the protocol as far as they need."""
        said = {name.lower(): value.strip().lower() for name, value in property_texts(properties).items()}
        if said == {MODE.lower(): "none"}:
            _ensure_unmapped(self._snapshot(), "setProperties")
        return self.alter().set_properties(properties, dry_run, retry)

    def unsetProperties(
        self: _Table, *names: str, ifExists: bool = True, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
    ) -> Committed | Preview:
        """Removes table properties."""
        if [name.lower() for name in texts_of(names, "names")] == [MODE.lower()]:
            _ensure_unmapped(self._snapshot(), "unsetProperties")
        return self.alter().unset_properties(*names, if_exists=ifExists, dry_run=dry_run, retry=retry)


def _ensure_unmapped(snapshot: Snapshot, method: str) -> None:
    """Column mapping ends by files written anew under the columns' names."""
    if snapshot.config.mapping_mode != "none":
        raise UnsupportedFeature(
            "column mapping is removed by Spark",
            code="needs-spark",
            url=snapshot.store.url,
            hint=f"DeltaTable.forPath(spark, path).{method}(...)",
        )


def _columns(cols: Any) -> Mapping[str, str | DataType] | Sequence[Field]:
    if isinstance(cols, Mapping):
        found = {name: _type(kind) for name, kind in cols.items()}
        return {name: kind for name, kind in found.items() if kind is not None}
    if isinstance(cols, pa.Schema):
        return tuple(Field(f.name, from_arrow(f.type, f.name), f.nullable) for f in cols)
    fields: Sequence[Any] = cols if isinstance(cols, list | tuple) else [cols]
    if fields and all(isinstance(f, Field) for f in fields):
        return tuple(fields)
    if fields and all(_is_of_pyspark(f) for f in fields):
        known: Sequence[Field] = _pyspark_fields().fields_of(cols)
        return known
    raise WrongType(f"columns to add are not {type(cols).__name__}", hint='{"name": "string", "n": "int"}')


def _type(kind: Any) -> str | DataType | None:
    found: str | DataType | None = _pyspark_fields().our_type(kind) if _is_of_pyspark(kind) else kind
    return found


def _is_of_pyspark(given: object) -> bool:
    return type(given).__module__.partition(".")[0] == "pyspark"


def _pyspark_fields() -> Any:
    # Whoever has types of PySpark has PySpark.
    return importlib.import_module("alluvium.api.delta.delta_columns")
