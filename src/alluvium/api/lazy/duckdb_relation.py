"""A table's rows as a relation of DuckDB.

DuckDB hands columns and conditions to datasets of pyarrow alone, of which it asks `schema` and `scanner(columns=,
filter=)`. What is asked for is answered here by our reader; the condition itself is then carried out by Arrow, as
DuckDB does not look at it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from alluvium.api.lazy.arrow_terms import named, pushed, read
from alluvium.api.lazy.rows import LazyRows
from alluvium.errors import InvalidRequest

_BATCH_SIZE = 65_536


def relation(rows: LazyRows, connection: duckdb.DuckDBPyConnection | None) -> duckdb.DuckDBPyRelation:
    """The rows; columns and conditions of queries reach our reader.

    Args:
        rows: Which.
        connection: Whose relation it is; None: DuckDB's default connection, that of `duckdb.sql`.
    """
    found = duckdb.default_connection() if connection is None else connection
    return found.from_arrow(RowsDataset(rows))


class RowsDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """A dataset whose rows are somebody else's: it can be scanned, and nothing else.

    pyarrow has no door for such; Lance's datasets are made in the same way.
    """

    def __init__(self, rows: LazyRows) -> None:
        # Arrow's own would want a dataset of C++; all that would ask it something is refused below.
        self._rows = rows

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **others: object
    ) -> ds.Scanner:
        """The rows that a query wants, once."""
        every = self._rows.columns.names
        names = list(every if columns is None else columns)
        known = None if filter is None else read(filter)
        # A condition that is not understood may name any of them.
        asked = () if filter is None else every if known is None else named(known)
        needed = [name for name in every if name in names or name in asked] or list(every[:1])
        where = None if known is None else pushed(known, self._rows.columns)
        batches = self._rows.batches(needed, where, _BATCH_SIZE)
        # By its text alone the name `a.b` would be that of a member.
        return ds.Scanner.from_batches(batches, columns={name: pc.field(name) for name in names}, filter=filter)

    def _refused(self, *args: object, **named: object) -> NoReturn:
        raise InvalidRequest("these rows can only be scanned", code="invalid-dataset", hint="use to_arrow()")

    count_rows = filter = get_fragments = head = join = join_asof = replace_schema = sort_by = take = _refused
    to_batches = to_table = partition_expression = __reduce__ = _refused
