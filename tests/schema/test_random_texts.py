"""Texts of fixed length in columns of any shape, beside a plain walk through Python's values."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.text_lengths import (
    CharLengths,
    char_lengths,
    char_paths,
    declared_struct,
    metadata_for,
    pad_column,
    pad_upper_bounds,
)
from alluvium.schema.types import Array, DataType, Field, Map, Struct


def shape(lot: random.Random, depth: int) -> tuple[DataType, str]:
    """A type, and how it was declared."""
    kind = lot.choice(["char", "char", "varchar", "string", "long"] + ["struct", "array", "map"] * (depth > 0))
    if kind == "char" or kind == "varchar":
        return t.STRING, f"{kind}({lot.randint(1, 4)})"
    if kind == "array":
        element, text = shape(lot, depth - 1)
        return Array(element), f"array<{text}>"
    if kind == "map":
        (key, of_key), (value, of_value) = shape(lot, 0), shape(lot, depth - 1)
        return Map(key, value), f"map<{of_key},{of_value}>"
    if kind == "struct":
        members = [shape(lot, depth - 1) for _ in range(lot.randint(1, 3))]
        fields = tuple(Field(f"m{n}", data_type) for n, (data_type, _) in enumerate(members))
        return Struct(fields), f"struct<{','.join(f'm{n}:{text}' for n, (_, text) in enumerate(members))}>"
    return (t.LONG, "bigint") if kind == "long" else (t.STRING, "string")


def value(lot: random.Random, data_type: DataType, is_key: bool = False) -> Any:
    if not is_key and lot.random() < 0.2:
        return None
    if isinstance(data_type, Struct):
        return {f.name: value(lot, f.type) for f in data_type.fields}
    if isinstance(data_type, Array):
        return [value(lot, data_type.element) for _ in range(lot.randint(0, 3))]
    if isinstance(data_type, Map):
        entries = {value(lot, data_type.key, True): value(lot, data_type.value) for _ in range(lot.randint(0, 3))}
        return list(entries.items())
    return lot.choice(["", "a", "bé", "\U0001f600", "abcdef"]) if data_type == t.STRING else lot.randint(0, 9)


def padded(one: Any, data_type: DataType, lengths: CharLengths, path: tuple[str, ...] = ()) -> Any:
    if one is None:
        return None
    if isinstance(data_type, Struct):
        return {f.name: padded(one[f.name], f.type, lengths, (*path, f.name)) for f in data_type.fields}
    if isinstance(data_type, Array):
        return [padded(inner, data_type.element, lengths, (*path, "element")) for inner in one]
    if isinstance(data_type, Map):
        return [(padded(k, data_type.key, lengths, (*path, "key")), padded(v, data_type.value, lengths, (*path, "value")))
                for k, v in one]  # fmt: skip
    return one.ljust(lengths[path]) if path in lengths else one


def declared_lengths(data_type: DataType, text: str, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], int]:
    """By the text alone, which this test has made."""
    if text.startswith("char("):
        return {path: int(text[5:-1])}
    if not isinstance(data_type, (Struct, Array, Map)):
        return {}
    inner, parts, depth = text[text.index("<") + 1 : -1], [""], 0
    for letter in inner:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    if isinstance(data_type, Struct):
        members = [(f.type, part.partition(":")[2], f.name) for f, part in zip(data_type.fields, parts, strict=True)]
    elif isinstance(data_type, Array):
        members = [(data_type.element, parts[0], "element")]
    else:
        members = [(data_type.key, parts[0], "key"), (data_type.value, parts[1], "value")]
    return {p: n for kind, part, name in members for p, n in declared_lengths(kind, part, (*path, name)).items()}


def renamed(data_type: DataType) -> DataType:
    """The type as files have it."""
    if isinstance(data_type, Struct):
        return Struct(tuple(Field(f"col-{f.name}", renamed(f.type)) for f in data_type.fields))
    if isinstance(data_type, Array):
        return Array(renamed(data_type.element))
    return Map(renamed(data_type.key), renamed(data_type.value)) if isinstance(data_type, Map) else data_type


@pytest.mark.parametrize("seed", range(40))
def test_texts_wherever_they_are(seed: int) -> None:
    lot = random.Random(seed)
    data_type, text = shape(lot, 3)
    column = Field("c", data_type, True, {CHAR_VARCHAR: text, "comment": "so"})
    lengths = declared_lengths(data_type, text)
    assert char_lengths(column) == lengths
    other = Field("d", t.STRING, True, {CHAR_VARCHAR: "char(9)"})
    assert char_paths(Struct((column, other))) == {**{("c", *path): n for path, n in lengths.items()}, ("d",): 9}
    rows = [value(lot, data_type) for _ in range(6)]
    array = pa.array(rows, to_arrow(data_type))
    expected = [padded(row, data_type, lengths) for row in rows]
    for start, count in ((0, 6), (1, 4), (5, 1), (3, 0)):
        found = pad_column(array.slice(start, count), data_type, lengths)
        found.validate(full=True)
        assert found.to_pylist() == expected[start : start + count] and found.type == array.type
    # Under other names the same texts have the same lengths, and nothing else is lost.
    own = renamed(data_type)
    metadata = metadata_for(column, own)
    if not isinstance(data_type, (Struct, Array, Map)):
        assert metadata == column.metadata
        return
    assert metadata["comment"] == "so" and (CHAR_VARCHAR in metadata) == bool(lengths)
    known = char_lengths(Field("c", own, True, metadata))
    assert {tuple(part.removeprefix("col-") for part in path): n for path, n in known.items()} == lengths
    whole = declared_struct(Struct((column,)))
    assert (whole is None) == (not lengths)
    if whole is not None:
        within = char_lengths(Field("x", Struct((column,)), True, {CHAR_VARCHAR: whole}))
        assert within == {("c", *path): n for path, n in lengths.items()}


def test_no_padded_text_is_greater_than_its_bound() -> None:
    lot = random.Random(0)
    letters = "a b\t\x1f!~é"
    for _ in range(400):
        text, bound = ("".join(lot.choices(letters, k=lot.randint(0, 4))) for _ in range(2))
        length = lot.randint(1, 5)
        found = pad_upper_bounds(pa.array([bound]), length).to_pylist()[0]
        if text.encode() <= bound.encode() and found is not None:
            assert text.ljust(length).encode() <= found.encode()
        assert found == (None if min(bound, default=" ") < " " else bound.ljust(length))
