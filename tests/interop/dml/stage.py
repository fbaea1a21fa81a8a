"""Scripts of row changes, for any engine that has DeltaTable: each runs with `delta.tables` and with `alluvium`.

Runs in the reference engine's Python, too: no imports of the project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Step = tuple[str, Callable[[], object]]

FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
MASK = {"delta.enableDeletionVectors": "true"}
REWRITE = {"delta.enableDeletionVectors": "false"}
NAMED = {"delta.columnMapping.mode": "name"}
NUMBERED = {"delta.columnMapping.mode": "id"}


@dataclass(frozen=True)
class Script:
    """Steps, and the tables (by name, with their properties) on which they run."""

    steps: Callable[[Stage], Iterator[Step]]
    tables: Mapping[str, Mapping[str, str]]


SCRIPTS: dict[str, Script] = {}


def script(**tables: Mapping[str, str]) -> Callable[[Callable[[Stage], Iterator[Step]]], Callable[..., Any]]:
    """Registers a script under its function's name."""

    def register(steps: Callable[[Stage], Iterator[Step]]) -> Callable[..., Any]:
        SCRIPTS[steps.__name__] = Script(steps, tables)
        return steps

    return register


@dataclass(frozen=True)
class Stage:
    """An engine at work on one table."""

    spark: Any
    delta: Any
    path: str
    properties: Mapping[str, str]

    @property
    def t(self) -> Any:
        return self.delta.DeltaTable.forPath(self.spark, self.path).alias("t")

    def rows(self, sql: str) -> Any:
        return self.spark.sql(sql).coalesce(1).alias("s")

    def merge(self, sql: str, condition: Any = "t.id = s.id") -> Any:
        return self.t.merge(self.rows(sql), condition)

    def create(self, *columns: tuple[str, str], partition_by: tuple[str, ...] = (), **made: Mapping[str, Any]) -> None:
        """Columns by name and type; what else is to be said of some by name."""
        builder = self.delta.DeltaTable.create(self.spark).location(self.path)
        for name, data_type in columns:
            builder = builder.addColumn(name, data_type, **made.get(name, {}))
        for key, value in self.properties.items():
            builder = builder.property(key, value)
        (builder.partitionedBy(*partition_by) if partition_by else builder).execute()

    def append(self, sql: str) -> None:
        self.rows(sql).write.format("delta").mode("append").save(self.path)

    def make(self, rows: int = 20) -> None:
        """`id` from 0, `p` = id % 2 (the partition), `v` = "v" + id; a file a partition."""
        self.create(("id", "long"), ("p", "int"), ("v", "string"), partition_by=("p",))
        self.append(f"select id, cast(id % 2 as int) as p, concat('v', id) as v from range({rows})")


THREE = "select * from values (5L, 1, 's5'), (6L, 0, 's6'), (100L, 1, 's100') as s(id, p, v)"
