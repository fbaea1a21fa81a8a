"""Which files of other tables can be a Delta table's."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.delta.upkeep.convert.conversion import ConvertRequest
from alluvium.delta.upkeep.convert.planned import plan_from
from alluvium.errors import InvalidRequest, NotFound
from alluvium.plan.scan import (
    SCAN_FILES,
    FileConstant,
    KeyMerge,
    Literal,
    OutputColumn,
    Physical,
    RowPosition,
    ScanPart,
    ScanPlan,
)
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


TWO = Struct((Field("id", t.LONG), Field("q", t.INTEGER), Field("p", t.STRING)))


def parts(store: MemoryStore, *groups: list[tuple[str, str | None, int | None]]) -> ScanPlan:
    """Parts of files: of each its path, and its values of `p` and `q`, of which constants name `q` first."""
    made = []
    for number, group in enumerate(groups):
        for path, *_ in group:
            store.put(path, store.get("p=x/f.parquet"))
        constants = pa.StructArray.from_arrays(
            [pa.array([q for *_, q in group], pa.int32()), pa.array([p for _, p, _ in group], pa.string())],
            names=["q", "p"],
        )
        files = pa.table({
            "path": pa.array([path for path, *_ in group], pa.string()), "size": pa.array([store.head(path).size for path, *_ in group], pa.int64()),
            "modification_time_ms": pa.array(range(len(group)), pa.int64()), "num_rows": pa.array([1] * len(group), pa.int64()),
            "constants": constants, "mask": pa.nulls(len(group), pa.binary()),
        })  # fmt: skip
        output = (
            OutputColumn("id", t.LONG, True, Physical(("id",), t.LONG)),
            OutputColumn("q", t.INTEGER, True, FileConstant("q", t.INTEGER)),
            OutputColumn("p", t.STRING, True, FileConstant("p", t.STRING)),
        )
        made.append(ScanPart(f"part {number}", files, "parquet", TWO, output))
    return ScanPlan("memory:x", tuple(made), TWO, ("p", "q"))


def test_files_of_all_parts_in_the_order_of_their_paths(store: MemoryStore) -> None:
    found = plan_from(
        store, parts(store, [("d", "x", 1), ("b", None, 2)], [], [("c", "y", None), ("a b", "z", -3)]), ConvertRequest()
    )
    assert found.config.schema.names == ("id", "q", "p") and found.config.partition_columns == ("p", "q")
    rows = [(row["path"], row["partitionValues"], row["modificationTime"]) for row in found.files.to_pylist()]
    assert rows == [
        ("a%20b", [("p", "z"), ("q", "-3")], 1), ("b", [("p", None), ("q", "2")], 1), ("c", [("p", "y"), ("q", None)], 0),
        ("d", [("p", "x"), ("q", "1")], 0),
    ]  # fmt: skip


def test_a_plan_of_no_files(store: MemoryStore) -> None:
    for plan_ in (parts(store), parts(store, [], [])):
        with pytest.raises(NotFound) as caught:
            plan_from(store, plan_, ConvertRequest())
        assert (caught.value.code, caught.value.url) == ("no-parquet-files", store.url)


def test_the_one_part_that_does_not_fit_is_named(store: MemoryStore) -> None:
    plan_ = parts(store, [("a", "x", 1)], [("b", "x", 1)])
    odd = replace(plan_.parts[1], file_format="orc")
    with pytest.raises(InvalidRequest, match="they are orc") as caught:
        plan_from(store, replace(plan_, parts=(plan_.parts[0], odd)), ConvertRequest())
    assert (caught.value.code, caught.value.path) == ("not-convertible", "b")


@pytest.mark.parametrize(
    ("said", "fits"), [(("p", "q"), True), (("P", "Q"), True), (("q", "p"), False), (("p",), False)]
)
def test_partition_columns_that_are_said_are_those_of_the_plan(
    store: MemoryStore, said: tuple[str, ...], fits: bool
) -> None:
    types = {"p": t.STRING, "q": t.INTEGER}
    request = ConvertRequest(tuple(Field(name, types[name.lower()]) for name in said))
    plan_ = parts(store, [("a", "x", 1)])
    if fits:
        assert plan_from(store, plan_, request).config.partition_columns == ("p", "q")
        return
    with pytest.raises(InvalidRequest) as caught:
        plan_from(store, plan_, request)
    assert caught.value.code == "partition-schema"


LATER = Struct((Field("p", t.STRING), Field("id", t.LONG), Field("new", t.LONG)))


@pytest.mark.parametrize(
    ("value", "held", "problem"),
    [
        (Physical(("new",), t.LONG), None, None), (Physical(("old",), t.LONG), None, "column 'new' is called 'old' in them"),
        (Physical(("s", "new"), t.LONG), None, "column 'new' is called 'new' in them"), (Literal(None, t.LONG), None, None),
        (Literal(None, t.LONG), SCHEMA, None), (Literal(None, t.LONG), Struct((Field("NEW", t.LONG),)), "'new' is another one in them, which was dropped"),
        (Literal(7, t.LONG), None, "column 'new' had another type when they were written"), (FileConstant("new", t.LONG), None, None),
        (RowPosition(), None, "had another type when they were written"),
    ],
)  # fmt: skip
def test_columns_that_do_not_come_out_of_files_as_they_stand(
    store: MemoryStore, value: Any, held: Struct | None, problem: str | None
) -> None:
    one = part(store)
    one = replace(one, output=(*one.output, OutputColumn("new", t.LONG, True, value)), held=held)
    if problem is None:
        assert plan_from(store, plan(one, LATER), ConvertRequest()).config.schema.names == ("p", "id", "new")
        return
    with pytest.raises(InvalidRequest) as caught:
        plan_from(store, plan(one, LATER), ConvertRequest())
    assert (caught.value.code, caught.value.path) == ("not-convertible", "p=x/f.parquet") and problem in str(
        caught.value
    )
    # What is beside the table's columns does not matter.
    plan_from(store, plan(one, SCHEMA), ConvertRequest())
