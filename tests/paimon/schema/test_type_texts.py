"""Types as SQL text and as JSON: every spelling, both ways, and the edges of what they take."""

from __future__ import annotations

from typing import Any

import pytest

from alluvium.errors import InvalidRequest
from alluvium.paimon.schema import DataField, DataType, parse_type
from alluvium.paimon.schema.type_json import format_field, format_type, parse_field
from alluvium.paimon.schema.types import MAX_LENGTH, field_ids, highest_field_id

LOCAL, PLAIN = "TIMESTAMP_WITH_LOCAL_TIME_ZONE", "TIMESTAMP_WITHOUT_TIME_ZONE"

#: Spelling, the type, and the spelling that is written.
SPELLINGS: list[tuple[str, DataType, str]] = [
    ("boolean", DataType("BOOLEAN"), "BOOLEAN"),
    ("TINYINT", DataType("TINYINT"), "TINYINT"),
    ("SMALLINT", DataType("SMALLINT"), "SMALLINT"),
    ("INTEGER", DataType("INTEGER"), "INT"),
    ("INT", DataType("INTEGER"), "INT"),
    ("BIGINT", DataType("BIGINT"), "BIGINT"),
    ("FLOAT", DataType("FLOAT"), "FLOAT"),
    ("DOUBLE", DataType("DOUBLE"), "DOUBLE"),
    ("DOUBLE PRECISION NOT NULL", DataType("DOUBLE", False), "DOUBLE NOT NULL"),
    ("DATE", DataType("DATE"), "DATE"),
    ("VARIANT", DataType("VARIANT"), "VARIANT"),
    ("BLOB", DataType("BLOB"), "BLOB"),
    ("CHAR", DataType("CHAR", length=1), "CHAR(1)"),
    ("CHAR(3)", DataType("CHAR", length=3), "CHAR(3)"),
    ("VARCHAR", DataType("VARCHAR", length=1), "VARCHAR(1)"),
    ("VARCHAR(2147483647)", DataType("VARCHAR", length=MAX_LENGTH), "STRING"),
    ("STRING", DataType("VARCHAR", length=MAX_LENGTH), "STRING"),
    ("BINARY", DataType("BINARY", length=1), "BINARY(1)"),
    ("VARBINARY(7)", DataType("VARBINARY", length=7), "VARBINARY(7)"),
    ("BYTES", DataType("VARBINARY", length=MAX_LENGTH), "BYTES"),
    ("DECIMAL", DataType("DECIMAL", precision=10), "DECIMAL(10, 0)"),
    ("DEC(5)", DataType("DECIMAL", precision=5), "DECIMAL(5, 0)"),
    ("NUMERIC ( 5 , 2 )", DataType("DECIMAL", precision=5, scale=2), "DECIMAL(5, 2)"),
    ("TIME", DataType("TIME_WITHOUT_TIME_ZONE"), "TIME(0)"),
    ("TIME(3) WITHOUT TIME ZONE", DataType("TIME_WITHOUT_TIME_ZONE", precision=3), "TIME(3)"),
    ("TIMESTAMP", DataType(PLAIN, precision=6), "TIMESTAMP(6)"),
    ("TIMESTAMP(9) WITHOUT TIME ZONE", DataType(PLAIN, precision=9), "TIMESTAMP(9)"),
    ("timestamp(0) with local time zone", DataType(LOCAL), "TIMESTAMP(0) WITH LOCAL TIME ZONE"),
    ("TIMESTAMP_LTZ", DataType(LOCAL, precision=6), "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("TIMESTAMP_LTZ(3) NOT NULL", DataType(LOCAL, False, precision=3), "TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL"),
    ("INT NULL", DataType("INTEGER"), "INT"),
    ("  INT   NOT\tNULL  ", DataType("INTEGER", False), "INT NOT NULL"),
    ("GEOMETRY", DataType("GEOMETRY", crs="OGC:CRS84"), "GEOMETRY(OGC:CRS84)"),
    ("GEOMETRY('it''s')", DataType("GEOMETRY", crs="it's"), "GEOMETRY(it's)"),
    ("GEOGRAPHY", DataType("GEOGRAPHY", crs="OGC:CRS84", algorithm="spherical"), "GEOGRAPHY(OGC:CRS84, spherical)"),
    ("GEOGRAPHY(`a``b`, KARNEY)", DataType("GEOGRAPHY", crs="a`b", algorithm="karney"), "GEOGRAPHY(a`b, karney)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected", "written"), SPELLINGS, ids=[text for text, _, _ in SPELLINGS])
def test_texts(text: str, expected: DataType, written: str) -> None:
    assert parse_type(text) == expected
    assert (str(expected), format_type(expected)) == (written, written)


@pytest.mark.parametrize(
    ("text", "element", "root"),
    [
        ("INT ARRAY", DataType("INTEGER"), "ARRAY"),
        ("INT NOT NULL ARRAY", DataType("INTEGER", False), "ARRAY"),
        ("TIMESTAMP(3) MULTISET", DataType(PLAIN, precision=3), "MULTISET"),
    ],
)
@pytest.mark.parametrize("nullable", [True, False])
def test_what_stands_behind_its_element(text: str, element: DataType, root: str, nullable: bool) -> None:
    assert parse_type(text if nullable else f"{text} NOT NULL") == DataType(root, nullable, element=element)


def test_vectors() -> None:
    expected = DataType("VECTOR", False, length=3, element=DataType("FLOAT", False))
    assert parse_type("VECTOR<FLOAT NOT NULL, 3> NOT NULL") == expected
    assert str(expected) == "VECTOR<FLOAT NOT NULL, 3> NOT NULL"
    assert format_type(expected) == {"type": "VECTOR NOT NULL", "element": "FLOAT NOT NULL", "length": 3}
    assert parse_type(format_type(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "FOO", "INT INT", "INT NOT", "CHAR(", "CHAR()", "CHAR(3", "CHAR(x)", "CHAR(-1)", "CHAR(3,)", "CHAR(³)",
        "CHAR(2147483648)", "CHAR(00000000001)", "DECIMAL(5, )", "DECIMAL(5 2)", "TIMESTAMP(3) WITH TIME ZONE",
        "VECTOR", "VECTOR<FLOAT>", "VECTOR<FLOAT, 3", "VECTOR FLOAT, 3>", "GEOMETRY('x", "GEOGRAPHY('x', flat)",
        "ARRAY<INT>", "NOT NULL", "INT,",
    ],
)  # fmt: skip
def test_what_is_no_type(text: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        parse_type(text)
    assert error.value.code == "invalid-type"


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"root": "CHAR", "length": 1}, {"root": "CHAR", "length": 0}),
        ({"root": "VARBINARY", "length": MAX_LENGTH}, {"root": "VARBINARY", "length": MAX_LENGTH + 1}),
        ({"root": "DECIMAL", "precision": 1}, {"root": "DECIMAL", "precision": 0}),
        ({"root": "DECIMAL", "precision": 38, "scale": 38}, {"root": "DECIMAL", "precision": 39, "scale": 2}),
        ({"root": "DECIMAL", "precision": 5, "scale": 0}, {"root": "DECIMAL", "precision": 5, "scale": -1}),
        ({"root": "DECIMAL", "precision": 5, "scale": 5}, {"root": "DECIMAL", "precision": 5, "scale": 6}),
        ({"root": PLAIN, "precision": 9}, {"root": PLAIN, "precision": 10}),
        ({"root": LOCAL, "precision": 0}, {"root": LOCAL, "precision": -1}),
        ({"root": "TIME_WITHOUT_TIME_ZONE", "precision": 9}, {"root": "TIME_WITHOUT_TIME_ZONE", "precision": 10}),
        (
            {"root": "VECTOR", "length": 1, "element": DataType("BOOLEAN")},
            {"root": "VECTOR", "length": 0, "element": DataType("BOOLEAN")},
        ),
        (
            {"root": "VECTOR", "length": 2, "element": DataType("DOUBLE")},
            {"root": "VECTOR", "length": 2, "element": DataType("DECIMAL", precision=5)},
        ),
        (
            {"root": "MAP", "key": DataType("DATE"), "value": DataType("DATE")},
            {"root": "MAP", "value": DataType("DATE")},
        ),
        ({"root": "GEOGRAPHY", "algorithm": "andoyer"}, {"root": "GEOGRAPHY", "algorithm": "Andoyer"}),
    ],
)
def test_edges(good: dict[str, Any], bad: dict[str, Any]) -> None:
    assert DataType(**good).root == good["root"]
    with pytest.raises(InvalidRequest) as error:
        DataType(**bad)
    assert error.value.code == "invalid-type"


NESTED = {
    "type": "MAP NOT NULL",
    "key": "INT NOT NULL",
    "value": {
        "type": "ROW",
        "fields": [
            {"id": 4, "name": "a", "type": {"type": "ARRAY", "element": "STRING"}, "description": "why"},
            {"id": 7, "name": "b", "type": {"type": "MULTISET NOT NULL", "element": "INT"}, "defaultValue": "1"},
        ],
    },
}


def test_objects_there_and_back() -> None:
    parsed = parse_type(NESTED)
    assert format_type(parsed) == NESTED
    assert str(parsed) == (
        "MAP<INT NOT NULL, ROW<`a` ARRAY<STRING> COMMENT 'why', `b` MULTISET<INT> NOT NULL DEFAULT 1>> NOT NULL"
    )
    column = DataField(2, "it`s", parsed, "it's")
    assert str(column).startswith("`it``s` MAP<") and str(column).endswith(" COMMENT 'it''s'")
    assert parse_field(format_field(column)) == column
    assert list(field_ids([column])) == [2, 4, 7]


def test_ids_of_paimon_itself_do_not_count() -> None:
    start = (2**31 - 1) // 2
    plain = parse_type("INT")
    assert highest_field_id([DataField(3, "a", plain), DataField(start, "_KEY_a", plain)]) == 3
    assert highest_field_id([DataField(start - 1, "a", plain)]) == start - 1
    assert highest_field_id([]) == -1


def test_old_writers_spell_the_whole_type() -> None:
    for text, element in (("ARRAY<INT> NOT NULL", "INT"), ("MULTISET<INT>", "INT")):
        parsed = parse_type({"type": text, "element": element})
        assert (parsed.root, parsed.nullable) == (text.partition("<")[0], "NOT" not in text)
    assert parse_type({"type": "VECTOR<FLOAT, 2>", "element": "FLOAT", "length": 2}).length == 2
    assert parse_type({"type": "ROW<`a` INT>", "fields": []}).fields == ()


@pytest.mark.parametrize(
    ("node", "column"),
    [
        (5, None),
        (None, None),
        ([], None),
        ({}, None),
        ({"type": 5}, None),
        ({"type": "SET", "element": "INT"}, None),
        ({"type": "ARRAY"}, "element"),
        ({"type": "MAP", "key": "INT"}, "value"),
        ({"type": "MAP", "key": "FOO", "value": "INT"}, "key"),
        ({"type": "VECTOR", "element": "FLOAT"}, None),
        ({"type": "VECTOR", "element": "FLOAT", "length": True}, None),
        ({"type": "ROW"}, None),
        ({"type": "ROW", "fields": {}}, None),
        ({"type": "ROW", "fields": [5]}, None),
        ({"type": "ROW", "fields": [{"id": 0, "name": 5, "type": "INT"}]}, None),
        ({"type": "ROW", "fields": [{"name": "a", "type": "INT"}]}, "a"),
        ({"type": "ROW", "fields": [{"id": -1, "name": "a", "type": "INT"}]}, "a"),
        ({"type": "ROW", "fields": [{"id": 2**31, "name": "a", "type": "INT"}]}, "a"),
        ({"type": "ROW", "fields": [{"id": 0, "name": "a", "type": "INT", "defaultValue": 5}]}, "a"),
        ({"type": "ARRAY", "element": {"type": "ROW", "fields": [{"id": 0, "name": "a", "type": "F"}]}}, "element.a"),
    ],
)
def test_what_is_no_object_of_a_type(node: Any, column: str | None) -> None:
    with pytest.raises(InvalidRequest) as error:
        parse_type(node)
    assert (error.value.code, error.value.column) == ("invalid-type", column)


def nested(depth: int) -> object:
    node: object = "INT"
    for _ in range(depth):
        node = {"type": "ARRAY", "element": node}
    return node


def test_how_deep_types_may_nest() -> None:
    assert parse_type(nested(100)).root == "ARRAY"
    for node in (nested(101), "VECTOR<" * 102 + "FLOAT" + ", 1>" * 102):
        with pytest.raises(InvalidRequest, match="levels of nesting"):
            parse_type(node)
    assert parse_field({"id": 2**31 - 1, "name": "a", "type": "INT"}).id == 2**31 - 1


def test_what_a_type_says_of_itself() -> None:
    said = parse_type({"type": "ARRAY", "element": "DECIMAL(5, 2) NOT NULL"}).as_dict()
    element = {"root": "DECIMAL", "nullable": False, "precision": 5, "scale": 2}
    assert said == {"root": "ARRAY", "nullable": True, "element": element}
    assert parse_type("CHAR(3)").as_dict() == {"root": "CHAR", "nullable": True, "length": 3}
    assert parse_type("VECTOR<FLOAT, 3>").as_dict()["length"] == 3
    assert parse_type("TIME(3)").as_dict() == {"root": "TIME_WITHOUT_TIME_ZONE", "nullable": True, "precision": 3}
    assert parse_type("DATE").as_dict() == {"root": "DATE", "nullable": True}
    row = parse_type({"type": "ROW", "fields": [{"id": 3, "name": "x", "type": "INT", "description": "d"}]})
    member = {"id": 3, "name": "x", "type": {"root": "INTEGER", "nullable": True}, "description": "d", "default": None}
    assert row.as_dict() == {"root": "ROW", "nullable": True, "fields": [member]}
    assert [child.root for child in row.children()] == ["INTEGER"]
    assert parse_type("INT NOT NULL").shape == parse_type("INT")
