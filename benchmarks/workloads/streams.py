"""Streams from table to table, each run with `AvailableNow` from start to end of the query."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from workloads.bench import PAIRED_ENGINES, Bench, Request, Workload

_ENGINES = ("delta-spark", "alluvium")


def _copy(bench: Bench, engine: str, turn: int) -> Request:
    """All rows of the scanned table; its pair copies them by a batch."""
    target = bench.output(engine, "stream-copy")
    shutil.rmtree(target, ignore_errors=True)
    verb = "stream_batch" if engine.endswith("-plain") else "stream"
    return {
        "do": verb,
        "source": str(bench.scan_table()),
        "path": str(target / "table"),
        "checkpoint": str(target / "checkpoint"),
    }


def _going_on(name: str, verb: str = "stream", rows: int = 0) -> Callable[[Bench, str, int], Request]:
    """A query that goes on with its checkpoint, after an append of so many rows to its source."""

    def request(bench: Bench, engine: str, turn: int) -> Request:
        folder = bench.output(engine, name)
        source, target = folder / "source", folder / "table"
        asked = {"source": str(source), "path": str(target), "checkpoint": str(folder / "checkpoint")}
        more = {"do": "small_files", "path": str(source), "rows": rows or 100}
        if turn >= 0:
            return {"do": verb, **asked, **({"before": more} if rows else {})}
        shutil.rmtree(folder, ignore_errors=True)
        if verb == "stream":
            return {"do": verb, **asked, "before": more}
        # MERGE needs a table.
        return {**more, "path": str(target), "rows": bench.scaled(100_000)}

    return request


def _many(bench: Bench, engine: str, turn: int) -> Request:
    folder = bench.output(engine, "stream-many")
    shutil.rmtree(folder, ignore_errors=True)
    files = bench.scaled(1000)
    return {
        "do": "stream",
        "source": str(folder / "source"),
        "path": str(folder / "table"),
        "checkpoint": str(folder / "checkpoint"),
        "options": {"maxFilesPerTrigger": 1},
        "before": {"do": "small_files", "path": str(folder / "source"), "rows": 10 * files, "files": files},
    }


WORKLOADS = (
    Workload(
        "stream-idle", "stream without news: started, ended", _ENGINES, "alluvium", 1.00, _going_on("stream-idle")
    ),
    Workload(
        "stream-small",
        "stream of one small file",
        _ENGINES,
        "alluvium",
        1.00,
        _going_on("stream-small", rows=100),
    ),
    Workload(
        "stream-merge",
        "MERGE of 100 rows in foreachBatch",
        _ENGINES,
        "alluvium",
        1.00,
        _going_on("stream-merge", "stream_merge", rows=100),
    ),
    Workload("stream-copy", "stream of 8 M rows, beside the batch", PAIRED_ENGINES, "alluvium", 1.10, _copy, rounds=5),
    Workload(
        "stream-many", "1,000 batches of one file each", _ENGINES, "alluvium", 1.00, _many, rounds=1, quick_rounds=1
    ),
)
