"""What ORC files tell of their writer's clock."""

from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa
import pytest
from orc_of_java import java_file
from pyarrow import orc

from alluvium.codecs.footers.orc_footer import read_sound_tail
from alluvium.codecs.footers.orc_writer_clock import WriterClock, read_writer_clock
from alluvium.errors import CorruptTable, UnsupportedFeature

KIND = pa.timestamp("us", "UTC")
START = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
ROWS = pa.table(
    {
        "k": [1, 2],
        "z": pa.array([dt.datetime(1969, 12, 31, 23, 0, tzinfo=dt.timezone.utc), None], KIND),
        "none": pa.array([None, None], KIND),
        "n": pa.array([dt.datetime(2024, 1, 1), None], pa.timestamp("us")),
    }
)


def clock(data: bytes) -> WriterClock:
    source = pa.BufferReader(data)
    return read_writer_clock(source, read_sound_tail(source, "f.orc"), "f.orc")


@pytest.mark.parametrize("zone", ["America/New_York", "GMT+08:00", None])
def test_files_of_java(zone: str | None) -> None:
    found = clock(java_file(ROWS, zone))
    assert found == WriterClock((zone,), {"z": (-3_600_000, -3_600_000)}, frozenset({"none"}))


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_stripes(compression: str) -> None:
    sink, numbers = pa.BufferOutputStream(), random.Random(1)
    with orc.ORCWriter(sink, compression=compression, stripe_size=1 << 16) as writer:
        for start in range(0, 40_000, 10_000):
            values = [START + dt.timedelta(seconds=numbers.randrange(1, 10**8)) for _ in range(10_000)]
            values[0] = START + dt.timedelta(seconds=start)
            writer.write(pa.table({"z": pa.array(values, KIND), "n": [numbers.random() for _ in values]}))
    data = sink.getvalue()
    stripes = orc.ORCFile(pa.BufferReader(data)).nstripes
    found = clock(data)
    assert stripes > 1
    assert found.zones == ("GMT",) * stripes
    least, greatest = found.bounds["z"]
    assert least == START.timestamp() * 1000 and least < greatest <= least + 10**11


def test_what_is_damaged() -> None:
    data = java_file(ROWS, "America/New_York")
    for place in range(len(data) - 400, len(data)):
        wrong = bytearray(data)
        wrong[place] ^= 0x81
        try:
            found = clock(bytes(wrong))
        except (CorruptTable, UnsupportedFeature) as error:
            assert error.path in ("f.orc", None)
        else:
            assert isinstance(found, WriterClock)


@pytest.mark.parametrize("field", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [1 << 40, 1 << 62, (1 << 64) - 1])
def test_stripes_beyond_the_file(field: int, size: int) -> None:
    data = java_file(ROWS, "America/New_York", {field: [size]})
    with pytest.raises(CorruptTable, match="stripe") as caught:
        clock(data)
    assert caught.value.path == "f.orc"
