"""Rows that somebody else's engine asks for: which columns, and a condition that holds for all that it wants."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from alluvium.api.lane import read_batches
from alluvium.errors import InvalidRequest
from alluvium.expr.tree import Expression
from alluvium.plan.scan import ScanPlan
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import Struct
from alluvium.storage.store import Store

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from alluvium.portable.plain_file import PlainFile

#: From names of columns (None: all) and a condition to what is read of the table; rows for which the condition is not
#: true may be left out.
MakePlan: TypeAlias = Callable[["Sequence[str] | None", "Expression | None"], ScanPlan]


@dataclass(frozen=True, slots=True, eq=False)
class LazyRows:
    """The rows of one version of a table.

    Attributes:
        columns: The columns.
        plan: How some of them are read.
        store: The table's root.
        open_store: From a URL to its store, for files that lie elsewhere.
        time_zone: Of conditions.
    """

    columns: Struct
    plan: MakePlan
    store: Store
    open_store: Callable[[str], Store]
    time_zone: str = "UTC"

    @property
    def schema(self) -> pa.Schema:
        return schema_to_arrow(self.columns)

    def batches(self, names: Sequence[str], where: Expression | None, batch_size: int) -> pa.RecordBatchReader:
        """Rows with these columns at least; those for which the condition is not true may be left out."""
        asked = _asked(names)
        plan = self.plan(asked, where)
        return read_batches(plan, self.store, self.open_store, asked, where, self.time_zone, batch_size)

    def mixed(
        self, names: Sequence[str], where: Expression | None, batch_size: int
    ) -> Iterator[pa.RecordBatch | PlainFile]:
        """The same rows, but for files that the engine may read itself: nobody has looked at these."""
        asked = _asked(names)
        plan = self.plan(asked, where)
        reader = importlib.import_module("alluvium.portable.reader")
        found: Iterator[pa.RecordBatch | PlainFile] = reader.read_mixed(
            plan, self.store, self.open_store, asked, where, self.time_zone, batch_size
        )
        return found

    def to_polars(self) -> pl.LazyFrame:
        """The rows as a lazy frame.

        Raises:
            InvalidRequest: Polars is not installed (`missing-dependency`).
        """
        library("polars", "to_polars")
        frame: pl.LazyFrame = importlib.import_module("alluvium.api.lazy.polars_frame").lazy_frame(self)
        return frame

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None) -> duckdb.DuckDBPyRelation:
        """The rows as a relation of a connection.

        Raises:
            InvalidRequest: DuckDB is not installed (`missing-dependency`).
        """
        library("duckdb", "to_duckdb")
        made: duckdb.DuckDBPyRelation = importlib.import_module("alluvium.api.lazy.duckdb_relation").relation(
            self, connection
        )
        return made


def _asked(names: Sequence[str]) -> Sequence[str] | None:
    # A column may be called `*`, which stands for all to our reader.
    return None if "*" in names else names


def library(name: str, asked: str) -> ModuleType:
    """A library that is no dependency.

    Raises:
        InvalidRequest: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InvalidRequest(
            f"{asked} needs {name}: {error}", code="missing-dependency", hint=f"pip install alluvium[{name}]"
        ) from None
