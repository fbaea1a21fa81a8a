"""What a job has left in its directory, and which of it counts."""

from __future__ import annotations

import io
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plain_writer import SCHEMA

from alluvium.commands.written import written_files
from alluvium.delta.description.create import new_config
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.write import WritePlan
from alluvium.schema.types import LONG, Field, Struct
from alluvium.storage.stores.memory import MemoryStore


def put(store: MemoryStore, path: str, *ids: int) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), sink)
    store.put(path, sink.getvalue())


def planned(store: MemoryStore, *partition_by: str) -> WritePlan:
    schema = Struct((*SCHEMA.fields, *(Field(name, LONG) for name in partition_by if SCHEMA.find(name) is None)))
    return DeltaTarget(store, new_config(schema, list(partition_by), {}), None).plan_write(None, ())


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "t")


@pytest.mark.parametrize(
    "litter",
    [
        "_temporary/0/_temporary/attempt_1_m_0_1/part-0.parquet",
        "_temporary/0/task_1_m_0/part-0.parquet",
        ".spark-staging-1/part-0.parquet",
        ".hive-staging_1/-ext-10000/part-0.parquet",
        "_SUCCESS",
        ".part-0.parquet.crc",
        "_temporary/0/_temporary/attempt_1_m_0_1/p=a/part-0.parquet",
    ],
)
def test_what_attempts_that_died_left_does_not_count(store: MemoryStore, litter: str) -> None:
    plan = planned(store)
    put(store, f"{plan.directory}/part-0.parquet", 1, 2)
    put(store, f"{plan.directory}/{litter}", 1, 2)
    written, footers = written_files(store, plan)
    assert written["path"].to_pylist() == [f"{plan.directory}/part-0.parquet"]
    assert (written["num_rows"].to_pylist(), len(footers)) == ([2], 1)


def test_a_partition_may_begin_as_litter_does(store: MemoryStore) -> None:
    plan = planned(store, "_p")
    put(store, f"{plan.directory}/_p=1/part-0.parquet", 1)
    put(store, f"{plan.directory}/_temporary/0/task_1_m_0/_p=1/part-0.parquet", 1)
    written, _ = written_files(store, plan)
    assert written["path"].to_pylist() == [f"{plan.directory}/_p=1/part-0.parquet"]
    assert written["partition"].to_pylist() == [["1"]]
