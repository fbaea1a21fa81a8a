"""System tables of Java's tables as Java shows them: the same columns of the same types, and the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference_engine import NEEDS_PAIMON, paimon

import alluvium

pytestmark = NEEDS_PAIMON

KEY = {"name": "k", "type": "INT NOT NULL", "description": "it's é"}
NESTED = {"name": "r", "type": {"type": "ROW", "fields": [{"name": "x y", "type": "INT"}]}}
TABLES: dict[str, list[dict[str, Any]]] = {
    "append": [
        {"create": {
            "fields": [{"name": "k", "type": "INT"}, {"name": "day", "type": "DATE"}, {"name": "s", "type": "STRING"}],
            "partitionKeys": ["day", "s"], "options": {"row-tracking.enabled": "true"},
        }},
        {"write": {"rows": [[1, "2024-05-09", "b"], [2, "2024-05-10", None], [4, "2024-05-09", "a"]]}},
        {"write": {"rows": [[3, "2024-05-09", "a"]]}},
        {"write": {"rows": [[3, "2024-05-09", "b"]], "overwrite": {"s": "b"}}},
    ],
    "plain": [{"create": {"fields": [{"name": "k", "type": "INT"}]}}, {"write": {"rows": [[1]]}}],
    "vectors": [
        {"create": {
            "fields": [KEY, {"name": "day", "type": "DATE NOT NULL"}, {"name": "v", "type": "STRING"}],
            "partitionKeys": ["day"], "primaryKeys": ["k", "day"],
            "options": {"bucket": "-1", "deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
        }},
        {"write": {"rows": [*([k, "2024-05-09", "a"] for k in range(5)), [9, "2024-05-10", "z"]]}},
        {"write": {"rows": [[1, "2024-05-09", "b"]]}},
        {"write": {"rows": [[4, "2024-05-09", "b"], [9, "2024-05-10", "y"]], "kinds": ["-D", "+I"]}},
    ],
    "aggregates": [
        {"create": {
            "fields": [KEY, {"name": "v", "type": "STRING"}, {"name": "vv", "type": "DECIMAL(9, 2)"}, NESTED],
            "primaryKeys": ["k"],
            "options": {
                "bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": "listagg",
                "fields.v.list-agg-delimiter": ";", "fields.vv.aggregate-function": "max",
                "fields.default-aggregate-function": "last_value",
            },
        }},
        {"write": {"rows": [[1, "a", "1.50", None]]}},
    ],
    "input": [
        {"create": {
            "fields": [KEY, {"name": "v", "type": "STRING NOT NULL"}, {"name": "m", "type": {"type": "ARRAY", "element": "INT"}}],
            "primaryKeys": ["k"], "options": {"bucket": "1", "changelog-producer": "input"},
        }},
        {"write": {"rows": [[1, "a", [1]], [2, "x", None]]}},
        {"write": {"rows": [[2, "x", None], [1, "a", [1]], [1, "c", None]], "kinds": ["-D", "-U", "+U"]}},
    ],
}  # fmt: skip
SYSTEM = (
    "manifests", "partitions", "aggregation_fields", "table_indexes", "buckets", "audit_log", "binlog", "snapshots",
    "schemas", "options", "tags", "branches", "consumers", "statistics", "files", "file_key_ranges",
)  # fmt: skip
#: Kinds of lists and of structs are spelled otherwise by Parquet's reader.
SPELLED = {"element: ": "item: ", " not null": ""}


def kinds(table: pa.Table) -> dict[str, str]:
    found = {}
    for f in table.schema:
        text = str(f.type)
        for theirs, ours in SPELLED.items():
            text = text.replace(theirs, ours)
        found[f.name] = text
    return found


def texts(table: pa.Table) -> list[str]:
    """Rows; of places only the names, for Java shows whole ones."""
    rows = table.to_pylist()
    for row in rows:
        if "file_path" in row:
            row["file_path"] = Path(row["file_path"]).name
    return sorted(map(str, rows))


@pytest.mark.parametrize("name", TABLES)
def test_they_are_javas(tmp_path: Path, name: str) -> None:
    url = str(tmp_path / "t")
    reads = [{"read": {"out": str(tmp_path / f"{system}.parquet"), "system": system}} for system in SYSTEM]
    tag = {"tag": {"name": "first", "snapshot": 1}}
    paimon(tmp_path, {"table": url, "steps": [*TABLES[name], tag, {"branch": {"name": "b", "tag": "first"}}, *reads]})
    for system in SYSTEM:
        theirs, ours = pq.read_table(tmp_path / f"{system}.parquet"), alluvium.open(url).system(system)
        assert ours.column_names == theirs.column_names, system
        assert kinds(ours) == kinds(theirs), system
        assert texts(ours) == texts(theirs), system


@pytest.mark.parametrize("name", ["append", "vectors", "input"])
def test_ranges_of_the_binlog_are_javas(tmp_path: Path, name: str) -> None:
    """An update is one row there, whose arrays have what was and what is."""
    url, ranges = str(tmp_path / "t"), ["0,2", "1,2"]
    read = {"system": "binlog", "options": {}}
    reads = [
        {"read": {**read, "out": str(tmp_path / f"{n}.parquet"), "options": {"incremental-between": between}}}
        for n, between in enumerate(ranges)
    ]
    paimon(tmp_path, {"table": url, "steps": [*TABLES[name], *reads]})
    lengths = set()
    for n, between in enumerate(ranges):
        theirs = pq.read_table(tmp_path / f"{n}.parquet").drop_columns(["_row_kind"])
        ours = alluvium.open(url).changes(*map(int, between.split(",")), mode="binlog")
        assert texts(ours.rename_columns(theirs.column_names)) == texts(theirs), between
        lengths.update(len(row["k"]) for row in theirs.to_pylist())
    assert lengths == ({1} if name == "append" else {1, 2} if name == "input" else lengths)
