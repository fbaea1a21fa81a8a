"""The state of an Iceberg table as a plan: value by value, and what is said of tables that are none of Delta's."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as i
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform

from alluvium.delta.upkeep.convert.iceberg_state import _Files, plan_of
from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.plan.scan import SCAN_FILES, FileConstant, Physical, ScanPlan
from alluvium.schema import types as t
from alluvium.schema.types import Array, Decimal, Field, Map, Struct
from alluvium.storage.open import open_store

SCHEMA = Schema(
    i.NestedField(1, "id", i.LongType(), doc="a number"), i.NestedField(2, "day", i.DateType()), i.NestedField(3, "name", i.StringType()),
    i.NestedField(4, "s", i.StructType(i.NestedField(5, "a", i.IntegerType(), doc="within"))),
)  # fmt: skip
ARROW = pa.schema(
    [("id", pa.int64()), ("day", pa.date32()), ("name", pa.string()), ("s", pa.struct([("a", pa.int32())]))]
)


def create(folder: Path, schema: Schema = SCHEMA) -> Table:
    catalog = InMemoryCatalog("tests", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    return catalog.create_table("n.t", schema)


def append(table: Table, *rows: tuple[int, int | None, str | None]) -> None:
    days = [None if day is None else dt.date(2024, 1, day) for _, day, _ in rows]
    columns = {
        "id": [n for n, *_ in rows],
        "day": days,
        "name": [name for *_, name in rows],
        "s": [{"a": n} for n, *_ in rows],
    }
    table.append(pa.table(columns, schema=ARROW))


def planned(table: Table) -> ScanPlan:
    return plan_of(open_store(table.location()), state(table))


def state(table: Table) -> str:
    return f"metadata/{table.metadata_location.rpartition('/')[2]}"


def test_files_with_all_that_is_known_of_them(tmp_path: Path) -> None:
    table = create(tmp_path)
    with table.update_spec() as spec:
        spec.add_field("name", IdentityTransform(), "name").add_field("day", IdentityTransform(), "day")
    append(table, (1, 1, "x"), (2, None, "y z"))
    append(table, (3, 2, None))
    store = open_store(table.location())
    plan = planned(table)
    (part,) = plan.parts
    assert (plan.root, plan.partition_columns, part.file_format) == (store.url, ("name", "day"), "parquet")
    assert plan.schema == Struct((
        Field("id", t.LONG, True, {"comment": "a number"}), Field("day", t.DATE), Field("name", t.STRING),
        Field("s", Struct((Field("a", t.INTEGER, True, {"comment": "within"}),))),
    ))  # fmt: skip
    # Values of partitions are no columns of the files.
    assert part.read_schema.names == ("id", "s")
    values = {column.name: column.value for column in part.output}
    assert values == {
        "id": Physical(("id",), t.LONG), "s": Physical(("s",), plan.schema.fields[3].type),
        "day": FileConstant("day", t.DATE), "name": FileConstant("name", t.STRING),
    }  # fmt: skip
    assert part.files.column_names == SCAN_FILES.names and part.files["mask"].null_count == 3
    found = {(row["constants"]["name"], row["constants"]["day"]): row for row in part.files.to_pylist()}
    assert set(found) == {("x", dt.date(2024, 1, 1)), ("y z", None), (None, dt.date(2024, 1, 2))}
    newest = table.current_snapshot()
    assert newest is not None
    for row in found.values():
        assert (store.head(row["path"]).size, row["num_rows"]) == (row["size"], 1) and row["path"].startswith("data/")
        assert row["modification_time_ms"] == newest.timestamp_ms


def test_types_of_columns(tmp_path: Path) -> None:
    pairs: list[tuple[Any, t.DataType]] = [
        (i.BooleanType(), t.BOOLEAN), (i.IntegerType(), t.INTEGER), (i.LongType(), t.LONG), (i.FloatType(), t.FLOAT), (i.DoubleType(), t.DOUBLE),
        (i.StringType(), t.STRING), (i.BinaryType(), t.BINARY), (i.FixedType(3), t.BINARY), (i.DateType(), t.DATE),
        (i.TimestampType(), t.TIMESTAMP_NTZ), (i.TimestamptzType(), t.TIMESTAMP), (i.DecimalType(12, 3), Decimal(12, 3)),
    ]  # fmt: skip
    fields = [i.NestedField(n, f"c{n}", kind) for n, (kind, _) in enumerate(pairs, 1)]
    nested = [
        i.NestedField(50, "l", i.ListType(51, i.LongType())), i.NestedField(60, "m", i.MapType(61, i.StringType(), 62, i.DateType())),
    ]  # fmt: skip
    plan = planned(create(tmp_path, Schema(*fields, *nested)))
    assert plan.parts == () and plan.partition_columns == ()
    assert [f.type for f in plan.schema.fields] == [
        *(kind for _, kind in pairs), Array(t.LONG, True), Map(t.STRING, t.DATE, True)
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [i.UUIDType(), i.TimeType()], ids=str)
def test_types_that_no_delta_table_has(tmp_path: Path, kind: Any) -> None:
    table = create(tmp_path, Schema(i.NestedField(1, "s", i.StructType(i.NestedField(2, "odd", kind)))))
    with pytest.raises(UnsupportedFeature) as caught:
        planned(table)
    error = caught.value
    assert (error.code, error.column, tuple(error.features)) == ("unsupported-type", "odd", (str(kind),))


def refused(table: Table) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        planned(table)
    assert (caught.value.code, caught.value.url) == ("not-convertible", open_store(table.location()).url)
    assert str(caught.value).startswith("the table's files cannot be a Delta table's: ") and caught.value.hint
    return caught.value


def test_tables_whose_files_are_read_by_number(tmp_path: Path) -> None:
    table = create(tmp_path / "renamed")
    append(table, (1, 1, "x"))
    with table.update_schema() as change:
        change.rename_column("name", "title")
    error = refused(table)
    assert "column 'title' was 'name' of type string once" in str(error) and error.path is None
    table = create(tmp_path / "nested")
    with table.update_spec() as spec:
        spec.add_field("s.a", IdentityTransform(), "a")
    append(table, (1, 1, "x"))
    assert "partitioned by the nested field 's.a'" in str(refused(table))
    table = create(tmp_path / "twice")
    append(table, (1, 1, "x"))
    (task,) = table.scan().plan_files()
    moved = Path(table.location().removeprefix("file://"))
    plain = planned(table).parts[0].files["path"][0].as_py()
    assert (moved / plain).exists() and task.file.file_path.endswith(plain)
    # Somebody's file elsewhere is none of the table's.
    path = Path(table.metadata_location.removeprefix("file://"))
    path.write_text(path.read_text().replace("/n/t/metadata/snap", "/n/u/metadata/snap"))
    assert "outside of the table's folder" in str(error := refused(table)) and "/n/u/metadata/snap" in (
        error.path or ""
    )


def test_a_state_that_cannot_be_read(tmp_path: Path) -> None:
    table = create(tmp_path)
    path = Path(table.metadata_location.removeprefix("file://"))
    path.write_text(path.read_text()[:-40])
    with pytest.raises(CorruptTable) as caught:
        planned(table)
    assert (caught.value.code, caught.value.path) == ("damaged-iceberg", state(table))
    assert caught.value.url == open_store(table.location()).url
    with pytest.raises(AlluviumError):
        plan_of(open_store(table.location()), "metadata/gone.metadata.json")


def test_the_tables_own_objects_are_read_and_none_is_written(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "t"))
    store.put("metadata/a b", b"12345")
    files = _Files(store)
    found = files.new_input(f"{store.url}/metadata/a b")
    assert (len(found), found.exists(), found.open().read()) == (5, True, b"12345")
    assert not files.new_input(f"{store.url}/metadata/c").exists()
    for location in (f"{store.url}x/metadata/a b", f"file:{tmp_path}/other", "s3://bucket/t/a"):
        with pytest.raises(InvalidRequest, match="outside of the table's folder") as caught:
            files.new_input(location)
        assert caught.value.path == location
    for act in (files.new_output, files.delete):
        with pytest.raises(PermissionError, match=re.escape("for a conversion: x")):
            act("x")
