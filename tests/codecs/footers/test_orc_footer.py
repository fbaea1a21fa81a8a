"""Statistics out of the footers of ORC files. These are of Arrow's writer; Spark's are asked in tests/api and interop."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import random
import struct
import zlib
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from fuzz_footers import Field, format_message, varint
from orc_of_java import java_file
from pyarrow import orc

from alluvium.codecs.footers import orc_footer, orc_tail
from alluvium.codecs.footers.orc_footer import read_orc_footer, read_sound_tail
from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter, FooterColumn
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.storage.varint import read_unsigned


def file_of(table: pa.Table, compression: str = "zstd") -> bytes:
    sink = pa.BufferOutputStream()
    orc.write_table(table, sink, compression=compression)
    return bytes(sink.getvalue())


def footer_of(data: bytes, **columns: t.DataType) -> FileFooter:
    wanted = [FooterColumn((name,), kind) for name, kind in columns.items()]
    return read_orc_footer(pa.BufferReader(data), wanted, "f.orc")


def stats_of(values: list[Any], kind: pa.DataType, logical: t.DataType) -> tuple[Any, Any, int | None]:
    rows = pa.table({"c": pa.array(values, kind)})
    # Arrow's writer is that of C++, whose bounds of texts are not believed.
    data = java_file(rows, None) if kind == pa.string() else file_of(rows)
    found: ColumnStats = footer_of(data, c=logical).columns["c",]
    return found.min, found.max, found.null_count


@pytest.mark.parametrize(
    ("kind", "logical", "values", "expected"),
    [
        (pa.int8(), t.BYTE, [-128, None, 127], (-128, 127, 1)),
        (pa.int16(), t.SHORT, [5, 3], (3, 5, 0)),
        (pa.int32(), t.INTEGER, [-1], (-1, -1, 0)),
        (pa.int32(), t.TIME, [1, 2], (1, 2, 0)),
        (pa.int64(), t.LONG, [-(2**63), 2**63 - 1, 0], (-(2**63), 2**63 - 1, 0)),
        (pa.float32(), t.FLOAT, [1.5, -2.25, None], (-2.25, 1.5, 1)),
        (pa.float64(), t.DOUBLE, [-5e-324, math.inf], (-5e-324, math.inf, 0)),
        (pa.bool_(), t.BOOLEAN, [True, None], (True, True, 1)),
        (pa.bool_(), t.BOOLEAN, [False, True], (False, True, 0)),
        (pa.bool_(), t.BOOLEAN, [False, False], (False, False, 0)),
        (pa.string(), t.STRING, ["b", "", "ä"], ("", "ä", 0)),
        (pa.string(), t.STRING, ["\U0001f600", "\uffff"], ("\uffff", "\U0001f600", 0)),
        (pa.decimal128(9, 2), t.Decimal(9, 2), [Decimal("-1.50"), Decimal("0.07")], (Decimal("-1.5"), Decimal("0.07"), 0)),
        (pa.decimal128(38, 38), t.Decimal(38, 38), [Decimal("0." + "9" * 38)], (Decimal("0." + "9" * 38),) * 2 + (0,)),
        (pa.date32(), t.DATE, [dt.date(1582, 10, 15), dt.date(9999, 12, 31)], (-141427, 2932896, 0)),
        (pa.int32(), t.INTEGER, [None, None], (None, None, 2)),
        (pa.binary(), t.BINARY, [b"a", None], (None, None, 1)),
        (pa.timestamp("us"), t.TIMESTAMP_NTZ, [0, None], (None, None, 1)),
        (pa.list_(pa.int32()), t.Array(t.INTEGER), [[1], None, []], (None, None, 1)),
        (pa.struct([("x", pa.int32())]), t.Struct((t.Field("x", t.INTEGER),)), [{"x": None}, None], (None, None, 1)),
        # Of another type than the table's: the bounds say nothing, the nulls do.
        (pa.string(), t.INTEGER, ["a", None], (None, None, 1)),
    ],
)  # fmt: skip
def test_bounds(kind: pa.DataType, logical: t.DataType, values: list[Any], expected: tuple[Any, ...]) -> None:
    assert stats_of(values, kind, logical) == expected


@pytest.mark.parametrize("values", [[math.nan], [math.nan, 1.0], [1.0, math.nan, 5.0], [math.inf, -math.inf, math.nan]])
def test_nan_leaves_no_bounds(values: list[float]) -> None:
    """NaN is greater than any number; neither bound of the file knows of it."""
    assert stats_of(values, pa.float64(), t.DOUBLE) == (None, None, 0)


def test_bounds_without_a_sum_may_hide_nan() -> None:
    data = file_of(pa.table({"c": [1.5, 4.0]}), "uncompressed")
    total = struct.pack("<d", 5.5)
    assert b"\x19" + total in data
    # As another field, which nobody knows, there is none.
    found = footer_of(data.replace(b"\x19" + total, b"\x21" + total), c=t.DOUBLE).columns["c",]
    assert (found.min, found.max, found.null_count) == (None, None, 0)


@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0]])
def test_zero_has_two_signs(values: list[float]) -> None:
    low, high, _ = stats_of(values, pa.float64(), t.DOUBLE)
    assert (math.copysign(1, low), math.copysign(1, high)) == (-1, 1)


def test_bounds_of_texts_that_end_for_their_writer_at_a_null() -> None:
    """In C++ the greater of these is the first, so that of its files no bounds of texts are believed."""
    found = footer_of(file_of(pa.table({"c": ["a\0a", "a\0z"], "n": [1, 2]})), c=t.STRING, n=t.LONG).columns
    assert (found["c",].min, found["c",].max, found["c",].null_count) == (None, None, 0)
    assert (found["n",].min, found["n",].max) == (1, 2)


@pytest.fixture(scope="module")
def wide() -> dict[str, list[str]]:
    """Two long texts each of many columns. (Of each column the writer allocates, and clears, half a megabyte.)"""
    texts = random.Random(1)
    return {f"column {n} ä": [texts.randbytes(300).hex() for _ in range(2)] for n in range(300)}


@pytest.mark.long
@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_codecs_and_long_footers(wide: dict[str, list[str]], compression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many columns: the footer is of several chunks, and longer than what is read at first."""
    # So that the texts of this writer are believed.
    monkeypatch.setattr(orc_footer, "_JAVA", 1)
    data = file_of(pa.table(wide), compression)
    # The postscript begins with the footer's length; a chunk is of 64 KiB before it is compressed.
    length, _ = read_unsigned(data[-1 - data[-1] :], 1)
    assert length > 65_536
    found = footer_of(data, **dict.fromkeys(wide, t.STRING))
    assert found.num_rows == 2
    expected = {(name,): ColumnStats(t.STRING, min(texts), max(texts), 0) for name, texts in wide.items()}
    assert {name: found.columns[name] for name in expected} == expected


@pytest.mark.parametrize("size", [19, 20, 300, 5000])
def test_a_block_of_lz4_says_by_its_sequences_how_long_it_was(size: int) -> None:
    """Writers at hand leave footers as they are under LZ4."""
    text = b"0123456789abcdef" * 2 + random.Random(size).randbytes(size) + b"ab" * size
    block = bytes(pa.compress(text, "lz4_raw", asbytes=True))
    assert orc_tail.plain_bytes((len(block) << 1).to_bytes(3, "little") + block, 4) == text


def test_chunks_that_grow_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them may be within the limit, and there may be many."""
    monkeypatch.setattr(orc_tail, "_MAX_PLAIN_BYTES", 1000)
    for compression in ("zlib", "snappy", "lz4", "zstd"):
        data = file_of(pa.table({f"c{n}": [n] for n in range(3)}), compression)
        assert footer_of(data, c0=t.LONG).num_rows == 1
    compressor = zlib.compressobj(wbits=-15)
    chunk = compressor.compress(bytes(900)) + compressor.flush()
    chunks = ((len(chunk) << 1).to_bytes(3, "little") + chunk) * 2
    postscript = bytes([0x08, len(chunks), 0x10, 1, 0x82, 0xF4, 0x03, 3]) + b"ORC"
    with pytest.raises(CorruptTable, match="more than 1000"):
        footer_of(chunks + postscript + bytes([len(postscript)]), c0=t.LONG)


def test_a_codec_that_is_not_known() -> None:
    # No writer at hand knows Brotli.
    before, codec, after = file_of(pa.table({"c": [1]}), "uncompressed").rpartition(b"\x10\x00\x18")
    assert codec
    data = before + b"\x10\x06\x18" + after
    with pytest.raises(UnsupportedFeature) as caught:
        footer_of(data, c=t.LONG)
    assert caught.value.code == "unsupported-codec"


def test_columns_that_are_not_there() -> None:
    found = footer_of(file_of(pa.table({"c": [1]})), d=t.LONG)
    assert (found.num_rows, found.columns) == (1, {})
    assert footer_of(file_of(pa.table({"c": pa.array([], pa.int64())})), c=t.LONG) == FileFooter(0)


def test_what_is_damaged() -> None:
    data = file_of(pa.table({"c": list(range(100)), "s": [str(n) * 9 for n in range(100)]}))
    for cut in (b"", b"ORC", data[:-1], data[:20], data[-20:], data[-60:], bytes(1000)):
        with pytest.raises(CorruptTable) as caught:
            footer_of(cut, c=t.LONG)
        assert (caught.value.code, caught.value.path) == ("damaged-file", "f.orc")


def test_no_damage_is_another_error() -> None:
    data = file_of(pa.table({"c": list(range(100)), "s": [str(n) * 9 for n in range(100)]}), "uncompressed")
    tail = min(len(data), 600)
    for place in range(len(data) - tail, len(data)):
        for flipped in (0x01, 0x80, 0xFF):
            wrong = bytearray(data)
            wrong[place] ^= flipped
            with contextlib.suppress(CorruptTable, UnsupportedFeature):
                footer_of(bytes(wrong), c=t.LONG, s=t.STRING)


def nested_file(depth: int) -> bytes:
    """A file without rows, of a list of lists of ... numbers."""

    def message(**fields: object) -> bytes:
        pairs = ((int(name[1:]), value) for name, value in fields.items())
        return format_message([Field([number, 0 if isinstance(value, int) else 2, value]) for number, value in pairs])

    types = [
        message(_1=12, _2=varint(1), _3=b"x"),
        *(message(_1=10, _2=varint(n + 1)) for n in range(1, depth)),
        message(_1=4),
    ]
    footer = message(_1=3, _2=3) + b"".join(message(_4=one) for one in types) + message(_6=0, _8=0)
    postscript = message(_1=len(footer), _2=0, _3=65536, _4=bytes([0, 12]), _8000=b"ORC")
    return b"ORC" + footer + postscript + bytes([len(postscript)])


def test_types_that_are_too_deep() -> None:
    """Of fifty thousand levels Arrow's stack has not room, and the process ends."""
    read_sound_tail(pa.BufferReader(nested_file(200)))
    assert len(orc.ORCFile(pa.BufferReader(nested_file(200))).schema) == 1
    for depth in (201, 50_000):
        with pytest.raises(CorruptTable, match="200 deep"):
            read_sound_tail(pa.BufferReader(nested_file(depth)), "x")
