"""Rows that somebody else's engine asks for: which columns, and a condition that holds for all that it wants."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from alluvium.errors import InvalidRequest
from alluvium.expr.tree import Expression
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import Struct

if TYPE_CHECKING:
    import duckdb
    import polars as pl

#: From names of columns (None: all), a condition and a number of rows a batch to the rows.
Read: TypeAlias = Callable[["Sequence[str] | None", "Expression | None", int], pa.RecordBatchReader]


@dataclass(frozen=True, slots=True, eq=False)
class LazyRows:
    """The rows of one version of a table.

    Attributes:
        columns: The columns.
        read: Reads some of them; rows for which the condition is not true may be left out.
    """

    columns: Struct
    read: Read

    @property
    def schema(self) -> pa.Schema:
        return schema_to_arrow(self.columns)

    def batches(self, names: Sequence[str], where: Expression | None, batch_size: int) -> pa.RecordBatchReader:
        """Rows with these columns at least; those for which the condition is not true may be left out."""
        # A column may be called `*`, which stands for all to our reader.
        return self.read(None if "*" in names else names, where, batch_size)

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
