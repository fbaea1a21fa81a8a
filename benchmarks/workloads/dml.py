"""DELETE, UPDATE and MERGE, with deletion vectors and without, and what a scan costs behind them.

Each round has a fresh copy of the table, whose data files are hard links: no engine changes a file in place. The log
of the copy has been read once before the time is taken, as in a session that works with the table.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import data
from workloads.bench import PAIRED_ENGINES, Bench, Request, Workload

#: One row in a hundred, in all files.
_SCATTERED = "id % 100 = 7"
_UPDATED = {"where": "id % 100 = 11", "set": {"quantity": "quantity + 1", "name": "concat(name, ' again')"}}
_MERGED = 160_000
_MODES = {"vectors": ("delta-spark", "alluvium"), "copy": ("delta-spark", "alluvium", "deltalake")}


def merge_source(bench: Bench) -> Path:
    """Rows to merge, half of them for rows that are there: these are scattered over all files."""
    count, known = bench.scaled(_MERGED), data.SCAN_FILES * bench.scaled(1_000_000)
    return bench.table("news", lambda root: data.make_news(root / "news.parquet", count, known)) / "news.parquet"


def _step(bench: Bench, verb: str, turn: int) -> Request:
    rows = data.SCAN_FILES * bench.scaled(1_000_000)
    asked: dict[str, Request] = {
        "delete": {"where": _SCATTERED},
        "delete-one": {"where": f"id = {(turn + 2) * 1_919_777 % rows}"},
        "update": _UPDATED,
        "merge": {"source": str(merge_source(bench))},
    }
    return {"do": verb.split("-")[0], **asked[verb]}


def _table(bench: Bench, mode: str) -> Path:
    return bench.vectors_table() if mode == "vectors" else bench.scan_table()


def fresh_table(bench: Bench, engine: str, name: str, mode: str) -> Path:
    """A table of 8 M rows that nobody else changes."""
    copy = bench.output(engine, name)
    shutil.rmtree(copy.parent, ignore_errors=True)
    data.link_table(copy, _table(bench, mode))
    return copy


def _change(verb: str, mode: str) -> Callable[[Bench, str, int], Request]:
    def request(bench: Bench, engine: str, turn: int) -> Request:
        path = str(fresh_table(bench, engine, f"{verb}-{mode}-{turn}", mode))
        opened = {"do": "count", "path": path}
        return {**_step(bench, verb, turn), "path": path, "before": opened, "after": {"do": "digest", "path": path}}

    return request


def _or_copied(verb: str) -> Callable[[Bench, str, int], Request]:
    """The verb for us; all rows read and written by Spark alone for `raw`: every file has rows that change."""

    def request(bench: Bench, engine: str, turn: int) -> Request:
        if engine != "raw":
            return _change(verb, "copy")(bench, engine, turn)
        return {"do": "copy", "source": str(bench.scan_table()), "path": str(bench.output(engine, "copied"))}

    return request


def _scan_after(bench: Bench, engine: str, turn: int) -> Request:
    path = bench.output(engine, "changed")
    if turn >= 0:
        return {"do": "scan", "path": str(path)}
    copy = str(fresh_table(bench, engine, "changed", "vectors"))
    verbs = () if engine.endswith("-plain") else ("delete", "update", "merge")
    steps = [{**_step(bench, verb, turn), "path": copy} for verb in verbs]
    return {"do": "scan", "path": copy, "before": {"do": "change", "steps": steps}}


def _workload(verb: str, mode: str, title: str, target: float) -> Workload:
    return Workload(
        f"{verb}-{mode}",
        f"{title}, {'deletion vectors' if mode == 'vectors' else 'copy on write'}",
        _MODES[mode],
        "alluvium",
        target,
        _change(verb, mode),
        # The first ones compile, in each engine other things: half of the processor's time in the seventh still.
        rounds=15 if mode == "vectors" else 5,
        quick_rounds=1,
    )


_VERBS = {
    "delete": "DELETE of 1 % of 8 M rows, scattered",
    "update": "UPDATE of 1 % of 8 M rows, scattered",
    "merge": "MERGE of 160,000 rows into 8 M, half of them matches",
}

WORKLOADS = (
    *(_workload(verb, "vectors", title, 0.5) for verb, title in _VERBS.items()),
    *(_workload(verb, "copy", title, 0.6) for verb, title in _VERBS.items()),
    *(
        Workload(
            f"{verb}-limit",
            f"{_VERBS[verb]}, copy on write / Spark's own read and write of all files",
            ("raw", "alluvium"),
            "alluvium",
            limit,
            _or_copied(verb),
            rounds=5,
            quick_rounds=1,
            checks=False,
        )
        for verb, limit in (("delete", 1.15), ("update", 1.15), ("merge", 1.3))
    ),
    _workload("delete-one", "vectors", "DELETE of one row by key, 8 M rows", 0.2),
    _workload("delete-one", "copy", "DELETE of one row by key, 8 M rows", 0.6),
    Workload(
        "scan-after",
        "scan, filter, group-by after DELETE, UPDATE, MERGE with vectors / before them",
        PAIRED_ENGINES,
        "alluvium",
        1.3,
        _scan_after,
        rounds=5,
        quick_rounds=2,
        checks=False,
    ),
)
