"""OPTIMIZE, Z-order, clustering, clones and VACUUM of tables of many files.

Each round has a fresh copy of the table, whose data files are hard links: no engine changes a file in place.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

import data
from workloads.bench import PAIRED_ENGINES, SPARK_ENGINES, Bench, Request, Workload

_FILES = 400


def _request(verb: str) -> Callable[[Bench, str, int], Request]:
    def request(bench: Bench, engine: str, turn: int) -> Request:
        copy = bench.output(engine, f"{verb}-{turn}")
        shutil.rmtree(copy.parent, ignore_errors=True)
        table = bench.past_table(_FILES) if verb == "vacuum" else bench.many_table(_FILES)
        data.link_table(copy, table)
        asked = {"do": verb, "path": str(copy), "to": str(copy.with_name("written"))}
        if engine == "raw":
            return asked
        return {**asked, "before": {"do": "count", "path": str(copy)}, "after": {"do": "digest", "path": str(copy)}}

    return request


def _clone(bench: Bench, engine: str, turn: int) -> Request:
    copy = bench.output(engine, f"clone-{turn}")
    shutil.rmtree(copy, ignore_errors=True)
    return {"do": "clone", "path": str(bench.long_table()), "to": str(copy)}


def _recluster(bench: Bench, engine: str, turn: int) -> Request:
    """Of all rows, or of the hundredth that came since."""
    table = bench.output(engine, f"recluster-{turn}")
    shutil.rmtree(table, ignore_errors=True)
    more = 0 if engine.endswith("-plain") else 0.01
    before = {"do": "cluster", "path": str(table), "source": str(bench.many_table(_FILES)), "more": more}
    return {"do": "optimize", "path": str(table), "before": before}


_Z_ORDER = Workload(
    "zorder",
    f"OPTIMIZE ZORDER BY (amount, customer) of {_FILES} files of 2 M rows",
    ("delta-spark", "alluvium"),
    "alluvium",
    0.6,
    _request("zorder"),
    rounds=3,
    quick_rounds=1,
)

WORKLOADS = (
    Workload(
        "optimize",
        f"OPTIMIZE of {_FILES} files of 2 M rows / Spark reads and writes them",
        SPARK_ENGINES,
        "alluvium",
        1.2,
        _request("optimize"),
        rounds=5,
        quick_rounds=1,
        checks=False,
    ),
    _Z_ORDER,
    replace(_Z_ORDER, name="zorder-first", title="the same, the first that a process does", fresh=True),
    Workload(
        "vacuum",
        f"VACUUM of {_FILES} removed files",
        ("delta-spark", "alluvium"),
        "alluvium",
        0.2,
        _request("vacuum"),
        rounds=3,
        quick_rounds=1,
    ),
    Workload(
        "clone",
        "shallow clone of 100,000 files",
        ("delta-spark", "alluvium"),
        "alluvium",
        1.0,
        _clone,
        rounds=3,
        quick_rounds=1,
        checks=False,
    ),
    Workload(
        "recluster",
        "clustering of 1 % of new rows / of all 2 M",
        PAIRED_ENGINES,
        "alluvium",
        0.1,
        _recluster,
        rounds=3,
        quick_rounds=1,
        checks=False,
    ),
)
