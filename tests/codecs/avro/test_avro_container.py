"""Avro containers: what is written is read again, by us and by fastavro."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from alluvium.codecs.avro import avro_container
from alluvium.codecs.avro.avro_container import (
    AvroContainer,
    decode_record,
    encode_record,
    format_avro,
    parse_schema,
    read_avro,
    read_blocks,
)
from alluvium.errors import CorruptTable, UnsupportedFeature

SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "t", "type": ["null", "string"], "default": None},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
    ],
}
RECORDS = [{"n": n - 5000, "t": None if n % 3 else f"text {n}", "at": n} for n in range(10_000)]


@pytest.mark.long
@pytest.mark.parametrize("codec", ["zstandard", "deflate", "snappy", "null"])
def test_what_is_written_is_read(codec: str) -> None:
    data = format_avro(SCHEMA, RECORDS, codec)
    schema, records = read_avro(data, "x")
    assert (schema, records) == (SCHEMA, RECORDS)
    if codec in ("deflate", "null"):
        theirs = list(fastavro.reader(io.BytesIO(data)))
        assert [r["n"] for r in theirs] == [r["n"] for r in RECORDS]
    with pytest.raises(CorruptTable):
        read_avro(data[:-5], "x")


def test_no_records() -> None:
    assert read_avro(format_avro(SCHEMA, []), "x") == (SCHEMA, [])


def test_unknown_codec() -> None:
    with pytest.raises(UnsupportedFeature):
        format_avro(SCHEMA, RECORDS, "lzo")


FEW = RECORDS[4990:5010]


def foreign(codec: str, **more: Any) -> bytes:
    """As another library writes it."""
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(dict(SCHEMA)), FEW * 50, codec=codec, sync_interval=300, **more)
    return sink.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2"])
def test_what_others_write_is_read(codec: str) -> None:
    schema, records = read_avro(foreign(codec), "f")
    assert records == FEW * 50 and schema["name"] == SCHEMA["name"]
    text, blocks = read_blocks(foreign(codec), "f")
    assert json.loads(text)["fields"] and sum(count for count, _ in blocks) == len(FEW) * 50 and len(blocks) > 1
    plain = b"".join(block for _, block in blocks)
    assert plain == b"".join(encode_record(json.dumps(SCHEMA), record) for record in FEW * 50)


@pytest.mark.parametrize("codec", ["xz", "lz4", ""])
def test_codecs_that_nobody_here_knows(codec: str) -> None:
    data = foreign("null").replace(b"\x08null", bytes([2 * len(codec)]) + codec.encode())
    for read in (read_avro, read_blocks):
        with pytest.raises(UnsupportedFeature) as caught:
            read(data, "some/file")
        assert (caught.value.code, caught.value.path, tuple(caught.value.features)) == (
            "unsupported-codec",
            "some/file",
            (codec,),
        )


@pytest.mark.parametrize("codec", ["zstandard", "deflate", "snappy", "null", "bzip2"])
def test_a_container_cut_anywhere_is_damaged_or_ends_between_blocks(codec: str) -> None:
    data = foreign(codec) if codec == "bzip2" else format_avro(SCHEMA, FEW, codec)
    lengths = set()
    for end in range(0, len(data), 29 if codec == "bzip2" else 1):
        try:
            _, records = read_avro(data[:end], "f")
        except CorruptTable as error:
            assert (error.code, error.path) == ("damaged-file", "f")
            continue
        assert records == (FEW * 50)[: len(records)]
        lengths.add(len(records))
    assert 0 in lengths or codec == "bzip2"


@pytest.mark.parametrize("data", [b"", b"Obj", b"Obj\x02" + bytes(50), b"PAR1" + bytes(50)])
def test_what_is_no_container(data: bytes) -> None:
    with pytest.raises(CorruptTable) as caught:
        read_avro(data, "f")
    assert (caught.value.code, caught.value.path) == ("damaged-file", "f")


def test_the_marker_between_blocks_must_be_the_header_s() -> None:
    data = bytearray(format_avro(SCHEMA, FEW, "null"))
    assert data.count(data[-16:]) == 2
    data[-1] ^= 1
    with pytest.raises(CorruptTable, match="cut off"):
        read_avro(bytes(data), "f")


def test_headers_may_tell_the_size_of_their_blocks() -> None:
    """ "If a block's count is negative, its absolute value is used, and the count is followed immediately by a long block
    size"; and there may be several blocks.
    """
    data = format_avro(SCHEMA, FEW, "null")
    entries = [(b"avro.schema", json.dumps(SCHEMA).encode()), (b"avro.codec", b"null"), (b"other", b"x")]

    def number(value: int) -> bytes:
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, "long", value)
        return sink.getvalue()

    header = b"Obj\x01"
    for key, value in entries:
        pair = number(len(key)) + key + number(len(value)) + value
        header += number(-1) + number(len(pair)) + pair
    start = data.index(data[-16:])
    assert read_avro(header + number(0) + data[start:], "f")[1] == FEW


def test_bounds_on_what_a_block_becomes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {codec: format_avro(SCHEMA, FEW * 100, codec) for codec in ("zstandard", "deflate", "snappy")}
    data["bzip2"] = foreign("bzip2")
    sizes = {codec: max(len(plain) for _, plain in read_blocks(found, "f")[1]) for codec, found in data.items()}
    for codec, found in data.items():
        # Of a stream that goes on just where the bound is nobody can tell that it ends there.
        monkeypatch.setattr(avro_container, "_MAX_BLOCK_BYTES", sizes[codec] + 1)
        assert read_avro(found, "f")[1]
        monkeypatch.setattr(avro_container, "_MAX_BLOCK_BYTES", sizes[codec] - 1)
        with pytest.raises(CorruptTable, match="no writer makes"):
            read_avro(found, "f")


def test_bounds_on_what_a_file_becomes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = foreign("deflate")
    whole = sum(len(plain) for _, plain in read_blocks(data, "f")[1])
    monkeypatch.setattr(avro_container, "_MAX_EXPANSION", 0)
    monkeypatch.setattr(avro_container, "_MAX_FILE_BYTES", whole)
    assert len(read_avro(data, "f")[1]) == 50 * len(FEW)
    monkeypatch.setattr(avro_container, "_MAX_FILE_BYTES", whole - 1)
    with pytest.raises(CorruptTable, match="grow to more"):
        read_avro(data, "f")
    # A large file may become more than a small one.
    monkeypatch.setattr(avro_container, "_MAX_EXPANSION", 1)
    assert len(read_avro(data, "f")[1]) == 50 * len(FEW)


def test_bounds_on_records_without_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "null"}]}
    data = format_avro(nothing, [{"n": None}] * 20, "null")
    monkeypatch.setattr(avro_container, "_MAX_EMPTY_RECORDS", 20)
    assert read_avro(data, "f")[1] == [{"n": None}] * 20
    monkeypatch.setattr(avro_container, "_MAX_EMPTY_RECORDS", 19)
    with pytest.raises(CorruptTable, match="is said to hold"):
        read_avro(data, "f")


@pytest.mark.parametrize("size", [10, 5000])
def test_long_schemas_are_read_as_short_ones(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are kept, those that are not, and those that nobody writes."""
    wide = {"type": "record", "name": "r", "fields": [{"name": f"n{n}", "type": "long"} for n in range(size)]}
    record = {f"n{n}": n for n in range(size)}
    data = format_avro(wide, [record], "null")
    length = len(json.dumps(wide))
    assert (length > avro_container._SHORT_SCHEMA_BYTES) == (size == 5000)
    assert read_avro(data, "f")[1] == [record]
    monkeypatch.setattr(avro_container, "_MAX_SCHEMA_BYTES", length)
    assert read_avro(data, "f")[1] == [record]
    monkeypatch.setattr(avro_container, "_MAX_SCHEMA_BYTES", length - 1)
    with pytest.raises(CorruptTable, match="its schema has"):
        read_avro(data, "f")


@pytest.mark.parametrize("count", [0, 1, 4095, 4096, 4097, 9000])
def test_blocks_end_after_so_many_records(count: int) -> None:
    one = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}
    container = AvroContainer(one, "null")
    container.add([{"n": n} for n in range(count)])
    container.add([{"n": -1}])
    data = b"".join(container.parts)
    assert container.size == len(data)
    _, blocks = read_blocks(data, "f")
    full, rest = divmod(count, 4096)
    assert [n for n, _ in blocks] == [4096] * full + [rest] * bool(rest) + [1]
    assert read_avro(data, "f")[1] == [{"n": n} for n in range(count)] + [{"n": -1}]


def test_blocks_end_after_so_many_bytes() -> None:
    one = {"type": "record", "name": "r", "fields": [{"name": "b", "type": "bytes"}]}
    container = AvroContainer(one, "null")
    container.add([{"b": bytes(1 << 19)}] * 5)
    assert [n for n, _ in read_blocks(b"".join(container.parts), "f")[1]] == [2, 2, 1]


def test_records_by_themselves() -> None:
    text = json.dumps(SCHEMA)
    for record in FEW:
        assert decode_record(text, encode_record(text, record)) == record
    # Logical types are left aside: values are the numbers that are written.
    day = json.dumps(
        {"type": "record", "name": "r", "fields": [{"name": "d", "type": {"type": "int", "logicalType": "date"}}]}
    )
    assert decode_record(day, encode_record(day, {"d": 7})) == {"d": 7}
    assert parse_schema(day.encode())["fields"][0]["type"] == {"type": "int"}
