"""Rows of Paimon tables that we changed, one by one: Java reads them, goes on with them, and compacts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, parse_type

pytestmark = NEEDS_PAIMON

VECTORS = {"deletion-vectors.enabled": "true"}
#: Keys, partition keys and options.
TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]] = {
    "anew": ((), ("p",), {}),
    "narrow": ((), (), VECTORS),
    "wide": ((), ("p",), {**VECTORS, "deletion-vectors.bitmap64": "true"}),
    "wide-buckets": ((), (), {**VECTORS, "bucket": "2", "bucket-key": "k", "deletion-vectors.bitmap64": "true"}),
    "orc": ((), ("p",), {"file.format": "orc"}),
    "avro": ((), (), {**VECTORS, "file.format": "avro"}),
    "keys": (("k",), (), {"bucket": "2"}),
    "avro-keys": (("k",), (), {"bucket": "2", "file.format": "avro"}),
    "dynamic": (("k", "p"), ("p",), {}),
}  # fmt: skip


def test_java_takes_changed_rows_for_its_own(spark, tmp_path: Path) -> None:
    jobs: list[dict[str, Any]] = []
    news = spark.createDataFrame([(3, "new", "y"), (4, "gone", "x"), (50, "fifty", "x")], "k int, s string, p string")
    for name, (keys, parted, options) in TABLES.items():
        url = str(tmp_path / "w.db" / name)
        fields = [
            DataField(0, column, parse_type(kind)) for column, kind in (("k", "INT"), ("s", "STRING"), ("p", "STRING"))
        ]
        table = PaimonTable.create(url, fields, parted, keys, options).alias("t")
        rows = spark.range(20).selectExpr("cast(id as int) k", "concat('s', id) s", "if(id % 2 = 0, 'x', 'y') p")
        alluvium.write(rows.coalesce(1), url, mode="append", format="paimon")
        table.delete("k = 7")
        table.update("k > 15", {"s": "'late'"})
        merge = table.merge(news.alias("s"), "t.k = s.k").whenMatchedDelete("s.s = 'gone'").whenMatchedUpdateAll()
        merge.whenNotMatchedInsertAll().execute()
        jobs.append({"table": url, "steps": [
            {"read": {"out": f"{url}.rows"}}, {"write": {"rows": [[100, "java", "x"]]}}, {"compact": {}},
            {"read": {"out": f"{url}.after"}},
        ]})  # fmt: skip
        pq.write_table(alluvium.open(url).to_arrow(), f"{url}.ours")
    paimon(tmp_path, *jobs)
    for name in TABLES:
        url = tmp_path / "w.db" / name
        ours, java, after = (rows_of(Path(f"{url}.{end}")) for end in ("ours", "rows", "after"))
        assert len(ours) == 19 and java == ours, name
        assert after == sorted([*ours, "{'k': 100, 's': 'java', 'p': 'x'}"]), name
        # And we go on with what Java made of it.
        assert sorted(map(repr, alluvium.open(str(url)).to_arrow().to_pylist())) == after, name


def rows_of(path: Path) -> list[str]:
    return sorted(map(repr, pq.read_table(path).to_pylist()))
