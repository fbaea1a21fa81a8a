"""Ids of columns and of what is in them: in the order in which they stand."""

from __future__ import annotations

from alluvium.paimon.schema import DataField, number_fields, parse_type
from alluvium.paimon.schema.types import field_ids


def test_rows_in_maps_and_arrays_are_numbered_in_order() -> None:
    row = {"type": "ROW", "fields": [{"id": 9, "name": "x", "type": "INT"}, {"id": 9, "name": "y", "type": "INT"}]}
    kinds = [
        {"type": "MAP", "key": row, "value": row},
        {"type": "ARRAY", "element": row},
        "INT",
        {"type": "MULTISET", "element": row},
    ]
    fields = number_fields(DataField(0, f"c{n}", parse_type(kind)) for n, kind in enumerate(kinds))
    assert list(field_ids(fields)) == list(range(4 + 2 * 4))
    assert [f.id for f in fields] == [0, 5, 8, 9]
