"""Where rows are, judged by Paimon Java: those that wait for a bucket, keys that change their partition, buckets that are
rescaled, append tables in order. Java reads all of it, appends, and compacts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import SchemaChange

pytestmark = NEEDS_PAIMON

SCHEMA = pa.schema([("k", pa.int32()), ("v", pa.string()), ("p", pa.string())])
COLUMNS = "k int, v string, p string"
#: Tables that Java appends to.
GOES_ON = ("rescaled", "ordered")


def test_java_goes_on_wherever_rows_were_put(spark, tmp_path: Path) -> None:
    def at(name: str) -> str:
        return str(tmp_path / "t.db" / name)

    def write(name: str, *rows: tuple[Any, ...]) -> None:
        frame = spark.createDataFrame(list(rows), COLUMNS).coalesce(1)
        alluvium.write(frame, at(name), mode="append", format="paimon")

    waiting = PaimonTable.create(at("waiting"), SCHEMA, (), ["k"], {"bucket": "-2", "postpone.default-bucket-num": "2"})
    PaimonTable.create(at("moved"), SCHEMA, ["p"], ["k"])
    rescaled = PaimonTable.create(at("rescaled"), SCHEMA, ["p"], ["k", "p"], {"bucket": "1"})
    ordered = PaimonTable.create(at("ordered"), SCHEMA)
    for name in ("waiting", "moved", "rescaled", "ordered"):
        write(name, *((k, "old", "a") for k in range(6)))
    write("waiting", (2, "new", "b"))
    waiting.compact()
    write("waiting", (3, "waits", "b"))
    write("moved", (0, "new", "b"), (1, "new", "a"), (7, "new", "b"))
    rescaled.alter([SchemaChange.set_option("bucket", "3")])
    rescaled.rescale()
    write("rescaled", (0, "new", "a"))
    ordered.compact(order_strategy="zorder", order_by=["k", "v"])
    left = {
        "waiting": {(2, "new", "b"), *((k, "old", "a") for k in (0, 1, 3, 4, 5))},
        "moved": {(0, "new", "b"), (1, "new", "a"), (7, "new", "b"), *((k, "old", "a") for k in range(2, 6))},
        "rescaled": {(0, "new", "a"), *((k, "old", "a") for k in range(1, 6))},
        "ordered": {(k, "old", "a") for k in range(6)},
    }
    jobs = []
    for name in left:
        steps: list[dict[str, Any]] = [{"read": {"out": f"{at(name)}.rows"}}]
        if name != "waiting":
            # Of tables whose rows wait Java's own writer compacts none.
            steps += [{"write": {"rows": [[9, "java", "a"]]}}] if name in GOES_ON else []
            steps += [{"compact": {}}]
        jobs.append({"table": at(name), "steps": [*steps, {"read": {"out": f"{at(name)}.compacted"}}]})
    paimon(tmp_path, *jobs)
    for name, rows in left.items():
        assert tuples(pq.read_table(f"{at(name)}.rows")) == rows, name
        after = rows | {(9, "java", "a")} if name in GOES_ON else rows
        assert tuples(pq.read_table(f"{at(name)}.compacted")) == after == tuples(alluvium.open(at(name)).to_arrow())


def tuples(table: pa.Table) -> set[tuple[Any, ...]]:
    assert table.num_rows == len(set(table["k"].to_pylist()))
    return {tuple(row.values()) for row in table.to_pylist()}


def test_rows_that_java_left_waiting(tmp_path: Path, spark) -> None:
    """In Avro, whatever the table's format."""
    url = str(tmp_path / "t.db" / "t")
    fields = [{"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "STRING"}, {"name": "p", "type": "STRING NOT NULL"},
              {"name": "m", "type": "DECIMAL(10, 2)"}, {"name": "t", "type": "TIMESTAMP(3)"}]  # fmt: skip
    options = {"bucket": "-2", "postpone.default-bucket-num": "2"}
    create = {"fields": fields, "partitionKeys": ["p"], "primaryKeys": ["k", "p"], "options": options}
    one, two = ["1.10", "2024-01-01 01:02:03.004"], [None, None]
    old = [[k, "old", "a" if k % 2 else "b", *one] for k in range(6)]
    steps = [{"create": create}, {"write": {"rows": old}}, {"write": {"rows": [[1, "new", "a", *two], [2, "x", "b", *two]],
             "kinds": ["+U", "-D"]}}]  # fmt: skip
    paimon(tmp_path, {"table": url, "steps": steps})
    assert set(alluvium.open(url).system("files")["file_format"].to_pylist()) == set()
    table = PaimonTable.forPath(url)
    assert table.compact().version == 3
    steps = [{"read": {"out": f"{url}.rows"}}, {"write": {"rows": [[3, "late", "a", *two], [9, "late", "a", *one]]}}]
    paimon(tmp_path, {"table": url, "steps": steps})
    ours = alluvium.open(url).to_arrow().to_pylist()
    assert sorted(map(repr, pq.read_table(f"{url}.rows").to_pylist())) == sorted(map(repr, ours))
    assert {(row["k"], row["v"]) for row in ours} == {(0, "old"), (1, "new"), (3, "old"), (4, "old"), (5, "old")}
    table.compact()
    found = {(row["k"], row["v"]) for row in alluvium.open(url).to_arrow().to_pylist()}
    assert found == {(0, "old"), (1, "new"), (3, "late"), (4, "old"), (5, "old"), (9, "late")}
    assert {name.rpartition(".")[2] for name in waiting(Path(url))} == {"avro"}


def waiting(table: Path) -> list[str]:
    return [path.name for path in table.rglob("bucket-postpone/*") if not path.name.startswith(".")]
