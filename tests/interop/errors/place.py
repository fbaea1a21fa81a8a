"""Where bad calls are made: an engine, its session and a few tables, made once for all of them.

Runs in the reference engine's Python, too: no imports of the project.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_COUNT = itertools.count()
#: By name, what is asked of an engine.
CALLS: dict[str, Callable[[Place], object]] = {}


def call(function: Callable[[Place], object]) -> Callable[[Place], object]:
    """Registers a call under its function's name."""
    CALLS[function.__name__] = function
    return function


def calls(prefix: str, *arguments: object, **named: object) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Registers a call for each argument."""

    def register(function: Callable[..., object]) -> Callable[..., object]:
        for n, argument in enumerate(arguments):
            CALLS[f"{prefix}_{n}_{argument}"] = lambda p, a=argument: function(p, a)
        for name, argument in named.items():
            CALLS[f"{prefix}_{name}"] = lambda p, a=argument: function(p, a)
        return function

    return register


@dataclass(frozen=True)
class Place:
    """An engine at work.

    Attributes:
        spark: Its session, in which `format("delta")` is the engine's.
        delta: Its module with DeltaTable.
        root: Where tables go.
        alters: Whether ALTER TABLE is SQL here; else the tables have methods.
    """

    spark: Any
    delta: Any
    root: Path
    alters: bool

    def path(self, name: str) -> str:
        return str(self.root / name)

    def table(self, name: str = "plain") -> Any:
        return self.delta.DeltaTable.forPath(self.spark, self.path(name))

    def create(self, name: str) -> Any:
        return self.delta.DeltaTable.create(self.spark).location(self.path(name))

    def rows(self, sql: str) -> Any:
        return self.spark.sql(sql).coalesce(1)

    def read(self, name: str = "plain", **options: object) -> Any:
        return self.spark.read.format("delta").options(**options).load(self.path(name))

    def write(
        self, sql: str, name: str = "plain", mode: str = "append", by: tuple[str, ...] = (), **options: object
    ) -> None:
        writer = self.rows(sql).write.format("delta").mode(mode).options(**options)
        (writer.partitionBy(*by) if by else writer).save(self.path(name))

    def merge(self, sql: str = "select 1L id, 1 p, 'x' v", condition: str = "t.id = s.id", name: str = "plain") -> Any:
        return self.table(name).alias("t").merge(self.rows(sql).alias("s"), condition)

    def alter(self, statement: str, method: Callable[[Any], object], name: str = "plain") -> None:
        """ALTER TABLE, or the method that stands for it."""
        if self.alters:
            self.spark.sql(f"alter table delta.`{self.path(name)}` {statement}")
        else:
            method(self.table(name))

    def fresh(self) -> str:
        """A name that nothing has yet."""
        return f"fresh{next(_COUNT)}"

    def copy(self, name: str) -> str:
        """The name of another table like one, to be damaged or changed."""
        new = self.fresh()
        shutil.copytree(self.root / name, self.root / new)
        return new

    def log(self, name: str, version: int) -> Path:
        """A commit's file."""
        return self.root / name / "_delta_log" / f"{version:020}.json"


#: Columns and properties of the tables, by name, and the partition column.
_PLAIN = (("id", "bigint", {}), ("p", "int", {}), ("v", "string", {}))
_MASKS_OFF = {"delta.enableDeletionVectors": "false"}
TABLES: Mapping[str, tuple[tuple[tuple[str, str, dict[str, Any]], ...], dict[str, str], tuple[str, ...]]] = {
    "plain": (_PLAIN, _MASKS_OFF, ("p",)),
    "appends": (_PLAIN, {**_MASKS_OFF, "delta.appendOnly": "true"}, ()),
    "mapped": (_PLAIN, {"delta.columnMapping.mode": "name"}, ("p",)),
    "strict": ((("id", "bigint", {"nullable": False}), ("n", "int", {}), ("c", "varchar(3)", {})), {}, ()),
    "made": ((("id", "bigint", {}), ("twice", "bigint", {"generatedAlwaysAs": "id * 2"})), {}, ()),
    "fed": (_PLAIN, {"delta.enableChangeDataFeed": "true"}, ()),
}  # fmt: skip


def make_tables(place: Place) -> None:
    """The tables, each with a few rows."""
    for name, (columns, properties, by) in TABLES.items():
        builder = place.create(name)
        for column, data_type, said in columns:
            builder = builder.addColumn(column, data_type, **said)
        for key, value in properties.items():
            builder = builder.property(key, value)
        (builder.partitionedBy(*by) if by else builder).execute()
        if name in ("plain", "appends", "mapped", "fed"):
            place.write("select id, cast(id % 2 as int) p, concat('v', id) v from range(6)", name)
    numbered = place.create("numbered").addColumn("v", "string")
    numbered.addColumn("id", "bigint", generatedAlwaysAs=place.delta.IdentityGenerator()).execute()
    place.write("select 1L id, 1 n, 'c' c", "strict")
    place.alter("add constraint positive check (n > 0)", lambda t: t.addConstraint("positive", "n > 0"), "strict")
    place.rows("select 1 a").write.parquet(place.path("parquet"))
