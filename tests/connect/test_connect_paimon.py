"""Paimon tables over a real Connect session: merged on the server, by its own operators."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_tables import HandWritten, write_readings

import alluvium

pytestmark = pytest.mark.connect


def shown(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


@pytest.fixture
def readings(tmp_path: Path) -> str:
    write_readings(tmp_path / "readings")
    return str(tmp_path / "readings")


def test_rows_merge_on_the_server(connect, readings: str):
    for given in ({}, {"version": 1}, {"tag": "noon"}):
        expected = alluvium.open(readings, **given).to_arrow()
        frame = alluvium.read(connect, readings, **given)
        assert frame.columns == expected.column_names
        assert shown(frame.toArrow()) == shown(expected)
    (scan,) = alluvium.explain(alluvium.read(connect, readings).where("sensor = 'c'"))
    assert (scan.lane, scan.files, scan.version) == ("connect", 1, "3")
    assert [row.sensor for row in alluvium.read(connect, readings).where("sensor = 'c'").collect()] == ["c"]
    # A value of an old row must not come back.
    assert alluvium.read(connect, readings).where("value < 2").count() == 0


def test_aggregates_merge_on_the_server(connect, tmp_path: Path):
    schema = pa.schema([pa.field("k", pa.int64(), False), pa.field("n", pa.int64()), pa.field("s", pa.string())])
    options = {
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "fields.s.aggregate-function": "listagg",
    }
    table = HandWritten(tmp_path / "t", schema, keys=("k",), **options)
    for number in range(3):
        table.commit([{"k": k, "n": 10**18 * 5, "s": f"{number}"} for k in range(number, 5)])
    frame = alluvium.read(connect, str(tmp_path / "t"))
    assert shown(frame.toArrow()) == shown(alluvium.open(str(tmp_path / "t")).to_arrow())
    (scan,) = alluvium.explain(frame)
    assert scan.lane == "connect"


def test_what_the_server_cannot_merge_its_workers_do(connect, tmp_path: Path):
    schema = pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.list_(pa.int32()))])
    options = {"merge-engine": "aggregation", "fields.v.aggregate-function": "collect"}
    table = HandWritten(tmp_path / "t", schema, keys=("k",), **options)
    table.commit([{"k": 1, "v": [1]}])
    table.commit([{"k": 1, "v": [2]}])
    frame = alluvium.read(connect, str(tmp_path / "t"))
    assert [tuple(row) for row in frame.collect()] == [(1, [1, 2])]
    (scan,) = alluvium.explain(frame)
    assert scan.lane == "python"


def test_changes_and_system_tables(connect, readings: str):
    for mode in ("delta", "diff"):
        expected = alluvium.open(readings).changes(1, 3, mode=mode)
        assert shown(alluvium.changes(connect, readings, 1, 3, mode=mode).toArrow()) == shown(expected)
    for name in ("snapshots", "files", "audit_log", "ro"):
        expected = alluvium.open(readings).system(name)
        assert shown(alluvium.read(connect, readings, system=name).toArrow()) == shown(expected)
