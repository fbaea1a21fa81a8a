"""Thrift's compact protocol: values as they were written, and bytes that end too early."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thrift_writer import written_struct

from alluvium.codecs.footers.thrift_compact import (
    DAMAGE,
    CompactReader,
    binary_list_field,
    fields_of,
    i32_field,
    i32_list_field,
    i64_field,
    integer_at,
    items_of,
    struct_field,
    struct_list_field,
    struct_of,
    written_field,
)

#: A struct of a text (field 1), a list of two integers (2), a double (3), a flag (4), a number (21), each as Thrift's
#: own page has it.
WHOLE = b"\x18\x03abc" + b"\x19\x25\x02\x04" + b"\x17" + bytes(range(8)) + b"\x11" + b"\x05\x2a\x0e" + b"\x00"


def test_a_struct() -> None:
    reader = CompactReader(WHOLE)
    assert reader.struct() == {1: b"abc", 2: [1, 2], 3: bytes(range(8)), 4: True, 21: 7}
    assert reader.at == len(WHOLE)


def test_a_text_that_fills_the_bytes_to_their_end() -> None:
    assert CompactReader(b"\x18\x03abc\x00").struct() == {1: b"abc"}
    reader = CompactReader(b"xabc", 1)
    assert (reader._take(3), reader.at) == (b"abc", 4)


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_bytes_that_end_too_early(length: int) -> None:
    with pytest.raises(DAMAGE):
        CompactReader(WHOLE[:length]).struct()


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_fields_as_they_are_written(length: int) -> None:
    found = CompactReader(WHOLE).written_fields()
    assert next(written for _, _, written in found.values()) == b"\x03abc"
    with pytest.raises(DAMAGE):
        CompactReader(WHOLE[:length]).written_fields()


# --- random structs, by a plain writer --------------------------------------------------------------------------------

#: A value with its type, as `thrift_writer` takes it.
VALUES: st.SearchStrategy[Any] = st.deferred(
    lambda: st.one_of(
        st.tuples(st.sampled_from(["i16", "i32", "i64"]), st.integers(-(1 << 63), (1 << 63) - 1)),
        st.tuples(st.sampled_from(["i32", "i64"]), st.integers(-70, 70)),
        st.tuples(st.just("binary"), st.binary(max_size=200)),
        st.tuples(st.just("bool"), st.booleans()),
        st.tuples(st.just("byte"), st.integers(0, 255)),
        st.tuples(st.just("double"), st.binary(min_size=8, max_size=8)),
        st.tuples(st.just("struct"), STRUCTS),
        st.tuples(st.sampled_from(["list", "set"]), LISTS),
    )
)
LISTS: st.SearchStrategy[Any] = st.one_of(
    st.lists(st.tuples(st.just("i32"), st.integers(-1000, 1000)), max_size=40),
    st.lists(st.tuples(st.just("bool"), st.booleans()), max_size=3),
    st.lists(st.tuples(st.just("binary"), st.binary(max_size=3)), max_size=3),
    st.lists(st.deferred(lambda: st.tuples(st.just("struct"), STRUCTS)), max_size=2),
)
STRUCTS: st.SearchStrategy[Any] = st.dictionaries(st.integers(1, 40), VALUES, max_size=4)


def plain(value: tuple[str, Any]) -> Any:
    kind, held = value
    if kind == "struct":
        return {number: plain(member) for number, member in held.items()}
    return [plain(member) for member in held] if kind in ("list", "set") else held


@settings(max_examples=150, derandomize=True)
@given(STRUCTS, st.booleans(), st.binary(max_size=2))
def test_what_any_writer_writes(struct: dict[int, Any], long_heads: bool, behind: bytes) -> None:
    data = written_struct(struct, long_heads)
    wanted = plain(("struct", struct))
    reader = CompactReader(b"xx" + data + behind, 2)
    assert reader.struct() == wanted
    assert reader.at == 2 + len(data)
    again = CompactReader(data + behind)
    fields = again.written_fields()
    assert {number: value for number, (_, value, _) in fields.items()} == wanted
    assert again.at == len(data)
    ours = struct_of(written_field(number, kind, text) for number, (kind, _, text) in fields.items())
    assert CompactReader(ours).struct() == wanted


@settings(max_examples=60, derandomize=True)
@given(
    st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1),
    st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=20), st.lists(st.binary(max_size=200), max_size=20),
)  # fmt: skip
def test_what_is_written_here(short: int, long: int, numbers: list[int], texts: list[bytes]) -> None:
    inner = struct_of([i64_field(3, long)])
    made = struct_of(
        [i32_field(1, short), i64_field(200, long), i32_list_field(3, numbers), binary_list_field(4, texts),
         struct_field(5, inner), struct_list_field(6, [inner] * len(numbers))]
    )  # fmt: skip
    same = written_struct(
        {1: ("i32", short), 200: ("i64", long), 3: ("list", [("i32", n) for n in numbers]),
         4: ("list", [("binary", x) for x in texts]), 5: ("struct", {3: ("i64", long)}),
         6: ("list", [("struct", {3: ("i64", long)})] * len(numbers))}, long_heads=True, empty=(5, 8, 12)
    )  # fmt: skip
    assert made == same
    assert CompactReader(made).struct()[6] == [{3: long}] * len(numbers)


def test_maps_are_passed_over() -> None:
    # i32 -> text of two pairs, an empty map, a number behind them.
    data = b"\x1b\x02\x58" + b"\x02\x01a" + b"\x04\x02bc" + b"\x1b\x00" + b"\x15\x0e" + b"\x00"
    for kinds, pair in (
        (0x83, b"\x01a\x07"),
        (0x38, b"\x07\x01a"),
        (0x11, b"\x01\x02"),
        (0xC8, b"\x00\x01a"),
        (0x87, b"\x01a" + bytes(8)),
    ):
        whole = b"\x1b\x02" + bytes([kinds]) + 2 * pair + b"\x15\x0e" + b"\x00"
        assert CompactReader(whole).struct() == {1: None, 2: 7}
    reader = CompactReader(data)
    assert reader.struct() == {1: None, 2: None, 3: 7}
    assert reader.at == len(data)
    with pytest.raises(KeyError):
        CompactReader(b"\x1d\x00").struct()


def test_values_that_must_be_of_a_kind() -> None:
    assert (items_of([1]), fields_of({1: 2}), integer_at({1: 2}, 1)) == ([1], {1: 2}, 2)
    for wrong in (
        lambda: items_of({}),
        lambda: fields_of([]),
        lambda: integer_at({1: b""}, 1),
        lambda: integer_at({}, 1),
    ):
        with pytest.raises(DAMAGE):
            wrong()


@pytest.mark.parametrize("count", [0, 1, 13, 14, 15, 16, 127, 128, 300])
def test_lists_of_every_length(count: int) -> None:
    """Up to fourteen stand in the head of a list, others behind it."""
    numbers, texts = list(range(count)), [b"x"] * count
    for long_heads in (False, True):
        fields = {1: ("list", [("i64", n) for n in numbers]), 2: ("set", [("binary", x) for x in texts]), 3: ("i32", 7)}
        assert CompactReader(written_struct(fields, long_heads)).struct() == {1: numbers, 2: texts, 3: 7}
    ours = struct_of([i32_list_field(1, numbers), binary_list_field(2, texts), struct_list_field(3, [b"\0"] * count)])
    assert CompactReader(ours).struct() == {1: numbers, 2: texts, 3: [{}] * count}


@pytest.mark.parametrize("number", [1, 15, 16, 17, 63, 64, 127, 128, 8191, 8192, 32767])
def test_numbers_of_fields(number: int) -> None:
    for kind, value in (
        ("i32", -5),
        ("i64", 1 << 40),
        ("binary", b"x" * 200),
        ("bool", True),
        ("bool", False),
        ("byte", 200),
    ):
        for long_heads in (False, True):
            data = written_struct(
                {number: (kind, value), number + 15: (kind, value), number + 31: (kind, value)}, long_heads
            )
            wanted = dict.fromkeys((number, number + 15, number + 31), value)
            assert CompactReader(data).struct() == wanted
            assert {n: v for n, (_, v, _) in CompactReader(data).written_fields().items()} == wanted
