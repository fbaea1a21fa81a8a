"""What the tables about files print: values of every kind, keys, partitions with and without values, and sums."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target
from paimon_tables import HandWritten, write_readings

from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.schema import DataField, SchemaChange, TableSchema, number_fields, parse_type
from alluvium.paimon.schema.logical import logical_schema
from alluvium.paimon.terms.spec import SCANNED_ENTRIES
from alluvium.paimon.view.system import file_tables
from alluvium.paimon.view.system.system_tables import read_system_table
from alluvium.paimon.view.tables import METADATA_TABLES
from alluvium.storage.open import open_store

KEYED = pa.schema([pa.field("p", pa.string(), False), pa.field("k", pa.int32(), False), ("v", pa.float64())])


def state(path: Path) -> Snapshot:
    return load_snapshot(open_store(str(path)))


def keyed(path: Path, **options: str) -> Snapshot:
    """Of one partition files of the levels 0, 5 and one that waits, of the other one of level 1."""
    table = HandWritten(path / "t", KEYED, ["p", "k"], ["p"], **options)
    for p, count, level, bucket in (("a", 1, 0, 0), ("a", 2, 5, 0), ("a", 3, 0, -2), ("b", 4, 1, 0)):
        table.commit([{"p": p, "k": k, "v": k / 4} for k in range(count)], level=level, bucket=bucket)
    return state(path / "t")


def with_entries(snapshot: Snapshot, **columns: list[Any]) -> Snapshot:
    entries = snapshot.entries
    for name, values in columns.items():
        place = entries.schema.get_field_index(name)
        entries = entries.set_column(place, entries.schema.field(place), pa.array(values, entries.field(place).type))
    return replace(snapshot, _loaded={"entries": entries})


def test_files_of_keys(tmp_path: Path) -> None:
    """Those that wait for a bucket are none yet; those of every level are there."""
    snapshot = keyed(tmp_path)
    rows = file_tables.files(snapshot).to_pylist()
    assert [(r["partition"], r["bucket"], r["level"], r["record_count"]) for r in rows] == [
        ("{a}", 0, 0, 1), ("{a}", 0, 5, 2), ("{b}", 0, 1, 4),
    ]  # fmt: skip
    assert [(r["min_key"], r["max_key"]) for r in rows] == [("[0]", "[0]"), ("[0]", "[1]"), ("[0]", "[3]")]
    assert [r["file_format"] for r in rows] == ["parquet"] * 3
    assert (rows[2]["min_value_stats"], rows[2]["max_value_stats"], rows[2]["null_value_counts"]) == (
        "{k=0, p=b, v=0}", "{k=3, p=b, v=0.75}", "{k=0, p=0, v=0}",
    )  # fmt: skip
    assert file_tables.file_key_ranges(snapshot).num_columns == 11


def test_what_made_a_file(tmp_path: Path) -> None:
    snapshot = with_entries(
        keyed(tmp_path), file_source=[0, 1, None, None], file_name=["a.orc", "b.tar.avro", "c", "d"]
    )
    rows = file_tables.files(snapshot).to_pylist()
    assert [r["file_source"] for r in rows] == ["APPEND", "COMPACT", None]
    assert [r["file_format"] for r in rows] == ["orc", "avro", "d"]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("BOOLEAN", True, "true"), ("TINYINT", -3, "-3"), ("BIGINT", 1 << 40, str(1 << 40)), ("STRING", "a, b", "a, b"),
        ("DATE", dt.date(1970, 1, 11), "10"), ("DECIMAL(9, 2)", Decimal("1.50"), "1.50"), ("BYTES", b"x\x00", "b'x\\x00'"),
        ("TIMESTAMP(3)", dt.datetime(2024, 5, 9, 12, 30), "2024-05-09T12:30"),
        ("TIMESTAMP(6)", dt.datetime(2024, 5, 9, 12, 30, 1, 5), "2024-05-09T12:30:01.000005"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", dt.datetime(2024, 5, 9, 12, 30, tzinfo=dt.timezone.utc), "2024-05-09T12:30"),
    ],
)  # fmt: skip
def test_values_as_java_prints_them(tmp_path: Path, kind: str, value: Any, text: str) -> None:
    url = str(tmp_path / "t")
    fields = number_fields(DataField(0, n, parse_type(k)) for n, k in (("k", "INT"), ("c", kind)))
    PaimonTable.create(url, fields, primary_keys=["k"], options={"bucket": "1", "metadata.stats-mode": "full"})
    append(open_target(open_store(url)), [{"k": 7, "c": value}])
    (row,) = file_tables.files(load_snapshot(open_store(url))).to_pylist()
    wanted = "null" if kind == "BYTES" else text
    assert row["min_value_stats"] == row["max_value_stats"] == f"{{c={wanted}, k=7}}"
    append(open_target(open_store(url)), [{"k": 8, "c": None}])
    other = file_tables.files(load_snapshot(open_store(url))).to_pylist()[1]
    assert (other["min_value_stats"], other["null_value_counts"]) == ("{c=null, k=8}", "{c=1, k=0}")
    PaimonTable.create(f"{url}-key", fields, primary_keys=["c", "k"], options={"bucket": "1"})
    append(open_target(open_store(f"{url}-key")), [{"k": 7, "c": value}])
    (row,) = file_tables.files(load_snapshot(open_store(f"{url}-key"))).to_pylist()
    assert (row["min_key"], row["max_key"]) == (f"[{text}, 7]",) * 2


def test_statistics_of_some_columns_and_older_schemas(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, pa.schema([("b", pa.int32()), ("a", pa.string())]))
    append(open_target(open_store(url)), [{"b": 1, "a": "x"}])
    PaimonTable.forPath(url).alter([SchemaChange.rename_column("b", "z"), SchemaChange.drop_column("a")])
    append(open_target(open_store(url)), [{"z": 2}])
    snapshot = load_snapshot(open_store(url))
    first, second = file_tables.files(snapshot).to_pylist()
    assert (first["min_value_stats"], second["min_value_stats"]) == ("{z=1}", "{z=2}")
    # Rows that are too short tell nothing, and counts as many as there are.
    short = with_entries(snapshot, stats_min=[b"", None], stats_nulls=[[], None])
    for row in file_tables.files(short).to_pylist():
        assert (row["min_value_stats"], row["null_value_counts"]) == ("{z=null}", "{z=null}")
    named = with_entries(snapshot, value_stats_cols=[["a"], []], stats_nulls=[[5], []])
    assert [row["null_value_counts"] for row in file_tables.files(named).to_pylist()] == ["{z=null}", "{z=null}"]


def test_sums_by_partition_and_by_bucket(tmp_path: Path) -> None:
    """Partitions count what batch readers see, buckets all that there is."""
    snapshot = keyed(tmp_path, **{"deletion-vectors.enabled": "true"})
    moments = [dt.datetime(2024, 1, n) for n in (1, 5, 3, 2)]
    snapshot = with_entries(snapshot, creation_time=moments)
    sizes = snapshot.entries["file_size"].to_pylist()
    partitions = read_system_table(snapshot, "partitions")
    assert partitions.column_names == [
        "partition", "record_count", "file_size_in_bytes", "file_count", "last_update_time", "created_at", "created_by",
        "updated_by", "options",
    ]  # fmt: skip
    assert [list(row.values())[:5] for row in partitions.to_pylist()] == [
        ["p=a", 2, sizes[1], 1, moments[1]], ["p=b", 4, sizes[3], 1, moments[3]],
    ]  # fmt: skip
    assert [list(row.values()) for row in read_system_table(snapshot, "buckets").to_pylist()] == [
        ["{a}", -2, 3, sizes[2], 1, moments[2]],
        ["{a}", 0, 3, sizes[0] + sizes[1], 2, moments[1]],
        ["{b}", 0, 4, sizes[3], 1, moments[3]],
    ]


def test_tables_without_partitions(tmp_path: Path) -> None:
    write_readings(tmp_path / "t")
    snapshot = state(tmp_path / "t")
    assert file_tables.files(snapshot)["partition"].to_pylist() == ["{}"] * 3
    assert file_tables.partitions(snapshot)["partition"].to_pylist() == [""]
    assert file_tables.buckets(snapshot)["partition"].to_pylist() == ["{}"]
    manifests = file_tables.manifests(snapshot)
    assert (
        set(manifests["min_partition_stats"].to_pylist()) == {"{}"} == set(manifests["max_partition_stats"].to_pylist())
    )
    assert file_tables.live_files(snapshot, None)["partition"].to_pylist() == [[]] * 3
    plain = HandWritten(tmp_path / "u", pa.schema([("n", pa.int32())]))
    plain.commit([{"n": 1}])
    assert file_tables.files(state(tmp_path / "u")).select(["min_key", "max_key"]).to_pylist() == [
        {"min_key": None, "max_key": None}
    ]


def test_values_of_partitions(tmp_path: Path) -> None:
    """Null and blank share a directory, and are told apart where values are shown."""
    url = str(tmp_path / "t")
    schema = pa.schema([("d", pa.date32()), ("s", pa.string()), ("n", pa.int32())])
    PaimonTable.create(url, schema, ["d", "s"], options={"partition.default-name": "nothing"})
    day = dt.date(2024, 5, 9)
    for d, s in ((day, "a"), (None, "a"), (day, None), (day, " ")):
        append(open_target(open_store(url)), [{"d": d, "s": s, "n": 1}])
    snapshot = load_snapshot(open_store(url))
    assert sorted(file_tables.files(snapshot)["partition"].to_pylist()) == [
        "{2024-05-09,  }", "{2024-05-09, a}", "{2024-05-09, null}", "{null, a}",
    ]  # fmt: skip
    assert file_tables.partitions(snapshot).select(["partition", "file_count"]).to_pylist() == [
        {"partition": "d=2024-05-09/s=a", "file_count": 1},
        {"partition": "d=2024-05-09/s=nothing", "file_count": 2},
        {"partition": "d=nothing/s=a", "file_count": 1},
    ]
    manifests = file_tables.manifests(snapshot).to_pylist()
    assert sorted(row["min_partition_stats"] for row in manifests) == [
        "{2024-05-09,  }", "{2024-05-09, a}", "{2024-05-09, null}", "{null, a}",
    ]  # fmt: skip
    live = file_tables.live_files(snapshot, None)["partition"].to_pylist()
    assert sorted(live, key=str) == [
        [("d", "2024-05-09"), ("s", " ")], [("d", "2024-05-09"), ("s", "a")], [("d", "2024-05-09"), ("s", None)],
        [("d", None), ("s", "a")],
    ]  # fmt: skip
    where = parse_predicate("d IS NULL", logical_schema(snapshot.schema), "UTC")
    assert file_tables.live_files(snapshot, where)["partition"].to_pylist() == [[("d", None), ("s", "a")]]


def test_tables_without_snapshots(tmp_path: Path) -> None:
    HandWritten(tmp_path / "t", KEYED, ["p", "k"], ["p"])
    snapshot = state(tmp_path / "t")
    assert snapshot.entries.equals(SCANNED_ENTRIES.empty_table())
    for name in ("files", "manifests", "partitions", "buckets", "table_indexes", "file_key_ranges", "statistics"):
        assert read_system_table(snapshot, name).num_rows == 0, name
    assert file_tables.live_files(snapshot, None).num_rows == 0


def test_metadata_under_deltas_names(tmp_path: Path) -> None:
    """Columns with their places among the keys, what files say of partitions, and what the schema says beside names."""
    fields = number_fields(
        [
            DataField(0, "v", parse_type("INT"), "about v", "5"), DataField(0, "q", parse_type("STRING NOT NULL")),
            DataField(0, "k", parse_type("INT NOT NULL")), DataField(0, "p", parse_type("STRING NOT NULL")),
        ]
    )  # fmt: skip
    PaimonTable.create(str(tmp_path / "t"), fields, ["p", "q"], ["k", "q", "p"], {"bucket": "1"})
    snapshot = state(tmp_path / "t")
    assert list(METADATA_TABLES) == ["files", "commits", "partitions", "columns"]
    found = METADATA_TABLES["columns"](snapshot)
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("v", "INT", True, None, "about v", 0, None, "5"), ("q", "STRING NOT NULL", False, 1, None, 1, 1, None),
        ("k", "INT NOT NULL", False, None, None, 2, 0, None), ("p", "STRING NOT NULL", False, 0, None, 3, 2, None),
    ]  # fmt: skip
    assert [f.name for f in found.schema if f.nullable] == ["partition_index", "comment", "key_index", "default"]
    assert METADATA_TABLES["files"](snapshot).num_rows == METADATA_TABLES["partitions"](snapshot).num_rows == 0


def test_options_that_belong_to_a_column(tmp_path: Path) -> None:
    """Java's names end at the first dot, and one that ends with dots has one part less."""
    fields = number_fields(DataField(0, n, parse_type("INT")) for n in ("k", "a", "ab"))
    options = {
        "fields.a.x": "1", "fields.a.b.c": "2", "fields.a": "3", "fields.a.": "4", "fields.ab.x": "5", "field.a.x": "6",
        "fields.a,ab.x": "7",
    }  # fmt: skip
    PaimonTable.create(str(tmp_path / "t"), fields)
    snapshot = state(tmp_path / "t")
    snapshot = replace(snapshot, schema=TableSchema(0, fields, 2, (), (), options))
    rows = {row["field_name"]: row for row in read_system_table(snapshot, "aggregation_fields").to_pylist()}
    assert (rows["a"]["function"], rows["a"]["function_options"]) == ("[1, 2]", "[fields.a.x, fields.a.b.c]")
    assert (rows["ab"]["function"], rows["k"]["function"]) == ("[5]", "[]")


def test_what_consumers_and_schemas_say(tmp_path: Path) -> None:
    PaimonTable.create(str(tmp_path / "t"), KEYED, ["p"], ["p", "k"], {"bucket": "2", "é": "ü"}, "as it is")
    snapshot = state(tmp_path / "t")
    (row,) = read_system_table(snapshot, "schemas").to_pylist()
    assert (row["schema_id"], row["partition_keys"], row["primary_keys"], row["comment"]) == (
        0, '["p"]', '["p","k"]', "as it is",
    )  # fmt: skip
    assert json.loads(row["options"]) == {"bucket": "2", "é": "ü"} and "é" in row["options"]
    assert read_system_table(replace(snapshot, asked={"é": "x"}), "options").to_pylist() == [
        {"key": "bucket", "value": "2"}
    ]


#: Of each table the columns that may be null; Java's `RowType`s say so.
NULLABLE = {
    "snapshots": "changelog_manifest_list total_record_count delta_record_count changelog_record_count watermark next_row_id",
    "schemas": "comment", "options": "", "tags": "record_count create_time time_retained", "branches": "create_time",
    "consumers": "", "statistics": "mergedRecordCount mergedRecordSize colstat",
    "aggregation_fields": "function function_options comment",
    "manifests": "min_partition_stats max_partition_stats min_row_id max_row_id", "table_indexes": "partition dv_ranges",
    "partitions": "partition last_update_time created_at created_by updated_by options",
}  # fmt: skip


@pytest.mark.parametrize("name", NULLABLE)
def test_columns_that_may_be_null(tmp_path: Path, name: str) -> None:
    write_readings(tmp_path / "t")
    schema = read_system_table(state(tmp_path / "t"), name).schema
    assert [f.name for f in schema if f.nullable] == NULLABLE[name].split()
