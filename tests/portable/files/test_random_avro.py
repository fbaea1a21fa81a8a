"""Avro files of random schemas, written by fastavro, beside the values that were written."""

from __future__ import annotations

import datetime as dt
import io
import itertools
import random
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.portable.files.avro_file import open_avro

UTC = dt.timezone.utc
NOON = dt.datetime(2024, 2, 29, 12, 30, 15, 123456)
#: Schema, values as fastavro takes them, type, and values as they come back where these are others.
LEAVES: list[tuple[Any, list[Any], pa.DataType, list[Any] | None]] = [
    ("boolean", [True, False], pa.bool_(), None), ("int", [-(2**31), 7], pa.int32(), None), ("long", [-(2**63), 7], pa.int64(), None),
    ("float", [1.5], pa.float32(), None), ("double", [1e300, -0.1], pa.float64(), None), ("bytes", [b"", b"\xff"], pa.binary(), None),
    ("string", ["", "ä"], pa.string(), None), ({"type": "string"}, ["x"], pa.string(), None),
    ({"type": "int", "logicalType": "date"}, [dt.date(2024, 2, 29), dt.date(1, 1, 1)], pa.date32(), None),
    ({"type": "int", "logicalType": "time-millis"}, [dt.time(12, 30, 15, 123000)], pa.time32("ms"), None),
    ({"type": "long", "logicalType": "time-micros"}, [dt.time(12, 30, 15, 123456)], pa.time64("us"), None),
    ({"type": "long", "logicalType": "timestamp-millis"}, [NOON.replace(microsecond=123000, tzinfo=UTC)], pa.timestamp("ms"), [NOON.replace(microsecond=123000)]),
    ({"type": "long", "logicalType": "timestamp-micros"}, [NOON.replace(tzinfo=UTC)], pa.timestamp("us"), [NOON]),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, [NOON.replace(microsecond=123000)], pa.timestamp("ms"), None),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, [NOON], pa.timestamp("us"), None),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, [Decimal("-1.50"), Decimal("1234567.89"), Decimal("0.00")], pa.decimal128(9, 2), None),
    ({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10}, [Decimal("9" * 28 + "." + "9" * 10)], pa.decimal128(38, 10), None),
    ({"type": "bytes", "logicalType": "unheard"}, [b"x"], pa.binary(), None),
]  # fmt: skip


def shape(lot: random.Random, names: Any, depth: int) -> tuple[Any, Any, pa.DataType]:
    """A schema, a maker of pairs (written, read), and the type."""
    kind = lot.choice(["leaf", "leaf", "fixed", "enum", "decimal"] + ["record", "array", "map", "pairs"] * (depth > 0))
    name = f"t{next(names)}"
    if kind == "fixed":
        return {"type": "fixed", "name": name, "size": 3}, lambda: (b"abc", b"abc"), pa.binary(3)
    if kind == "enum":
        return {"type": "enum", "name": name, "symbols": ["A", "B"]}, lambda: (lot.choice("AB"),) * 2, pa.string()
    if kind == "decimal":
        made = {"type": "fixed", "name": name, "size": 4, "logicalType": "decimal", "precision": 9, "scale": 3}
        return made, lambda: (Decimal(lot.choice(["-1.125", "7.000"])),) * 2, pa.decimal128(9, 3)
    if kind == "record":
        members = [(f"f{n}", *shape(lot, names, depth - 1)) for n in range(lot.randint(1, 3))]

        def record() -> Any:
            pairs = [(n, make()) for n, _, make, _ in members]
            return {n: p[0] for n, p in pairs}, {n: p[1] for n, p in pairs}

        fields = [{"name": n, "type": nullable(lot, schema)} for n, schema, _, _ in members]
        return {"type": "record", "name": name, "fields": fields}, record, pa.struct([(n, k) for n, _, _, k in members])
    if kind in ("array", "map", "pairs"):
        schema, make, inner = shape(lot, names, depth - 1)

        def several() -> list[Any]:
            return [make() for _ in range(lot.randint(0, 3))]

        if kind == "array":
            return (
                {"type": "array", "items": nullable(lot, schema)},
                lambda: tuple(map(list, zip(*several(), strict=True))) or ([], []),
                pa.list_(inner),
            )
        if kind == "map":

            def text_map() -> Any:
                pairs = several()
                return {f"k{n}": w for n, (w, _) in enumerate(pairs)}, [(f"k{n}", r) for n, (_, r) in enumerate(pairs)]

            return {"type": "map", "values": nullable(lot, schema)}, text_map, pa.map_(pa.string(), inner)
        entry = {
            "type": "record",
            "name": f"{name}e",
            "fields": [{"name": "k", "type": "int"}, {"name": "v", "type": nullable(lot, schema)}],
        }

        def pair_map() -> Any:
            pairs = several()
            return [{"k": n, "v": w} for n, (w, _) in enumerate(pairs)], [(n, r) for n, (_, r) in enumerate(pairs)]

        return {"type": "array", "logicalType": "map", "items": entry}, pair_map, pa.map_(pa.int32(), inner)
    schema, values, found, read = lot.choice(LEAVES)
    places = list(zip(values, read or values, strict=True))
    return schema, lambda: lot.choice(places), found


def nullable(lot: random.Random, schema: Any) -> Any:
    return lot.choice([schema, ["null", schema], [schema, "null"]])


@pytest.mark.parametrize("seed", range(40))
def test_rows_come_back(seed: int) -> None:
    lot = random.Random(seed)
    schema, make, kind = shape(lot, itertools.count(), 3)
    count = lot.randint(0, 7)
    pairs = [(None, None) if lot.random() < 0.2 else make() for _ in range(count)]
    row = {
        "type": "record",
        "name": "row",
        "fields": [{"name": "Own", "type": ["null", schema]}, {"name": "n", "type": "long"}],
    }
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(row), [{"Own": w, "n": n} for n, (w, _) in enumerate(pairs)])
    file = open_avro("f.avro", pa.BufferReader(out.getvalue()))
    assert file.num_rows == count
    names = file.names(["own", "n", "gone"])
    assert names == {"own": "Own", "n": "n"}
    found: dict[str, list[Any]] = {"own": [], "n": []}
    for rows, columns in file.batches(names, 3):
        assert rows == min(3, count - len(found["n"])) and list(columns) == ["own", "n"]
        assert columns["own"].type == kind
        for name in found:
            found[name] += columns[name].to_pylist()
    assert found == {"own": [r for _, r in pairs], "n": list(range(count))}
    assert [list(columns) for _, columns in file.batches({"n": "n"}, 100)] == ([["n"]] if count else [])


@pytest.mark.parametrize("union", [["int", "string"], ["null", "int", "string"], ["null"]], ids=str)
def test_unions_of_several_types(union: list[str]) -> None:
    row = {"type": "record", "name": "row", "fields": [{"name": "u", "type": union}]}
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(row), [{"u": None if union == ["null"] else 1}])
    file = open_avro("f.avro", pa.BufferReader(out.getvalue()))
    with pytest.raises((UnsupportedFeature, CorruptTable)):
        list(file.batches({"u": "u"}, 10))
