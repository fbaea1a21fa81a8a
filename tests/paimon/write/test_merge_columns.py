"""Columns of rows taken over into a schema: which types become wider, which stay, and what is refused."""

from __future__ import annotations

import pytest

from alluvium.errors import InvalidRequest
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.numbering import number_fields
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.write.merge_columns import merge_columns
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Field, Struct


def schema_of(*columns: tuple[str, str], **options: str) -> TableSchema:
    fields = [DataField(0, name, parse_type(kind)) for name, kind in columns]
    return TableSchema.create(number_fields(fields), (), ("k",), options)


def rows(*columns: tuple[str, DataType]) -> Struct:
    return Struct(tuple(Field(name, kind) for name, kind in columns))


@pytest.mark.parametrize(
    ("own", "brought", "explicit", "becomes"),
    [
        ("INT", t.LONG, False, "BIGINT"),
        ("INT NOT NULL", t.DOUBLE, False, "DOUBLE NOT NULL"),
        ("BIGINT", t.INTEGER, False, "BIGINT"),
        ("BIGINT", t.INTEGER, True, "INT"),
        ("DECIMAL(8, 2)", t.Decimal(12, 2), False, "DECIMAL(12, 2)"),
        ("DECIMAL(8, 2)", t.Decimal(5, 1), False, "DECIMAL(8, 2)"),
        # Java makes these decimals, by which values that are there would be null.
        ("DOUBLE", t.Decimal(12, 2), False, "DOUBLE"),
        ("FLOAT", t.Decimal(38, 10), False, "FLOAT"),
        ("VARCHAR(5)", t.STRING, False, "STRING"),
        ("TIMESTAMP(3)", t.TIMESTAMP_NTZ, False, "TIMESTAMP(6)"),
        ("TIMESTAMP(9)", t.TIMESTAMP_NTZ, False, "TIMESTAMP(9)"),
        ("TIME(3)", t.INTEGER, False, "TIME(3)"),
        ("STRING", t.DATE, True, "DATE"),
    ],
)
def test_types(own: str, brought: DataType, explicit: bool, becomes: str) -> None:
    before = schema_of(("k", "INT"), ("v", own))
    after = merge_columns(before, rows(("V", brought)), explicit)
    column = after.find("v")
    assert column is not None
    assert (str(column.type), column.id) == (str(parse_type(becomes)), 1)
    assert (after is before) is (parse_type(own) == parse_type(becomes))


@pytest.mark.parametrize(
    ("column", "kind", "code"),
    [("v", t.STRING, "cast-not-allowed"), ("v", t.BOOLEAN, "cast-not-allowed"), ("d", t.Decimal(8, 3), "cast-not-allowed"),
     ("k", t.LONG, "key-column"), ("b", t.LONG, "key-column")],
)  # fmt: skip
def test_what_is_refused(column: str, kind: DataType, code: str) -> None:
    before = schema_of(("k", "INT"), ("b", "INT"), ("v", "INT"), ("d", "DECIMAL(8, 2)"))
    if column == "b":
        before = TableSchema.create(before.fields, (), (), {"bucket": "2", "bucket-key": "b"})
    with pytest.raises(InvalidRequest) as caught:
        merge_columns(before, rows((column, kind)))
    assert (caught.value.code, caught.value.column) == (code, column)


def test_new_columns_and_members() -> None:
    row = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}]}
    fields = [
        DataField(0, "k", parse_type("INT")),
        DataField(0, "r", parse_type(row)),
        DataField(0, "s", parse_type("INT"), default="7"),
    ]
    before = TableSchema.create(number_fields(fields), (), ("k",), {})
    inner = rows(("y", t.STRING), ("x", t.LONG))
    after = merge_columns(
        before, rows(("s", t.LONG), ("n", rows(("p", t.Array(rows(("q", t.DATE)), True)))), ("r", inner))
    )
    assert [(f.id, f.name) for f in after.fields] == [(0, "k"), (1, "r"), (3, "s"), (7, "n")]
    assert [(f.id, f.name, str(f.type)) for f in after.fields[1].type.fields] == [
        (2, "x", "BIGINT"),
        (4, "y", "STRING"),
    ]
    assert (after.id, after.highest_field_id, after.fields[2].default) == (before.id + 1, 7, "7")
    assert merge_columns(after, rows(("n", rows(("p", t.Array(rows(("q", t.DATE)), True)))))) is after
