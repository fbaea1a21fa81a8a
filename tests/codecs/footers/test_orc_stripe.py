"""Stripes that say of their columns what is not so."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa
import pytest
from fuzz_footers import Field, with_orc_footer, with_orc_stream
from pyarrow import orc

from alluvium.codecs.footers.orc_footer import read_sound_tail
from alluvium.codecs.footers.orc_stripe import StripeGuard
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.portable.files.orc_file import open_orc

DATA, LENGTHS, SECONDARY = 1, 2, 5
TEXTS = pa.table({"s": ["x", "y", "z"]})
LISTS = pa.table({"s": [[1], [2], [3]]})
MAPS = pa.table({"s": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64()))})
NESTED = pa.table({"s": [[{"t": ["a"]}]] * 3})
LARGE = pa.table({"s": pa.array([1, 2, 3], pa.decimal128(38, 2))})
SMALL = pa.table({"s": pa.array([1, 2, 3], pa.decimal128(10, 2))})


def orc_file(rows: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    orc.write_table(rows, sink, **{"compression": "uncompressed", **options})
    return sink.getvalue()


def rows_of(data: bytes) -> pa.Table:
    """As a table is read: by the guarded reader."""
    file = open_orc("f.orc", pa.BufferReader(data))
    return pa.table({"s": pa.chunked_array([found["s"] for _, found in file.batches({"s": "s"}, 1 << 20)])})


def repeated(value: int) -> bytes:
    """Three times, as an integer of eight bytes."""
    return b"\x38" + (value & (1 << 64) - 1).to_bytes(8, "big")


def packed(*values: int) -> bytes:
    return bytes([0x7E, len(values) - 1]) + b"".join(value.to_bytes(8, "big") for value in values)


LIES = [
    *(
        (rows, column, LENGTHS, stream)
        for rows, column in ((TEXTS, 1), (LISTS, 1), (MAPS, 1), (MAPS, 2), (NESTED, 1), (NESTED, 3), (NESTED, 4))
        for stream in (
            *(repeated(value) for value in (2**31, 2**33, 2**40, 2**62, 2**64 - 1)),
            packed(2**63, 2**63, 3),
            packed(2**64 - 1, 1, 3),
            # 5, 4, and then ever less.
            b"\xc4\x02\x05\x01\xe0",
        )
    ),
    *((LISTS, 1, LENGTHS, repeated(value)) for value in (2**20, 2**30)),
    (TEXTS, 1, LENGTHS, repeated(2**29)),
    *((rows, 1, SECONDARY, repeated(value)) for rows in (LARGE, SMALL) for value in (1, 2**32 - 1, 2**32, 2 * 39)),
]


@pytest.mark.parametrize("rows", [TEXTS, LISTS, MAPS, NESTED, LARGE, SMALL])
def test_what_is_sound(rows: pa.Table) -> None:
    assert rows_of(orc_file(rows)).to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("case", range(len(LIES)))
def test_lengths_and_scales_that_are_none(case: int) -> None:
    """Arrow ends the process, takes all memory, or hangs."""
    rows, column, kind, stream = LIES[case]
    with pytest.raises(CorruptTable) as caught:
        rows_of(with_orc_stream(orc_file(rows), column, kind, stream))
    assert caught.value.code == "damaged-file" and caught.value.path == "f.orc"


def test_scales_of_many_rows() -> None:
    """Together they are more than any length may be: of 60 million rows in one stripe."""
    runs_of_512 = b"\xc1\xff\x4c\x00" * 112_000
    data = pa.BufferReader(with_orc_stream(orc_file(LARGE), 1, SECONDARY, runs_of_512))
    StripeGuard(data, read_sound_tail(data)).ensure_sound(0)


@pytest.mark.parametrize("stream", [packed(2**62, 2**62), packed(2**62, 2**63 - 2**62 - 1), b"\x38" + bytes(8)[:7]])
def test_dictionaries(stream: bytes) -> None:
    data = orc_file(pa.table({"s": ["x", "y", "x"] * 3}), dictionary_key_size_threshold=1)
    assert rows_of(data).num_rows == 9
    with pytest.raises(CorruptTable):
        rows_of(with_orc_stream(data, 1, LENGTHS, stream))


def test_a_dictionary_of_fewer_texts_than_it_is_said_to_have() -> None:
    data = orc_file(pa.table({"s": ["x", "y", "x"] * 3}), dictionary_key_size_threshold=1)
    told = b"\x12\x04\x08\x03\x10\x02"
    assert data.count(told) == 1
    with pytest.raises(CorruptTable, match="a dictionary has 2 texts"):
        rows_of(data.replace(told, b"\x12\x04\x08\x03\x10\x7f"))


@pytest.mark.parametrize("codec", ["uncompressed", "zstd", "zlib", "snappy", "lz4"])
def test_what_takes_little_room(codec: str) -> None:
    """Of values that are all the same next to nothing is stored: no reason to think that they are not there."""
    count = 300_000
    texts = ["a" * 500] * count
    made: list[pa.Array] = [
        pa.array([None] * count, pa.int64()),
        pa.array([True] * count),
        pa.array([7] * count, pa.int64()),
        pa.array([7] * count, pa.int8()),
        pa.array(texts),
        pa.array([[]] * count, pa.list_(pa.int64())),
        pa.array([None] * count, pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
        pa.array([{"a": 1}] * count),
        pa.array([[True] * 3] * count),
        pa.array([[None] * 3] * count, pa.list_(pa.int64())),
    ]
    for values in made:
        found = rows_of(orc_file(pa.table({"s": values}), compression=codec, dictionary_key_size_threshold=0.0))
        assert found["s"].combine_chunks().equals(values)


def test_rows_that_no_column_has() -> None:
    """A file of four hundred bytes would take two gigabytes."""

    def of_rows(count: int) -> Callable[[list[list[object]]], object]:
        def change(tree: list[list[object]]) -> None:
            for field in tree:
                if field[0] == 6:
                    field[2] = count
            stripe = next(field[2] for field in tree if field[0] == 3)
            assert isinstance(stripe, list)
            stripe[-1][2] = count

        return change

    data = orc_file(pa.table({"s": [1, 2, 3]}))
    assert rows_of(with_orc_footer(data, of_rows(3))).num_rows == 3
    for count in (100_000, 2**28):
        with pytest.raises(CorruptTable, match=f"a stripe of {count} rows has a column of fewer"):
            rows_of(with_orc_footer(data, of_rows(count)))


def test_stripes_in_the_same_place() -> None:
    """Four thousand of them, of one row each, take Arrow a minute."""

    def change(tree: list[list[object]]) -> None:
        place = next(number for number, field in enumerate(tree) if field[0] == 3)
        tree[place:place] = [tree[place]]
        for field in tree:
            if field[0] == 6:
                field[2] = 6

    with pytest.raises(CorruptTable, match="in the same place"):
        rows_of(with_orc_footer(orc_file(TEXTS), change))


def test_a_type_of_two_kinds() -> None:
    def change(tree: list[list[object]]) -> None:
        members = [field for field in tree if field[0] == 4][-1][2]
        assert isinstance(members, list)
        members.append(Field([1, 0, 14]))

    with pytest.raises(CorruptTable, match="two kinds"):
        rows_of(with_orc_footer(orc_file(TEXTS), change))


def test_unions() -> None:
    as_list, as_union = b'"\x0b\x08\x0a\x12\x01\x02', b'"\x0b\x08\x0d\x12\x01\x02'
    data = orc_file(LISTS)
    assert data.count(as_list) == 1
    source = pa.BufferReader(data.replace(as_list, as_union))
    guard = StripeGuard(source, read_sound_tail(source, "x"), "x")
    with pytest.raises(UnsupportedFeature, match="union"):
        guard.ensure_all_sound()
    guard.ensure_sound(0, ["other"])


def test_streams_that_are_longer_than_their_stripe() -> None:
    data = orc_file(TEXTS)
    told = b"\x08\x01\x10\x01\x18\x03"
    assert data.count(told) == 1
    with pytest.raises(CorruptTable, match="longer than it is"):
        rows_of(data.replace(told, told[:-1] + b"\x7f"))
