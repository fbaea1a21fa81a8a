"""Java finds every row by its value: statistics of values and partitions at each type's widest, smallest and negative
values, in files of each format. What Python workers write is asked; Spark's own files are in test_paimon_writes.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from paimon_rows import append, open_target
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.files.manifest import read_entries
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import DataField, parse_type
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store

pytestmark = NEEDS_PAIMON


def decimals(precision: int, scale: int) -> list[Decimal]:
    numbers = [10**precision - 1, 1 - 10**precision, 0, 1, -1, 127, 128, -128, -129, 256, -257, 2**63, -(2**63) - 1]
    kept = [number for number in numbers if abs(number) < 10**precision]
    return [Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)) for n in kept]


VALUES: dict[str, list[Any]] = {
    "TINYINT": [-128, 127, 0, -1],
    "SMALLINT": [-(2**15), 2**15 - 1, 0],
    "INT": [-(2**31), 2**31 - 1, 0, -1],
    "BIGINT": [-(2**63), 2**63 - 1, 0, -1],
    "DECIMAL(9, 2)": decimals(9, 2),
    "DECIMAL(18, 2)": decimals(18, 2),
    "DECIMAL(19, 0)": decimals(19, 0),
    "DECIMAL(38, 10)": decimals(38, 10),
    "DECIMAL(38, 38)": decimals(38, 38),
    "FLOAT": [3.4028234663852886e38, -3.4028234663852886e38, 1.401298464324817e-45, 0.0, -1.5],
    "DOUBLE": [1.7976931348623157e308, -1.7976931348623157e308, 5e-324, 0.0, -1.5],
    "STRING": ["", "a" * 40, "\U0010ffff" * 20, "ä€😀" * 10, " ", "\ud7ff" * 17, "\uffff" * 17, "\u00a0"],
    "DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(1969, 12, 31)],
    "TIMESTAMP(6)": [dt.datetime(1960, 1, 1), dt.datetime(2200, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1)],
    "TIMESTAMP(3)": [dt.datetime(1960, 1, 1, 0, 0, 0, 999000), dt.datetime(2024, 1, 1)],
}


#: By a predicate Java's reader of ORC loses these, in files of Java's own, too: a text beside characters beyond U+FFFF,
#: which UTF-16 orders before it, and a day of another calendar.
_LOST_BY_JAVA = ("\uffff" * 17, dt.date(1, 1, 1))


def told(value: Any) -> Any:
    if isinstance(value, (dt.date, dt.datetime)):
        return value.isoformat()
    return format(value, "f") if isinstance(value, Decimal) else value


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("partitioned", [False, True], ids=["values", "partitions"])
def test_java_finds_every_value(tmp_path: Path, form: str, partitioned: bool) -> None:
    jobs: list[dict[str, Any]] = []
    reads: list[dict[str, Any]] = []
    asked = {kind: [v for v in values if form != "orc" or v not in _LOST_BY_JAVA] for kind, values in VALUES.items()}
    for number, (kind, values) in enumerate(asked.items()):
        url = str(tmp_path / f"t{number}")
        # The time of three digits has Python workers write Parquet, too.
        fields = [DataField(0, n, parse_type(k)) for n, k in (("k", "INT"), ("c", kind), ("t", "TIMESTAMP(3)"))]
        PaimonTable.create(url, fields, ["c"] if partitioned else [], options={"file.format": form})
        store = open_store(url)
        rows = [{"k": k, "c": value} for k, value in enumerate(values)]
        for row in rows:
            append(open_target(store), [row])
        append(open_target(store), [*rows, {"k": -1, "c": None}])
        jobs.append({"table": url, "find": [["c", told(value)] for value in values], "key": "k"})
        reads.append({"table": url, "steps": [{"read": {"out": str(tmp_path / f"{number}-all")}}]})
    answers = paimon(tmp_path, *jobs, *reads)
    for number, (kind, values) in enumerate(asked.items()):
        everything = pq.read_table(tmp_path / f"{number}-all", columns=["k"])["k"].to_pylist()
        assert sorted(everything) == sorted([-1, *range(len(values)), *range(len(values))]), kind
        for k, (value, found) in enumerate(zip(values, answers[number], strict=True)):
            assert found.count(k) == 2, (kind, value)


def test_java_sees_what_we_took_out(tmp_path: Path) -> None:
    """ "the embedded file index" is part of a file's identity: without it Java keeps what we have removed."""
    url = str(tmp_path / "t")
    indexed = {"file-index.bloom-filter.columns": "k", "file-index.bloom-filter.k.items": "100", "file-index.in-manifest-threshold": "10 kb",
               "manifest.merge-min-count": "2"}  # fmt: skip
    fields = [{"name": "k", "type": "INT"}, {"name": "p", "type": "STRING"}]
    write = {"write": {"rows": [[1, "a"], [2, "b"]]}}
    paimon(tmp_path, {"table": url, "steps": [
        {"create": {"fields": fields, "partitionKeys": ["p"], "options": indexed}}, write, write,
    ]})  # fmt: skip
    store = open_store(url)
    snapshot = load_snapshot(store)
    assert snapshot.document is not None
    entries = read_entries(store, (snapshot.document.base_manifest_list, snapshot.document.delta_manifest_list))
    assert entries["embedded_file_index"].null_count == 0
    append(open_target(store), [{"k": 3, "p": "a"}], Replace(dynamic=True))
    # By now the manifests of the removed files have been merged, too.
    append(open_target(store), [{"k": 4, "p": "b"}])
    out = tmp_path / "rows"
    paimon(tmp_path, {"table": url, "steps": [
        {"write": {"rows": [[5, "b"]]}}, {"compact": {}}, {"read": {"out": str(out)}},
    ]})  # fmt: skip
    expected = [(2, "b"), (2, "b"), (3, "a"), (4, "b"), (5, "b")]
    assert sorted(tuple(row.values()) for row in pq.read_table(out).to_pylist()) == expected
    found = alluvium.open(url).to_arrow(columns=["k", "p"]).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == expected
