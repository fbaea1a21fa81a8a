"""A folder of Parquet files becomes a table: what the log says then, and what is refused."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alluvium
from alluvium.delta.upkeep.convert.conversion import ConvertRequest
from alluvium.delta.upkeep.convert.convert import convert, plan_conversion
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import AlluviumError, CommitConflict, InvalidRequest, NotFound
from alluvium.plan.changes import Preview
from alluvium.schema import types as t
from alluvium.schema.ddl import parse_fields
from alluvium.storage.store import Store
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "table")


def put(store: Store, path: str, rows: pa.Table | None = None, **options: object) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1, 2]}) if rows is None else rows, sink, **options)
    store.put(path, sink.getvalue().to_pybytes())


def request(partitions: str | None = None, **said: object) -> ConvertRequest:
    return ConvertRequest(None if partitions is None else parse_fields(partitions), **said)


def adds(store: Store, wanted: ConvertRequest | None = None) -> dict[str, dict[str, object]]:
    convert(store, wanted or ConvertRequest())
    lines = store.get("_delta_log/00000000000000000000.json").decode().splitlines()
    found = [json.loads(line)["add"] for line in lines if line.startswith('{"add"')]
    return {add["path"]: add for add in found}


def test_files_with_their_statistics(store: MemoryStore) -> None:
    rows = pa.table({"id": [1, 2, 3], "s": ["a", None, "b"], "l": [[1], None, [2]], "st": [{"x": 1, "y": "q"}] * 3})
    put(store, "a b%20ü.parquet", rows)
    put(store, "sub/deeper/b", rows)
    for hidden in ("_SUCCESS", ".x.crc", "_hidden/c.parquet", ".dot/c.parquet", "_delta_log/_staged/x"):
        store.put(hidden, b"no Parquet")
    found = adds(store)
    assert sorted(found) == ["a%20b%2520ü.parquet", "sub/deeper/b"]
    assert json.loads(found["sub/deeper/b"]["stats"]) == {
        "numRecords": 3,
        "minValues": {"id": 1, "s": "a", "st": {"x": 1, "y": "q"}},
        "maxValues": {"id": 3, "s": "b", "st": {"x": 1, "y": "q"}},
        "nullCount": {"id": 0, "s": 1, "l": 1, "st": {"x": 0, "y": 0}},
    }
    assert found["sub/deeper/b"]["partitionValues"] == {}
    snapshot = load_snapshot(store)
    assert snapshot.config.protocol.min_writer_version == 2
    assert store.head("_delta_log/_last_checkpoint").size > 0
    assert alluvium.open(store.url).count() == 6


def test_without_statistics(store: MemoryStore) -> None:
    put(store, "f.parquet")
    assert "stats" not in adds(store, request(statistics=False))["f.parquet"]


def test_partitions_by_the_names_of_folders(store: MemoryStore) -> None:
    put(store, "x/day=2024-01-01/shop%3D1=a%2Fb/f.parquet")
    put(store, "x/day=2024-01-02/shop%3D1=__HIVE_DEFAULT_PARTITION__/f.parquet")
    with pytest.raises(InvalidRequest, match="shop=1"):
        convert(store, ConvertRequest())
    put(store, "_later=3/f.parquet")
    store.delete_tree("x")
    found = adds(store)
    assert found["_later=3/f.parquet"]["partitionValues"] == {"_later": "3"}


def test_types_that_are_given_and_inferred(store: MemoryStore) -> None:
    put(store, "day=2024-01-01/n=01/t=2024-05-01 10%3A00%3A00/f.parquet")
    put(store, "day=__HIVE_DEFAULT_PARTITION__/n=2/t=2024-05-01 10%3A00%3A00.5/f.parquet")
    plan = plan_conversion(store, request(zone="Europe/Berlin"))
    assert [(f.name, f.type) for f in plan.config.schema.fields] == [
        ("id", t.LONG), ("day", t.DATE), ("n", t.INTEGER), ("t", t.TIMESTAMP),
    ]  # fmt: skip
    values = [dict(pairs) for pairs in plan.files.column("partitionValues").to_pylist()]
    assert values[0] == {"day": "2024-01-01", "n": "01", "t": "2024-05-01T08:00:00.000000Z"}
    assert values[1]["day"] is None
    convert(store, request("day date, n string, t timestamp_ntz"))
    rows = alluvium.open(store.url).to_arrow().to_pylist()
    assert {"id": 1, "day": date(2024, 1, 1), "n": "01", "t": datetime(2024, 5, 1, 10)} in rows
    assert "timestampNtz" in alluvium.open(store.url).protocol.writer_features


def test_one_schema_out_of_many(store: MemoryStore) -> None:
    put(store, "1", pa.table({"id": pa.array([1], pa.int16()), "s": [{"a": 1}], "p": [5]}))
    put(store, "2", pa.table({"ID": pa.array([2], pa.int32()), "s": [{"b": "x"}], "n": [True]}))
    found = adds(store)
    assert str(load_snapshot(store).config.schema) == (
        "struct<id:int,s:struct<a:bigint,b:string>,p:bigint,n:boolean>"
    )  # fmt: skip
    assert json.loads(found["1"]["stats"])["nullCount"] == {"id": 0, "s": {"a": 0, "b": 1}, "p": 0, "n": 1}
    assert json.loads(found["2"]["stats"])["nullCount"] == {"s": {"a": 1, "b": 0}, "p": 1, "n": 0}
    assert alluvium.open(store.url).to_arrow(where="id = 2").to_pylist() == [
        {"id": 2, "s": {"a": None, "b": "x"}, "p": None, "n": True}
    ]


def test_a_partition_column_that_files_have_too(store: MemoryStore) -> None:
    put(store, "p=1/f.parquet", pa.table({"p": [7, 8], "id": [1, 2]}))
    assert json.loads(adds(store)["p=1/f.parquet"]["stats"])["minValues"] == {"id": 1}
    assert alluvium.open(store.url).to_arrow().to_pylist() == [{"p": 1, "id": 1}, {"p": 1, "id": 2}]


def test_properties(store: MemoryStore) -> None:
    put(store, "f.parquet")
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": "name",
        "delta.enableRowTracking": "true",
    }
    with pytest.raises(InvalidRequest) as caught:
        convert(store, request(properties=properties, statistics=False))
    assert caught.value.code == "row-ids-without-statistics"
    with pytest.raises(InvalidRequest, match="no ids"):
        convert(store, request(properties={"delta.columnMapping.mode": "id"}))
    found = adds(store, request(properties=properties))["f.parquet"]
    assert (json.loads(found["stats"])["tightBounds"], found["baseRowId"]) == (True, 0)
    assert alluvium.open(store.url).to_arrow().to_pylist() == [{"id": 1}, {"id": 2}]


def test_nothing_is_written_by_a_dry_run(store: MemoryStore) -> None:
    put(store, "f.parquet")
    done = convert(store, ConvertRequest(), dry_run=True)
    assert isinstance(done, Preview)
    assert (done.version, done.added, done.operation.metrics) == (-1, ("f.parquet",), {"numConvertedFiles": "1"})
    assert [info.path for info in store.list_tree("")] == ["f.parquet"]


REFUSED = {
    "no-parquet-files": (("_a.parquet",), None),
    "partition-folders": (("p=1/f", "q=1/f"), None),
    "partition-folders 2": (("p=1/f", "f"), None),
    "partition-folders 3": (("p=1/f",), "p int, q int"),
    "partition-folders 4": (("p=/f",), None),
    "partition-value": (("p=1/f", "p=x/f"), "p int"),
    "table-inside": (("f", "sub/_delta_log/00000000000000000000.json"), None),
    "partition-type": (("p=1/f", "p=2/f"), "p variant"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_folders_that_do_not_fit(store: MemoryStore, name: str) -> None:
    paths, partitions = REFUSED[name]
    for path in paths:
        put(store, path)
    with pytest.raises(AlluviumError) as caught:
        convert(store, request(partitions))
    assert caught.value.code == name.partition(" ")[0]
    assert caught.value.hint
    assert all("_delta_log/0" not in info.path or "sub" in info.path for info in store.list_tree(""))


FILES = {
    "schemas-differ": pa.table({"id": ["text"]}),
    "unsupported-type": pa.table({"n": pa.array([1], pa.timestamp("ns"))}),
    "invalid-column-name": pa.table({"a b": [1]}),
}


@pytest.mark.parametrize("code", FILES)
def test_files_that_do_not_fit(store: MemoryStore, code: str) -> None:
    put(store, "1")
    put(store, "2", FILES[code])
    with pytest.raises(AlluviumError) as caught:
        convert(store, ConvertRequest())
    assert caught.value.code == code
    assert code == "invalid-column-name" or caught.value.path == "2"
    assert caught.value.column is not None


def test_what_is_no_parquet(store: MemoryStore) -> None:
    put(store, "1")
    store.put("notes.txt", b"these are no rows at all")
    with pytest.raises(InvalidRequest) as caught:
        convert(store, ConvertRequest())
    assert (caught.value.code, caught.value.path) == ("not-parquet", "notes.txt")


class Replacing(MemoryStore):
    """Somebody puts another file in a file's place, or takes it away, behind the listing."""

    changed: bytes | None = b""

    def list_columns(self, *asked: object) -> Iterator[pa.RecordBatch]:
        """As ever, and then it happens."""
        yield from super().list_columns(*asked)
        if self.changed is None:
            self.delete("f.parquet")
        else:
            self.put("f.parquet", self.changed)


@pytest.mark.parametrize(
    ("is_there", "error", "code"), [(True, InvalidRequest, "file-changed"), (False, NotFound, None)]
)
def test_a_file_that_is_still_being_written(is_there: bool, error: type[AlluviumError], code: str | None) -> None:
    store = Replacing(uuid.uuid4().hex, "table")
    put(store, "e.parquet")
    put(store, "f.parquet", pa.table({"id": list(range(1000))}))
    store.changed = store.get("f.parquet") if is_there else None
    put(store, "f.parquet")
    with pytest.raises(error, match=r"f\.parquet") as caught:
        convert(store, ConvertRequest())
    assert code is None or caught.value.code == code
    assert not store.list_from("_delta_log"), "nothing is written"


def test_files_of_some_folders_alone(store: MemoryStore) -> None:
    for path in ("p=1/f.parquet", "p=10/f.parquet", "p=2/deeper/f.parquet", "f.parquet"):
        put(store, path)
    plan = plan_conversion(store, request("p int", folders=("p=1", "p=2")))
    assert plan.files["path"].to_pylist() == ["p=1/f.parquet", "p=2/deeper/f.parquet"]
    with pytest.raises(NotFound):
        plan_conversion(store, request("p int", folders=("p=3",)))


def test_a_hidden_file_below_a_folder_with_a_line_break(store: MemoryStore) -> None:
    put(store, "p=a\nb/f.parquet")
    put(store, "p=a\nb/_g.parquet")
    assert list(adds(store)) == ["p=a%0Ab/f.parquet"]


def test_somebody_was_faster(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, "f.parquet")
    plan = plan_conversion(store, ConvertRequest())
    convert(store, ConvertRequest())
    monkeypatch.setattr("alluvium.delta.upkeep.convert.convert.plan_conversion", lambda *_: plan)
    with pytest.raises(CommitConflict):
        convert(store, ConvertRequest())
    assert load_snapshot(store).version == 0


def test_a_folder_that_is_not_there() -> None:
    with pytest.raises(NotFound):
        convert(MemoryStore(uuid.uuid4().hex, "nowhere"), ConvertRequest())
