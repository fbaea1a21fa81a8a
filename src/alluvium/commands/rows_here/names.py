"""Names in a verb's expressions: columns, alone or behind the name of the rows that they are of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate, parse_value
from alluvium.expr.tree import Column, Expression, is_understood, with_children
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.text_lengths import declared_struct
from alluvium.schema.types import DataType, Field, Struct


@dataclass(frozen=True)
class Names:
    """What expressions may name.

    Attributes:
        tables: Columns by the name of the rows that they are of; the first are those of the table.
        time_zone: In which times without a zone are read.
    """

    tables: Mapping[str, Struct]
    time_zone: str = "UTC"

    @cached_property
    def schema(self) -> Struct:
        """All that can be named: rows as structs, and columns that only one of them has."""
        rows = []
        for name, columns in self.tables.items():
            declared = declared_struct(columns)
            rows.append(Field(name, columns, True, {} if declared is None else {CHAR_VARCHAR: declared}))
        return Struct((*(f for f in self._alone.values()), *rows))

    @cached_property
    def _alone(self) -> dict[str, Field]:
        """Columns whose names say by themselves what is meant."""
        counts = Counter(f.name.lower() for columns in self.tables.values() for f in columns.fields)
        taken = {name.lower() for name in self.tables}
        return {
            f.name: f
            for columns in self.tables.values()
            for f in columns.fields
            if counts[f.name.lower()] == 1 and f.name.lower() not in taken
        }

    def condition(self, text: str, what: str) -> Expression:
        """A condition.

        Args:
            text: Spark SQL.
            what: How to call it in messages.

        Raises:
            InvalidRequest: It does not parse, names no column, or is none.
            UnsupportedFeature: Only Spark evaluates it (`"needs-spark"`).
        """
        return self._understood(
            parse_predicate(text, self.schema, self.time_zone, tuple(self.tables)), f"{what} {text}"
        )

    def known(self, text: str) -> Expression:
        """A condition as far as it is understood; what is not, is `Unknown`.

        Raises:
            InvalidRequest: It does not parse, names no column, or is none.
        """
        return self._qualified(parse_predicate(text, self.schema, self.time_zone, tuple(self.tables)))

    def value(self, text: str, target: DataType, column: str) -> Expression:
        """A value of a column; errors as of `condition`."""
        return self._understood(
            parse_value(text, self.schema, target, self.time_zone, tuple(self.tables)), f"{column} = {text}"
        )

    def _understood(self, found: Expression, what: str) -> Expression:
        if not is_understood(found):
            raise UnsupportedFeature(
                f"{what}: only Spark can evaluate this",
                code="needs-spark",
                hint="use DeltaTable.forPath(spark, path)",
            )
        return self._qualified(found)

    def _qualified(self, node: Expression) -> Expression:
        """The expression, each column behind the name of its rows."""
        if not isinstance(node, Column):
            return with_children(node, self._qualified)
        if node.path[0] in self._alone:
            owner = next(name for name, columns in self.tables.items() if columns.find(node.path[0]) is not None)
            return replace(node, path=(owner, *node.path))
        return node

    def rows(self, /, **tables: pa.Table) -> pa.Table:
        """Rows side by side, as expressions name them.

        Args:
            tables: Those of the same number of rows, by their names.
        """
        found = {name: rows.to_struct_array().combine_chunks() for name, rows in tables.items()}
        return pa.table(found)


def ensure_distinct(names: Mapping[str, Struct]) -> None:
    """Refuses rows of which no name can say whose they are (`"ambiguous-name"`)."""
    folded = Counter(name.lower() for name in names)
    twice = next((name for name in names if folded[name.lower()] > 1), None)
    if twice is not None:
        raise InvalidRequest(
            f"the table and the source are both called {twice!r}",
            code="ambiguous-name",
            hint="give one of them another name: alias(), source_alias=",
        )
