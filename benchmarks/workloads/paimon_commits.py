"""Small commits to a Paimon table."""

from __future__ import annotations

import shutil

from workloads.bench import Bench, Request, Workload

_COMMITS = 10


def _commit(bench: Bench, engine: str, turn: int) -> Request:
    target = bench.output(engine, "db.db") / "commits"
    if turn < 0:
        shutil.rmtree(target, ignore_errors=True)
    return {"do": "commits", "path": str(target), "times": _COMMITS}


WORKLOADS = (
    Workload(
        "paimon-commit",
        f"{_COMMITS} commits of a file of 100 rows, without Spark",
        ("pypaimon", "alluvium-paimon"),
        "alluvium-paimon",
        1.0,
        _commit,
        rounds=10,
        quick_rounds=4,
        has_worst=True,
        checks=False,
    ),
)
