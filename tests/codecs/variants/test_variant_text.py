"""Variants as JSON text. Specification: Parquet, VariantEncoding.md."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest

from alluvium.codecs.variants.variant_text import format_variant, show_variants
from alluvium.errors import CorruptTable
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import Array, Field, Map, Struct

EMPTY = b"\x01\x00\x00"
NAMES = b"\x01\x02\x00\x01\x03acc"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("00", "null"), ("04", "true"), ("08", "false"), ("0cfd", "-3"), ("180000008000000000", "2147483648"),
        # What delta-spark 4.4 makes of values that it encoded itself.
        ("3040d34dc0ed0d0600", '"2024-01-02 03:04:05+00:00"'),
        ("3000a84fc0ed0d0600", '"2024-01-02 03:04:05.12+00:00"'),
        ("3441d34dc0ed0d0600", '"2024-01-02 03:04:05.000001"'),
        ("2c0c4d0000", '"2024-01-02"'), ("2cdbc6f4ff", '"-0044-03-15"'), ("2ca0c02c00", '"9999-12-31"'),
        ("380000c03f", "1.5"), ("38cdcccc3d", "0.1"), ("1c000000000000f87f", '"NaN"'), ("200296000000", "1.5"),
        ("200064000000", "100"), ("3c030000000102ff", '"AQL/"'), ("19612201c3a90a", '"a\\"\\u0001é\\n"'),
        ("240ab004000000000000", "0.00000012"),
        ("2802143aa09016dd4359643c0ad39b000000", "123456789012345678901234567890.12"),
        # Types that Spark does not have.
        ("4440420f0000000000", '"00:00:01"'),
        ("480100000000000000", '"1970-01-01 00:00:00.000000001+00:00"'),
        ("4cffffffffffffffff", '"1969-12-31 23:59:59.999999999"'),
        ("50" + "00" * 15 + "01", '"00000000-0000-0000-0000-000000000001"'),
        ("400100000078", '"x"'),
        ("0300" "00", "[]"), ("0200" "00", "{}"), ("1300000000" "00", "[]"),
        ("0202" "0001" "000204" "0c010c02", '{"a":1,"cc":2}'), ("0302" "000103" "00" "0c05", "[null,5]"),
    ],
)  # fmt: skip
def test_text(value: str, text: str):
    assert format_variant(NAMES, bytes.fromhex(value)) == text
    json.loads(text)


@pytest.mark.parametrize(
    "value",
    [
        "", "0c", "2001", "fd61", "40ffffffff61", "54", "05ff", "03", "0301", "0301050600", "0201050002" "0c01", "0201000009",
        "13ffffffff", "2027" "01000000", "44ffffffffffffffff",
    ],
)  # fmt: skip
def test_damage_is_an_error(value: str):
    with pytest.raises(CorruptTable) as caught:
        format_variant(NAMES, bytes.fromhex(value))
    assert caught.value.code == "malformed-variant"


def test_a_bomb_of_shared_bytes_is_refused():
    """Arrays whose elements all lie in the same place would be 2 to the power of 80 values."""
    value = b"\x00"
    for _ in range(80):
        value = b"\x0f\x02" + bytes(8) + len(value).to_bytes(4, "little") + value
    with pytest.raises(CorruptTable, match="over one another"):
        format_variant(EMPTY, value)


def test_nesting_is_limited():
    value = b"\x00"
    for depth in range(150):
        value = b"\x0f\x01" + bytes(4) + len(value).to_bytes(4, "little") + value
        if depth < 100:
            assert format_variant(EMPTY, value) == "[" * (depth + 1) + "null" + "]" * (depth + 1)
    with pytest.raises(CorruptTable, match="levels"):
        format_variant(EMPTY, value)


def test_any_bytes_end_in_text_or_in_our_own_error():
    dice = random.Random(3)
    read = refused = 0
    for _ in range(5000):
        value = bytes(dice.randrange(256) for _ in range(dice.randrange(20)))
        metadata = NAMES if dice.random() < 0.7 else bytes([1, *(dice.randrange(256) for _ in range(6))])
        try:
            json.loads(format_variant(metadata, value))
            read += 1
        except CorruptTable as error:
            assert error.code == "malformed-variant"
            refused += 1
    assert read > 100
    assert refused > 1000


def test_variants_at_any_depth_of_a_table():
    schema = Struct((
        Field("n", t.LONG),
        Field("v", t.VARIANT),
        Field("s", Struct((Field("v", t.VARIANT), Field("k", t.LONG)))),
        Field("l", Array(t.VARIANT)),
        Field("m", Map(t.STRING, t.VARIANT)),
    ))  # fmt: skip
    one = {"metadata": EMPTY, "value": b"\x0c\x01"}
    rows = [
        {"n": 1, "v": one, "s": {"v": None, "k": 2}, "l": [one, None], "m": [("k", one)]},
        {"n": 2, "v": None, "s": None, "l": None, "m": None},
    ]
    shown = show_variants(pa.Table.from_pylist(rows, schema_to_arrow(schema)).slice(0), schema)
    assert shown.to_pylist() == [
        {"n": 1, "v": "1", "s": {"v": None, "k": 2}, "l": ["1", None], "m": [("k", "1")]},
        {"n": 2, "v": None, "s": None, "l": None, "m": None},
    ]
    table = pa.Table.from_pylist(rows, schema_to_arrow(schema))
    assert show_variants(table.slice(1), schema).to_pylist() == shown.slice(1).to_pylist()
    assert show_variants(table.slice(0, 0), schema).schema.equals(shown.schema)


#: "Primitive type" of the specification's table, by number: how many bytes follow the header.
WIDTHS = {
    0: 0,
    1: 0,
    2: 0,
    3: 1,
    4: 2,
    5: 4,
    6: 8,
    7: 8,
    8: 5,
    9: 9,
    10: 17,
    11: 4,
    12: 8,
    13: 8,
    14: 4,
    17: 8,
    18: 8,
    19: 8,
    20: 16,
}


@pytest.mark.parametrize("kind", WIDTHS)
def test_every_type_takes_the_bytes_of_the_specification(kind: int):
    value = bytes([kind << 2, *bytes(WIDTHS[kind])])
    assert json.loads(format_variant(EMPTY, value)) is not None or kind == 0
    # In a list the next value begins right behind it.
    array = bytes([3, 2, 0, len(value), len(value) + 2]) + value + b"\x0c\x05"
    assert json.loads(format_variant(EMPTY, array))[1] == 5
    if WIDTHS[kind]:
        with pytest.raises(CorruptTable):
            format_variant(EMPTY, value[:-1])


def test_every_byte_of_a_number_counts():
    for kind, text in (
        (17, "00:00:00.000001"),
        (12, "1970-01-01 00:00:00.000001+00:00"),
        (13, "1970-01-01 00:00:00.000001"),
    ):
        assert json.loads(format_variant(EMPTY, bytes([kind << 2, 1, *bytes(7)]))) == text
        high = bytes([kind << 2, *bytes(7), 1])
        if kind == 17:
            # Beyond the end of any day.
            with pytest.raises(CorruptTable, match="outside of the day"):
                format_variant(EMPTY, high)
        else:
            assert json.loads(format_variant(EMPTY, high)).startswith("4253-05-31")


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ("", "version"), ("000000", "version"), ("020000", "version"), ("0f0000", "version"), ("110000", None), ("c1" + "00" * 8, None),
        ("01", "cut off"), ("0101", "fewer bytes"), ("010100", "fewer bytes"), ("01010001", "lead out"), ("0101000161", None), ("01020002016161", "lead out"),
        ("010200010261", "lead out"), ("0102000102" "6161", None), ("41" "0000" "00", "fewer bytes"), ("41" "0000" "0000", None),
    ],
)  # fmt: skip
def test_metadata_that_is_none(metadata: str, problem: str | None):
    if problem is None:
        assert format_variant(bytes.fromhex(metadata), b"\x0c\x07") == "7"
        return
    with pytest.raises(CorruptTable, match=problem) as caught:
        format_variant(bytes.fromhex(metadata), b"\x0c\x07")
    assert caught.value.code == "malformed-variant"
