"""Rows of keys, written by us and by Paimon Java: files, levels, keys, statistics and numbers are the same, and Java reads,
appends to and compacts what we wrote as it does its own.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, parse_type

pytestmark = NEEDS_PAIMON

COLUMNS = {
    "k": ("INT", pa.int32()), "s": ("STRING", pa.string()), "day": ("STRING", pa.string()), "g": ("INT", pa.int32()),
    "n": ("BIGINT", pa.int64()), "m": ("DECIMAL(10, 2)", pa.decimal128(10, 2)),
    "kind": ("STRING", pa.string()),
}  # fmt: skip
#: Compaction is a matter of its own.
WRITES = {"write-only": "true", "write-max-writers-to-spill": "1000"}
PARTIAL, SUMS = {"merge-engine": "partial-update"}, {"merge-engine": "aggregation"}
#: Options, primary key, partition keys, and columns beside those of keys.
TABLES: dict[str, tuple[dict[str, str], tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "plain": ({"bucket": "2"}, ("k",), (), ("s", "g", "n", "m")),
    "dynamic": ({}, ("k", "day"), ("day",), ("s", "n")),
    "partitioned": ({"bucket": "2"}, ("s", "k", "day"), ("day",), ("g", "n")),
    "thin": ({"bucket": "2", "data-file.thin-mode": "true"}, ("s", "k"), (), ("g",)),
    "orc": ({"bucket": "2", "file.format": "orc"}, ("k", "s"), (), ("g", "m")),
    "avro": ({"bucket": "1", "file.format": "avro"}, ("k", "s"), (), ("g", "n")),
    "sequence": ({"bucket": "1", "sequence.field": "g,n"}, ("k",), (), ("g", "n", "s")),
    "descending": ({"bucket": "1", "sequence.field": "g", "sequence.field.sort-order": "descending"}, ("k",), (), ("g", "s")),
    "kinds": ({"bucket": "2", "rowkind.field": "kind"}, ("k",), (), ("s", "kind")),
    "groups": ({"bucket": "1", **PARTIAL, "fields.g.sequence-group": "n,s"}, ("k",), (), ("s", "g", "n", "m")),
    "sums": ({"bucket": "1", **SUMS, "fields.n.aggregate-function": "sum", "fields.s.aggregate-function": "listagg",
              "fields.g.aggregate-function": "max"}, ("k",), (), ("s", "g", "n")),
    "first-row": ({"bucket": "1", "merge-engine": "first-row"}, ("k",), (), ("s", "g")),
}  # fmt: skip
ROWS, KEYS = 40, 25
#: Of which more than one batch is written.
SEVERAL = ("plain", "groups")


def batch(names: list[str], seed: int) -> pa.Table:
    pick = random.Random(seed)
    made = {
        "k": lambda: pick.randrange(KEYS), "s": lambda: "text " * 8 + "abc"[pick.randrange(3)], "day": lambda: "xy"[pick.randrange(2)],
        "g": lambda: pick.choice([1, 2, 3, None]), "n": lambda: pick.choice([5, -7, 2**40, None]),
        "m": lambda: None,
        "kind": lambda: pick.choice(["+I", "+U", "-D", "-U"]),
    }  # fmt: skip
    rows = [{name: made[name]() for name in names} for _ in range(ROWS)]
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, COLUMNS[name][1]) for name in names]))


def make(path: Path, name: str) -> list[str]:
    options, keys, parted, others = TABLES[name]
    names = [*dict.fromkeys((*keys, *parted, *others))]
    fields = [DataField(0, column, parse_type(COLUMNS[column][0])) for column in names]
    PaimonTable.create(str(path), fields, parted, keys, {**WRITES, **options})
    return names


def rows_of(path: Path) -> list[str]:
    return sorted(map(repr, pq.read_table(path).to_pylist()))


def test_java_takes_our_files_for_its_own(spark, tmp_path: Path) -> None:
    jobs = []
    for name in TABLES:
        ours, theirs = tmp_path / "ours.db" / name, tmp_path / "java.db" / name
        names = make(ours, name)
        make(theirs, name)
        steps: list[dict[str, Any]] = []
        for number in range(2 if name in SEVERAL else 1):
            pq.write_table(batch(names, 31 * number), file := str(tmp_path / f"{name}{number}.parquet"))
            frame = spark.read.parquet(file).coalesce(1)
            alluvium.write(frame, str(ours), mode="append", format="paimon")
            steps.append({"write": {"parquet": file}})
        jobs.append({"table": str(theirs), "steps": steps})
        for table in (ours, theirs):
            jobs.append({"table": str(table), "steps": [
                {"read": {"out": f"{table}.rows"}}, {"tag": "written"}, {"compact": {}}, {"read": {"out": f"{table}.compacted"}},
            ]})  # fmt: skip
    paimon(tmp_path, *jobs)
    for name in TABLES:
        ours, theirs = tmp_path / "ours.db" / name, tmp_path / "java.db" / name
        assert rows_of(Path(f"{ours}.rows")) == rows_of(Path(f"{theirs}.rows")), name
        assert rows_of(Path(f"{ours}.compacted")) == rows_of(Path(f"{theirs}.compacted")), name
        assert described_at(ours) == described_at(theirs), name


def described_at(path: Path) -> list[tuple[Any, ...]]:
    """What manifests say of each file, but for names, sizes, times, and the numbers of rows that did not stay."""
    columns = ["partition", "bucket", "schema_id", "level", "record_count", "min_key", "max_key", "null_value_counts",
               "min_value_stats", "max_value_stats", "max_sequence_number", "deleteRowCount"]  # fmt: skip
    files = alluvium.open(str(path), tag="written").system("files").select(columns)
    return sorted((tuple(row.values()) for row in files.to_pylist()), key=repr)


@pytest.mark.parametrize("engine", ["dynamic", "vectors"])
def test_java_goes_on_and_so_do_we(spark, tmp_path: Path, engine: str) -> None:
    url = str(tmp_path / "t.db" / "t")
    fields = [DataField(0, name, parse_type(kind)) for name, kind in (("k", "INT"), ("p", "INT"), ("s", "STRING"))]
    options = {"dynamic-bucket.target-row-num": "4"}
    if engine == "vectors":
        options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    PaimonTable.create(url, fields, ["p"], ["k", "p"], options)
    frame = spark.range(20).selectExpr("cast(id as int) as k", "cast(id % 2 as int) as p", "concat('row ', id) as s")
    alluvium.write(frame, url, mode="append", format="paimon")
    rows = [[0, 0, "java"], [100, 1, "java"]]
    # Java marks the rows that are replaced by vectors, and compacts no further.
    alone = [{"write": {"rows": rows, "options": {"write-only": "true"}}}, {"compact": {}}]
    steps: list[dict[str, Any]] = [{"write": {"rows": rows}}] if engine == "vectors" else alone
    paimon(tmp_path, {"table": url, "steps": steps})
    more = spark.createDataFrame([(100, 1, "we"), (1, 1, None), (2, 0, "we")], "k int, p int, s string")
    alluvium.write(more, url, mode="append", format="paimon")
    new = spark.createDataFrame([(7, 0, "new"), (7, 0, "newer")], "k int, p int, s string")
    alluvium.write(new, url, mode="overwrite", format="paimon", partitionOverwriteMode="dynamic")
    # Java writes beside what we compacted, deleted and updated.
    table = PaimonTable.forPath(url)
    table.update("k = 3", {"s": "'set'"})
    table.delete("k = 5")
    table.compact()
    assert {f["level"] for f in alluvium.open(url).system("files").to_pylist()} == {5}
    out = tmp_path / "rows.parquet"
    steps = [{"read": {"out": str(out)}}, {"write": {"rows": [[7, 0, "java"]]}}, {"compact": {}}]
    paimon(tmp_path, {"table": url, "steps": steps})
    odd = {n: f"row {n}" for n in range(1, 20, 2)} | {1: None, 3: "set", 100: "we"}
    del odd[5]
    assert {(row["k"], row["s"]) for row in pq.read_table(out).to_pylist()} == {(7, "newer"), *odd.items()}
    assert {(row["k"], row["s"]) for row in alluvium.open(url).to_arrow().to_pylist()} == {(7, "java"), *odd.items()}
