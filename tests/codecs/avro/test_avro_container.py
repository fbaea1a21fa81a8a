"""Avro containers: what is written is read again, by us and by fastavro."""

from __future__ import annotations

import io

import fastavro
import pytest

from alluvium.codecs.avro.avro_container import format_avro, read_avro
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
