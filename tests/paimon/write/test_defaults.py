"""Default values as Java's casts make them of the table's texts."""

from __future__ import annotations

import pytest

from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.write.defaults import derived_defaults
from alluvium.schema.types import JsonValue


def values(kind: JsonValue, default: str) -> list[str]:
    schema = TableSchema(0, (DataField(0, "c", parse_type(kind), default=default),), 0)
    return [d.sql if d.table_sql is None else d.table_sql for d in derived_defaults(schema)]


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        ("INT", "5.7", "5"),
        ("BOOLEAN", "y", "true"),
        ("DATE", "-1", "1969-12-31"),
        ("DATE", "2024-2-9", "2024-02-09"),
        ("TIMESTAMP(6)", "2024-02-30", "2024-02-29 00:00:00.000000"),
        ("TIMESTAMP(3)", "2024-01-01 01:02:03.1239", "2024-01-01 01:02:03.123"),
        ("TIMESTAMP_LTZ(6)", "2024-01-01 01:02:03.5", "2024-01-01 01:02:03.500000"),
        ("TIME(3)", "00:00:01.5", "1500"),
        ("DECIMAL(5, 2)", "1.239", "1.24"),
        ("VARCHAR(3)", "abcdef", "abc"),
        ("CHAR(5)", "'ab'", "ab   "),
        ("STRING", "it's", "it's"),
        ("BINARY(4)", "ab", "X'61620000'"),
        ("VARBINARY(1)", "\u00e4", "X'c3'"),
        # Another writer has let it into the schema: whoever needs it fails over it.
        ("INT", "five", "five"),
    ],
)
def test_texts_are_cast(kind: str, default: str, value: str) -> None:
    assert values(kind, default) == [value]


def test_some_columns_have_none() -> None:
    # A decimal that does not fit is null to Java; "parseDefaultValue" of nested types is not done here.
    assert values("DECIMAL(3, 2)", "1234") == values({"type": "ARRAY", "element": "INT"}, "[1]") == []
