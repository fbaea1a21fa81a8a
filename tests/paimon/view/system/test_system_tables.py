"""System tables of a small table whose every figure is known."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target
from paimon_tables import HandWritten

import alluvium
from alluvium.errors import InvalidRequest
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.view.source import PaimonSource
from alluvium.storage.open import open_store

COLUMNS = pa.schema(
    [
        pa.field("k", pa.int32(), False),
        ("day", pa.date32()),
        ("note", pa.string()),
        ("at", pa.timestamp("us")),
        ("b", pa.binary()),
    ]
)
NINTH, TENTH = dt.date(2024, 5, 9), dt.date(2024, 5, 10)
NOON = dt.datetime(2024, 5, 9, 12, 30, 0, 250_000)


@pytest.fixture
def parted(tmp_path: Path) -> str:
    """An append table: two commits, three files, a schema that was altered between them."""
    url = str(tmp_path / "t")
    PaimonTable.create(url, COLUMNS, ["day", "note"], options={"owner": "me"}, comment="rows")
    store = open_store(url)
    append(
        open_target(store),
        [{"k": 1, "day": NINTH, "note": "a", "at": NOON, "b": b"x"}, {"k": 2, "day": NINTH, "note": "a"}],
    )
    PaimonTable.forPath(url).alter([SchemaChange.add_column("z", "INT")])
    append(open_target(store), [{"k": 3, "day": None, "note": " "}, {"k": 4, "day": TENTH, "note": "b", "z": 7}])
    return url


def system(url: str, name: str, **at: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = alluvium.open(url, **at).system(name).to_pylist()
    return rows


def document(url: str, number: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(url, f"snapshot/snapshot-{number}").read_text())
    return found


def moment(milliseconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=milliseconds)


def test_snapshots(parted: str) -> None:
    first, second = system(parted, "snapshots")
    said = document(parted, 1)
    assert first == {
        "snapshot_id": 1, "schema_id": 0, "commit_user": said["commitUser"], "commit_identifier": (1 << 63) - 1,
        "commit_kind": "APPEND", "commit_time": moment(said["timeMillis"]),
        "base_manifest_list": said["baseManifestList"], "delta_manifest_list": said["deltaManifestList"],
        "changelog_manifest_list": None, "total_record_count": 2, "delta_record_count": 2,
        "changelog_record_count": None, "watermark": None, "next_row_id": said.get("nextRowId"),
    }  # fmt: skip
    assert (second["snapshot_id"], second["schema_id"], second["total_record_count"]) == (2, 1, 4)
    kinds = alluvium.open(parted).system("snapshots").schema
    assert [f.name for f in kinds if f.nullable] == [
        "changelog_manifest_list", "total_record_count", "delta_record_count", "changelog_record_count", "watermark",
        "next_row_id",
    ]  # fmt: skip


def test_schemas(parted: str) -> None:
    first, second = system(parted, "schemas")
    said = json.loads(Path(parted, "schema/schema-0").read_text())
    assert first == {
        "schema_id": 0, "fields": json.dumps(said["fields"], separators=(",", ":")),
        "partition_keys": '["day","note"]', "primary_keys": "[]", "options": '{"owner":"me"}', "comment": "rows",
        "update_time": moment(said["timeMillis"]),
    }  # fmt: skip
    assert second["schema_id"] == 1
    assert [f["name"] for f in json.loads(second["fields"])] == ["k", "day", "note", "at", "b", "z"]
    assert [f.name for f in alluvium.open(parted).system("schemas").schema if f.nullable] == ["comment"]


def test_options_are_the_tables_own(parted: str) -> None:
    assert system(parted, "options") == [{"key": "owner", "value": "me"}]
    asked = system(parted, "options", options={"scan.snapshot-id": "1"})
    assert asked == [{"key": "owner", "value": "me"}]


def test_tags(parted: str) -> None:
    said = document(parted, 1)
    for name, more in (
        ("zero", {}),
        ("text", {"tagCreateTime": "2024-05-09T12:30:00.250123456", "tagTimeRetained": "PT1H"}),
        ("list", {"tagCreateTime": [2024, 5, 9, 12, 30], "tagTimeRetained": 3600.5}),
        ("long", {"tagCreateTime": [2024, 5, 9, 12, 30, 7, 250_000_000]}),
        ("odd", {"tagCreateTime": [2024, 5, 9, 12]}),
    ):
        Path(parted, "tag").mkdir(exist_ok=True)
        Path(parted, f"tag/tag-{name}").write_text(json.dumps({**said, **more}))
    found = {row.pop("tag_name"): row for row in system(parted, "tags")}
    assert list(found) == ["list", "long", "odd", "text", "zero"]
    common = {"snapshot_id": 1, "schema_id": 0, "commit_time": moment(said["timeMillis"]), "record_count": 2}
    assert found["zero"] == {**common, "create_time": None, "time_retained": None}
    assert found["text"] == {**common, "create_time": NOON, "time_retained": "PT1H"}
    assert found["list"] == {**common, "create_time": dt.datetime(2024, 5, 9, 12, 30), "time_retained": "3600.5"}
    assert found["long"]["create_time"] == dt.datetime(2024, 5, 9, 12, 30, 7, 250_000)
    assert found["odd"]["create_time"] is None


def test_branches_and_consumers(parted: str) -> None:
    assert system(parted, "branches") == system(parted, "consumers") == []
    for name in ("b", "a"):
        folder = Path(parted, f"branch/branch-{name}/schema")
        folder.mkdir(parents=True)
        for number in (0, 1):
            (folder / f"schema-{number}").write_bytes(Path(parted, "schema/schema-0").read_bytes())
    Path(parted, "consumer").mkdir()
    for name, following in (("z", 2), ("y", 5)):
        Path(parted, f"consumer/consumer-{name}").write_text(json.dumps({"nextSnapshot": following}))
    rows = system(parted, "branches")
    assert [row["branch_name"] for row in rows] == ["a", "b"]
    oldest = min(path.stat().st_mtime_ns // 1_000_000 for path in Path(parted, "branch/branch-a/schema").iterdir())
    assert rows[0]["create_time"] == moment(oldest)
    assert system(parted, "consumers") == [
        {"consumer_id": "y", "next_snapshot_id": 5}, {"consumer_id": "z", "next_snapshot_id": 2},
    ]  # fmt: skip


def test_files(parted: str) -> None:
    rows = {
        row["record_count"] * 10 + row["schema_id"]: row for row in system(parted, "files") if row["schema_id"] == 0
    }
    (row,) = rows.values()
    (entry,) = (e for e in load_snapshot(open_store(parted)).entries.to_pylist() if e["schema_id"] == 0)
    path = row.pop("file_path")
    assert path.endswith(f"day=19852/note=a/bucket-0/{entry['file_name']}")
    assert Path(path if path.startswith("/") else f"{parted}/{path}").exists()
    assert row == {
        "partition": "{2024-05-09, a}", "bucket": 0, "file_format": "parquet", "schema_id": 0, "level": 0,
        "record_count": 2, "file_size_in_bytes": entry["file_size"], "min_key": None, "max_key": None,
        "null_value_counts": "{at=1, b=1, day=0, k=0, note=0, z=null}",
        "min_value_stats": "{at=2024-05-09T12:30:00.250, b=null, day=19852, k=1, note=a, z=null}",
        "max_value_stats": "{at=2024-05-09T12:30:00.250, b=null, day=19852, k=2, note=a, z=null}",
        "min_sequence_number": entry["min_sequence_number"], "max_sequence_number": entry["max_sequence_number"],
        "creation_time": entry["creation_time"], "deleteRowCount": 0, "file_source": "APPEND", "first_row_id": None,
        "write_cols": None,
    }  # fmt: skip
    others = sorted(
        (row["partition"], row["min_value_stats"]) for row in system(parted, "files") if row["schema_id"] == 1
    )
    assert others == [
        ("{2024-05-10, b}", "{at=null, b=null, day=19853, k=4, note=b, z=7}"),
        ("{null,  }", "{at=null, b=null, day=null, k=3, note= , z=null}"),
    ]


def test_partitions_and_buckets(parted: str) -> None:
    entries = load_snapshot(open_store(parted)).entries.to_pylist()
    sizes = {(e["schema_id"], e["stats_min"]): e["file_size"] for e in entries}
    rows = {row["partition"]: row for row in system(parted, "partitions")}
    assert (
        list(rows) == ["day=2024-05-09/note=a", *sorted(set(rows) - {"day=2024-05-09/note=a"}, reverse=True)]
        or len(rows) == 3
    )
    assert set(rows) == {
        "day=2024-05-09/note=a",
        "day=2024-05-10/note=b",
        "day=__DEFAULT_PARTITION__/note=__DEFAULT_PARTITION__",
    }
    first = rows["day=2024-05-09/note=a"]
    assert (first["record_count"], first["file_count"]) == (2, 1)
    assert sum(row["file_size_in_bytes"] for row in rows.values()) == sum(sizes.values())
    assert {first[name] for name in ("created_at", "created_by", "updated_by", "options")} == {None}
    assert first["last_update_time"] == next(e["creation_time"] for e in entries if e["schema_id"] == 0)
    append(open_target(open_store(parted)), [{"k": 9, "day": NINTH, "note": "a"}])
    rows = {row["partition"]: row for row in system(parted, "partitions")}
    assert (rows["day=2024-05-09/note=a"]["record_count"], rows["day=2024-05-09/note=a"]["file_count"]) == (3, 2)
    buckets = {(row["partition"], row["bucket"]): row for row in system(parted, "buckets")}
    assert set(buckets) == {("{2024-05-09, a}", 0), ("{2024-05-10, b}", 0), ("{null,  }", 0)}
    assert buckets["{2024-05-09, a}", 0]["record_count"] == 3


def test_manifests(parted: str) -> None:
    rows = system(parted, "manifests")
    assert [(r["num_added_files"], r["num_deleted_files"], r["schema_id"]) for r in rows] == [(1, 0, 0), (2, 0, 1)]
    assert [r["file_size"] for r in rows] == [Path(parted, "manifest", r["file_name"]).stat().st_size for r in rows]
    assert [(r["min_partition_stats"], r["max_partition_stats"]) for r in rows] == [
        ("{2024-05-09, a}", "{2024-05-09, a}"), ("{2024-05-10,  }", "{2024-05-10, b}"),
    ]  # fmt: skip
    assert {(r["min_row_id"], r["max_row_id"]) for r in rows} == {(None, None)}
    empty = PaimonTable.create(f"{parted}-empty", COLUMNS)
    assert empty is not None
    for name in ("manifests", "snapshots", "files", "partitions", "buckets", "statistics", "table_indexes"):
        assert system(f"{parted}-empty", name) == [], name


def test_manifests_of_a_changelog_count(parted: str) -> None:
    said = document(parted, 2)
    Path(parted, "snapshot/snapshot-2").write_text(
        json.dumps({**said, "changelogManifestList": said["deltaManifestList"]})
    )
    assert [row["num_added_files"] for row in system(parted, "manifests")] == [1, 2, 2]


def test_statistics(parted: str) -> None:
    assert system(parted, "statistics") == []
    Path(parted, "snapshot/snapshot-2").write_text(json.dumps({**document(parted, 2), "statistics": "stat-1"}))
    assert system(parted, "statistics") == []
    Path(parted, "statistics").mkdir()
    said = {
        "snapshotId": 1,
        "schemaId": 0,
        "mergedRecordCount": 4,
        "mergedRecordSize": 99,
        "colStats": {"é": {"max": 3}},
    }
    Path(parted, "statistics/stat-1").write_text(json.dumps(said))
    assert system(parted, "statistics") == [
        {"snapshot_id": 1, "schema_id": 0, "mergedRecordCount": 4, "mergedRecordSize": 99, "colstat": '{"é":{"max":3}}'}
    ]


def test_aggregations(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    options = {
        "merge-engine": "aggregation", "bucket": "1", "fields.v.aggregate-function": "listagg",
        "fields.v.list-agg-delimiter": ";", "fields.vv.aggregate-function": "max",
    }  # fmt: skip
    PaimonTable.create(
        url, pa.schema([("k", pa.int32()), ("v", pa.string()), ("vv", pa.int32())]), primary_keys=["k"], options=options
    )
    assert system(url, "aggregation_fields") == [
        {"field_name": "k", "field_type": "INT NOT NULL", "function": "[]", "function_options": "[]", "comment": None},
        {
            "field_name": "v",
            "field_type": "STRING",
            "function": "[listagg, ;]",
            "function_options": "[fields.v.aggregate-function, fields.v.list-agg-delimiter]",
            "comment": None,
        },
        {
            "field_name": "vv",
            "field_type": "INT",
            "function": "[max]",
            "function_options": "[fields.vv.aggregate-function]",
            "comment": None,
        },
    ]
    PaimonTable.forPath(url).alter([SchemaChange.update_column_comment("v", "said")])
    assert [row["comment"] for row in system(url, "aggregation_fields")] == [None, "said", None]


def test_manifests_say_which_rows_they_have(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, pa.schema([("k", pa.int32())]), options={"row-tracking.enabled": "true"})
    for count in (2, 1):
        append(open_target(open_store(url)), [{"k": k} for k in range(count)])
    assert [(r["min_row_id"], r["max_row_id"]) for r in system(url, "manifests")] == [(0, 1), (2, 2)]


def test_indexes(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    schema = pa.schema([pa.field("day", pa.date32(), False), pa.field("k", pa.int32(), False)])
    PaimonTable.create(url, schema, ["day"], ["day", "k"], options={"bucket": "-1"})
    append(open_target(open_store(url)), [{"k": k, "day": NINTH} for k in range(3)])
    (row,) = system(url, "table_indexes")
    assert row.pop("file_name").startswith("index-")
    assert row == {
        "partition": "{2024-05-09}", "bucket": 0, "index_type": "HASH", "file_size": 12, "row_count": 3,
        "dv_ranges": None,
    }  # fmt: skip
    assert alluvium.open(url).system("table_indexes").schema.field("dv_ranges").type.value_type.num_fields == 4


def test_keys_of_files(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            pa.field("a", pa.string(), False),
            pa.field("b", pa.int32(), False),
            ("v", pa.list_(pa.int32())),
            ("d", pa.date32()),
        ]
    )
    table = HandWritten(tmp_path / "t", schema, ["a", "b"])
    table.commit([{"a": "x", "b": 1, "d": NINTH}, {"a": "y", "b": 0, "v": [1]}], ["+I", "-D"])
    (row,) = system(str(tmp_path / "t"), "files")
    assert (row["min_key"], row["max_key"], row["deleteRowCount"], row["file_source"]) == ("[x, 0]", "[y, 1]", 1, None)
    # What is nested has no statistics.
    assert row["min_value_stats"] == "{a=x, b=0, d=19852, v=null}"
    assert row["null_value_counts"] == "{a=0, b=0, d=1, v=null}"


def test_key_ranges_of_files(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", pa.schema([pa.field("a", pa.int32(), False)]), ["a"])
    table.commit([{"a": 3}, {"a": 7}])
    table.commit([{"a": 5}])
    rows = system(str(tmp_path / "t"), "file_key_ranges")
    assert list(rows[0]) == [
        "partition", "bucket", "file_path", "file_format", "schema_id", "level", "record_count", "file_size_in_bytes",
        "min_key", "max_key", "first_row_id",
    ]  # fmt: skip
    assert [(row["min_key"], row["max_key"], row["record_count"]) for row in rows] == [
        ("[3]", "[7]", 2),
        ("[5]", "[5]", 1),
    ]


def test_what_files_say_to_users(parted: str) -> None:
    rows = sorted(alluvium.open(parted).files().to_pylist(), key=lambda row: row["num_rows"] * 10 - row["schema_id"])
    last = rows[-1]
    (entry,) = (e for e in load_snapshot(open_store(parted)).entries.to_pylist() if e["schema_id"] == 0)
    assert last.pop("path").endswith(f"note=a/bucket-0/{entry['file_name']}")
    assert last == {
        "size": entry["file_size"], "num_rows": 2, "partition": [("day", "2024-05-09"), ("note", "a")],
        "modification_time": entry["creation_time"].replace(tzinfo=dt.timezone.utc), "bucket": 0, "level": 0,
        "schema_id": 0,
    }  # fmt: skip
    source = PaimonSource(load_snapshot(open_store(parted)))
    assert source.size_bytes == sum(row["size"] for row in alluvium.open(parted).files().to_pylist())


def test_no_such_table(parted: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        system(parted, "snapshot")
    assert caught.value.code == "unknown-system-table"
    assert "snapshots" in (caught.value.hint or "")
