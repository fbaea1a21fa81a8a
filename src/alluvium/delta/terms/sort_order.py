"""The order that rows of a table's files stand in, where its owner wants one: a property that is ours alone.

Other writers keep the property, and know nothing of it; files that they write stand in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from alluvium.delta.terms.properties import parse_names
from alluvium.errors import InvalidRequest, suggest
from alluvium.schema.types import VARIANT, VOID, Array, Field, Map, Struct

SORT_BY = "alluvium.sortBy"


def sort_columns(configuration: Mapping[str, str], schema: Struct) -> tuple[str, ...]:
    """The columns that rows are sorted by, the first of them first; none where the table wants no order.

    Anybody may drop or rename a column, and no write may fail of that: from there on there is no order.
    """
    found = []
    for name in parse_names(configuration.get(SORT_BY, "")):
        column = schema.find(name)
        if column is None or not _is_sortable(column):
            break
        found.append(column.name)
    return tuple(dict.fromkeys(found))


def parse_sort(text: str, schema: Struct) -> tuple[str, ...]:
    """Columns by their names in the schema, out of names with commas between.

    Raises:
        InvalidRequest: As of `ensure_sortable`.
    """
    return ensure_sortable(schema, parse_names(text))


def ensure_sortable(schema: Struct, names: Sequence[str]) -> tuple[str, ...]:
    """The columns in the schema's spelling, each once.

    Raises:
        InvalidRequest: A column is unknown, or its values have no order (`invalid-sort-column`).
    """
    found: dict[str, None] = {}
    for name in names:
        column = schema.find(name)
        if column is None:
            raise InvalidRequest(
                f"there is no column {name!r} to sort by",
                code="invalid-sort-column",
                column=name,
                hint=suggest(name, schema.names) or f"see the property {SORT_BY}",
            )
        if not _is_sortable(column):
            raise InvalidRequest(
                f"values of {name!r} have no order", code="invalid-sort-column", column=name, hint="name other columns"
            )
        found.setdefault(column.name)
    return tuple(found)


def _is_sortable(column: Field) -> bool:
    return not isinstance(column.type, Array | Map | Struct) and column.type not in (VARIANT, VOID)
