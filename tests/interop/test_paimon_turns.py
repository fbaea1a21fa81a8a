"""Two engines that write to one table with dynamic buckets by turns: neither loses a row of the other, or doubles one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from paimon_rows import open_target, stage
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.errors import CommitConflict
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, parse_type
from alluvium.storage.open import open_store

pytestmark = NEEDS_PAIMON

FIELDS = [DataField(0, name, parse_type(kind)) for name, kind in (("k", "INT"), ("day", "STRING"), ("s", "STRING"))]
SCHEMA = "k int, day string, s string"
#: Few rows a bucket, so that each turn opens some.
SMALL = {"dynamic-bucket.target-row-num": "5"}
TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]] = {
    "parted": (("k", "day"), ("day",), SMALL),
    "whole": (("k",), (), {**SMALL, "dynamic-bucket.initial-buckets": "2"}),
    "vectors": (("k", "day"), ("day",), {**SMALL, "deletion-vectors.enabled": "true"}),
    "few-buckets": (("k",), (), {**SMALL, "dynamic-bucket.max-buckets": "3"}),
}


def drawn(chance: random.Random, turn: str, count: int) -> list[tuple[int, str, str]]:
    """Rows of different keys, of which many were written before."""
    return [(k, "ab"[k % 2], f"{turn}-{k}") for k in chance.sample(range(60), count)]


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr([row["k"], row["day"], row["s"]]) for row in rows)


@pytest.mark.parametrize("name", TABLES)
def test_engines_by_turns(spark, tmp_path: Path, name: str) -> None:
    keys, parted, options = TABLES[name]
    url, chance = str(tmp_path / "w.db" / name), random.Random(name)
    table = PaimonTable.create(url, FIELDS, parted, keys, options).alias("t")
    want: dict[int, tuple[int, str, str]] = {}
    for turn in range(4):
        mine = drawn(chance, f"ours{turn}", 12)
        alluvium.write(spark.createDataFrame(mine, SCHEMA), url, mode="append", format="paimon")
        want |= {row[0]: row for row in mine}
        theirs = drawn(chance, f"java{turn}", 12)
        out = f"{url}.{turn}"
        # Java's writer of vectors shows its rows to readers once they are compacted.
        compacts: list[dict[str, Any]] = [{"compact": {"full": False}}] if "deletion-vectors.enabled" in options else []
        steps = [{"write": {"rows": [list(row) for row in theirs]}}, *compacts, {"read": {"out": out, "buckets": True}}]
        paimon(tmp_path, {"table": url, "steps": steps})
        want |= {row[0]: row for row in theirs}
        java = pq.read_table(out).to_pylist()
        expected = sorted(repr(list(row)) for row in want.values())
        assert texts(java) == expected, turn
        assert texts(alluvium.open(url).to_arrow().to_pylist()) == expected, turn
        assert len({(row["k"], row["_bucket"]) for row in java}) == len(want), "a key in two buckets"
        gone = sorted(want)[turn::9]
        table.delete(f"k in ({', '.join(map(str, gone))})")
        want = {k: row for k, row in want.items() if k not in gone}
        if turn == 2:
            table.compact()
    assert texts(alluvium.open(url).to_arrow().to_pylist()) == sorted(repr(list(row)) for row in want.values())


def test_keys_that_java_placed_meanwhile(tmp_path: Path) -> None:
    """Ours were placed by an index that is not the newest any more: the same key would be in two buckets."""
    url = str(tmp_path / "w.db" / "t")
    PaimonTable.create(url, FIELDS, (), ["k"], SMALL)
    store = open_store(url)
    rows = [{"k": k, "day": "a", "s": "first"} for k in range(7)]
    late = open_target(store)
    staged = stage(late, rows)
    steps = [{"write": {"rows": [[k, "a", "java"] for k in range(3, 12)]}}]
    paimon(tmp_path, {"table": url, "steps": steps})
    with pytest.raises(CommitConflict) as lost:
        late.commit(staged)
    assert lost.value.code == "concurrent-numbers"
    again = open_target(store)
    again.commit(stage(again, rows))
    paimon(tmp_path, {"table": url, "steps": [{"read": {"out": f"{url}.rows", "buckets": True}}]})
    java = pq.read_table(f"{url}.rows").to_pylist()
    want = dict.fromkeys(range(3, 12), "java") | dict.fromkeys(range(7), "first")
    assert {row["k"]: row["s"] for row in java} == want and len(java) == len(want)
    assert texts(alluvium.open(url).to_arrow().to_pylist()) == texts(java)
