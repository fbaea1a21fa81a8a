"""Tags, branches, what expires and what is cleaned up: Java reads what we leave, we what it leaves, and of two copies of a table
both leave the same files.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from paimon_rows import append, open_target
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.arrow import fields_from_arrow
from alluvium.paimon.schema.casts import can_cast
from alluvium.paimon.schema.numbering import number_fields
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.upkeep.statistics import ColumnStatistics, commit_statistics, format_statistics
from alluvium.paimon.write.merge_columns import merge_columns
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Field, Struct
from alluvium.storage.open import open_store

pytestmark = NEEDS_PAIMON


def filled(path: Path, commits: int) -> PaimonTable:
    table = PaimonTable.create(str(path), pa.schema([("k", pa.int32()), ("day", pa.string())]), ["day"])
    add(table, *range(1, commits + 1))
    return table


def add(table: PaimonTable, *ks: int) -> None:
    for k in ks:
        append(open_target(open_store(table.url)), [{"k": k, "day": "ab"[k % 2]}])


def ks(table: PaimonTable, **at: Any) -> list[int]:
    return sorted(alluvium.open(table.url, **at).to_arrow()["k"].to_pylist())


class Java:
    """Collects steps, has them done at once, and compares what they read."""

    def __init__(self, folder: Path, table: Path) -> None:
        self._folder, self._table = folder, table
        self._steps: list[dict[str, Any]] = []
        self._expected: list[tuple[Path, str, list[Any]]] = []

    def reads(self, expected: list[Any], column: str = "k", **asked: Any) -> None:
        out = self._folder / f"read-{len(self._expected)}.parquet"
        self._steps.append({"read": {"out": str(out), **asked}})
        self._expected.append((out, column, expected))

    def does(self, **step: Any) -> None:
        self._steps.append(step)

    def run(self) -> None:
        paimon(self._folder, {"table": str(self._table), "steps": self._steps})
        for out, column, expected in self._expected:
            assert sorted(pq.read_table(out)[column].to_pylist()) == expected
            out.unlink()
        self._steps, self._expected = [], []


def test_java_lives_with_our_tags_and_branches(tmp_path: Path) -> None:
    table, java = filled(tmp_path / "t", 4), Java(tmp_path, tmp_path / "t")
    table.create_tag("two", 2, time_retained="7 d")
    table.create_tag("three", 3)
    table.create_branch("side", "two")
    table.create_branch("empty")
    table.rename_tag("three", "third")
    java.reads([1, 2], options={"scan.tag-name": "two"})
    java.reads([1, 2, 3], options={"scan.tag-name": "third"})
    java.reads([1, 2], branch="side")
    java.reads([], branch="empty")
    java.reads(["third", "two"], "tag_name", system="tags")
    java.reads(["empty", "side"], "branch_name", system="branches")
    java.does(write={"rows": [[10, "a"]], "branch": "side"})
    java.does(tag={"name": "javas", "snapshot": 4})
    java.does(branch={"name": "javas", "tag": "third"})
    java.reads([1, 2, 10], branch="side")
    java.run()
    assert (ks(table, branch="side"), ks(table, tag="javas"), ks(table, branch="javas")) == (
        [1, 2, 10],
        [1, 2, 3, 4],
        [1, 2, 3],
    )
    table.fast_forward("side")
    table.delete_branch("empty", "javas")
    table.delete_tag("javas")
    java.reads([1, 2, 10])
    java.reads(["side"], "branch_name", system="branches")
    java.does(write={"rows": [[11, "b"]]})
    java.does(rollback="two")
    java.reads([1, 2])
    java.run()
    assert ks(table) == [1, 2]
    add(table, 5)
    assert table.rollback_to("two") == 2
    java.does(write={"rows": [[12, "b"]]})
    java.reads([1, 2, 12])
    java.run()
    assert ks(table) == [1, 2, 12]


def test_java_reads_what_is_left_of_a_table(tmp_path: Path) -> None:
    """A state without files that somebody has deleted from under it; Java goes on with it, and expires what was before."""
    table, java = filled(tmp_path / "t", 4), Java(tmp_path, tmp_path / "t")
    before, after = (alluvium.open(table.url, version=n).files()["path"].to_pylist() for n in (1, 2))
    (lost,) = set(after) - set(before)
    open_store(table.url).delete(lost)
    assert table.remove_unexisting_files().paths == (lost,)
    java.reads([1, 3, 4])
    java.does(write={"rows": [[9, "a"]]})
    java.does(expire=1)
    java.reads([1, 3, 4, 9])
    java.run()
    assert ks(table) == [1, 3, 4, 9]


def test_java_lives_with_what_has_expired(tmp_path: Path) -> None:
    table, java = filled(tmp_path / "t", 6), Java(tmp_path, tmp_path / "t")
    table.create_tag("two", 2)
    java.does(write={"rows": [[7, "a"]], "overwrite": {"day": "a"}})
    java.run()
    assert table.expire_snapshots(retain_max=2, retain_min=2).ids == (1, 2, 3, 4, 5)
    java.reads([1, 3, 5, 7])
    java.reads([1, 2], options={"scan.tag-name": "two"})
    java.reads([1, 2, 3, 4, 5, 6], options={"scan.snapshot-id": "6"})
    java.reads([6, 7], "snapshot_id", system="snapshots")
    java.does(write={"rows": [[8, "a"]]})
    java.does(expire=1)
    java.run()
    assert (ks(table), ks(table, tag="two"), table.snapshots()["snapshot_id"].to_pylist()) == (
        [1, 3, 5, 7, 8],
        [1, 2],
        [8],
    )
    litter = tmp_path / "t/day=a/bucket-0/data-litter-0.parquet"
    litter.write_bytes(b"x")
    os.utime(litter, (0, 0))
    assert (
        table.remove_orphan_files(older_than=time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() - 3600))).count
        == 1
    )
    java.reads([1, 3, 5, 7, 8])
    java.reads([1, 2], options={"scan.tag-name": "two"})
    java.run()


@pytest.mark.parametrize("kept", [1, 3])
def test_both_keep_the_same_files(tmp_path: Path, kept: int) -> None:
    """A table of keys, compacted, with a tag in the middle: Java expires one copy of it, we another."""
    fields = [{"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "INT"}]
    create = {
        "fields": fields,
        "partitionKeys": [],
        "primaryKeys": ["k"],
        "options": {"bucket": "1"},
    }
    java = Java(tmp_path, tmp_path / "t")
    java.does(create=create)
    for n in range(4):
        java.does(write={"rows": [[k, n] for k in range(3)]})
    java.does(tag={"name": "kept", "snapshot": 2})
    java.does(compact={"full": True})
    java.does(write={"rows": [[9, 9]]})
    java.run()
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    theirs = Java(tmp_path, tmp_path / "copy")
    theirs.does(expire=kept)
    theirs.run()
    PaimonTable.forPath(str(tmp_path / "t")).expire_snapshots(retain_max=kept, retain_min=kept)
    assert files_of(tmp_path / "t") == files_of(tmp_path / "copy")
    java.reads([0, 1, 2, 9])
    java.reads([0, 1, 2], options={"scan.tag-name": "kept"})
    java.run()


def files_of(table: Path) -> set[str]:
    found = (path for path in table.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(table)) for path in found} - {"snapshot/EARLIEST", "snapshot/LATEST"}


def test_java_reads_our_statistics(tmp_path: Path) -> None:
    table, java = filled(tmp_path / "t", 2), Java(tmp_path, tmp_path / "t")
    snapshot = load_snapshot(open_store(table.url))
    said = [ColumnStatistics("k", 2, "1", "2", 0, 4, 4), ColumnStatistics("day", 2, None, None, 0, 1, 1)]
    done = commit_statistics(snapshot, format_statistics(snapshot, 2, 1000, said))
    java.reads([2], "mergedRecordCount", system="statistics")
    java.reads([2], "snapshot_id", system="statistics")
    java.reads(["ANALYZE", "APPEND", "APPEND"], "commit_kind", system="snapshots")
    java.does(write={"rows": [[3, "a"]]})
    java.reads([2], "mergedRecordCount", system="statistics")
    java.reads([1, 2, 3])
    java.run()
    assert done.version == 3
    assert alluvium.open(table.url).system("statistics")["mergedRecordSize"].to_pylist() == [1000]


#: Types of a column, and those of rows that come for it.
OWN = (
    "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(8, 2)", "BOOLEAN", "STRING", "VARCHAR(5)", "CHAR(3)", "BYTES",
    "BINARY(4)", "DATE", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)",
)  # fmt: skip
BROUGHT: dict[str, DataType] = {
    "SMALLINT": t.SHORT, "INT": t.INTEGER, "BIGINT": t.LONG, "DOUBLE": t.DOUBLE, "DECIMAL(12, 2)": t.Decimal(12, 2),
    "DECIMAL(12, 4)": t.Decimal(12, 4), "BOOLEAN": t.BOOLEAN, "STRING": t.STRING, "BYTES": t.BINARY, "DATE": t.DATE,
    "TIMESTAMP(6)": t.TIMESTAMP_NTZ, "TIMESTAMP_LTZ(6)": t.TIMESTAMP,
}  # fmt: skip


#: A column, and rows for which Java gives it their type, which does not hold all values of its own.
LOSING = {
    ("FLOAT", "DECIMAL(12, 2)"), ("FLOAT", "DECIMAL(12, 4)"), ("DOUBLE", "DECIMAL(12, 2)"), ("DOUBLE", "DECIMAL(12, 4)"),
    ("INT", "DECIMAL(12, 4)"), ("BIGINT", "DECIMAL(12, 2)"), ("BIGINT", "DECIMAL(12, 4)"),
    ("TIMESTAMP(3)", "TIMESTAMP_LTZ(6)"), ("TIMESTAMP(3)", "DATE"), ("TIMESTAMP_LTZ(3)", "TIMESTAMP(6)"),
    ("TIMESTAMP_LTZ(6)", "TIMESTAMP(6)"),
}  # fmt: skip


def _short(name: str) -> str:
    """As `OWN` and `BROUGHT` spell a type of instants."""
    return (
        name.replace("TIMESTAMP(", "TIMESTAMP_LTZ(").removesuffix(" WITH LOCAL TIME ZONE") if "LOCAL" in name else name
    )


def test_schemas_merge_as_javas(tmp_path: Path) -> None:
    """Where Java has a merged type ours is the same, unless values that are there are lost. Where it refuses, ours keeps the
    column if the rows fit into it.
    """
    cases, ours = [], []
    for own in OWN:
        fields = number_fields([DataField(0, "k", parse_type("INT")), DataField(0, "v", parse_type(own))])
        schema = TableSchema.create(fields, (), ("k",), {"bucket": "1"})
        for name, kind in BROUGHT.items():
            for explicit in (False, True):
                row = {
                    "type": "ROW",
                    "fields": [{"id": 0, "name": "v", "type": name}, {"id": 1, "name": "n", "type": name}],
                }
                cases.append([schema.format().decode(), row, explicit])
                ours.append(_merged(schema, Struct((Field("v", kind), Field("n", kind))), explicit))
    (answers,) = paimon(tmp_path, {"merge": cases})
    for case, theirs, own_answer in zip(cases, answers, ours, strict=True):
        before = json.loads(case[0])["fields"][1]
        brought = case[1]["fields"][0]["type"]
        if theirs.startswith("refused") or (not case[2] and (_short(before["type"]), brought) in LOSING):
            assert own_answer is None or own_answer["fields"][1] == before, (case, theirs)
        else:
            if own_answer is None:
                # Java allows casts, too, for which it has no code: the table could not be read any more.
                assert not can_cast(parse_type(before["type"]), parse_type(brought)), (case, theirs)
                continue
            assert {**own_answer, "timeMillis": 0} == {**json.loads(theirs), "timeMillis": 0}, case


def test_members_merge_as_javas(tmp_path: Path) -> None:
    own = pa.schema(
        [
            ("r", pa.struct([("x", pa.int32())])),
            ("l", pa.list_(pa.struct([("x", pa.int32())]))),
            ("m", pa.map_(pa.string(), pa.int32())),
        ]
    )
    schema = TableSchema.create(number_fields(fields_from_arrow(own)))
    inner = [{"id": 0, "name": "y", "type": "STRING"}, {"id": 1, "name": "x", "type": "BIGINT"}]
    brought = Struct((Field("y", t.STRING), Field("x", t.LONG)))
    row = {"type": "ROW", "fields": [
        {"id": 0, "name": "n", "type": {"type": "ROW", "fields": inner}},
        {"id": 1, "name": "r", "type": {"type": "ROW", "fields": inner}},
        {"id": 2, "name": "l", "type": {"type": "ARRAY", "element": {"type": "ROW", "fields": inner}}},
        {"id": 3, "name": "m", "type": {"type": "MAP", "key": "STRING NOT NULL", "value": "BIGINT"}},
    ]}  # fmt: skip
    data = Struct(
        (
            Field("n", brought),
            Field("r", brought),
            Field("l", t.Array(brought, True)),
            Field("m", t.Map(t.STRING, t.LONG, True)),
        )
    )
    (answers,) = paimon(tmp_path, {"merge": [[schema.format().decode(), row, False]]})
    ours = _merged(schema, data, False)
    assert ours is not None and {**ours, "timeMillis": 0} == {**json.loads(answers[0]), "timeMillis": 0}


def _merged(schema: TableSchema, data: Struct, explicit: bool) -> dict[str, Any] | None:
    try:
        merged: dict[str, Any] = json.loads(merge_columns(schema, data, explicit).format())
    except alluvium.errors.InvalidRequest:
        return None
    return merged
