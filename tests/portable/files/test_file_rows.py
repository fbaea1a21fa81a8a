"""The rows of a file as a plan wants them, beside a plain loop: values of every kind, nested in one another, and masks."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap64

from alluvium.errors import CorruptTable
from alluvium.plan.scan import (
    FIELD_ID,
    INSTANT_BOUNDS,
    SCAN_FILES,
    Coalesce,
    ColumnValue,
    Converted,
    FileConstant,
    Literal,
    OutputColumn,
    Physical,
    RowPosition,
    ScanPart,
    Sum,
)
from alluvium.portable.files.file_rows import FileRows, KeptPlaces, Places, RowMaker, file_rows, positions
from alluvium.schema import types as t
from alluvium.schema.types import Array, Field, Struct

INNER = Struct((Field("x", t.LONG), Field("Y", Struct((Field("z", t.LONG),)))))
READ = Struct((Field("a", t.LONG), Field("b", t.LONG), Field("s", INNER)))
ROWS = 12


class Doubled:
    """A conversion: twice the value, and the zone that was asked."""

    def __init__(self) -> None:
        self.zones: list[str] = []

    def convert(self, values: pa.Array, time_zone: str) -> pa.Array:
        self.zones.append(time_zone)
        return pa.array([None if v is None else 2 * v for v in values.to_pylist()], pa.int64())

    def sql(self, operand: str) -> str | None:
        return None


def columns(chance: random.Random, count: int) -> dict[str, list[Any]]:
    def number() -> int | None:
        return None if chance.random() < 0.3 else chance.randrange(100)

    def struct() -> dict[str, Any] | None:
        inner = None if chance.random() < 0.3 else {"z": number()}
        return None if chance.random() < 0.3 else {"x": number(), "Y": inner}

    return {
        "a": [number() for _ in range(count)],
        "b": [number() for _ in range(count)],
        "s": [struct() for _ in range(count)],
    }


def value(chance: random.Random, depth: int = 0) -> ColumnValue:
    kinds = ["physical", "constant", "literal", "position"] + ["coalesce", "sum", "converted"] * (depth < 3)
    kind = chance.choice(kinds)
    if kind == "physical":
        path = chance.choice(
            [("a",), ("b",), ("s", "x"), ("s", "Y", "z"), ("s", "y", "Z"), ("S2",), ("s", "no"), ("a", "x")]
        )
        return Physical(path, t.LONG)
    if kind == "constant":
        return FileConstant(chance.choice(["one", "none", "unknown"]), t.LONG)
    if kind == "literal":
        return Literal(chance.choice([7, None]), t.LONG)
    if kind == "position":
        return RowPosition()
    if kind == "converted":
        return Converted(value(chance, depth + 1), Doubled(), t.LONG)
    parts = tuple(value(chance, depth + 1) for _ in range(chance.randrange(1, 4)))
    return Coalesce(parts) if kind == "coalesce" else Sum(parts)


def member(cell: Any, name: str) -> Any:
    if not isinstance(cell, dict):
        return None
    return cell.get(name, next((v for key, v in cell.items() if key.lower() == name.lower()), None))


def expected(value: ColumnValue, row: dict[str, Any], place: int, constants: dict[str, int | None]) -> int | None:
    if isinstance(value, Physical):
        found = row.get(value.path[0])
        if value.path == ("a", "x"):
            return found  # no struct: there is nothing below it
        for name in value.path[1:]:
            found = member(found, name)
        return found
    if isinstance(value, FileConstant):
        return constants.get(value.name)
    if isinstance(value, Literal):
        return value.value  # type: ignore[return-value]
    if isinstance(value, RowPosition):
        return place
    if isinstance(value, Converted):
        inner = expected(value.value, row, place, constants)
        return None if inner is None else 2 * inner
    parts = [expected(part, row, place, constants) for part in value.values]
    if isinstance(value, Coalesce):
        return next((part for part in parts if part is not None), None)
    return None if None in parts else sum(part for part in parts if part is not None)


def part(output: tuple[OutputColumn, ...] = (), **more: Any) -> ScanPart:
    return ScanPart("k", SCAN_FILES.empty_table(), "parquet", READ, output, **more)


def chosen(chance: random.Random) -> tuple[Places, list[int]]:
    """Places in a file of more rows, in each of their forms."""
    start = chance.randrange(50)
    within = range(start, start + 2 * ROWS)
    kind = chance.choice(["range", "numbers", "kept"])
    if kind == "range":
        return range(start, start + ROWS), list(range(start, start + ROWS))
    kept = sorted(chance.sample(within, ROWS))
    if kind == "numbers":
        return np.array(kept, np.int64), kept
    return KeptPlaces(within, pa.array([n in kept for n in within]), ROWS), kept


@pytest.mark.parametrize("seed", range(60))
def test_values_of_every_kind(seed: int) -> None:
    chance = random.Random(seed)
    output = tuple(OutputColumn(f"c{n}", t.LONG, True, value(chance)) for n in range(5))
    places, numbers = chosen(chance)
    assert positions(places).tolist() == numbers and len(places) == ROWS
    constants = {"one": 1, "none": None}
    rows = FileRows(part(output), "f", None, {name: pa.scalar(v, pa.int64()) for name, v in constants.items()})
    data = columns(chance, ROWS)
    kind = pa.struct([("x", pa.int64()), ("Y", pa.struct([("z", pa.int64())]))])
    arrays = {
        "a": pa.array(data["a"], pa.int64()),
        "b": pa.array(data["b"], pa.int64()),
        "s": pa.array(data["s"], kind),
    }
    needed = {"c0", "c1", "c3"}
    made = RowMaker(rows, needed, "uri", "UTC").made(places, arrays)
    assert made is not None and made.schema.names == ["c0", "c1", "c3"]
    for name in made.schema.names:
        found = expected_column(output[int(name[1])].value, data, numbers, constants)
        assert made.column(name).to_pylist() == found


def expected_column(
    value: ColumnValue, data: dict[str, list[Any]], numbers: list[int], constants: dict[str, int | None]
) -> list[int | None]:
    rows = [dict(zip(data, cells, strict=True)) for cells in zip(*data.values(), strict=True)]
    return [expected(value, row, place, constants) for row, place in zip(rows, numbers, strict=True)]


def test_the_zone_is_the_session_s() -> None:
    conversion = Doubled()
    output = (OutputColumn("c", t.LONG, True, Converted(Physical(("a",), t.LONG), conversion, t.LONG)),)
    made = RowMaker(FileRows(part(output), "f", None), ["c"], "uri", "Asia/Tokyo").made(
        range(2), {"a": pa.array([1, None])}
    )
    assert made is not None and made.column("c").to_pylist() == [2, None] and conversion.zones == ["Asia/Tokyo"]


@pytest.mark.parametrize("own", [False, True])
def test_the_address_of_the_file(own: bool) -> None:
    """Unless the part makes a column of that name itself."""
    output = (OutputColumn("_file", t.STRING, True, Literal("mine", t.STRING)),) if own else ()
    rows = FileRows(part(output), "f", None)
    made = RowMaker(rows, ["_file"], "memory:t/f", "UTC").made(range(3), {})
    assert made is not None and made.column("_file").to_pylist() == ["mine" if own else "memory:t/f"] * 3
    assert RowMaker(rows, [], "uri", "UTC").made(range(3), {}) is None


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_masks_beside_a_set(keeps: bool, seed: int) -> None:
    chance = random.Random(seed)
    listed = set(chance.sample(range(100), chance.choice([0, 1, 5, 60])))
    rows = FileRows(part(keeps_masked=keeps), "f", BitMap64(listed).serialize())
    maker = RowMaker(rows, [], "uri", "UTC")
    for start in range(0, 110, 11):
        for places in (range(start, start + 11), np.arange(start, start + 11, 3), range(start, start)):
            left = maker.left(places)
            wanted = [(n in listed) == keeps for n in positions(places).tolist()]
            if left is None:
                assert all(wanted) and not keeps
            else:
                assert left.to_pylist() == wanted
                assert keeps or not all(wanted) or not isinstance(places, range)
    # Nothing is listed of a file without a mask.
    none = RowMaker(FileRows(part(keeps_masked=keeps), "f", None), [], "uri", "UTC").left(range(3))
    assert none is None if not keeps else none.to_pylist() == [False] * 3


def test_a_damaged_mask_is_that_of_its_file() -> None:
    with pytest.raises(CorruptTable) as caught:
        RowMaker(FileRows(part(), "some/file", b"no mask"), [], "uri", "UTC").left(range(3))
    assert caught.value.path == "some/file"


def test_values_that_do_not_fit_are_those_of_their_file() -> None:
    output = (OutputColumn("c", t.INTEGER, True, Physical(("a",), t.INTEGER)),)
    with pytest.raises(CorruptTable) as caught:
        RowMaker(FileRows(part(output), "some/file", None), ["c"], "uri", "UTC").made(range(1), {"a": pa.array(["x"])})
    assert caught.value.path == "some/file"


class Named:
    """What is asked of a file's names."""

    def names(self, wanted: list[str], ids: dict[str, int]) -> dict[str, str]:
        return {name: f"{name}:{ids.get(name)}" for name in wanted}


def test_which_columns_of_the_file_are_read() -> None:
    """Each once, in the order in which they are first asked for; by number where the plan has one."""
    read = Struct(
        (Field("a", t.LONG, True, {FIELD_ID: 7}), Field("b", t.LONG, True, {FIELD_ID: "7"}), Field("s", INNER))
    )
    physical = {name: Physical((name,), t.LONG) for name in "abs"}
    output = (
        OutputColumn("one", t.LONG, True, Coalesce((Physical(("s", "x"), t.LONG), Literal(1, t.LONG), physical["b"]))),
        OutputColumn("two", t.LONG, True, Sum((Converted(physical["a"], Doubled(), t.LONG), physical["b"], RowPosition()))),
        OutputColumn("three", t.LONG, True, FileConstant("k", t.LONG)),
    )  # fmt: skip
    rows = FileRows(replace(part(output), read_schema=read), "f", None)

    def asked(*needed: str) -> dict[str, str]:
        return RowMaker(rows, needed, "uri", "UTC").own_names(Named())  # type: ignore[arg-type]

    assert asked("one", "two", "three") == {"s": "s:None", "b": "b:None", "a": "a:7"}
    assert list(asked("two", "one")) == ["s", "b", "a"]
    assert asked("two") == {"a": "a:7", "b": "b:None"} and asked("three") == {}


@pytest.mark.parametrize(
    ("kind", "unit"),
    [(t.TIMESTAMP, "us"), (t.TIMESTAMP_NANOS, "ns"), (t.TIMESTAMP_NTZ_NANOS, "ns"), (Array(t.TIMESTAMP_NANOS), "ns"), (t.LONG, "us")],
)  # fmt: skip
def test_times_are_as_fine_as_the_finest_column(kind: t.DataType, unit: str) -> None:
    read = Struct((Field("a", t.TIMESTAMP), Field("b", kind)))
    assert FileRows(replace(part(), read_schema=read), "f", None).unit == unit


def test_what_is_known_of_instants() -> None:
    us = pa.timestamp("us", tz="UTC")
    ends = pa.struct([("low", us), ("high", us)])
    kind = pa.struct([("a", ends), ("b", ends), ("c", ends)])
    known = pa.scalar({"a": {"low": 1, "high": 2}, "b": {"low": None, "high": 2}, "c": None}, kind)
    assert FileRows(part(), "f", None, {INSTANT_BOUNDS: known}).instants("UTC") is None
    local = part(local_instants=True)
    found = FileRows(local, "f", None, {INSTANT_BOUNDS: known}).instants("Asia/Tokyo")
    assert found is not None and dict(found.bounds) == {"a": (1, 2)} and found.time_zone == "Asia/Tokyo"
    nothing = FileRows(local, "f", None, {INSTANT_BOUNDS: pa.scalar(None, kind)}).instants("UTC")
    assert nothing is not None and dict(nothing.bounds) == {}


@pytest.mark.parametrize("keeps", [False, True])
def test_files_with_their_masks_and_constants(keeps: bool) -> None:
    """Also where there are more of them than are taken at once; of turned masks those without one have no row."""
    count = 5000
    kind = pa.struct([("k", pa.int64())])
    rows = [
        {
            "path": f"f{n}",
            "size": 1,
            "modification_time_ms": 0,
            "num_rows": 1,
            "constants": {"k": n},
            "mask": b"m" if n % 3 == 0 else None,
        }
        for n in range(count)
    ]
    schema = SCAN_FILES.set(SCAN_FILES.get_field_index("constants"), pa.field("constants", kind))
    files = pa.Table.from_pylist(rows, schema=schema)
    one = ScanPart("k", files, "parquet", READ, (), keeps_masked=keeps)
    empty = ScanPart("none", files.slice(0, 0), "parquet", READ, ())
    found = [(f.path, f.mask, f.constants["k"].as_py()) for f in file_rows([empty, one])]
    assert found == [(r["path"], r["mask"], r["constants"]["k"]) for r in rows if r["mask"] or not keeps]  # type: ignore[index]
