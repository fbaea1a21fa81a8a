"""Random schemas: there and back in every form, walked and edited beside plain loops; and what no schema is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_from_arrow, schema_to_arrow
from alluvium.schema.ddl import CHAR_VARCHAR, parse_ddl_type, parse_declared_type, parse_fields
from alluvium.schema.edit import Position, edit_struct, find_path, insert_field, move_field, replace_field
from alluvium.schema.spark_json import MAX_DEPTH, format_field, format_schema, parse_schema, parse_type
from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Primitive, Struct
from alluvium.schema.walk import as_nullable, drop_metadata, fields_within, holds

LEAVES = [*t.PRIMITIVES.values(), Decimal(1, 0), Decimal(10, 2), Decimal(38, 38)]
NAMES = ["a", "B", "c d", "é", "x.y", "`q`", "element", "key", "value"]
METADATA = st.dictionaries(
    st.sampled_from(["comment", "delta.x", "other"]), st.sampled_from(["t", 7, True, None, {"k": [1]}]), max_size=2
)


def structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[Struct]:
    fields = st.tuples(inner, st.booleans(), METADATA)
    return st.dictionaries(st.sampled_from(NAMES), fields, max_size=4).map(
        lambda members: Struct(tuple(Field(name, *rest) for name, rest in members.items()))
    )


TYPES: st.SearchStrategy[DataType] = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.builds(Array, inner, st.booleans()) | st.builds(Map, inner, inner, st.booleans()) | structs(inner),
    max_leaves=8,
)
SCHEMAS = structs(TYPES)


def document(data_type: DataType) -> Any:
    """The JSON form, by the table in Delta's protocol."""
    if isinstance(data_type, Array):
        return {"type": "array", "elementType": document(data_type.element), "containsNull": data_type.contains_null}
    if isinstance(data_type, Map):
        pair = {"keyType": document(data_type.key), "valueType": document(data_type.value)}
        return {"type": "map", **pair, "valueContainsNull": data_type.value_contains_null}
    if isinstance(data_type, Struct):
        fields = [
            {"name": f.name, "type": document(f.type), "nullable": f.nullable, "metadata": dict(f.metadata)}
            for f in data_type.fields
        ]
        return {"type": "struct", "fields": fields}
    return str(data_type) if isinstance(data_type, Decimal) else data_type.name


@settings(max_examples=40, derandomize=True)
@given(SCHEMAS)
def test_json_there_and_back(schema: Struct) -> None:
    assert json.loads(format_schema(schema)) == document(schema)
    assert list(json.loads(format_schema(schema))) == ["type", "fields"]
    assert parse_schema(format_schema(schema)) == parse_schema(json.dumps(document(schema)).encode()) == schema
    for f in schema.fields:
        assert json.loads(json.dumps(format_field(f))) == document(Struct((f,)))["fields"][0]
        assert parse_type(document(f.type), "c") == f.type


@settings(max_examples=40, derandomize=True)
@given(SCHEMAS)
def test_arrow_there_and_back(schema: Struct) -> None:
    if holds(schema, t.VARIANT) or holds(schema, t.VOID):
        return
    bare = drop_metadata(schema, lambda _: True)
    assert schema_from_arrow(schema_to_arrow(schema)) == bare


def spelled(data_type: DataType) -> str:
    if isinstance(data_type, Array):
        return f"array<{spelled(data_type.element)}>"
    if isinstance(data_type, Map):
        return f"map<{spelled(data_type.key)},{spelled(data_type.value)}>"
    if isinstance(data_type, Struct):
        return f"struct<{', '.join(column(f) for f in data_type.fields)}>"
    return str(data_type)


def column(f: Field) -> str:
    comment = f" COMMENT '{f.metadata['comment']}'" if f.metadata else ""
    return f"`{f.name.replace('`', '``')}` {spelled(f.type)}{'' if f.nullable else ' Not NULL'}{comment}"


def declarable(data_type: DataType) -> DataType:
    """What DDL can say: no NOT NULL of elements, comments alone of the metadata."""
    if isinstance(data_type, Array):
        return Array(declarable(data_type.element))
    if isinstance(data_type, Map):
        return Map(declarable(data_type.key), declarable(data_type.value))
    if isinstance(data_type, Struct):
        return Struct(
            tuple(
                Field(f.name, declarable(f.type), f.nullable, {"comment": "it's"} if f.metadata else {})
                for f in data_type.fields
            )
        )
    return data_type


@settings(max_examples=40, derandomize=True)
@given(SCHEMAS.filter(lambda schema: bool(schema.fields)))
def test_ddl_there_and_back(schema: Struct) -> None:
    wanted = declarable(schema)
    assert isinstance(wanted, Struct)
    text = ",\n".join(map(column, wanted.fields)).replace("it's", "it\\'s")
    assert parse_fields(text) == wanted.fields
    assert parse_ddl_type(f"struct<{text}>").type == wanted
    assert parse_declared_type(f"Struct<{text}>") == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("char(3)", Primitive("char(3)")),
        ("CHARACTER ( 3 )", Primitive("char(3)")),
        ("varchar(10)", Primitive("varchar(10)")),
        ("array<varchar(1)>", Array(Primitive("varchar(1)"))),
        ("string collate UTF8_LCASE", t.STRING),
        ("struct<a:string COLLATE x,b:int>", Struct((Field("a", t.STRING), Field("b", t.INTEGER)))),
        ("geometry(4326)", Primitive("geometry")),
        ("interval", Primitive("interval")),
        ("map<time(6), odd(a, (b)>", Map(Primitive("time"), Primitive("odd"))),
        ("dec(5,1)", Decimal(5, 1)),
        ("real", t.FLOAT),
        ("timestamp_ltz", t.TIMESTAMP),
        ("null", t.VOID),
    ],
)  # fmt: skip
def test_what_is_declared(text: str, wanted: DataType) -> None:
    assert parse_declared_type(text) == wanted


@pytest.mark.parametrize(
    "text",
    ["a int,", "a int b int", "a", "a int not", "a int not 5", "`a int", "", "a int comment", "a decimal(5,1,1)",
     "a decimal(0)", "a decimal(,1)", "a decimal(5", "a char()", "a char(1,2)", "a char(99999999999)", "a char(-1)",
     "a array int>", "a map<int int>", "a string collate"],
)  # fmt: skip
def test_columns_that_are_none(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_fields(text)
    assert caught.value.code == "invalid-type"


def test_the_largest_lengths() -> None:
    found = parse_ddl_type("Array< VarChar( 2147483647 ) >")
    assert (found.type, found.metadata) == (Array(t.STRING), {CHAR_VARCHAR: "array<varchar(2147483647)>"})
    assert parse_ddl_type("decimal(38,38)").type == Decimal(38, 38)
    assert parse_fields("a char(1)") == (Field("a", t.STRING),)


def drawn(data_type: DataType, depth: int) -> Iterator[str]:
    """The lines of `printSchema` below a type."""
    bar = " |   " * depth + " |-- "

    def named(one: DataType) -> str:
        if isinstance(one, (Struct, Array, Map)):
            return type(one).__name__.lower()
        return one.name if isinstance(one, Primitive) else str(one)

    if isinstance(data_type, Struct):
        for f in data_type.fields:
            yield f"{bar}{f.name}: {named(f.type)} (nullable = {json.dumps(f.nullable)})"
            yield from drawn(f.type, depth + 1)
    elif isinstance(data_type, Array):
        yield f"{bar}element: {named(data_type.element)} (containsNull = {json.dumps(data_type.contains_null)})"
        yield from drawn(data_type.element, depth + 1)
    elif isinstance(data_type, Map):
        yield f"{bar}key: {named(data_type.key)}"
        yield from drawn(data_type.key, depth + 1)
        yield f"{bar}value: {named(data_type.value)} (valueContainsNull = {json.dumps(data_type.value_contains_null)})"
        yield from drawn(data_type.value, depth + 1)


@settings(max_examples=40, derandomize=True)
@given(SCHEMAS)
def test_the_tree_of_a_schema(schema: Struct) -> None:
    assert schema.tree().split("\n") == ["root", *drawn(schema, 0)]


# --- walks and edits --------------------------------------------------------------------------------------------------


def everything(
    data_type: DataType, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], DataType, Field | None]]:
    """All that lies within a type, parents first."""
    inner: list[tuple[str, DataType, Field | None]] = []
    if isinstance(data_type, Struct):
        inner = [(f.name, f.type, f) for f in data_type.fields]
    elif isinstance(data_type, Array):
        inner = [("element", data_type.element, None)]
    elif isinstance(data_type, Map):
        inner = [("key", data_type.key, None), ("value", data_type.value, None)]
    for name, own, f in inner:
        yield (*path, name), own, f
        yield from everything(own, (*path, name))


@settings(max_examples=40, derandomize=True)
@given(SCHEMAS, st.sampled_from(LEAVES))
def test_walks(schema: Struct, leaf: DataType) -> None:
    inside = list(everything(schema))
    assert list(fields_within(schema)) == [(path, f) for path, _, f in inside if f is not None]
    assert holds(schema, leaf) == any(own == leaf for _, own, _ in inside)
    kept = drop_metadata(schema, lambda key: key.startswith("delta."))
    for (path, _, f), (other, _, g) in zip(inside, everything(kept), strict=True):
        assert path == other and (f is None) == (g is None)
        if f is not None and g is not None:
            assert g.metadata == {key: value for key, value in f.metadata.items() if key != "delta.x"}
            assert (g.name, g.nullable, str(g.type)) == (f.name, f.nullable, str(f.type))
    loose = as_nullable(schema)
    assert str(loose) == str(schema)
    for _, own, f in everything(loose):
        assert f is None or f.nullable
        assert not isinstance(own, Array) or own.contains_null
        assert not isinstance(own, Map) or own.value_contains_null
    through_structs = [
        one for one in inside if one[2] is not None and all(isinstance(x, Struct) for x in parents(schema, one[0]))
    ]
    for path, own, f in through_structs:
        assert schema.find_path(path) is f and f is not None and f.type is own
        assert schema.find_path(tuple(name.swapcase() for name in path)) is f
    leaves = [(path, f) for path, own, f in through_structs if not isinstance(own, Struct)]
    assert list(schema.leaves()) == leaves


def parents(schema: Struct, path: tuple[str, ...]) -> list[DataType]:
    known = {one: own for one, own, _ in everything(schema)}
    return [schema, *(known[path[:n]] for n in range(1, len(path)))]


@settings(max_examples=40, derandomize=True)
@given(SCHEMAS)
def test_edits_at_every_path(schema: Struct) -> None:
    """A struct anywhere gets a new field; all else stays as it is."""
    inside = list(everything(schema))
    new = Field("new", t.LONG)
    for path, own, f in [((), schema, None), *inside]:
        if path:
            assert find_path(schema, tuple(part.swapcase() for part in path)) == (path, own, f)
        if not isinstance(own, Struct):
            with pytest.raises(InvalidRequest) as caught:
                edit_struct(schema, path, lambda struct: struct)
            assert (caught.value.code, caught.value.column) == ("not-a-struct", ".".join(path))
            for wrong in ((*path, "nothing"), (*path, "nothing", "deeper")):
                for lookup in (lambda p: find_path(schema, p), lambda p: edit_struct(schema, p, lambda s: s)):
                    with pytest.raises(InvalidRequest) as caught:
                        lookup(wrong)
                    assert (caught.value.code, caught.value.column) == ("unknown-column", ".".join(wrong))
            continue
        edited = edit_struct(schema, path, lambda struct: insert_field(struct, new, None))
        left = [one for one in everything(edited) if one[0] != (*path, "new")]
        assert [one[0] for one in left] == [one[0] for one in inside]
        changed = [a[0] for a, b in zip(inside, left, strict=True) if a[1] != b[1]]
        assert changed == [path[:n] for n in range(1, len(path) + 1)]
        flags = [(getattr(o, "contains_null", None), getattr(o, "value_contains_null", None)) for _, o, _ in inside]
        assert flags == [
            (getattr(o, "contains_null", None), getattr(o, "value_contains_null", None)) for _, o, _ in left
        ]
        assert find_path(edited, (*path, "NEW"))[2] == new


@settings(max_examples=40, derandomize=True)
@given(SCHEMAS.filter(lambda schema: bool(schema.fields)), st.data())
def test_moves(schema: Struct, data: st.DataObject) -> None:
    names = list(schema.names)
    name, other = data.draw(st.sampled_from(names)), data.draw(st.sampled_from([None, *names]))
    rest = [one for one in names if one != name]
    wanted = [name, *rest] if other is None else names
    if other not in (None, name):
        place = rest.index(other) + 1
        wanted = [*rest[:place], name, *rest[place:]]
    position = Position(None if other is None else other.swapcase())
    moved = move_field(schema, name.swapcase(), position)
    assert list(moved.names) == wanted and set(map(repr, moved.fields)) == set(map(repr, schema.fields))
    assert str(position) == ("FIRST" if other is None else f"AFTER {other.swapcase()}")
    new = Field("n", t.VOID)
    replaced = replace_field(schema, name.swapcase(), new)
    assert replaced.fields == tuple(new if f.name == name else f for f in schema.fields)


# --- what is no schema ------------------------------------------------------------------------------------------------


def column_of(kind: Any, **more: Any) -> str:
    return json.dumps({"type": "struct", "fields": [{"name": "c", "type": kind, "nullable": True, **more}]})


@pytest.mark.parametrize(
    "text",
    ["", "{", '"long"', "[]", "null", '{"type":"array","elementType":"long"}', '{"type":"struct"}',
     '{"type":"struct","fields":{}}', '{"type":"struct","fields":["c"]}', '{"type":"struct","fields":[{"type":"long"}]}',
     '{"type":"struct","fields":[{"name":1,"type":"long"}]}', '{"type":"struct","fields":[{"name":"c"}]}',
     column_of("long", metadata=[]), column_of("long", metadata="x"), column_of("longs"), column_of("Long"), column_of(7),
     column_of({"type": "list"}), column_of({"type": "array"}), column_of({"type": "map", "keyType": "long"}),
     column_of({"type": "array", "elementType": "long", "containsNull": 1}),
     column_of({"type": "map", "keyType": "long", "valueType": "long", "valueContainsNull": None}),
     json.dumps({"type": "struct", "fields": [{"name": "c", "type": "long", "nullable": "true"}]}),
     column_of("decimal(39,0)"), column_of("decimal(0,0)"), column_of("decimal(5,6)"), column_of("decimal(5,-1)"),
     column_of("decimal(5)"), column_of("decimal(5,1)x"), column_of("char()"), column_of("xchar(3)"),
     column_of("string collate"), column_of("string collate a b"), column_of({"type": "udt"})],
)  # fmt: skip
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        parse_schema(text)
    assert caught.value.code == "invalid-schema"


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("decimal", Decimal(10, 0)), ("decimal( 38 , 0 )", Decimal(38, 0)), ("decimal(1,1)", Decimal(1, 1)), ("null", t.VOID),
        ({"type": "udt", "sqlType": "long", "class": "x"}, t.LONG),
        ({"type": "array", "elementType": "byte"}, Array(t.BYTE)), ({"type": "map", "keyType": "byte", "valueType": "date"}, Map(t.BYTE, t.DATE)),
    ],
)  # fmt: skip
def test_what_foreign_logs_say(kind: Any, wanted: DataType) -> None:
    text = json.dumps({"type": "struct", "fields": [{"name": "c", "type": kind, "metadata": None}]})
    assert parse_schema(text) == Struct((Field("c", wanted),))


def nested(levels: int) -> str:
    return column_of("long") if not levels else column_of(json.loads(nested(levels - 1)))


def test_depth_and_long_names_have_an_end() -> None:
    assert parse_schema(nested(MAX_DEPTH - 1)).names == ("c",)
    with pytest.raises(CorruptTable, match="levels of nesting"):
        parse_schema(nested(MAX_DEPTH))
    with pytest.raises(CorruptTable) as caught:
        parse_schema(column_of("x" * 5000))
    assert len(caught.value.message) < 500 and caught.value.column == "c"


def test_names_exact_before_folded() -> None:
    schema = Struct((Field("AB", t.LONG), Field("ab", t.INTEGER), Field("Ab", t.DATE)))
    assert [f.type for name in ("AB", "ab", "Ab", "aB") if (f := schema.find(name))] == [
        t.LONG,
        t.INTEGER,
        t.DATE,
        t.LONG,
    ]
    assert schema.find("abc") is None and schema.find_path(()) is None
    assert schema.find_path(("ab", "x")) is None


def test_arrow_types_of_foreign_files() -> None:
    widths = [
        (pa.uint8(), t.SHORT), (pa.uint16(), t.INTEGER), (pa.uint32(), t.LONG), (pa.uint64(), Decimal(20, 0)),
        (pa.large_string(), t.STRING), (pa.string_view(), t.STRING), (pa.large_binary(), t.BINARY), (pa.date64(), t.DATE),
        (pa.timestamp("ns"), t.TIMESTAMP_NTZ), (pa.timestamp("ms", "Europe/Rome"), t.TIMESTAMP),
        (pa.dictionary(pa.int8(), pa.string()), t.STRING), (pa.list_(pa.field("x", pa.int8(), False), 2), Array(t.BYTE, False)),
        (pa.large_list(pa.int8()), Array(t.BYTE)), (pa.decimal256(38, 3), Decimal(38, 3)),
        (pa.map_(pa.string(), pa.field("v", pa.int8(), False)), Map(t.STRING, t.BYTE, False)),
    ]  # fmt: skip
    for kind, wanted in widths:
        assert schema_from_arrow(pa.schema([pa.field("c", kind, False)])) == Struct((Field("c", wanted, False),))
