"""Paimon tables with a primary key: upserts beside Delta's MERGE, full compaction beside Spark's own sort and write."""

from __future__ import annotations

import shutil
from pathlib import Path

from workloads.bench import Bench, Request, Workload
from workloads.dml import fresh_table, merge_source
from workloads.paimon import make_table

_KEYS, _RUN = 8_000_000, 4_000_000


def _twin(bench: Bench, engine: str, name: str, source: Path) -> Path:
    """A table's twin: data files are shared, all else is its own."""
    copy = bench.output(engine, name)
    shutil.rmtree(copy.parent, ignore_errors=True)
    for path in (path for path in source.rglob("*") if path.is_file()):
        target = copy / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.name.startswith("bucket-"):
            target.hardlink_to(path)
        else:
            shutil.copy(path, target)
    return copy


def _keys(bench: Bench) -> Path:
    """8 M keys in 4 buckets, one run each."""
    rows = bench.scaled(_KEYS)
    return bench.table("paimon-keys", lambda root: make_table("keys", rows, root)) / "db.db" / "t"


def _runs(bench: Bench) -> Path:
    """Five runs of 4 M rows in 4 buckets, of 8 M keys in all."""
    rows = bench.scaled(_RUN)
    return bench.table("paimon-runs", lambda root: make_table("runs", rows, root)) / "db.db" / "t"


def _upsert(bench: Bench, engine: str, turn: int) -> Request:
    source = str(merge_source(bench))
    if engine == "delta-spark":
        path = str(fresh_table(bench, engine, f"paimon-upsert-{turn}", "vectors"))
        return {"do": "merge", "path": path, "source": source, "before": {"do": "count", "path": path}}
    path = str(_twin(bench, engine, f"paimon-upsert-{turn}", _keys(bench)))
    return {"do": "upsert", "path": path, "source": source, "before": {"do": "count", "path": path}}


def _compact(bench: Bench, engine: str, turn: int) -> Request:
    if engine == "raw":
        out = bench.output(engine, f"sorted-{turn}")
        shutil.rmtree(out, ignore_errors=True)
        return {"do": "sort", "path": str(_runs(bench)), "to": str(out), "by": "id", "tasks": 4}
    return {"do": "compact", "path": str(_twin(bench, engine, f"paimon-runs-{turn}", _runs(bench)))}


WORKLOADS = (
    Workload(
        "paimon-upsert",
        "upsert of 160,000 rows into 8 M keys of Paimon / Delta's MERGE of them by vectors",
        ("delta-spark", "alluvium"),
        "alluvium",
        1.0,
        _upsert,
        rounds=5,
        quick_rounds=1,
        checks=False,
    ),
    Workload(
        "paimon-compact",
        "full compaction of 5 runs of 4 M rows / Spark's sort and write of these rows",
        ("raw", "alluvium"),
        "alluvium",
        1.5,
        _compact,
        rounds=3,
        quick_rounds=1,
        checks=False,
    ),
)
