"""Deletion vectors in index files of both versions."""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap, BitMap64

from alluvium.codecs.roaring import positions_of
from alluvium.errors import CorruptTable
from alluvium.paimon.features.deletion_vectors import ensure_rows_exist, parse_vector

ROOT = Path(__file__).resolve().parents[3]
NAMED = os.environ.get("ALLUVIUM_CONFORMANCE")
VECTORS = (Path(NAMED) if NAMED else ROOT.parent / "shared" / "conformance") / "paimon" / "vectors" / "dv"


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def test_vectors_of_java() -> None:
    if not VECTORS.is_dir():
        pytest.skip("no corpus: set ALLUVIUM_CONFORMANCE")
    for file in json.loads((VECTORS / "expected.json").read_text(encoding="utf-8"))["files"]:
        data = (VECTORS / file["file"]).read_bytes()
        assert data[0] == 1
        for entry in file["entries"]:
            assert list(positions_of(parse_vector(data[entry["offset"] :], file["file"]))) == entry["positions"]


def test_both_versions() -> None:
    """ "Payload v1: magic 1581511376 (BE) + 32-bit RoaringBitmap; v2: magic 1681511377 (LE) + int64 LE bitmap count"."""
    small = struct.pack(">i", 1581511376) + BitMap([1, 70000]).serialize()
    assert list(positions_of(parse_vector(framed(small), "f"))) == [1, 70000]
    large = struct.pack("<i", 1681511377) + BitMap64([3, 1 << 33]).serialize()
    assert list(positions_of(parse_vector(framed(large), "f"))) == [3, 1 << 33]


@pytest.mark.parametrize("damage", ["cut", "checksum", "magic", "bitmap"])
def test_damage_is_found(damage: str) -> None:
    body = struct.pack(">i", 1581511376) + BitMap([1, 2, 3]).serialize()
    data = framed(body)
    if damage == "cut":
        data = data[:-1]
    elif damage == "checksum":
        data = data[:-1] + bytes([data[-1] ^ 1])
    elif damage == "magic":
        data = framed(b"\0\0\0\1" + body[4:])
    else:
        data = framed(body[:-2])
    with pytest.raises(CorruptTable) as caught:
        parse_vector(data, "index/x")
    assert caught.value.code == "damaged-deletion-vector"
    assert caught.value.path == "index/x"


def test_rows_that_the_file_has_not() -> None:
    """One position of a few bytes would stand for a quarter of a GiB of bits."""

    def files(*rows: tuple[int | None, int]) -> pa.Table:
        masks = [BitMap64([row]).serialize() for _, row in rows]
        counts = pa.array([count for count, _ in rows], pa.int64())
        return pa.table({"path": [f"f{n}" for n in range(len(rows))], "num_rows": counts, "mask": masks})

    ensure_rows_exist(files((10, 9), (None, 10)))
    with pytest.raises(CorruptTable, match="row 2147483448 is deleted of a file of 3 rows") as caught:
        ensure_rows_exist(files((10, 9), (3, (1 << 31) - 200)))
    assert (caught.value.code, caught.value.path) == ("damaged-deletion-vector", "f1")
