"""What is measured: one record a workload, from the table of figures that the project wants to reach."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import data

SPARK_ENGINES = ("raw", "alluvium", "delta-spark")
#: Each engine against itself: the first of a pair reads the table without deletion vectors.
MASKED_ENGINES = ("alluvium-plain", "alluvium", "delta-spark-plain", "delta-spark")
OPEN_ENGINES = ("deltalake", "alluvium-open")


@dataclass(frozen=True)
class Bench:
    """Where the tables stand and how large they are: 1.0 is 8 million rows, 300,000 files in the log."""

    folder: Path
    scale: float

    def table(self, name: str, make: Callable[[Path], None]) -> Path:
        return data.ensure_table(self.folder / f"{name}-{self.scale:g}", make)

    def scaled(self, count: int) -> int:
        return max(1, int(count * self.scale))

    def scan_table(self) -> Path:
        return self.table("scan", lambda root: data.make_files(root, data.SCAN_FILES, self.scaled(1_000_000)))

    def point_table(self) -> Path:
        return self.table("point", lambda root: data.make_files(root, data.POINT_FILES, self.scaled(100_000)))

    def small_table(self) -> Path:
        return self.table("small", lambda root: data.make_files(root, data.SMALL_COMMITS, 100, data.SMALL_COMMITS))

    def log_table(self) -> Path:
        return self.table("log", lambda root: data.make_log(root, self.scaled(300_000)))

    def masked_table(self, fraction: float) -> Path:
        source = self.scan_table()
        return self.table(f"masked-{fraction:g}", lambda root: data.make_masked(root, source, fraction))

    def mapped_table(self, mode: str) -> Path:
        source = self.scan_table()
        return self.table(f"mapped-{mode}", lambda root: data.make_mapped(root, source, mode))

    def output(self, engine: str, name: str) -> Path:
        return self.folder / "out" / engine / name


Request = dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """One line of the table.

    Attributes:
        name: What `--only` calls it.
        title: What people read.
        engines: Who takes part, in the order of a round; the first is the measure of the others.
        ours: The engine of this project.
        target: Seconds of ours over seconds of the measure: at most this.
        request: What to ask an engine in a round. Round -1 is not counted: it warms up.
        memory_target: The same of peak memory, where it is compared.
        rounds: How many counted rounds; `quick_rounds` with `--quick`.
        fresh: Whether each request gets a new process, so that nothing is warm and memory is its own.
        has_worst: Whether the slowest round is shown, too.
        checks: Whether all engines must give the same answer.
    """

    name: str
    title: str
    engines: tuple[str, ...]
    ours: str
    target: float
    request: Callable[[Bench, str, int], Request]
    memory_target: float | None = None
    rounds: int = 7
    quick_rounds: int = 3
    fresh: bool = False
    has_worst: bool = False
    checks: bool = True


def _scan(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "scan", "path": str(bench.scan_table())}


def _masked(fraction: float) -> Callable[[Bench, str, int], Request]:
    def request(bench: Bench, engine: str, turn: int) -> Request:
        path = bench.scan_table() if engine.endswith("-plain") else bench.masked_table(fraction)
        return {"do": "scan", "path": str(path)}

    return request


def _mapped(mode: str) -> Callable[[Bench, str, int], Request]:
    def request(bench: Bench, engine: str, turn: int) -> Request:
        # Raw Parquet has the columns of the files, in order: it is told their names.
        names = {"names": data.rows(1, 0, 0).column_names} if engine == "raw" else {}
        return {"do": "scan", "path": str(bench.mapped_table(mode)), **names}

    return request


def _point(bench: Bench, engine: str, turn: int) -> Request:
    row_count = data.POINT_FILES * bench.scaled(100_000)
    return {"do": "point", "path": str(bench.point_table()), "id": (turn + 2) * 7_919_777 % row_count}


def _write(bench: Bench, engine: str, turn: int) -> Request:
    target = bench.output(engine, "write")
    shutil.rmtree(target, ignore_errors=True)
    return {"do": "copy", "source": str(bench.scan_table()), "path": str(target)}


def _count(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "count", "path": str(bench.small_table())}


def _count_cold(bench: Bench, engine: str, turn: int) -> Request:
    # a path that the session has never seen: no cache of its snapshot, footers or listing can help
    copy = bench.output(engine, f"cold-{turn}")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(bench.small_table(), copy)
    return {"do": "count", "path": str(copy)}


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


#: Engines that fill a table of the same columns without the feature, beside those that fill one with it.
FEATURE_ENGINES = ("alluvium-plain", "alluvium", "delta-spark-plain", "delta-spark")

_GENERATION = "id * 2 + hash(customer)"
_IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
_CONSTRAINTS = {
    "delta.constraints.amounts": "amount > -1000 and amount < 1000",
    "delta.constraints.countries": "country <> 'XX' and length(name) > 3",
    "delta.constraints.quantities": "quantity between 0 and 100",
}
#: By feature: what the table is, and the column that the data brings where the table does not make it.
_FEATURES: dict[str, tuple[dict[str, dict[str, Any]], dict[str, str], str | None]] = {
    "constraints": ({}, _CONSTRAINTS, None),
    "generated": ({"made": {"delta.generationExpression": _GENERATION}}, {}, f"{_GENERATION} as made"),
    "identity": ({"made": _IDENTITY}, {}, "id as made"),
}


def _fill(feature: str) -> Callable[[Bench, str, int], Request]:
    def request(bench: Bench, engine: str, turn: int) -> Request:
        metadata, properties, brought = _FEATURES[feature]
        target = bench.output(engine, feature)
        plain = engine.endswith("-plain")
        data.make_empty(target, {name: {} if plain else m for name, m in metadata.items()}, {} if plain else properties)
        columns = ["*", brought] if plain and brought is not None else ["*"]
        return {"do": "fill", "source": str(bench.scan_table()), "path": str(target), "columns": columns}

    return request


def _filled(feature: str, title: str) -> Workload:
    return Workload(
        f"write-{feature}",
        f"write of 8 M rows: {title}",
        FEATURE_ENGINES,
        "alluvium",
        1.10,
        _fill(feature),
        rounds=5,
        quick_rounds=2,
        checks=False,
    )


WORKLOADS = (
    Workload("scan", "scan, filter, group-by: 8 M rows x 10 columns", SPARK_ENGINES, "alluvium", 1.05, _scan),
    *(
        Workload(
            f"masked-{percent:g}",
            f"the same, {percent:g} % of rows deleted by vectors",
            MASKED_ENGINES,
            "alluvium",
            1.3,
            _masked(percent / 100),
            checks=False,
        )
        for percent in (0.1, 1, 20)
    ),
    *(
        Workload(
            f"mapped-{mode}", f"the same, columns mapped by {mode}", SPARK_ENGINES, "alluvium", 1.05, _mapped(mode)
        )
        for mode in ("name", "id")
    ),
    Workload("point", "look-up of one id in 100 files", SPARK_ENGINES, "alluvium", 1.0, _point),
    Workload(
        "write", "write of 8 M rows", SPARK_ENGINES, "alluvium", 1.05, _write, rounds=5, quick_rounds=2, checks=False
    ),
    Workload("count-warm", "open + count, 25 commits, known table", SPARK_ENGINES, "alluvium", 1.2, _count),
    Workload("count-cold", "open + count, 25 commits, new table", SPARK_ENGINES, "alluvium", 1.2, _count_cold),
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
    Workload("open", "open + count without Spark", OPEN_ENGINES, "alluvium-open", 1.0, _count, rounds=15),
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
    _filled("constraints", "3 CHECK constraints / none"),
    _filled("generated", "generated column / the same brought by the data"),
    _filled("identity", "identity column / numbers brought by the data"),
)
