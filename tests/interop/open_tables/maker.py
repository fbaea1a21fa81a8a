"""What makes a table: the session, the path, and the few verbs that the recipes need; and where recipes are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import alluvium
from alluvium import DeltaTable
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

#: A column, an operator, and a value: a number, text, `{"date": ISO text}` or `{"timestamp": ISO text with its zone}`.
Term = tuple[str, str, object]


@dataclass(frozen=True)
class OpenTable:
    """A recipe, and what the readers are asked of its table besides all rows of every version.

    Attributes:
        make: Writes the table.
        where: Conditions that hold together; readers skip files by our statistics and partition values for them.
        feed: From which version the change feed is read.
        app: An application whose transactions the table knows.
        folder: Its folder's name, where that is not the recipe's.
        sql: What else DuckDB is asked; `?` stands for the path.
    """

    make: Callable[[Maker], None]
    where: tuple[Term, ...] = ()
    feed: int | None = None
    app: str | None = None
    folder: str | None = None
    sql: str | None = None

    def job(self, name: str, path: str) -> dict[str, object]:
        """As `read_openly.py` takes it."""
        where = [list(term) for term in self.where]
        return {"name": name, "path": path, "where": where, "feed": self.feed, "app": self.app, "sql": self.sql}


TABLES: dict[str, OpenTable] = {}


def table(
    *where: Term,
    feed: int | None = None,
    app: str | None = None,
    folder: str | None = None,
    sql: str | None = None,
) -> Callable[[Callable[[Maker], None]], Callable[[Maker], None]]:
    """Keeps a recipe under its function's name."""

    def register(make: Callable[[Maker], None]) -> Callable[[Maker], None]:
        TABLES[make.__name__] = OpenTable(make, where, feed, app, folder, sql)
        return make

    return register


@dataclass(frozen=True)
class Maker:
    """A table in the making; `spark` is for those that need it."""

    spark: Any
    path: str

    @property
    def store(self) -> Store:
        return open_store(self.path)

    @property
    def t(self) -> Any:
        return DeltaTable.forPath(self.spark, self.path).alias("t")

    @property
    def alter(self) -> Any:
        """Changes without Spark."""
        return alluvium.alter(self.path)

    def rows(self, sql: str) -> Any:
        """Rows in one partition, hence in one file."""
        return self.spark.sql(sql).coalesce(1)

    def write(
        self,
        sql: str,
        mode: str = "append",
        partition_by: tuple[str, ...] = (),
        properties: Mapping[str, str] | None = None,
        **options: object,
    ) -> None:
        alluvium.write(self.rows(sql), self.path, mode, "delta", partition_by, **{**(properties or {}), **options})

    def create(
        self,
        columns: Mapping[str, str | Mapping[str, Any]],
        properties: Mapping[str, str] | None = None,
        partition_by: tuple[str, ...] = (),
        cluster_by: tuple[str, ...] = (),
    ) -> None:
        """Columns by name: the type, or the arguments of `addColumn` with the type under `dataType`."""
        builder = DeltaTable.create(self.spark).location(self.path)
        for name, said in columns.items():
            builder = builder.addColumn(name, **({"dataType": said} if isinstance(said, str) else said))
        for key, value in (properties or {}).items():
            builder = builder.property(key, value)
        if partition_by:
            builder = builder.partitionedBy(*partition_by)
        (builder.clusterBy(*cluster_by) if cluster_by else builder).execute()

    def merge(self, sql: str, condition: str = "t.id = s.id") -> Any:
        return self.t.merge(self.rows(sql).alias("s"), condition)
