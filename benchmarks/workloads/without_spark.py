"""Queries and first answers without Spark."""

from __future__ import annotations

from functools import partial

import data
from workloads.bench import OPEN_ENGINES, Bench, Request, Workload

_QUERY_ENGINES = ("deltalake", "polars", "alluvium-open")


def _key(bench: Bench, turn: int) -> int:
    return (turn + 2) * 7_919_777 % (data.SCAN_FILES * bench.scaled(1_000_000))


def _lookup(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "lookup", "path": str(bench.scan_table()), "id": _key(bench, turn)}


def _lookup_indexed(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "lookup", "path": str(bench.indexed_table()), "id": _key(bench, turn)}


def _total(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "total", "path": str(bench.scan_table())}


def _groups(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "groups", "path": str(bench.scan_table())}


def _of_arrow(verb: str, bench: Bench, engine: str, turn: int) -> Request:
    name = f"{verb}-arrow" if engine == "alluvium-open" else verb
    return {"do": name, "path": str(bench.scan_table())}


def _first(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "first", "path": str(bench.point_table())}


def _show(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "first" if engine == "deltalake" else "show", "path": str(bench.point_table())}


WORKLOADS = (
    *(
        Workload(name, title, _QUERY_ENGINES, "alluvium-open", 1.0, request, rounds=15)
        for name, title, request in (
            ("lookup-open", "look-up of one key in 8 M rows without Spark", _lookup),
            ("lookup-indexed", "the same, files with a page index", _lookup_indexed),
            ("total-open", "filter and sum of 8 M rows without Spark, `to_polars`", _total),
            ("groups-open", "group by of 8 M rows without Spark, `to_polars`", _groups),
            ("total-arrow", "filter and sum of 8 M rows without Spark, `to_arrow`", partial(_of_arrow, "total")),
            ("groups-arrow", "group by of 8 M rows without Spark, `to_arrow`", partial(_of_arrow, "groups")),
        )
    ),
    Workload("first-files", "a new process: open, list files", OPEN_ENGINES, "alluvium-open", 1.0, _first, rounds=15),
    Workload(
        "first-show",
        "a new process: `alluvium show`, beside a list of files",
        OPEN_ENGINES,
        "alluvium-open",
        1.5,
        _show,
        rounds=15,
        checks=False,
    ),
)
