"""Tables of keys, written and compacted by us and by Paimon Java: levels, files, changelogs and vectors are the same, and
Java reads what we compacted and goes on with it.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.files.manifest import scan_index_manifest
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema import DataField, parse_type
from alluvium.storage.open import open_store

pytestmark = NEEDS_PAIMON

FIELDS = (("k", "INT"), ("p", "INT"), ("n", "BIGINT"), ("s", "STRING"), ("kind", "STRING"))
SCHEMA = pa.schema([("k", pa.int32()), ("p", pa.int32()), ("n", pa.int64()), ("s", pa.string()), ("kind", pa.string())])
LOOKUP, FULL, INPUT = ({"changelog-producer": name} for name in ("lookup", "full-compaction", "input"))
SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.s.aggregate-function": "max",
        "fields.kind.aggregate-function": "last_value"}  # fmt: skip
VECTORS = {"deletion-vectors.enabled": "true"}
KINDS = {"rowkind.field": "kind"}
#: Options of tables, written to batch by batch and compacted at the end.
TABLES: dict[str, dict[str, str]] = {
    "lookup": {**LOOKUP, **SUMS},
    "full": {**FULL, **KINDS, "num-sorted-run.compaction-trigger": "2"},
    "input": {**INPUT, **KINDS},
    "vectors": {**VECTORS, **LOOKUP, **KINDS, "deletion-vectors.bitmap64": "true"},
}
BATCHES = 3


def batch(seed: int) -> pa.Table:
    pick = random.Random(seed)
    rows = [
        {"k": pick.randrange(30), "p": pick.randrange(2), "n": pick.randrange(5), "s": "text " * 3 + "abc"[pick.randrange(3)],
         "kind": pick.choice(["+I", "+U", "+U", "-D"])}
        for _ in range((30, 4, 6, 12)[seed % 4])
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def make(path: Path, name: str) -> None:
    fields = [DataField(0, column, parse_type(kind)) for column, kind in FIELDS]
    PaimonTable.create(str(path), fields, ["p"], ["k", "p"], {"bucket": "1", "lookup-wait": "true", **TABLES[name]})


def rows_of(path: str) -> list[str]:
    return sorted(map(repr, pq.read_table(path).to_pylist()))


def levels(path: Path, **at: Any) -> list[tuple[str, ...]]:
    """What manifests say of each file, but for names, sizes and times."""
    names = (
        "partition",
        "bucket",
        "level",
        "record_count",
        "min_key",
        "max_key",
        "deleteRowCount",
        "null_value_counts",
    )
    found = alluvium.open(str(path), **at).system("files").to_pylist()
    return sorted(tuple(str(row[name]) for name in names) for row in found)


def vectors(path: Path, **at: Any) -> list[tuple[Any, ...]]:
    """Of each index file its bucket, and how many rows of each of its data files are gone; Java leaves empty ones."""
    snapshot = load_snapshot(open_store(str(path)), At(**at))
    if snapshot.document is None or snapshot.document.index_manifest is None:
        return []
    found = scan_index_manifest(snapshot.store, snapshot.document.index_manifest).to_pylist()
    counts = [sorted(entry["_CARDINALITY"] for entry in row["ranges"] or ()) for row in found]
    return sorted((row["partition"], row["bucket"], count) for row, count in zip(found, counts, strict=True) if count)


def test_java_compacts_as_we_do_and_reads_what_we_tell(spark, tmp_path: Path) -> None:
    jobs: list[dict[str, Any]] = []
    for name in TABLES:
        ours, theirs = tmp_path / "ours.db" / name, tmp_path / "java.db" / name
        make(ours, name)
        make(theirs, name)
        steps: list[dict[str, Any]] = []
        for number in range(BATCHES):
            pq.write_table(batch(number), file := str(tmp_path / f"{number}.parquet"))
            alluvium.write(spark.read.parquet(file).coalesce(1), str(ours), mode="append", format="paimon")
            steps.append({"write": {"parquet": file}})
        PaimonTable.forPath(str(ours)).create_tag("written")
        PaimonTable.forPath(str(ours)).compact(spark=spark)
        jobs.append({"table": str(theirs), "steps": [*steps, {"tag": "written"}, {"compact": {}}]})
        for table in (ours, theirs):
            written = {"out": f"{table}.written", "options": {"scan.tag-name": "written"}}
            changes = {"out": f"{table}.changes", "stream": [1, 2 * BATCHES + 1]}
            steps = [{"read": written}, {"read": {"out": f"{table}.rows"}}, {"read": changes}]
            jobs.append({"table": str(table), "steps": steps})
    paimon(tmp_path, *jobs)
    for name, options in TABLES.items():
        ours, theirs = tmp_path / "ours.db" / name, tmp_path / "java.db" / name
        for what in ("written", "rows", "changes"):
            assert rows_of(f"{ours}.{what}") == rows_of(f"{theirs}.{what}"), (name, what)
        for at in ({"tag": "written"}, {}):
            assert levels(ours, **at) == levels(theirs, **at), name
            assert vectors(ours, **at) == vectors(theirs, **at), name
            read = alluvium.open(str(theirs), **at).to_arrow().to_pylist()
            assert sorted(map(repr, read)) == rows_of(f"{theirs}.{'written' if at else 'rows'}"), name
        if "changelog-producer" in options:
            own = alluvium.open(str(ours))
            told = own.changes(0, own.version, mode="changelog").to_pylist()
            assert sorted(map(repr, told)) == rows_of(f"{ours}.changes"), name
