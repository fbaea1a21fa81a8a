"""Iceberg tables, written by pyiceberg, become Delta tables where they lie; no Spark is needed."""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, StringType, UUIDType
from pyspark.sql import SparkSession

import alluvium
from alluvium.api.delta.maintenance import convert_table
from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.plan.changes import Preview

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("price", pa.decimal128(10, 2)),
        ("inner", pa.struct([("a", pa.int32()), ("texts", pa.list_(pa.string()))])),
    ]
)
MOMENT = dt.datetime(2024, 1, 1, 12)


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {
            "id": list(ids),
            "day": [None if i % 3 == 0 else dt.date(2024, 1, i) for i in ids],
            "name": [None if i == 2 else f"n{i}" for i in ids],
            "at": [MOMENT.replace(tzinfo=dt.timezone.utc)] * len(ids),
            "local": [MOMENT] * len(ids),
            "price": [decimal.Decimal(f"{i}.50") for i in ids],
            "inner": [None if i == 1 else {"a": i, "texts": ["x", None]} for i in ids],
        },
        schema=SCHEMA,
    )


def made(folder: Path, partition: str | None = "day") -> Table:
    catalog = InMemoryCatalog("tests", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", SCHEMA)
    if partition is not None:
        with table.update_spec() as spec:
            spec.add_field(partition, IdentityTransform(), partition)
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, 6))
    return table


def state(table: Table) -> str:
    """What the table's catalog names."""
    return table.metadata_location


def test_rows_partitions_and_statistics(tmp_path: Path) -> None:
    table = made(tmp_path)
    # Whole files go, and one is written anew.
    table.delete("id = 2 or id = 6")
    expected = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    told = convert_table(state(table), dry_run=True)
    assert isinstance(told, Preview)
    assert not (tmp_path / "n/t/_delta_log").exists()
    convert_table(state(table))
    t = alluvium.open(table.location())
    assert (t.format, t.partition_columns, t.schema.names) == ("delta", ("day",), tuple(SCHEMA.names))
    assert sorted(t.to_arrow().to_pylist(), key=lambda row: row["id"]) == expected
    assert [row["id"] for row in t.to_arrow(where="day is null").to_pylist()] == [3]
    assert [row["id"] for row in t.to_arrow(where="id = 4").to_pylist()] == [4]
    log = tmp_path / "n/t/_delta_log/00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[0]["commitInfo"]["operationParameters"]["sourceFormat"] == "iceberg"
    assert all('"minValues":{"id":' in line["add"]["stats"] for line in lines if "add" in line)


@pytest.mark.spark
def test_by_a_session(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path)
    name = f"iceberg.`{state(table)}`"
    clone = tmp_path / "clone"
    alluvium.enable(spark)
    spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE {name}")
    converted = alluvium.DeltaTable.convertToDelta(spark, name, "day date")
    for read in (converted.toDF(), spark.read.format("delta").load(str(clone))):
        assert sorted(row.id for row in read.where("local = '2024-01-01 12:00:00'").collect()) == [1, 2, 3, 4, 5, 6]
    assert [row.id for row in converted.toDF().where("day = '2024-01-02'").collect()] == [2]


def test_an_added_and_a_dropped_column(tmp_path: Path) -> None:
    table = made(tmp_path, None)
    with table.update_schema() as change:
        change.add_column("extra", StringType())
        change.delete_column("name")
    convert_table(state(table))
    t = alluvium.open(table.location())
    assert "name" not in t.schema.names
    assert t.to_arrow()["extra"].to_pylist() == [None] * 6


def test_a_column_that_comes_under_the_name_of_a_dropped_one(tmp_path: Path) -> None:
    """The files still hold the old one's values, which are none of the new one's."""
    table = made(tmp_path)
    with table.update_schema() as change:
        change.delete_column("name")
    convert_table(state(table))
    alluvium.alter(table.location()).add_columns({"name": "string"})
    found = alluvium.open(table.location()).to_arrow().sort_by("id")
    assert found["name"].to_pylist() == [None] * 6
    assert found["price"].to_pylist() == rows(*range(1, 7))["price"].to_pylist()
    assert alluvium.open(table.location()).to_arrow(where="id = 4")["id"].to_pylist() == [4]


def test_a_table_that_shows_all_maps_nothing(tmp_path: Path) -> None:
    table = made(tmp_path)
    convert_table(state(table))
    log = (tmp_path / "n/t/_delta_log/00000000000000000000.json").read_text()
    assert "columnMapping" not in log


def test_files_of_others_and_forgotten_schemas(tmp_path: Path) -> None:
    table = made(tmp_path, None)
    path = f"{table.location()}/data/more.parquet"
    pq.write_table(rows(7, 8), path.removeprefix("file://"))
    table.add_files([path])
    with table.update_schema() as change:
        change.add_column("extra", StringType())
    expected = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    convert_table(state(table))
    assert sorted(alluvium.open(table.location()).to_arrow().to_pylist(), key=lambda row: row["id"]) == expected


def test_a_hint_may_be_behind(tmp_path: Path) -> None:
    table = made(tmp_path, None)
    metadata = tmp_path / "n/t/metadata"
    names = sorted(metadata.glob("*.metadata.json"))
    for number, path in enumerate(names):
        path.rename(metadata / f"v{number}.metadata.json")
    (metadata / "version-hint.text").write_text(str(len(names) - 2))
    convert_table(table.location())
    assert alluvium.open(table.location()).count() == 6


def test_a_hint_of_before_the_catalog(tmp_path: Path) -> None:
    """Whoever gives a table to a catalog leaves the hint where it is."""
    table = made(tmp_path, None)
    metadata = tmp_path / "n/t/metadata"
    sorted(metadata.glob("*.metadata.json"))[0].rename(metadata / "v1.metadata.json")
    (metadata / "version-hint.text").write_text("1")
    with pytest.raises(InvalidRequest) as caught:
        convert_table(table.location())
    assert caught.value.code == "ambiguous-state"


@pytest.mark.parametrize("behind", [0, 1])
def test_a_packed_state(behind: int, tmp_path: Path) -> None:
    table = made(tmp_path, None)
    metadata = tmp_path / "n/t/metadata"
    names = sorted(metadata.glob("*.metadata.json"))
    for number, path in enumerate(names[:-1]):
        path.rename(metadata / f"v{number}.metadata.json")
    last = metadata / f"v{len(names) - 1}.gz.metadata.json"
    last.write_bytes(gzip.compress(names[-1].read_bytes()))
    names[-1].unlink()
    (metadata / "version-hint.text").write_text(str(len(names) - 1 - behind))
    convert_table(table.location())
    assert alluvium.open(table.location()).count() == 6


def renamed(table: Table) -> None:
    with table.update_schema() as change:
        change.rename_column("name", "title")


def made_anew(table: Table) -> None:
    with table.update_schema() as change:
        change.delete_column("name")
    with table.update_schema() as change:
        change.add_column("name", StringType())


def widened(table: Table) -> None:
    with table.update_schema() as change:
        change.update_column(("inner", "a"), LongType())


def filled(table: Table) -> None:
    with table.update_schema() as change:
        change.add_column("extra", UUIDType())


def partitioned_anew(table: Table) -> None:
    with table.update_spec() as spec:
        spec.add_field("day", IdentityTransform(), "day")
    table.append(rows(7))


def moved(table: Table) -> None:
    """Its state names files in a folder that is none of its own."""
    path = Path(table.metadata_location.removeprefix("file://"))
    path.write_text(path.read_text().replace("/n/t/metadata/snap", "/n/u/metadata/snap"))


def added_twice(table: Table) -> None:
    path = f"{table.location()}/data/more.parquet"
    pq.write_table(rows(7, 8), path.removeprefix("file://"))
    for _ in range(2):
        table.add_files([path], check_duplicate_files=False)


def renamed_and_forgotten(table: Table) -> None:
    """As by whoever expires snapshots, and then schemas that none of them names."""
    renamed(table)
    path = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text())
    document["schemas"] = [s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"]]
    for snapshot in document["snapshots"]:
        del snapshot["schema-id"]
    path.write_text(json.dumps(document))


def mapped(table: Table) -> None:
    """Files of others, without numbers, whose columns the table knows by more names than one."""
    path = f"{table.location()}/data/more.parquet"
    pq.write_table(rows(7, 8), path.removeprefix("file://"))
    table.add_files([path])
    names = rows(7, 8).rename_columns(["ident", *SCHEMA.names[1:]])
    pq.write_table(names, path.removeprefix("file://"))
    mapping = json.loads(table.properties["schema.name-mapping.default"])
    mapping[0]["names"].append("ident")
    with table.transaction() as change:
        change.set_properties(**{"schema.name-mapping.default": json.dumps(mapping)})


def cut(table: Table) -> None:
    path = Path(table.metadata_location.removeprefix("file://"))
    path.write_text(path.read_text()[:-40])


REFUSED: dict[str, tuple[Callable[[Table], None], type[AlluviumError], str]] = {
    "renamed": (renamed, InvalidRequest, "was 'name'"),
    "made anew": (made_anew, InvalidRequest, "is another one in older files"),
    "widened": (widened, InvalidRequest, "of type int once"),
    "a type": (filled, UnsupportedFeature, "uuid"),
    "partitioned anew": (partitioned_anew, InvalidRequest, "partitioned by different columns"),
    "added twice": (added_twice, InvalidRequest, "more than once"),
    "renamed and forgotten": (renamed_and_forgotten, InvalidRequest, "was 'name'"),
    "mapped": (mapped, InvalidRequest, "was 'ident'"),
    "elsewhere": (moved, InvalidRequest, "outside of the table's folder"),
    "damaged": (cut, CorruptTable, "pyiceberg cannot read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    change, kind, text = REFUSED[name]
    table = made(tmp_path, None)
    change(table)
    with pytest.raises(kind, match=text):
        convert_table(state(table))
    assert not (tmp_path / "n/t/_delta_log").exists()


def test_only_the_catalog_knows(tmp_path: Path) -> None:
    table = made(tmp_path, None)
    with pytest.raises(InvalidRequest, match="only its catalog knows") as told:
        convert_table(table.location())
    assert told.value.code == "ambiguous-state"


def test_rows_deleted_by_other_files(tmp_path: Path) -> None:
    table = made(tmp_path, None)
    delete_by_file(table)
    with pytest.raises(InvalidRequest, match="deleted by other files"):
        convert_table(state(table))
    assert not (tmp_path / "n/t/_delta_log").exists()


def delete_by_file(table: Table) -> None:
    """As engines that merge on read: a further manifest, of files that list rows. pyiceberg itself writes none."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    listing = Path(snapshot.manifest_list.removeprefix("file://"))
    with listing.open("rb") as data:
        reader = fastavro.reader(data)
        lists, schema, header = list(reader), reader.writer_schema, reader.metadata
    first = Path(lists[0]["manifest_path"].removeprefix("file://"))
    with first.open("rb") as data:
        reader = fastavro.reader(data)
        entries, entry_schema, entry_header = list(reader), reader.writer_schema, reader.metadata
    for entry in entries:
        entry["data_file"]["content"] = 1
    copy = first.with_name(f"deletes-{first.name}")
    with copy.open("wb") as out:
        fastavro.writer(out, entry_schema, entries, metadata={**own(entry_header), "content": "deletes"})
    deletes = {**lists[0], "manifest_path": f"file://{copy}", "manifest_length": copy.stat().st_size, "content": 1}
    with listing.open("wb") as out:
        fastavro.writer(out, schema, [*lists, deletes], metadata=own(header))


def own(header: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in header.items() if not name.startswith("avro.")}
