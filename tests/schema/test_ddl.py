"""Types and names as Spark SQL writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.ddl import CHAR_VARCHAR, parse_column_path, parse_ddl_type
from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Struct

LEAVES = [t.BOOLEAN, t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.FLOAT, t.DOUBLE, t.STRING, t.BINARY, t.DATE, t.TIMESTAMP,
          t.TIMESTAMP_NTZ, t.VARIANT, Decimal(12, 2), Decimal(38, 38)]  # fmt: skip
TYPES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: (
        st.builds(Array, inner)
        | st.builds(Map, inner, inner)
        | st.lists(inner, max_size=3).map(lambda ts: Struct(tuple(Field(f"f{i}", x) for i, x in enumerate(ts))))
    ),
    max_leaves=8,
)


@given(TYPES)
def test_what_a_type_says_of_itself_is_read_back(data_type: DataType):
    assert parse_ddl_type(str(data_type)).type == data_type
    assert parse_ddl_type(f" {str(data_type).upper().replace('F', 'f')} ").metadata == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("decimal", Decimal(10, 0)),
        ("NUMERIC(5)", Decimal(5, 0)),
        ("struct<a: int NOT NULL COMMENT 'x y', `b c` string>",
         Struct((Field("a", t.INTEGER, False, {"comment": "x y"}), Field("b c", t.STRING)))),
        ("struct<`a``b`: int>", Struct((Field("a`b", t.INTEGER),))),
        ("struct<>", Struct(())),
        ("map < string , array<int> >", Map(t.STRING, Array(t.INTEGER))),
    ],
)  # fmt: skip
def test_spellings(text: str, expected: DataType):
    assert parse_ddl_type(text).type == expected


@pytest.mark.parametrize(
    ("before", "behind"), [("array<", ">"), ("map<int,", ">"), ("map<", ",int>"), ("struct<a:", ">")]
)
def test_types_within_types_have_an_end(before: str, behind: str):
    """A type of a thousand levels must not exhaust the stack."""
    assert parse_ddl_type(before * 20 + "int" + behind * 20)
    with pytest.raises(InvalidRequest, match="too deeply nested"):
        parse_ddl_type(before * 150 + "int" + behind * 150)


@pytest.mark.parametrize("text", ["varchar(5)", "char(3)", "struct<a:varchar(3)>", "array<char(2)>"])
def test_lengths_are_kept_beside_the_string(text: str):
    found = parse_ddl_type(text.upper().replace("A:", "a:"))
    assert found.metadata == {CHAR_VARCHAR: text}
    assert "char" not in str(found.type)


@pytest.mark.parametrize(
    "text", ["", "foo", "int int", "array<int", "array<>", "map<int>", "decimal(39,2)", "decimal(3,4)", "varchar",
             "varchar(0)", "struct<a>", "array<" * 200 + "int" + ">" * 200]
)  # fmt: skip
def test_what_is_no_type(text: str):
    with pytest.raises(InvalidRequest) as caught:
        parse_ddl_type(text)
    assert caught.value.code == "invalid-type"


@pytest.mark.parametrize(
    ("text", "path"),
    [("a", ("a",)), ("a.b", ("a", "b")), ("`a.b`.c", ("a.b", "c")), ("`a``b`", ("a`b",)), ("a b", ("a b",))],
)
def test_paths(text: str, path: tuple[str, ...]):
    assert parse_column_path(text) == path


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "`a", "a`b"])
def test_what_is_no_path(text: str):
    with pytest.raises(InvalidRequest) as caught:
        parse_column_path(text)
    assert caught.value.code == "invalid-column-name"


@pytest.mark.parametrize(
    "text", ["geometry(4326)", "GEOMETRY(ANY)", "geography(4326)", "array<struct<g: geometry(3857)>>"]
)
def test_a_type_of_a_feature_that_is_not_here_is_named(text: str):
    with pytest.raises(UnsupportedFeature) as caught:
        parse_ddl_type(text)
    assert (caught.value.code, caught.value.features) == ("unsupported-type", ("geospatial",))
    assert text in caught.value.message


@pytest.mark.parametrize(
    ("before", "behind"), [("array<", ">"), ("map<int,", ">"), ("map<", ",int>"), ("struct<a:", ">")]
)
def test_a_hundred_levels_are_not_too_many(before: str, behind: str):
    assert str(parse_ddl_type(before * 100 + "int" + behind * 100).type) == before * 100 + "int" + behind * 100
    with pytest.raises(InvalidRequest, match="too deeply nested"):
        parse_ddl_type(before * 101 + "int" + behind * 101)
