"""Columns of rows taken over into a schema: which types become wider, which stay, and what is refused."""

from __future__ import annotations

from dataclasses import replace

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


@pytest.mark.parametrize(
    ("own", "brought", "becomes"),
    [
        ("TINYINT", t.SHORT, "SMALLINT"),
        ("SMALLINT", t.BYTE, "SMALLINT"),
        ("FLOAT", t.DOUBLE, "DOUBLE"),
        ("DOUBLE", t.FLOAT, "DOUBLE"),
        ("INT", t.INTEGER, "INT"),
        # A decimal that has all digits of whole numbers, and one that has not.
        ("TINYINT", t.Decimal(3, 0), "DECIMAL(3, 0)"),
        ("TINYINT", t.Decimal(2, 0), None),
        ("SMALLINT", t.Decimal(7, 2), "DECIMAL(7, 2)"),
        ("SMALLINT", t.Decimal(6, 2), None),
        ("INT", t.Decimal(10, 0), "DECIMAL(10, 0)"),
        ("INT", t.Decimal(9, 0), None),
        ("BIGINT", t.Decimal(20, 1), "DECIMAL(20, 1)"),
        ("BIGINT", t.Decimal(20, 2), None),
        ("DECIMAL(8, 2)", t.Decimal(8, 2), "DECIMAL(8, 2)"),
        ("DECIMAL(8, 2)", t.Decimal(6, 2), "DECIMAL(8, 2)"),
        ("DECIMAL(8, 2)", t.Decimal(7, 1), "DECIMAL(8, 2)"),
        ("DECIMAL(8, 2)", t.Decimal(8, 1), None),
        ("DECIMAL(8, 2)", t.Decimal(9, 2), "DECIMAL(9, 2)"),
        ("DECIMAL(8, 2)", t.Decimal(12, 3), None),
        # Java makes these dates, or times of another kind: values that are there would be others.
        ("TIMESTAMP(6)", t.DATE, "TIMESTAMP(6)"),
        ("TIMESTAMP(6)", t.TIMESTAMP, "TIMESTAMP(6)"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", t.TIMESTAMP_NTZ, "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("TIMESTAMP(6)", t.TIMESTAMP_NTZ, "TIMESTAMP(6)"),
        ("TIMESTAMP(3)", t.LONG, None),
        ("CHAR(5)", t.STRING, "STRING"),
        ("STRING", t.INTEGER, None),
        ("BOOLEAN", t.INTEGER, None),
        ("VARBINARY(4)", t.BINARY, "BYTES"),
        ("BYTES", t.BINARY, "BYTES"),
    ],
)
@pytest.mark.parametrize("nullable", [True, False])
def test_types_of_every_kind(own: str, brought: DataType, becomes: str | None, nullable: bool) -> None:
    """Wider where that loses nothing, as they are where the rows fit, or else refused; None: refused."""
    suffix = "" if nullable else " NOT NULL"
    before = schema_of(("k", "INT"), ("v", own + suffix))
    if becomes is None:
        with pytest.raises(InvalidRequest) as caught:
            merge_columns(before, rows(("v", brought)))
        assert (caught.value.code, caught.value.column) == ("cast-not-allowed", "v")
        assert "explicit-cast" in (caught.value.hint or "")
        return
    after = merge_columns(before, rows(("v", brought)))
    assert str(after.fields[1].type) == str(parse_type(becomes + suffix))
    assert (after is before) is (after.fields == before.fields)
    assert after.id == before.id + (after is not before)


@pytest.mark.parametrize(
    ("own", "brought", "becomes"),
    [
        ("INT", t.Decimal(9, 0), "DECIMAL(9, 0)"),
        ("BIGINT", t.SHORT, "SMALLINT"),
        ("DOUBLE", t.FLOAT, "FLOAT"),
        ("DOUBLE", t.Decimal(12, 2), "DECIMAL(12, 2)"),
        ("TIMESTAMP(6)", t.DATE, "DATE"),
        ("STRING", t.INTEGER, "INT"),
        ("INT", t.STRING, "STRING"),
        # Of decimals the digits behind the point never change.
        ("DECIMAL(8, 2)", t.Decimal(5, 1), "DECIMAL(8, 2)"),
        ("DECIMAL(8, 2)", t.Decimal(5, 2), "DECIMAL(8, 2)"),
        ("DECIMAL(8, 2)", t.Decimal(9, 3), None),
        ("DATE", t.BINARY, None),
    ],
)
def test_types_that_lose_something_where_somebody_says_so(own: str, brought: DataType, becomes: str | None) -> None:
    before = schema_of(("k", "INT"), ("v", own))
    if becomes is None:
        with pytest.raises(InvalidRequest) as caught:
            merge_columns(before, rows(("v", brought)), True)
        assert (caught.value.code, caught.value.column) == ("cast-not-allowed", "v")
    else:
        assert str(merge_columns(before, rows(("v", brought)), True).fields[1].type) == str(parse_type(becomes))


def nested(**columns: object) -> TableSchema:
    """A table whose columns have types inside, as JSON has them."""
    fields = [DataField(0, "k", parse_type("INT"))]
    fields += [DataField(0, name, parse_type(kind)) for name, kind in columns.items()]
    return TableSchema.create(number_fields(fields), (), ("k",), {})


LIST = {"type": "ARRAY", "element": "INT"}
TEXTS = {"type": "MAP NOT NULL", "key": "INT", "value": "INT"}
ROW = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}, {"id": 0, "name": "l", "type": LIST}]}


def test_what_is_inside_becomes_wide_enough() -> None:
    before = nested(a=LIST, m=TEXTS, r=ROW)
    after = merge_columns(
        before,
        rows(
            ("r", rows(("L", t.Array(t.LONG, False)), ("x", t.SHORT))),
            ("m", t.Map(t.INTEGER, t.LONG, True)),
            ("a", t.Array(t.DOUBLE, True)),
        ),
    )
    kinds = [str(f.type) for f in after.fields]
    assert kinds == [
        "INT NOT NULL", "ARRAY<DOUBLE>", "MAP<INT, BIGINT> NOT NULL", str(replace_type(before, "r", "ARRAY<BIGINT>")),
    ]  # fmt: skip
    assert [(f.id, f.name) for f in after.fields] == [(f.id, f.name) for f in before.fields]
    assert after.highest_field_id == before.highest_field_id


def test_what_is_inside_and_wide_enough_stays() -> None:
    before = nested(a={"type": "ARRAY", "element": "BIGINT"}, m={"type": "MAP", "key": "BIGINT", "value": "DOUBLE"})
    brought = rows(("a", t.Array(t.SHORT, True)), ("m", t.Map(t.INTEGER, t.FLOAT, True)))
    assert merge_columns(before, brought) is before
    assert merge_columns(before, rows(("m", t.Map(t.LONG, t.DOUBLE, True)))) is before


def replace_type(schema: TableSchema, column: str, text: str) -> str:
    """The text of a row's type whose list is another one."""
    found = schema.find(column)
    assert found is not None
    return str(found.type).replace("ARRAY<INT>", text)


@pytest.mark.parametrize(
    ("column", "brought", "code", "place"),
    [
        ("a", t.Array(t.STRING, True), "cast-not-allowed", "a.element"),
        ("m", t.Map(t.LONG, t.INTEGER, True), "key-column", "m.key"),
        ("m", t.Map(t.INTEGER, t.STRING, True), "cast-not-allowed", "m.value"),
        ("r", rows(("l", t.Array(t.STRING, True))), "cast-not-allowed", "r.l.element"),
        ("r", rows(("X", t.STRING)), "cast-not-allowed", "r.x"),
        ("r", t.Array(t.INTEGER, True), "cast-not-allowed", "r"),
        ("a", t.Map(t.INTEGER, t.INTEGER, True), "cast-not-allowed", "a"),
        ("a", t.INTEGER, "cast-not-allowed", "a"),
    ],
)
def test_what_does_not_fit_inside_is_named(column: str, brought: DataType, code: str, place: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        merge_columns(nested(a=LIST, m=TEXTS, r=ROW), rows((column, brought)))
    assert (caught.value.code, caught.value.column) == (code, place)
    assert (caught.value.hint is None) is (code == "key-column")


def test_a_member_of_a_row_that_is_called_as_a_key_is_none() -> None:
    row = {"type": "ROW", "fields": [{"id": 0, "name": "k", "type": "INT"}]}
    after = merge_columns(nested(r=row), rows(("r", rows(("k", t.LONG)))))
    assert str(after.fields[1].type.fields[0].type) == "BIGINT"


@pytest.mark.parametrize("role", ["primary", "partition", "bucket"])
def test_keys_keep_their_types(role: str) -> None:
    fields = number_fields([DataField(0, "k", parse_type("INT")), DataField(0, "v", parse_type("INT"))])
    options = {"bucket": "2", "bucket-key": "k"} if role == "bucket" else {}
    parted, keyed = (("k",) if role == one else () for one in ("partition", "primary"))
    schema = TableSchema.create(fields, parted, keyed, options)
    for brought in (t.INTEGER, t.SHORT, t.BYTE):
        assert merge_columns(schema, rows(("K", brought))) is schema
        assert merge_columns(schema, rows(("K", brought)), True) is schema
    for explicit in (False, True):
        with pytest.raises(InvalidRequest) as caught:
            merge_columns(schema, rows(("v", t.INTEGER), ("K", t.LONG)), explicit)
        assert (caught.value.code, caught.value.column, caught.value.hint) == ("key-column", "k", None)


def test_new_columns_may_be_null_and_go_behind_the_greatest_id_there_ever_was() -> None:
    before = schema_of(("k", "INT"), ("v", "INT"))
    after = merge_columns(before, Struct((Field("n", t.INTEGER, nullable=False), Field("m", t.STRING))))
    assert [(f.id, f.name, str(f.type)) for f in after.fields[2:]] == [(2, "n", "INT"), (3, "m", "STRING")]
    gone = replace(before, highest_field_id=9)
    assert [f.id for f in merge_columns(gone, rows(("n", t.DATE))).fields] == [0, 1, 10]
