"""Declared lengths, and blanks."""

from __future__ import annotations

import pyarrow as pa
import pytest

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema import text_lengths
from alluvium.schema import types as t
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.text_lengths import (
    char_length,
    char_lengths,
    char_paths,
    declared_type,
    metadata_for,
    pad_column,
    pad_texts,
    pad_upper_bounds,
    text_limit,
)
from alluvium.schema.types import Array, Field, Map, Primitive, Struct

DEEP = Struct((Field("C", t.STRING), Field("l", Array(Map(t.STRING, t.STRING))), Field("n", t.LONG)))


def declared(text: object, data_type: t.DataType = t.STRING) -> Field:
    return Field("x", data_type, True, {CHAR_VARCHAR: text})  # type: ignore[dict-item]


def test_limits() -> None:
    assert [text_limit(Primitive(name)) for name in ("char(3)", "varchar(10)", "string", "chart(3)")] == [
        ("char", 3), ("varchar", 10), None, None,
    ]  # fmt: skip
    assert declared_type(Field("x", t.STRING)) is None
    assert declared_type(declared("CHARACTER ( 3 )")) == Primitive("char(3)")


@pytest.mark.parametrize(
    "text",
    [
        "struct<c:char(3),l:array<map<char(2),varchar(5)>>,n:bigint>",
        "struct<n:decimal(10, 2),`c` : char(3) COMMENT 'a, (b>',l:array<map<char(2),string>>>",
        "struct<a:string collate UTF8_LCASE,g:geometry(4326),h:geography(OGC:CRS84, SPHERICAL),c:char(3) not null,"
        "l:array<map<character(2),string>>,n:void>",
    ],
)
def test_members_go_by_name(text: str) -> None:
    f = declared(text, DEEP)
    assert char_lengths(f) == {("C",): 3, ("l", "element", "key"): 2}
    assert char_paths(Struct((f, declared("varchar(3)")))) == {("x", "C"): 3, ("x", "l", "element", "key"): 2}
    assert [char_length(Struct((f,)), path) for path in (("x",), ("x", "C"), ("x", "n"), ("y",))] == [
        None,
        3,
        None,
        None,
    ]


def test_what_does_not_fit_the_type_says_nothing() -> None:
    assert char_lengths(declared("char(3)", t.BINARY)) == {}
    assert char_lengths(declared("array<char(3)>")) == {}
    assert char_lengths(declared("struct<n:char(3),gone:char(3)>", DEEP)) == {}


def test_members_that_were_renamed_are_known_by_their_places() -> None:
    assert char_lengths(declared("struct<once:char(3),l:array<map<char(2),string>>,n:bigint>", DEEP)) == {
        ("C",): 3, ("l", "element", "key"): 2,
    }  # fmt: skip


def test_only_char_is_padded() -> None:
    assert char_lengths(declared("varchar(3)")) == {}


@pytest.mark.parametrize("text", ["char(", "char(0)", "char(3) x", "struct<char(3)>", f"char({'9' * 5000})"])
def test_what_is_no_type_is_reported(text: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        char_lengths(declared(text))
    assert (caught.value.code, caught.value.column) == ("invalid-text-type", "x")


def test_blanks_count_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.array(["a", "ä", "\U0001f600", "", None, "abcd"])
    assert pad_texts(texts, 3).to_pylist() == ["a  ", "ä  ", "\U0001f600  ", "   ", None, "abcd"]
    assert pad_texts(texts.slice(0, 0), 3).to_pylist() == []
    # Piece by piece where one array might not hold them.
    monkeypatch.setattr(text_lengths, "_PADDED_AT_ONCE", 6)
    assert pad_texts(texts, 3).to_pylist() == ["a  ", "ä  ", "\U0001f600  ", "   ", None, "abcd"]
    with pytest.raises(UnsupportedFeature):
        pad_texts(pa.array(["a"]), (1 << 31) - 1)


def test_upper_bounds() -> None:
    assert pad_upper_bounds(pa.array(["a", "a\t", None, ""]), 2).to_pylist() == ["a ", None, None, "  "]


def test_columns_keep_their_nulls() -> None:
    f = declared("struct<c:char(2),l:array<map<char(2),char(1)>>,n:bigint>", DEEP)
    kind = pa.struct([("C", pa.string()), ("l", pa.list_(pa.map_(pa.string(), pa.string()))), ("n", pa.int64())])
    rows = [None, {"C": "a", "l": [None, [("k", None)]], "n": 1}, {"C": None, "l": None, "n": None}]
    padded = pad_column(pa.array([*rows, rows[1]], kind).slice(1), f.type, char_lengths(f))
    assert padded.to_pylist() == [
        {"C": "a ", "l": [None, [("k ", None)]], "n": 1}, rows[2], {"C": "a ", "l": [None, [("k ", None)]], "n": 1},
    ]  # fmt: skip
    assert padded.validate(full=True) is None


def test_metadata_for_other_names() -> None:
    """An engine that pads must know the members as the files do, those that were added later included."""
    declared_long_ago = declared("struct<c:char(2),l:array<map<char(2),char(1)>>>", DEEP)
    physical = Struct((Field("col-`1", t.STRING), Field("p", Array(Map(t.STRING, t.STRING))), Field("q", t.LONG)))
    assert metadata_for(declared_long_ago, physical) == {
        CHAR_VARCHAR: "struct<`col-``1`:char(2),`p`:array<map<char(2),char(1)>>,`q`:bigint>"
    }
    assert metadata_for(declared("struct<c:varchar(2)>", DEEP), physical) == {}
    # A map's key is another type than the members that it has: those of the files count.
    keyed = Struct((Field("m", Map(Struct((Field("k", t.STRING),)), t.LONG)),))
    stored = Struct((Field("col-1", Map(Struct((Field("col-2", t.STRING),)), t.LONG)),))
    assert metadata_for(declared("struct<m:map<struct<k:char(2)>,bigint>>", keyed), stored) == {
        CHAR_VARCHAR: "struct<`col-1`:map<struct<`col-2`:char(2)>,bigint>>"
    }
    plain = Field("x", t.STRING, True, {CHAR_VARCHAR: "char(2)", "comment": "so"})
    assert metadata_for(plain, t.STRING) == plain.metadata
    limited = Field("x", t.STRING, True, {CHAR_VARCHAR: "varchar(2)"})
    assert metadata_for(limited, t.STRING) == limited.metadata
    assert metadata_for(Field("x", DEEP, True, {"comment": "so"}), physical) == {"comment": "so"}


@pytest.mark.parametrize(
    "declared", ["map<char(3),char(2)>", "array<char(3)>", "struct<a:char(3)>", "char(3)", "varchar(3)", "int"]
)
@pytest.mark.parametrize(
    "kind",
    [
        t.LONG,
        t.STRING,
        Array(t.STRING),
        Array(t.LONG),
        Map(t.STRING, t.STRING),
        Map(t.LONG, t.STRING),
        Struct((Field("a", t.STRING),)),
        Struct(),
    ],
)
def test_what_is_declared_beside_every_type(declared: str, kind: t.DataType) -> None:
    """Lengths are told where both have the same shape; of all else nothing."""
    wanted: dict[tuple[str, ...], int] = {}
    if declared == "char(3)" and kind == t.STRING:
        wanted = {(): 3}
    if declared.startswith("array") and kind == Array(t.STRING):
        wanted = {("element",): 3}
    if declared.startswith("map") and isinstance(kind, Map):
        wanted = {("value",): 2, **({("key",): 3} if kind.key == t.STRING else {})}
    if declared.startswith("struct") and kind == Struct((Field("a", t.STRING),)):
        wanted = {("a",): 3}
    assert char_lengths(Field("c", kind, metadata={CHAR_VARCHAR: declared})) == wanted
