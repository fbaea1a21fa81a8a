"""Avro files made to harm who reads them: small ones, each with one of our errors within a moment and little memory."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import zlib
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from alluvium.codecs.avro.avro_container import MAGIC, format_avro, read_avro, read_blocks
from alluvium.codecs.avro.avro_schema import MAX_DEPTH, measure_schema
from alluvium.errors import AlluviumError, CorruptTable, UnsupportedFeature

SYNC = bytes(16)


def zigzag(value: int) -> bytes:
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def container(schema: Any, blocks: list[tuple[int, bytes]], codec: str = "null") -> bytes:
    """A container as somebody made it by hand: what it says of itself need not be true."""
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    pairs = {b"avro.schema": text, b"avro.codec": codec.encode()}
    entries = b"".join(zigzag(len(k)) + k + zigzag(len(v)) + v for k, v in pairs.items())
    parts = [zigzag(n) + zigzag(len(block)) + block + SYNC for n, block in blocks]
    return MAGIC + zigzag(2) + entries + zigzag(0) + SYNC + b"".join(parts)


def record(*fields: Any, name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": f"f{n}", "type": t} for n, t in enumerate(fields)]}


def deflated_zeros(size_mib: int) -> bytes:
    """One MiB, compressed so that it may stand again and again: compressing all of it took a second of each start."""
    deflater = zlib.compressobj(9, wbits=-15)
    one = deflater.compress(bytes(1 << 20)) + deflater.flush(zlib.Z_FULL_FLUSH)
    return one * size_mib + deflater.flush()


def nested(depth: int) -> Any:
    kind: Any = "int"
    for n in range(depth):
        kind = record(kind, name=f"r{n}")
    return kind


def doubling(levels: int) -> Any:
    """A record of two records of two records ...: small in text, 2^levels fields."""
    kinds: list[Any] = [record("null", "int", name="r0")]
    for n in range(1, levels):
        kinds.append(record(kinds[-1], f"r{n - 1}", name=f"r{n}"))
    return kinds[-1]


RECURSIVE = {
    "itself": record("r"),
    "itself or null": record(["null", "r"]),
    "through an array": record({"type": "array", "items": "r"}),
    "through a map": record({"type": "map", "values": "r"}),
    "through another": record(record("r", name="inner")),
    "by its full name": {**record("a.b.r"), "namespace": "a.b"},
}


@pytest.mark.parametrize("schema", RECURSIVE.values(), ids=RECURSIVE)
def test_types_that_hold_themselves_are_refused(schema: Any) -> None:
    data = container(schema, [(1, bytes(100))])
    for read in (read_avro, read_blocks):
        with pytest.raises(UnsupportedFeature) as caught:
            read(data, "m")  # type: ignore[operator]
        assert (caught.value.code, caught.value.path) == ("avro-schema", "m")


def test_a_type_used_twice_is_none_that_holds_itself() -> None:
    point = record("int", "int", name="point")
    schema = record(point, "point", ["null", "point"])
    out = io.BytesIO()
    rows = [{"f0": {"f0": 1, "f1": 2}, "f1": {"f0": 3, "f1": 4}, "f2": None}]
    fastavro.writer(out, schema, rows)
    assert read_avro(out.getvalue(), "m")[1] == rows


BOMBS = {
    "records of nothing": container(record(), [(1 << 40, b"")]),
    "records of nulls": container(record("null", "null"), [(1 << 40, b"")]),
    "many small blocks of nothing": container(record(), [(900_000, b"")] * 40),
    "more records than bytes": container(record("int"), [(1 << 40, bytes(10))]),
    "fewer than no records": container(record("int"), [(-1, bytes(10))]),
    "an array of nothing": container(record({"type": "array", "items": "null"}), [(1, zigzag(1 << 50) + zigzag(0))]),
    "an array of empty records": container(
        record({"type": "array", "items": record(name="e")}), [(1, zigzag(1 << 50) + zigzag(0))]
    ),
    "a text longer than the file": container(record("string"), [(1, zigzag(1 << 60) + b"x")]),
    "a text of less than nothing": container(record("string"), [(1, zigzag(-5) + b"x")]),
    "a huge fixed": container(record({"type": "fixed", "name": "f", "size": 1 << 62}), [(1, b"x")]),
    "deflated zeros": container(record("bytes"), [(1, deflated_zeros(400))], "deflate"),
    "zstd of zeros": container(record("bytes"), [(1, bytes(pa.compress(bytes(400 << 20), "zstd", asbytes=True)))], "zstandard"),
    "snappy that says much": container(record("bytes"), [(1, b"\xff\xff\xff\xff\xff\xff\xff\xff\x3f" + bytes(8))], "snappy"),
    "a deep schema": container(nested(MAX_DEPTH + 1), [(1, b"\0")]),
    "a schema too deep for JSON": container(b"[" * 200_000 + b"]" * 200_000, [(1, b"\0")]),
    "a wide schema in few bytes": container(doubling(30), [(1, bytes(100))]),
    "no schema": container(b"7", [(1, b"\0")]),
    "an unknown type": container(record("strings"), [(1, b"\0")]),
    "an empty union": container(record([]), [(1, b"\0")]),
    "a record without fields": container({"type": "record", "name": "r"}, [(1, b"\0")]),
    "no JSON": container(b"{", [(1, b"\0")]),
    "not UTF-8": container(b"\xff\xfe", [(1, b"\0")]),
    "a header that goes on": MAGIC + zigzag(1 << 60),
    "a cut marker": container(record("int"), [])[:-5],
}  # fmt: skip

#: Run apart, with little memory: what goes wrong here ends the process.
_CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
from alluvium.codecs.avro.avro_container import read_avro, read_blocks
from alluvium.errors import AlluviumError
data = sys.stdin.buffer.read()
for read in (read_avro, read_blocks):
    try:
        read(data, "m")
    except AlluviumError as error:
        print(type(error).__name__)
    else:
        print("read")
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_small_files_do_not_kill(name: str) -> None:
    child = subprocess.run(
        (sys.executable, "-c", _CHILD), input=BOMBS[name], capture_output=True, timeout=60, check=False
    )
    assert child.returncode == 0, child.stderr.decode()[-500:]
    by_record, _ = child.stdout.decode().split()
    assert by_record in ("CorruptTable", "UnsupportedFeature")


def test_a_block_of_as_many_bytes_as_allowed_is_read() -> None:
    rows = [{"f0": bytes(1 << 20)} for _ in range(20)]
    for codec in ("zstandard", "deflate", "snappy"):
        assert read_avro(format_avro(record("bytes"), rows, codec), "m")[1] == rows


@pytest.mark.long
def test_rows_that_are_alike_are_no_bomb() -> None:
    """A file may grow a thousandfold: Java writes such."""
    rows = [{"f0": n, "f1": "x" * 1200} for n in range(100_000)]
    data = format_avro(record("int", "string"), rows)
    assert len(data) < 1 << 20
    assert read_avro(data, "m")[1] == rows


def test_blocks_are_of_few_bytes() -> None:
    rows = [{"f0": bytes([n % 256]) * 70_000} for n in range(100)]
    data = format_avro(record("bytes"), rows, "null")
    _, blocks = read_blocks(data, "m")
    assert sum(count for count, _ in blocks) == 100 and max(len(block) for _, block in blocks) < 2 << 20
    assert read_avro(data, "m")[1] == rows


def test_measures() -> None:
    shape = measure_schema(record("int", "double", ["null", "string"], {"type": "fixed", "name": "f", "size": 3}))
    assert (shape.min_bytes, shape.nodes) == (1 + 8 + 1 + 3, 7)
    # Of branches of a union one is there: the most that any has count as empty.
    nothing = {"type": "record", "name": "e", "fields": [{"name": f"n{n}", "type": "null"} for n in range(5)]}
    for union in (["null", nothing, "int"], [nothing, "int", "null"], ["int", nothing]):
        assert measure_schema(union).empty_nodes == 6
    assert measure_schema(record(nothing, "null", "int")).empty_nodes == 7
    assert measure_schema(["int", "string"]).empty_nodes == 0


@pytest.mark.slow
def test_changed_bytes_give_rows_or_our_error() -> None:
    """Seeded; in a process of its own, since a decoder that dies takes its caller along."""
    rng = random.Random(20261122)
    schema = record("long", ["null", "string"], {"type": "array", "items": "bytes"}, {"type": "map", "values": "int"})
    rows = [{"f0": n, "f1": str(n), "f2": [b"x"] * (n % 4), "f3": {"k": n}} for n in range(50)]
    whole = [format_avro(schema, rows, codec) for codec in ("null", "deflate", "snappy", "zstandard")]
    met = {"read": 0, "refused": 0}
    for _ in range(3000):
        data = bytearray(rng.choice(whole))
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(data))
            if rng.random() < 0.2:
                del data[place : place + rng.randint(1, 30)]
            else:
                data[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        try:
            read_avro(bytes(data), "m")
            met["read"] += 1
        except AlluviumError as error:
            assert isinstance(error, (CorruptTable, UnsupportedFeature))
            met["refused"] += 1
    assert min(met.values()) > 50, met
