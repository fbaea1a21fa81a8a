"""The bytes of variants, beside a plain writer of one value at a time; and dictionaries and objects taken out of bytes."""

from __future__ import annotations

import decimal
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.codecs.variants.byte_ranges import Ranges, ranges_of, to_binary
from alluvium.codecs.variants.variant_encoding import (
    encode_column,
    encode_containers,
    ensure_metadata,
    null_for_missing,
    parse_dictionaries,
    parse_objects,
)
from alluvium.errors import CorruptTable

D = decimal.Decimal


def shown(ranges: Ranges) -> list[bytes | None]:
    found: list[bytes | None] = to_binary(ranges, pa.binary()).to_pylist()
    return [one if there else None for one, there in zip(found, ranges.present.tolist(), strict=True)]


def little(value: int, width: int) -> bytes:
    return value.to_bytes(width, "little", signed=True)


def integer(value: int) -> bytes:
    width, kind = next(
        (w, k) for w, k in ((1, 3), (2, 4), (4, 5), (8, 6)) if -(1 << (8 * w - 1)) <= value < 1 << (8 * w - 1)
    )
    return bytes([kind << 2]) + little(value, width)


def number(value: D, scale: int) -> bytes:
    """The fewest bytes whose digits hold it, and its scale."""
    unscaled = int(value.scaleb(scale, decimal.Context(prec=60)))
    for digits, width, kind in ((9, 4, 8), (18, 8, 9), (38, 16, 10)):
        if abs(unscaled) < 10**digits and scale <= digits:
            return bytes([kind << 2, scale]) + little(unscaled, width)
    raise AssertionError


EDGES = sorted(
    {
        sign * (base + step)
        for base in (0, 1 << 7, 1 << 15, 1 << 31, (1 << 63) - 2)
        for step in (-1, 0, 1)
        for sign in (-1, 1)
    }
)


def test_integers_at_every_edge() -> None:
    values = [*EDGES, -(1 << 63), (1 << 63) - 1]
    assert shown(encode_column(pa.array([*values, None]))) == [*map(integer, values), None]
    for kind, bits in ((pa.int8(), 7), (pa.int16(), 15), (pa.int32(), 31)):
        some = [v for v in values if -(1 << bits) <= v < 1 << bits]
        assert shown(encode_column(pa.array(some, kind))) == [*map(integer, some)]


@pytest.mark.parametrize("scale", [0, 1, 9, 10, 18, 19, 38])
def test_decimals_at_every_edge(scale: int) -> None:
    unscaled = sorted(
        {sign * (10**digits + step) for digits in (0, 8, 9, 17, 18, 37) for step in (-1, 0, 1) for sign in (-1, 1)}
    )
    values = [D(v).scaleb(-scale, decimal.Context(prec=60)) for v in unscaled]
    column = pa.array([None, *values], pa.decimal128(38, scale))
    assert shown(encode_column(column)) == [None, *(number(v, scale) for v in values)]
    assert shown(encode_column(column.slice(3))) == [number(v, scale) for v in values[2:]]


@pytest.mark.parametrize(
    "kind", [pa.decimal128(9, -1), pa.decimal256(40, 0), pa.uint8(), pa.duration("us"), pa.binary(15), pa.time64("ns")]
)
def test_types_that_no_variant_has(kind: pa.DataType) -> None:
    with pytest.raises(CorruptTable) as caught:
        encode_column(pa.nulls(2, kind))
    assert caught.value.code == "malformed-variant"


def test_nothing_at_all() -> None:
    assert shown(encode_column(pa.nulls(3))) == [None, None, None]
    assert shown(null_for_missing(encode_column(pa.array([None, 5, None])))) == [b"\0", integer(5), b"\0"]
    full = encode_column(pa.array([5, 6]))
    assert null_for_missing(full) is full


@settings(max_examples=40, derandomize=True)
@given(
    st.lists(st.one_of(st.none(), st.text(max_size=3), st.text("é", min_size=30, max_size=70)), max_size=5),
    st.integers(0, 2),
)
def test_texts(values: list[str | None], begin: int) -> None:
    def text(value: str) -> bytes:
        data = value.encode()
        return bytes([len(data) << 2 | 1]) + data if len(data) <= 63 else bytes([16 << 2]) + little(len(data), 4) + data

    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        found = shown(encode_column(pa.array(values, kind).slice(begin)))
        assert found == [None if v is None else text(v) for v in values[begin:]]
    binary = [None if v is None else v.encode() for v in values]
    wanted = [None if v is None else bytes([15 << 2]) + little(len(v), 4) + v for v in binary]
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert shown(encode_column(pa.array(binary, kind))) == wanted


# --- arrays, objects, dictionaries ------------------------------------------------------------------------------------


def width_of(value: int) -> int:
    return max(1, (value.bit_length() + 7) // 8)


def container(members: list[bytes], ids: list[int] | None) -> bytes:
    """An array; with ids an object."""
    size, is_large = sum(map(len, members)), len(members) > 255
    width = width_of(size)
    ends = np.cumsum([0, *map(len, members)]).tolist()
    offsets = b"".join(end.to_bytes(width, "little") for end in ends)
    count = len(members).to_bytes(4 if is_large else 1, "little")
    if ids is None:
        return bytes([3 | (width - 1) << 2 | is_large << 4]) + count + offsets + b"".join(members)
    id_width = width_of(max(ids, default=0))
    head = 2 | (width - 1) << 2 | (id_width - 1) << 4 | is_large << 6
    return bytes([head]) + count + b"".join(i.to_bytes(id_width, "little") for i in ids) + offsets + b"".join(members)


MEMBERS = st.one_of(st.binary(min_size=1, max_size=3), st.sampled_from([b"x" * 255, b"y" * 256, b"z" * 65_535]))
#: Rows, some of them without a container; of one row there may be hundreds of members.
CONTAINERS = st.lists(
    st.one_of(
        st.none(), st.lists(MEMBERS, max_size=4), st.sampled_from([[b"a"] * 255, [b"a"] * 256, [b"bc"] * 300])
    ),
    min_size=1, max_size=4,
)  # fmt: skip


@settings(max_examples=40, derandomize=True)
@given(CONTAINERS, st.sampled_from([None, 1, 200, 70_000]), st.data())
def test_arrays_and_objects(rows: list[Any], step: int | None, data: st.DataObject) -> None:
    present = np.array([row is not None for row in rows])
    counts = np.array([len(row or []) for row in rows], np.int64)
    members = [member for row in rows for member in row or []]
    ranges = ranges_of(pa.array(members, pa.binary()))
    ids = None if step is None else [n * step % 100_003 for n in range(len(members))]
    made = encode_containers(present, counts, ranges, None if ids is None else np.array(ids, np.int64))
    places = np.cumsum([0, *counts]).tolist()
    own = [None if ids is None else ids[a:b] for a, b in itertools.pairwise(places)]
    wanted = [None if row is None else container(row, some) for row, some in zip(rows, own, strict=True)]
    assert shown(made) == wanted
    if ids is None:
        return
    objects = [one for one in wanted if one is not None]
    if objects:
        found = parse_objects(ranges_of(pa.array(objects, pa.binary())))
        numbers = [n for n, row in enumerate(r for r in rows if r is not None) for _ in row]
        assert (found.rows.tolist(), found.ids.tolist(), shown(found.values)) == (numbers, ids, members)
        cut = data.draw(st.integers(1, min(len(objects[-1]) - 1, 5)))
        with pytest.raises(CorruptTable):
            parse_objects(ranges_of(pa.array([*objects[:-1], objects[-1][:-cut]], pa.binary())))
    with pytest.raises(CorruptTable):
        parse_objects(ranges_of(pa.array([container([b"a"], None)], pa.binary())))


def test_fields_of_objects_in_any_order() -> None:
    """ "the actual `value` entries do not need to be in any particular order" """
    raw = bytes([2, 3, 7, 8, 9, 3, 0, 1, 6]) + b"a" + b"bb" + b"ccc"
    found = parse_objects(ranges_of(pa.array([raw, raw], pa.binary())))
    assert found.ids.tolist() == [7, 8, 9] * 2 and found.rows.tolist() == [0, 0, 0, 1, 1, 1]
    assert shown(found.values) == [b"ccc", b"a", b"bb"] * 2
    for place, value in ((5, 6), (5, 7), (8, 7), (1, 9), (0, 3)):
        broken = bytearray(raw)
        broken[place] = value
        with pytest.raises(CorruptTable) as caught:
            parse_objects(ranges_of(pa.array([raw, bytes(broken)], pa.binary())))
        assert caught.value.code == "malformed-variant"


def dictionary(names: list[bytes], width: int, flags: int = 0) -> bytes:
    ends = np.cumsum([0, *map(len, names)]).tolist()
    numbers = [len(names), *ends]
    return (
        bytes([1 | flags | (width - 1) << 6]) + b"".join(n.to_bytes(width, "little") for n in numbers) + b"".join(names)
    )


@settings(max_examples=40, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from([b"", b"a", b"ab", b"b", "é".encode()]), unique=True),
            st.integers(1, 4),
            st.sampled_from([0, 16]),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_dictionaries(given_names: list[Any]) -> None:
    metadata = pa.array([dictionary(*one) for one in given_names], pa.binary())
    ensure_metadata(metadata)
    found = parse_dictionaries(metadata)
    every = sorted({name for names, _, _ in given_names for name in names})
    assert found.sorted_names.to_pylist() == every
    assert found.sizes.tolist() == [len(names) for names, _, _ in given_names]
    ranks = [every.index(name) for names, _, _ in given_names for name in names]
    assert found.ranks.tolist() == ranks
    for name in every:
        rank = found.rank(name.decode())
        assert rank == every.index(name)
        assert found.ids(rank).tolist() == [names.index(name) if name in names else -1 for names, _, _ in given_names]
    assert found.rank("zz") is None


@pytest.mark.parametrize("width", [1, 2, 4])
def test_metadata_that_is_damaged(width: int) -> None:
    good = dictionary([b"a", b"bc"], width)
    for n in range(len(good)):
        with pytest.raises(CorruptTable):
            parse_dictionaries(pa.array([good, good[:n]], pa.binary()))
    # A version of later; a first name that does not begin at 0; offsets that go back; one that ends behind the last byte.
    changes = [(0, good[0] + 1), (1 + width, 1), (1 + 2 * width, 9), (1 + 3 * width, 4)]
    for place, value in changes:
        broken = bytearray(good)
        broken[place] = value
        with pytest.raises(CorruptTable) as caught:
            parse_dictionaries(pa.array([good, bytes(broken)], pa.binary()))
        assert caught.value.code == "malformed-variant"
    with pytest.raises(CorruptTable):
        ensure_metadata(pa.array([good, None, good[:2]], pa.binary()))
    ensure_metadata(pa.array([good, None], pa.binary()))
