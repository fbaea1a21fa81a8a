"""The log itself: lists of files, planning, small commits."""

from __future__ import annotations

import shutil

from workloads.bench import OPEN_ENGINES, Bench, Request, Workload


def _append(bench: Bench, engine: str, turn: int) -> Request:
    target = bench.output(engine, "append")
    if turn < 0:
        shutil.rmtree(target, ignore_errors=True)
    return {"do": "append", "path": str(target)}


def _load(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "load", "path": str(bench.log_table())}


def _plan(bench: Bench, engine: str, turn: int) -> Request:
    files = bench.scaled(300_000)
    return {"do": "plan", "path": str(bench.log_table()), "id": (turn + 2) * 7_919 % files * 1000 + 5}


WORKLOADS = (
    Workload(
        "append",
        "append of 100 rows (30 commits)",
        ("delta-spark", "alluvium", "raw"),
        "alluvium",
        1.0,
        _append,
        rounds=30,
        quick_rounds=12,
        has_worst=True,
        checks=False,
    ),
    Workload(
        "log",
        "log of 300,000 files, list of files",
        OPEN_ENGINES,
        "alluvium-open",
        1.0,
        _load,
        memory_target=0.6,
        rounds=5,
        fresh=True,
    ),
    Workload(
        "plan",
        "plan of a query that keeps 1 of 300,000 files",
        ("delta-spark", "alluvium"),
        "alluvium",
        1.0,
        _plan,
        rounds=5,
        quick_rounds=2,
    ),
    Workload(
        "plan-cold",
        "the same without Spark, log read anew",
        OPEN_ENGINES,
        "alluvium-open",
        1.0,
        _plan,
        rounds=5,
        quick_rounds=2,
        fresh=True,
    ),
)
