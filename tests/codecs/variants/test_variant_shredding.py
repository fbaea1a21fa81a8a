"""Shredded variants put together again. Specification: Parquet, VariantShredding.md and VariantEncoding.md."""

from __future__ import annotations

import datetime as dt
import json
import random
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from alluvium.codecs.variants.variant_shredding import rebuild
from alluvium.codecs.variants.variant_text import format_variant
from alluvium.errors import CorruptTable

EMPTY = b"\x01\x00\x00"
B = pa.binary()


def names(*texts: str) -> bytes:
    data = [text.encode() for text in texts]
    ends = [sum(map(len, data[:i])) for i in range(len(data) + 1)]
    return bytes([0x01, len(data), *ends]) + b"".join(data)


def shredded(typed: pa.DataType) -> pa.DataType:
    return pa.struct([("value", B), ("typed_value", typed)])


def column(typed: pa.DataType | None, rows: list[object], metadata: bytes = EMPTY) -> pa.StructArray:
    """A group of rows `(value, typed_value)`, None for no variant."""
    members = [("metadata", B), ("value", B), *([] if typed is None else [("typed_value", typed)])]
    cells = [
        None if row is None else dict(zip(("metadata", "value", "typed_value"), (metadata, *row), strict=False))
        for row in rows
    ]
    return pa.array(cells, pa.struct(members))


def texts(group: pa.StructArray) -> list[str]:
    metadata, values = rebuild(group)
    return [
        "" if not value else format_variant(of, value)
        for of, value in zip(metadata.to_pylist(), values.to_pylist(), strict=True)
    ]


def values(group: pa.StructArray) -> list[bytes]:
    return rebuild(group)[1].to_pylist()


def test_the_series_of_the_specification():
    """ "The series of measurements `34, null, "n/a", 100` would be stored as" """
    rows = [(None, 34), (b"\x00", None), (b"\x0dn/a", None), (None, 100)]
    assert texts(column(pa.int64(), rows)) == ["34", "null", '"n/a"', "100"]


def test_members_are_found_by_name():
    """ "The Parquet columns used to store variant metadata and values must be accessed by name, not by position." """
    kind = pa.struct([("typed_value", pa.int64()), ("value", B), ("metadata", B)])
    assert texts(pa.array([{"metadata": EMPTY, "typed_value": 1}], kind)) == ["1"]


def test_missing_is_null_where_a_value_is_required():
    """ "If a Variant is missing in a context where a value is required, readers must return a Variant null (`00`)" """
    assert values(column(pa.int64(), [(None, None), None])) == [b"\x00", b""]
    element = shredded(pa.int64())
    assert texts(column(pa.list_(element), [(None, [{"value": None, "typed_value": None}])])) == ["[null]"]


def test_plain_variants_are_passed_on():
    """ "readers must continue to be able to read a group containing only `value` and `metadata` fields" """
    assert values(column(None, [(b"\x0c\x05",), None, (b"\x00",)])) == [b"\x0c\x05", b"", b"\x00"]


UTC = dt.timezone.utc
PRIMITIVES = [
    (pa.bool_(), [True, False], ["04", "08"]),
    (pa.int8(), [-128, 127], ["0c80", "0c7f"]),
    (pa.int16(), [-32768, 32767, 1], ["100080", "10ff7f", "0c01"]),
    (pa.int32(), [-(1 << 31), 32768], ["1400000080", "1400800000"]),
    (pa.int64(), [-(1 << 63), 1 << 31, -1], ["180000000000000080", "180000008000000000", "0cff"]),
    (pa.float32(), [1.5], ["380000c03f"]),
    (pa.float64(), [-0.0], ["1c0000000000000080"]),
    (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("9999999.99")], ["20026affffff", "2002ffc99a3b"]),
    (pa.decimal128(18, 4), [Decimal("12345678901234.5678")], ["2404" + (123456789012345678).to_bytes(8, "little").hex()]),
    (pa.decimal128(38, 0), [Decimal("-1e37")], ["2800" + (-(10**37)).to_bytes(16, "little", signed=True).hex()]),
    (pa.decimal128(38, 20), [Decimal(1)], ["2814" + (10**20).to_bytes(16, "little").hex()]),
    (pa.date32(), [dt.date(1970, 1, 2)], ["2c01000000"]),
    (pa.timestamp("us", "UTC"), [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)], ["3040420f0000000000"]),
    (pa.timestamp("us"), [dt.datetime(1970, 1, 1, 0, 0, 1)], ["3440420f0000000000"]),
    (pa.timestamp("ns", "UTC"), [1], ["480100000000000000"]),
    (pa.timestamp("ns"), [-1], ["4cffffffffffffffff"]),
    (pa.time64("us"), [dt.time(0, 0, 1)], ["4440420f0000000000"]),
    (pa.binary(), [b"", b"\xff"], ["3c00000000", "3c01000000ff"]),
    (pa.string(), ["", "é", "x" * 63, "y" * 64], ["01", "09c3a9", "fd" + "78" * 63, "4040000000" + "79" * 64]),
    (pa.large_string(), ["a"], ["0561"]),
    (pa.binary(16), [uuid.UUID(int=1).bytes], ["50" + "00" * 15 + "01"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "expected"), PRIMITIVES, ids=lambda x: str(x)[:20])
def test_primitive_types(kind: pa.DataType, given: list[object], expected: list[str]):
    """ "When `typed_value` is present, readers **must** reconstruct shredded values according to this specification." """
    typed = pa.array([None, *given, None], kind)
    count = len(typed)
    group = pa.StructArray.from_arrays(
        [pa.array([EMPTY] * count), pa.array([b"\x00", *([None] * len(given)), b"\x00"], B), typed],
        names=["metadata", "value", "typed_value"],
    )
    assert [v.hex() for v in values(group)] == ["00", *expected, "00"]
    # A slice has its buffers elsewhere.
    assert [v.hex() for v in values(group.slice(1, len(given)))] == expected


@pytest.mark.parametrize("kind", [pa.uint8(), pa.float16(), pa.timestamp("ms"), pa.time32("s"), pa.binary(3)], ids=str)
def test_types_that_no_variant_has(kind: pa.DataType):
    with pytest.raises(CorruptTable):
        rebuild(column(kind, [(None, None)]))


TAGS = pa.list_(shredded(pa.string()))


def test_arrays_of_the_specification():
    def tag(text: str | None) -> dict[str, object]:
        """ "Null elements must be encoded in `value` as Variant null" """
        return {"value": b"\x00" if text is None else None, "typed_value": text}

    rows = [(None, [tag(x) for x in row]) for row in (["comedy", "drama"], ["horror", None], [])]
    assert texts(column(TAGS, [*rows, (b"\x00", None), None])) == [
        '["comedy","drama"]', '["horror",null]', "[]", "null", ""
    ]  # fmt: skip


EVENT = pa.struct([("event_type", shredded(pa.string())), ("event_ts", shredded(pa.int64()))])


def event(
    kind: str | None = None, ts: int | None = None, kind_value: bytes | None = None, ts_value: bytes | None = None
):
    return {
        "event_type": {"value": kind_value, "typed_value": kind},
        "event_ts": {"value": ts_value, "typed_value": ts},
    }


METADATA = names("email", "event_ts", "event_type", "click")
EMAIL = b"\x02\x01\x00\x00\x02\x05a"


def test_objects_of_the_specification():
    """ "Readers must return an object when `typed_value` is non-null containing the shredded fields." """
    rows = [
        (None, event("noop", 14)),
        (EMAIL, event("login", 15)),
        (EMAIL, event()),
        (b"\x05a", None),
        (b"\x02\x01\x03\x00\x02\x0c\x07", event(None, 16)),
        (None, event(None, 17, kind_value=b"\x00")),
        (None, event("noop", ts_value=b"\x0924")),
        (None, event()),
        (b"\x00", None),
        None,
    ]
    assert texts(column(EVENT, rows, METADATA)) == [
        '{"event_ts":14,"event_type":"noop"}',
        '{"email":"a","event_ts":15,"event_type":"login"}',
        '{"email":"a"}',
        '"a"',
        '{"click":7,"event_ts":16}',
        '{"event_ts":17,"event_type":null}',
        '{"event_ts":"24","event_type":"noop"}',
        "{}",
        "null",
        "",
    ]


def test_fields_are_sorted_by_the_bytes_of_their_names():
    """ "field IDs and offsets must be listed in the order of the corresponding field names, sorted lexicographically
    (using unsigned byte ordering for UTF-8)"
    """
    typed = pa.struct([("é", shredded(pa.int64())), ("a", shredded(pa.int64())), ("Z", shredded(pa.int64()))])
    field = {"value": None, "typed_value": 1}
    group = column(typed, [(None, {"é": field, "a": field, "Z": field})], names("é", "Z", "a"))
    assert values(group) == [bytes.fromhex("0203010200000204060c010c010c01")]


def test_fields_of_a_leftover_may_lie_in_any_order():
    """ "the actual `value` entries do not need to be in any particular order" """
    leftover = bytes.fromhex("020200010200040c010c02")
    typed = pa.struct([("b", shredded(pa.int64()))])
    group = column(typed, [(leftover, {"b": {"value": None, "typed_value": 3}})], names("a", "c", "b"))
    assert texts(group) == ['{"a":2,"b":3,"c":1}']


def test_more_than_255_members():
    """ "When more than 255 elements are present, `is_large` must be set to true." """
    many = [f"f{i:03}" for i in range(300)]
    metadata = b"\x41" + (300).to_bytes(2, "little")
    metadata += b"".join((4 * i).to_bytes(2, "little") for i in range(301)) + "".join(many).encode()
    typed = pa.struct([(name, shredded(pa.string())) for name in many])
    row = {name: {"value": None, "typed_value": name * 10} for name in many}
    found = json.loads(texts(column(typed, [(None, row)], metadata))[0])
    assert found == {name: name * 10 for name in many}
    elements = [{"value": None, "typed_value": "x"}] * 256
    assert json.loads(texts(column(TAGS, [(None, elements)]))[0]) == ["x"] * 256


def test_fields_of_a_null_object_do_not_count():
    typed = pa.StructArray.from_arrays(
        [pa.array([{"value": None, "typed_value": 1}], shredded(pa.int64()))], names=["a"], mask=pa.array([True])
    )
    group = pa.StructArray.from_arrays(
        [pa.array([names("a")]), pa.array([b"\x00"]), typed], names=["metadata", "value", "typed_value"]
    )
    assert values(group) == [b"\x00"]


def test_each_row_has_its_own_metadata():
    typed = pa.struct([("b", shredded(pa.int64()))])
    first = column(typed, [(None, {"b": {"value": None, "typed_value": 1}})], names("b"))
    second = column(typed, [(EMAIL, {"b": {"value": None, "typed_value": 2}})], names("z", "a", "b"))
    assert texts(pa.concat_arrays([first, second])) == ['{"b":1}', '{"b":2,"z":"a"}']


def _of(depth: int, value: object) -> tuple[pa.DataType, object]:
    kind, cell = pa.int64(), value
    for _ in range(depth):
        kind, cell = pa.struct([("a", shredded(kind))]), {"a": {"value": None, "typed_value": cell}}
    return kind, cell


def test_nesting_is_limited():
    kind, cell = _of(60, 1)
    assert texts(column(kind, [(None, cell)], names("a"))) == ['{"a":' * 60 + "1" + "}" * 60]
    kind, cell = _of(101, 1)
    with pytest.raises(CorruptTable, match="levels"):
        rebuild(column(kind, [(None, cell)], names("a")))


X = pa.struct([("x", shredded(pa.int64()))])
FIELD = {"x": {"value": None, "typed_value": 1}}


@pytest.mark.parametrize(
    "group",
    [
        # "When both `value` and `typed_value` for a field are non-null, engines should fail."
        column(pa.int64(), [(b"\x00", 1)]),
        column(X, [(None, {"x": {"value": b"\x00", "typed_value": 1}})], names("x")),
        # "If the value is an array, `value` must be null."
        column(TAGS, [(b"\x00", [])]),
        # "INVALID: `typed_value` is present and `value` is not an object"
        column(X, [(b"\x05a", FIELD)], names("x")),
        # ... be it a list, which without elements looks like an object without fields.
        column(X, [(b"\x03\x00\x00", FIELD)], names("x")),
        # "INVALID: Shredded field is present in `value`"
        column(X, [(b"\x02\x01\x00\x00\x02\x0c\x01", FIELD)], names("x")),
        # "All field names of a Variant, whether shredded or not, must be present in the metadata."
        column(X, [(None, FIELD)], EMPTY),
        column(X, [(b"\x02\x01\x05\x00\x02\x0c\x01", FIELD)], names("x", "y")),
        # "When present, the `value` field must be a valid Variant value"
        column(None, [(b"",)]),
        column(pa.int64(), [(b"", None)]),
        # "`version` is a 4-bit value that must always contain the value `1`."
        column(None, [(b"\x00",)], b"\x02\x00\x00"),
        column(None, [(b"\x00",)], b""),
        column(None, [(b"\x00",)], b"\x01\xff\x00"),
        column(None, [(b"\x00",)], b"\xc1\xff\xff\xff\xff"),
        # "The `metadata` field is `required`"
        pa.array([{"metadata": None, "value": b"\x00"}], pa.struct([("metadata", B), ("value", B)])),
        column(X, [(None, FIELD)], b"\x01\x01\x00\x09x"),
        column(X, [(None, FIELD)], b"\x01\x01\x01\x00x"),
        column(pa.struct([("x", pa.int64())]), [(None, {"x": 1})], names("x")),
        column(pa.list_(pa.int64()), [(None, [1])]),
    ],
    ids=lambda group: str(group[0].as_py())[:40],
)
def test_damage_is_an_error(group: pa.StructArray):
    with pytest.raises(CorruptTable) as caught:
        rebuild(group)
    assert caught.value.code == "malformed-variant"


@pytest.mark.long
def test_any_bytes_end_in_values_or_in_our_own_error():
    """Untrusted bytes: never a crash, never a foreign exception."""
    dice = random.Random(7)
    good = 0
    for _ in range(3000):
        leftover, metadata = bytearray(EMAIL), bytearray(METADATA)
        for target in (leftover, metadata):
            for _ in range(dice.randrange(3)):
                target[dice.randrange(len(target))] = dice.randrange(256)
            del target[dice.randrange(1, len(target) + 40) :]
        try:
            found, made = rebuild(column(EVENT, [(bytes(leftover), event("login", 1))], bytes(metadata)))
            format_variant(found[0].as_py(), made[0].as_py())
            good += 1
        except CorruptTable:
            continue
    assert 100 < good < 2900
