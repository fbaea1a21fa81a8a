"""How types are called in messages and in SQL: Spark's names."""

from __future__ import annotations

import pytest

from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Primitive, Struct

NAMES = {
    "boolean": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "variant": "variant",
    "void": "void",
}


@pytest.mark.parametrize(("name", "shown"), NAMES.items())
def test_simple_types(name: str, shown: str) -> None:
    plain = Primitive(name)
    assert str(plain) == shown
    assert str(Array(plain)) == f"array<{shown}>"
    assert str(Map(Primitive("string"), plain)) == f"map<string,{shown}>"
    assert str(Field("a", plain, nullable=False)) == f"a: {shown} not null"


@pytest.mark.parametrize(
    ("nested", "shown"),
    [
        (Decimal(10, 2), "decimal(10,2)"),
        (Array(Decimal(38, 0)), "array<decimal(38,0)>"),
        (Map(Primitive("integer"), Array(Primitive("short"))), "map<int,array<smallint>>"),
        (Struct((Field("a", Primitive("long")), Field("b", Array(Primitive("byte"))))), None),
    ],
)
def test_nested_types(nested: DataType, shown: str | None) -> None:
    assert str(nested) == (shown or "struct<a:bigint,b:array<tinyint>>")
