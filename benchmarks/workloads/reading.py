"""Scans, look-ups and counts."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import data
from workloads.bench import CONNECT_ENGINES, OPEN_ENGINES, PAIRED_ENGINES, SPARK_ENGINES, Bench, Request, Workload


def _scan(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "scan", "path": str(bench.scan_table())}


def _masked(fraction: float, query: str = "scan") -> Callable[[Bench, str, int], Request]:
    def request(bench: Bench, engine: str, turn: int) -> Request:
        is_plain = engine.endswith("-plain") or engine.startswith("raw")
        path = bench.scan_table() if is_plain else bench.masked_table(fraction)
        return {"do": query, "path": str(path)}

    return request


def _mapped(mode: str) -> Callable[[Bench, str, int], Request]:
    def request(bench: Bench, engine: str, turn: int) -> Request:
        # Raw Parquet has the columns of the files, in order: it is told their names.
        names = {"names": data.rows(1, 0, 0).column_names} if engine == "raw" else {}
        return {"do": "scan", "path": str(bench.mapped_table(mode)), **names}

    return request


def _over_connect(query: str) -> Callable[[Bench, str, int], Request]:
    return lambda bench, engine, turn: {"do": query, "path": str(bench.point_table())}


def _parts_over_connect(query: str, *, in_folders: bool = True) -> Callable[[Bench, str, int], Request]:
    def request(bench: Bench, engine: str, turn: int) -> Request:
        # Where no folder tells the partitions, raw Parquet finds none: it needs none for the query.
        is_plain = engine.startswith("raw") and not in_folders
        return {
            "do": query,
            "path": str(bench.point_table() if is_plain else bench.partitioned_table(in_folders=in_folders)),
        }

    return request


def _changes(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "changes", "path": str(bench.changed_table())}


def _point(bench: Bench, engine: str, turn: int) -> Request:
    row_count = data.POINT_FILES * bench.scaled(100_000)
    return {"do": "point", "path": str(bench.point_table()), "id": (turn + 2) * 7_919_777 % row_count}


def _count(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "count", "path": str(bench.small_table())}


def _together(count: int) -> Callable[[Bench, str, int], Request]:
    def request(bench: Bench, engine: str, turn: int) -> Request:
        paths = [bench.output("tables", f"small-{number}") for number in range(count)]
        for path in paths:
            if not path.exists():
                shutil.copytree(bench.small_table(), path)
        return {"do": "together", "paths": [str(path) for path in paths], "frames": engine.endswith("-plain")}

    return request


def _count_cold(bench: Bench, engine: str, turn: int) -> Request:
    # a path that the session has never seen: no cache of its snapshot, footers or listing can help
    copy = bench.output(engine, f"cold-{turn}")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(bench.small_table(), copy)
    return {"do": "count", "path": str(copy)}


WORKLOADS = (
    Workload("scan", "scan, filter, group-by: 8 M rows x 10 columns", SPARK_ENGINES, "alluvium", 1.05, _scan),
    *(
        Workload(
            f"masked-{percent:g}",
            f"the same, {percent:g} % of rows deleted by vectors",
            PAIRED_ENGINES,
            "alluvium",
            1.3,
            _masked(percent / 100),
            checks=False,
        )
        for percent in (0.1, 1, 20)
    ),
    Workload(
        "masked-light",
        "sum of one column, 1 % of rows deleted by vectors",
        PAIRED_ENGINES,
        "alluvium",
        1.3,
        _masked(0.01, "sum"),
        checks=False,
    ),
    *(
        Workload(
            f"mapped-{mode}", f"the same, columns mapped by {mode}", SPARK_ENGINES, "alluvium", 1.05, _mapped(mode)
        )
        for mode in ("name", "id")
    ),
    *(
        Workload(
            f"connect-{name}", title, CONNECT_ENGINES, "alluvium-over-connect", goal, request, rounds=15, checks=checks
        )
        for name, title, goal, request, checks in (
            ("scan", "over Spark Connect: filter, group-by of 100 files", 2.0, _over_connect("scan"), True),
            ("parts", "the same, 100 partitions", 2.0, _parts_over_connect("scan"), True),
            ("sum", "over Spark Connect: sum of one column of 100 files", 1.5, _over_connect("sum"), True),
            ("sum-parts", "the same, 100 partitions", 1.5, _parts_over_connect("sum"), True),
            (
                "sum-flat",
                "the same, 100 partitions that no folder tells; raw: none",
                2.0,
                _parts_over_connect("sum", in_folders=False),
                True,
            ),
            ("masked", "over Spark Connect: 1 % of rows deleted by vectors", 2.0, _masked(0.01), False),
        )
    ),
    Workload(
        "changes-100",
        "change feed over 100 versions",
        ("delta-spark", "alluvium", "alluvium-open"),
        "alluvium",
        1.0,
        _changes,
        rounds=5,
        quick_rounds=2,
    ),
    Workload("point", "look-up of one id in 100 files", SPARK_ENGINES, "alluvium", 1.0, _point),
    Workload("count-warm", "open + count, 25 commits, known table", SPARK_ENGINES, "alluvium", 1.2, _count),
    Workload("count-cold", "open + count, 25 commits, new table", SPARK_ENGINES, "alluvium", 1.2, _count_cold),
    *(
        Workload(
            f"sql-{count}",
            f"one query of SQL over {count} small table{'s'[: count - 1]}, against frames",
            PAIRED_ENGINES,
            "alluvium",
            1.5,
            _together(count),
            checks=False,
        )
        for count in (1, 10)
    ),
    Workload("open", "open + count without Spark", OPEN_ENGINES, "alluvium-open", 1.0, _count, rounds=15),
)
