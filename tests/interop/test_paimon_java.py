"""Paimon Java reads the schemas that we publish, writes by them, and goes on from them; its refusals are ours."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from reference_engine import NEEDS_PAIMON, paimon

from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, SchemaChange, parse_type

pytestmark = NEEDS_PAIMON

ROW = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}]}
TYPES = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "CHAR(5)", "VARCHAR(20)", "STRING",
    "BINARY(4)", "VARBINARY(10)", "BYTES", "DECIMAL(38, 10)", "DATE", "TIME(3)", "TIMESTAMP(3)", "TIMESTAMP_LTZ(6)",
    {"type": "ARRAY", "element": "INT"}, {"type": "MAP", "key": "STRING NOT NULL", "value": ROW}, ROW,
    {"type": "MULTISET", "element": "STRING"},
)  # fmt: skip
CHANGES = [
    SchemaChange.add_column("added", ROW, "new", after="id"),
    SchemaChange.rename_column("c1", "renamed"),
    SchemaChange.update_column_type("c3", "BIGINT"),
    SchemaChange.drop_column("c0"),
    SchemaChange.add_column(["c20", "y"], "STRING"),
    SchemaChange.update_column_default("c4", "7"),
    SchemaChange.set_option("write-only", "true"),
    SchemaChange.update_comment("altered"),
]


def run_java(tmp_path: Path, table: Path, *steps: dict[str, object]) -> None:
    paimon(tmp_path, {"table": str(table), "steps": list(steps)})


def test_java_writes_by_our_schemas_and_alters_them(tmp_path: Path) -> None:
    fields = [DataField(0, "id", parse_type("INT"))]
    fields += [DataField(0, f"c{i}", parse_type(t)) for i, t in enumerate(TYPES)]
    table = PaimonTable.create(str(tmp_path / "t"), fields, primary_keys=["id"], options={"bucket": "1"})
    ours = table.alter(CHANGES)
    run_java(
        tmp_path,
        tmp_path / "t",
        {"write": {"rows": [{"id": 1, "c3": 5, "added": {"x": 3}, "renamed": 2, "c20": {"x": 1, "y": "z"}}]}},
        {"alter": [SchemaChange.add_column("java", "INT").as_dict()]},
        {"read": {"out": str(tmp_path / "rows.parquet"), "columns": ["id", "added", "c3", "renamed", "c20", "java"]}},
    )
    assert pq.read_table(tmp_path / "rows.parquet").to_pylist() == [
        {"id": 1, "added": {"x": 3}, "c3": 5, "renamed": 2, "c20": {"x": 1, "y": "z"}, "java": None}
    ]
    assert table.schema.names == (*ours.names, "java")
    assert table.schema.highest_field_id == ours.highest_field_id + 1
    assert table.schema_at(1).format() == (tmp_path / "t/schema/schema-1").read_bytes().rstrip()
    # What Java wrote is what we would write.
    assert table.schema.format() == (tmp_path / "t/schema/schema-2").read_bytes()


def test_java_makes_the_same_schemas(tmp_path: Path) -> None:
    columns = [{"name": "id", "type": "INT"}, *({"name": f"c{i}", "type": t} for i, t in enumerate(TYPES))]
    create = {"fields": columns, "partitionKeys": [], "primaryKeys": ["id"], "options": {"bucket": "1"}}
    run_java(tmp_path, tmp_path / "java", {"create": create}, {"alter": [change.as_dict() for change in CHANGES]})
    fields = [DataField(0, str(c["name"]), parse_type(c["type"])) for c in columns]
    ours = PaimonTable.create(str(tmp_path / "ours"), fields, primary_keys=["id"], options={"bucket": "1"})
    ours.alter(CHANGES)
    theirs = PaimonTable.forPath(str(tmp_path / "java"))
    for n in (0, 1):
        assert {**ours.schema_at(n).as_dict(), "timeMillis": 0} == {**theirs.schema_at(n).as_dict(), "timeMillis": 0}


def test_java_writes_an_append_table_of_ours(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("k", pa.int64()), pa.field("day", pa.string())])
    PaimonTable.create(str(tmp_path / "t"), schema, ["day"])
    out = tmp_path / "rows.parquet"
    run_java(tmp_path, tmp_path / "t", {"write": {"rows": [[1, "a"], [2, "b"]]}}, {"read": {"out": str(out)}})
    assert sorted(pq.read_table(out)["k"].to_pylist()) == [1, 2]
