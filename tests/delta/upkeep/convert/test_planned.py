"""Which files of other tables can be a Delta table's."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.delta.upkeep.convert.conversion import ConvertRequest
from alluvium.delta.upkeep.convert.planned import plan_from
from alluvium.errors import InvalidRequest
from alluvium.plan.scan import SCAN_FILES, FileConstant, KeyMerge, OutputColumn, Physical, ScanPart, ScanPlan
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.storage.stores.memory import MemoryStore

SCHEMA = Struct((Field("p", t.STRING), Field("id", t.LONG)))


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore(uuid.uuid4().hex, "table")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"p": ["x"], "id": [1]}), sink)
    made.put("p=x/f.parquet", sink.getvalue().to_pybytes())
    return made


def part(store: MemoryStore, p: str | None = "x", mask: bytes | None = None, path: str = "p=x/f.parquet") -> ScanPart:
    constants = pa.StructArray.from_arrays([pa.array([p], pa.string())], names=["p"])
    size = store.head("p=x/f.parquet").size
    files = pa.table({"path": [path], "size": [size], "modification_time_ms": [5], "num_rows": [1],
                      "constants": constants, "mask": pa.array([mask], pa.binary())})  # fmt: skip
    output = (
        OutputColumn("p", t.STRING, True, FileConstant("p", t.STRING)),
        OutputColumn("id", t.LONG, True, Physical(("id",), t.LONG)),
    )
    assert files.column_names == SCAN_FILES.names
    return ScanPart("one", files, "parquet", SCHEMA, output)


def plan(one: ScanPart, schema: Struct = SCHEMA) -> ScanPlan:
    return ScanPlan("memory:x", (one,), schema, ("p",))


def test_a_plain_plan(store: MemoryStore) -> None:
    found = plan_from(store, plan(part(store)), ConvertRequest())
    assert found.config.schema.names == ("p", "id")
    row = found.files.to_pylist()[0]
    assert (row["path"], dict(row["partitionValues"]), row["modificationTime"]) == ("p=x/f.parquet", {"p": "x"}, 5)
    assert '"minValues":{"id":1}' in row["stats"]


MERGE = KeyMerge("g", ("id",), (), None, "deduplicate")
REFUSED: dict[str, Callable[[ScanPart], ScanPart]] = {
    "merge by key": lambda one: replace(one, merge=MERGE),
    "they are orc": lambda one: replace(one, file_format="orc"),
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_is_not_plain(store: MemoryStore, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        plan_from(store, plan(REFUSED[said](part(store))), ConvertRequest())


def test_rows_that_are_gone_and_files_elsewhere(store: MemoryStore) -> None:
    with pytest.raises(InvalidRequest, match="deleted by vectors"):
        plan_from(store, plan(part(store, mask=b"x")), ConvertRequest())
    with pytest.raises(InvalidRequest, match="outside of the table"):
        plan_from(store, plan(part(store, path="file:/elsewhere/f")), ConvertRequest())


def test_values_and_types_that_would_be_others(store: MemoryStore) -> None:
    with pytest.raises(InvalidRequest, match="empty text"):
        plan_from(store, plan(part(store, p="")), ConvertRequest())
    wider = Struct((SCHEMA.fields[0], Field("id", t.INTEGER)))
    with pytest.raises(InvalidRequest, match="'id' as bigint, the table as int"):
        plan_from(store, plan(part(store), wider), ConvertRequest())


def hides(store: MemoryStore) -> MemoryStore:
    """Its file holds what the table dropped."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"p": ["x"], "id": [1], "old": ["y"]}), sink)
    store.put("p=x/f.parquet", sink.getvalue().to_pybytes())
    return store


@pytest.mark.parametrize("mode", [None, "name"])
def test_what_files_hold_and_the_table_dropped(store: MemoryStore, mode: str | None) -> None:
    """It maps its columns, so that one that comes under the old name is another one in the files."""
    asked = {} if mode is None else {"DELTA.columnMapping.mode": mode}
    found = plan_from(store, plan(part(hides(store))), ConvertRequest(properties=asked))
    assert found.config.metadata.configuration["delta.columnMapping.mode"] == "name"
    assert dict(found.config.physical_names) == {"p": "p", "id": "id"}


def test_a_table_that_must_map_its_columns_and_may_not(store: MemoryStore) -> None:
    assert plan_from(store, plan(part(store)), ConvertRequest()).config.metadata.configuration == {}
    asked = {"delta.columnMapping.mode": "None"}
    with pytest.raises(InvalidRequest, match="hold 'old', which was dropped"):
        plan_from(store, plan(part(hides(store))), ConvertRequest(properties=asked))
