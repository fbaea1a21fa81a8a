"""Files of large values: frames, nulls, batches, and every kind of damage."""

from __future__ import annotations

import zlib

import pyarrow as pa
import pytest

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.portable.files import blob_file
from alluvium.portable.files.blob_file import open_blob

MAGIC = (1_481_511_375).to_bytes(4, "little")


def zigzag(number: int) -> bytes:
    number = number << 1 ^ number >> 63
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def frame(value: bytes) -> bytes:
    head = MAGIC + value + (len(value) + 16).to_bytes(8, "little")
    return head + zlib.crc32(head).to_bytes(4, "little")


def blob(values: list[bytes | None], lengths: list[int] | None = None) -> bytes:
    frames = b"".join(frame(value) for value in values if value is not None)
    lengths = [-1 if v is None else len(v) + 16 for v in values] if lengths is None else lengths
    index = b"".join(zigzag(n - before) for before, n in zip([0, *lengths], lengths, strict=False))
    return frames + index + len(index).to_bytes(4, "little") + b"\x01"


def rows(data: bytes, batch_size: int = 100) -> list[list[bytes | None]]:
    file = open_blob("f.blob", pa.BufferReader(data))
    return [columns["b"].to_pylist() for _, columns in file.batches(file.names(["b", "_ROW_ID"]), batch_size)]


def test_values_come_back() -> None:
    values = [b"first", None, b"", b"x" * 70_000, None]
    assert rows(blob(values)) == [values]
    assert rows(blob(values), 2) == [values[:2], values[2:4], values[4:]]
    assert rows(blob([])) == []


def test_batches_end_where_memory_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_file, "_BATCH_BYTES", 40)
    values = [b"a" * 30, b"b" * 30, None, b"c" * 5, b"d" * 5]
    assert rows(blob(values)) == [[values[0]], [values[1]], values[2:]]


def test_rows_are_counted_without_the_values() -> None:
    file = open_blob("f.blob", pa.BufferReader(blob([b"a", None, b"c"])))
    assert [(count, columns) for count, columns in file.batches({}, 2)] == [(2, {}), (1, {})]
    assert file.num_rows == 3


def damaged_files() -> list[object]:
    good = blob([b"value", b"other"])
    flipped = bytearray(good)
    flipped[5] ^= 1
    other_magic = b"\x00" + good[1:]
    # A checksum is right, and the magic number is not: who wrote the frame is in doubt, whatever its sum.
    forged = bytearray(frame(b"value"))
    forged[:4] = b"MINE"
    forged[-4:] = zlib.crc32(bytes(forged[:-4])).to_bytes(4, "little")
    tail = blob([None], [21])
    return [
        pytest.param(b"", id="empty"), pytest.param(good[-4:], id="cut-to-the-footer"),
        pytest.param(good[:-1] + b"\x02", id="version"), pytest.param(good[:-5] + b"\xff\xff\xff\x7f\x01", id="index-size"),
        pytest.param(bytes(flipped), id="value"), pytest.param(other_magic, id="magic"),
        pytest.param(bytes(forged) + tail, id="forged"), pytest.param(blob([b"value"], [30]), id="beyond-the-end"),
        pytest.param(blob([b"value"], [15]), id="shorter-than-a-frame"),
        pytest.param(b"\x80" + (1).to_bytes(4, "little") + b"\x01", id="index-cut"),
    ]  # fmt: skip


@pytest.mark.parametrize("data", damaged_files())
def test_damage_is_said(data: bytes) -> None:
    with pytest.raises(CorruptTable) as caught:
        rows(data)
    assert (caught.value.code, caught.value.path) == ("damaged-file", "f.blob")


def test_placeholders_are_another_matter() -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        rows(blob([None], [-2]))
    assert caught.value.path == "f.blob"


@pytest.mark.parametrize("lengths", [[1 << 62], [1 << 40], [1 << 61] * 20, [17, 1 << 36]])
def test_an_index_that_tells_of_more_bytes_than_there_are(lengths: list[int]) -> None:
    with pytest.raises(CorruptTable) as raised:
        rows(blob([b"a"], lengths))
    assert raised.value.code == "damaged-file"


def test_any_name_is_the_column_but_for_those_of_rows() -> None:
    file = open_blob("f.blob", pa.BufferReader(blob([b"a"])))
    assert file.names(["_image", "_ROW_ID", "_SEQUENCE_NUMBER"]) == {"_image": "_image"}
