"""What a conversion tells: the history, the caller, and the log of each file."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.delta.log.names import checkpoint_paths, commit_path
from alluvium.delta.terms.spec import FILES
from alluvium.delta.upkeep.convert import footers
from alluvium.delta.upkeep.convert.conversion import (
    ConvertRequest,
    configured,
    ensure_same_partitions,
    with_mapping,
)
from alluvium.delta.upkeep.convert.convert import convert, plan_conversion
from alluvium.delta.upkeep.convert.footers import read_footers
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.scan import SCAN_FILES, OutputColumn, Physical, ScanPart, ScanPlan
from alluvium.schema import types as t
from alluvium.schema.ddl import parse_fields
from alluvium.schema.types import Field, Struct
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "table")


def put(store: MemoryStore, path: str, rows: pa.Table | None = None) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1, 2]}) if rows is None else rows, sink)
    store.put(path, sink.getvalue().to_pybytes())


def info(store: MemoryStore) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(store.get(commit_path(0)).splitlines()[0])["commitInfo"]
    return found


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (ConvertRequest(), {"partitionedBy": '["p","q"]', "collectStats": True}),
        (ConvertRequest(statistics=False), {"partitionedBy": '["p","q"]', "collectStats": False}),
        (ConvertRequest(said=("q",)), {"partitionedBy": '["q"]', "collectStats": True}),
        (ConvertRequest(said=()), {"partitionedBy": "[]", "collectStats": True}),
        (
            ConvertRequest(catalog_name="a.b"),
            {"catalogTable": "a.b", "partitionedBy": '["p","q"]', "collectStats": True},
        ),
    ],
)
def test_what_the_history_says(store: MemoryStore, wanted: ConvertRequest, told: dict[str, object]) -> None:
    for path in ("p=1/q=x/f.parquet", "p=2/q=y%20z/f.parquet", "p=2/q=x/g.parquet"):
        put(store, path)
    request = ConvertRequest(**{**{n: getattr(wanted, n) for n in wanted.__slots__}, "engine": "an engine"})
    shown = convert(store, request, dry_run=True)
    done = convert(store, request)
    assert isinstance(shown, Preview) and isinstance(done, Committed)
    parameters = {**told, "numFiles": 3, "sourceFormat": "parquet"}
    assert info(store)["operationParameters"] == parameters == shown.operation.parameters
    assert info(store)["operationMetrics"] == {"numConvertedFiles": "3"} == done.metrics
    assert (info(store)["operation"], info(store)["engineInfo"], info(store)["readVersion"]) == (
        "CONVERT",
        "an engine",
        -1,
    )
    assert info(store)["isBlindAppend"] is False and (done.version, done.attempts) == (0, 1)
    sizes = {path: store.head(path.replace("%25", "%")).size for path in done.files["path"].to_pylist()}
    assert dict(zip(done.files["path"].to_pylist(), done.files["size"].to_pylist(), strict=True)) == sizes
    assert done.files["path"].to_pylist() == ["p=1/q=x/f.parquet", "p=2/q=x/g.parquet", "p=2/q=y%2520z/f.parquet"]
    assert shown.added == tuple(done.files["path"].to_pylist()) and shown.differences["partition columns"] == (
        None,
        "p, q",
    )
    assert store.head(checkpoint_paths(0)[0]).size > 0


def test_what_the_log_says_of_each_file(store: MemoryStore) -> None:
    for path in ("p=1/q=x/f", "p=2/q=__HIVE_DEFAULT_PARTITION__/f", "p=2/q=y%20z/f"):
        put(store, path)
    plan = plan_conversion(store, ConvertRequest())
    assert plan.files.schema == FILES
    rows = {row["path"]: row for row in plan.files.to_pylist()}
    assert {path: row["partitionValues"] for path, row in rows.items()} == {
        "p=1/q=x/f": [("p", "1"), ("q", "x")], "p=2/q=__HIVE_DEFAULT_PARTITION__/f": [("p", "2"), ("q", None)],
        "p=2/q=y%2520z/f": [("p", "2"), ("q", "y z")],
    }  # fmt: skip
    for path, row in rows.items():
        place = store.head(path.replace("%25", "%"))
        assert (row["size"], row["modificationTime"], row["dataChange"]) == (place.size, place.modified_ms, True)
        told = {"path", "partitionValues", "size", "modificationTime", "dataChange", "stats"}
        assert all(value is None for name, value in row.items() if name not in told)


def test_a_table_of_another_format_is_called_by_its_name(store: MemoryStore) -> None:
    put(store, "f")
    constants = pa.array([{}], pa.struct([]))
    files = pa.table({"path": ["f"], "size": [store.head("f").size], "modification_time_ms": [5], "num_rows": [2],
                      "constants": constants, "mask": pa.nulls(1, pa.binary())})  # fmt: skip
    assert files.column_names == SCAN_FILES.names
    schema = Struct((Field("id", t.LONG),))
    part = ScanPart("one", files, "parquet", schema, (OutputColumn("id", t.LONG, True, Physical(("id",), t.LONG)),))
    convert(store, ConvertRequest(), source=("paimon", ScanPlan(store.url, (part,), schema, ())))
    assert info(store)["operationParameters"]["sourceFormat"] == "paimon"
    assert load_snapshot(store).files["modificationTime"].to_pylist() == [5]


# --- footers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [1, 2, 5000])
def test_footers_are_read_again_only_where_columns_came(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(footers, "_TOGETHER", together)
    put(store, "1", pa.table({"a": [1], "B": ["x"]}))
    put(store, "2", pa.table({"b": ["y"], "c": [2.0]}))
    put(store, "3", pa.table({"A": [5, None], "b": ["z", "z"]}))
    read: list[str] = []
    own = footers.read_described
    monkeypatch.setattr(
        footers, "read_described", lambda data, columns, path: read.append(path) or own(data, columns, path)
    )

    def every(schema: Struct) -> Any:
        return tuple(footers.FooterColumn((f.name,), f.type) for f in schema.fields)

    def some(schema: Struct) -> Any:
        return every(schema)[:1]

    def listed(*paths: str) -> pa.Table:
        return pa.table({"path": list(paths), "size": [store.head(path).size for path in paths]})

    found = read_footers(store, listed("1", "2", "3"), every, True)
    assert sorted(read) == ["1", "1", "1", "2", "2", "3", "3"]
    assert found.schema.names == ("a", "B", "c") and found.everywhere == {"b"}
    assert [column.path for column in found.columns] == [("a",), ("B",), ("c",)]
    stats = list(map(json.loads, found.stats.to_pylist()))
    assert [(one["numRecords"], one["tightBounds"]) for one in stats] == [(1, True), (1, True), (2, True)]
    assert stats[0]["nullCount"] == {"a": 0, "B": 0, "c": 1} and stats[1]["nullCount"] == {"a": 1, "c": 0}
    read.clear()
    found = read_footers(store, listed("1", "3"), some, None)
    assert sorted(read) == ["1", "1", "3"] and found.everywhere == {"a", "b"}
    assert json.loads(found.stats[0].as_py()) == {
        "numRecords": 1, "minValues": {"a": 1}, "maxValues": {"a": 1}, "nullCount": {"a": 0}
    }  # fmt: skip


# --- descriptions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "mode"),
    [({}, "none"), ({"delta.columnMapping.mode": "none"}, "none"), ({"delta.columnMapping.MODE": " Name "}, "name")],
)
def test_columns_that_are_mapped_keep_the_names_that_files_have(properties: dict[str, str], mode: str) -> None:
    config = configured(
        Struct(parse_fields("a int not null, p string")), parse_fields("p int"), {**properties, "mine": "1"}
    )
    assert (config.mapping_mode, config.partition_columns) == (mode, ("p",))
    assert [(f.name, f.type, f.nullable) for f in config.schema.fields] == [
        ("a", t.INTEGER, True),
        ("p", t.INTEGER, True),
    ]
    assert dict(config.physical_names) == {"a": "a", "p": "p"}
    assert config.metadata.configuration["mine"] == "1"


def test_a_table_that_hides_what_its_files_have_is_mapped() -> None:
    assert with_mapping({"x": "1"}, "old") == {"delta.columnMapping.mode": "name", "x": "1"}
    assert with_mapping({"delta.columnMapping.mode": "id"}, "old") == {"delta.columnMapping.mode": "id"}
    for name, value in (("delta.columnMapping.mode", "none"), ("DELTA.columnmapping.mode", " NONE ")):
        with pytest.raises(InvalidRequest) as caught:
            with_mapping({name: value}, "old")
        assert (caught.value.code, caught.value.column) == ("not-convertible", "old")


def test_partition_columns_that_are_said_must_be_those_that_are_known() -> None:
    known = parse_fields("a int, b string")
    for said in (None, known, parse_fields("A int, B string")):
        ensure_same_partitions(said, known, "who")
    for text, shown in (
        ("b string, a int", "b string, a int"),
        ("a int", "a int"),
        ("a bigint, b string", "a bigint, b string"),
        ("", "none"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            ensure_same_partitions(parse_fields(text) if text else (), known, "the catalog")
        assert caught.value.code == "partition-schema"
        assert f"the catalog has other partition columns (a int, b string) than these: {shown}" in str(caught.value)
