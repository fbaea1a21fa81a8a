"""A table as somebody asks for it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from alluvium.schema.types import Field, JsonValue


class Mode(enum.Enum):
    """What becomes of a table that exists, and how the history names it."""

    CREATE = "CREATE TABLE"
    CREATE_IF_NOT_EXISTS = "CREATE TABLE "
    REPLACE = "REPLACE TABLE"
    CREATE_OR_REPLACE = "CREATE OR REPLACE TABLE"

    @property
    def replaces(self) -> bool:
        """Whether the table takes the place of one that exists."""
        return self in (Mode.REPLACE, Mode.CREATE_OR_REPLACE)

    @property
    def operation(self) -> str:
        """As the history has it."""
        return self.value.strip()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table to create or to put in the place of another.

    Attributes:
        mode: What becomes of a table that exists.
        name: `[database.]table`, or delta.`/path`.
        location: Where its files go; None: where the catalog puts tables of that name.
        columns: Its columns; none where there are rows.
        partition_by: Partition columns.
        cluster_by: Clustering columns, dotted when nested.
        properties: Table properties, those included that speak of the protocol.
        comment: Of the table.
        rows: Its first rows, by whose columns it is made.
        options: For Spark's own writer of these rows.
        txn: An application's id and version, which the commit of the rows records.
        rebalance: Whether to move rows between tasks for few files of the right size; None: as the table wants it.
        user_metadata: What the caller says of the commit.
        said: More parameters of the operation.
        compares: Whether a table that has no entry, and lies where this one is to be, must be as this one in every
            mode, as statements have it; otherwise `createIfNotExists` leaves it and `createOrReplace` replaces it.
    """

    mode: Mode
    name: str | None = None
    location: str | None = None
    columns: tuple[Field, ...] = ()
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    rows: DataFrame | None = None
    options: tuple[tuple[str, str], ...] = ()
    txn: tuple[str, int] | None = None
    rebalance: bool | None = None
    user_metadata: str | None = None
    said: Mapping[str, JsonValue] = field(default_factory=dict)
    compares: bool = False
