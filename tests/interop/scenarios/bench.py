"""What a scenario works with: the session, the engine's module, the table's path; changes that are SQL in one engine."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Step = tuple[str, Callable[[], object]]

#: By name: the steps, and what another engine appends and deletes afterwards.
SCENARIOS: dict[str, Scenario] = {}


@dataclass(frozen=True)
class Scenario:
    """One story of a table.

    Attributes:
        steps: Gives the steps.
        more: Rows that the other engine appends at the end, as SQL.
        delete: Condition of rows that delta-spark deletes at the end, or None (append-only tables).
        changes: From which version delta-spark and we read the change feed at the end, or None.
    """

    steps: Callable[[Bench], Iterator[Step]]
    more: str
    delete: str | None
    changes: int | None


def scenario(more: str, delete: str | None = None, changes: int | None = None):
    """Registers a scenario under its function's name."""

    def register(steps: Callable[[Bench], Iterator[Step]]) -> Callable[[Bench], Iterator[Step]]:
        SCENARIOS[steps.__name__] = Scenario(steps, more, delete, changes)
        return steps

    return register


@dataclass(frozen=True)
class Bench:
    """An engine at work on one table."""

    spark: Any
    delta: Any
    path: str

    @property
    def types(self) -> Any:
        """PySpark's types, of the engine's own PySpark."""
        return importlib.import_module("pyspark.sql.types")

    @property
    def is_ours(self) -> bool:
        return self.delta.__name__ == "alluvium"

    def rows(self, sql: str) -> Any:
        """Rows in one partition, hence in one file."""
        return self.spark.sql(sql).coalesce(1)

    def table(self) -> Any:
        return self.delta.DeltaTable.forPath(self.spark, self.path)

    def create(self, verb: str = "create") -> Any:
        return getattr(self.delta.DeltaTable, verb)(self.spark).location(self.path)

    def write(self, sql: str, mode: str = "append", partition_by: tuple[str, ...] = (), **options: object) -> None:
        writer = self.rows(sql).write.format("delta").mode(mode)
        for key, value in options.items():
            writer = writer.option(key.replace("__", "."), value)
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        writer.save(self.path)

    # What delta-spark has in SQL only.

    def _alter(self, text: str) -> None:
        self.spark.sql(f"ALTER TABLE delta.`{self.path}` {text}")

    def set(self, **properties: object) -> None:
        wanted = {key.replace("__", "."): str(value).lower() for key, value in properties.items()}
        if self.is_ours:
            self.table().setProperties(wanted)
        else:
            self._alter("SET TBLPROPERTIES (" + ", ".join(f"'{k}' = '{v}'" for k, v in wanted.items()) + ")")

    def unset(self, name: str) -> None:
        if self.is_ours:
            self.table().unsetProperties(name)
        else:
            self._alter(f"UNSET TBLPROPERTIES IF EXISTS ('{name}')")

    def add(self, name: str, data_type: str, position: str | None = None) -> None:
        if self.is_ours:
            self.table().addColumns({name: data_type}, position=position)
        else:
            self._alter(f"ADD COLUMNS ({name} {data_type} {position or ''})")

    def rename(self, name: str, new: str) -> None:
        if self.is_ours:
            self.table().renameColumn(name, new)
        else:
            self._alter(f"RENAME COLUMN {name} TO `{new}`")

    def drop(self, *names: str) -> None:
        if self.is_ours:
            self.table().dropColumns(*names)
        else:
            self._alter(f"DROP COLUMNS ({', '.join(names)})")

    def change(self, name: str, **how: Any) -> None:
        """type=, comment=, position=, nullable=True."""
        if self.is_ours:
            self.table().alterColumn(name, **how)
        elif "type" in how:
            self._alter(f"ALTER COLUMN {name} TYPE {how['type']}")
        elif "comment" in how:
            self._alter(f"ALTER COLUMN {name} COMMENT '{how['comment']}'")
        elif "position" in how:
            self._alter(f"ALTER COLUMN {name} {how['position']}")
        else:
            self._alter(f"ALTER COLUMN {name} DROP NOT NULL")

    def constrain(self, name: str, condition: str) -> None:
        if self.is_ours:
            self.table().addConstraint(name, condition)
        else:
            self._alter(f"ADD CONSTRAINT {name} CHECK ({condition})")

    def unconstrain(self, name: str) -> None:
        if self.is_ours:
            self.table().dropConstraint(name)
        else:
            self._alter(f"DROP CONSTRAINT {name}")
