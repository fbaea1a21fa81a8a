"""Alluvium beside its peers, in one run: run.py [--only NAME] [--scale 1.0] [--quick].

Every engine has a process of its own (peers in the environment of `../shared/reference/setup`), warm between rounds;
rounds are interleaved (A B C A B C ...), the median counts. Prints ratios, keeps everything as JSON in `results/`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from protocol import Worker, WorkerFailed
from workloads import WORKLOADS, Bench, Workload

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SHARED = ROOT.parent / "shared" / "reference"
PROJECT_PYTHON = ROOT / ".venv" / "bin" / "python"

#: The script of each engine, and whether it runs in the project's environment.
ENGINES = {
    "raw": ("raw.py", True),
    "alluvium": ("alluvium_spark.py", True),
    "alluvium-open": ("alluvium_open.py", True),
    "raw-over-connect": ("raw_over_connect.py", True),
    "alluvium-over-connect": ("alluvium_over_connect.py", True),
    "delta-spark": ("delta_spark.py", False),
    # The same engines at other work, to be compared with themselves.
    "alluvium-plain": ("alluvium_spark.py", True),
    "delta-spark-plain": ("delta_spark.py", False),
    "deltalake": ("deltalake_open.py", False),
    "polars": ("polars_open.py", False),
    "alluvium-paimon": ("alluvium_paimon.py", True),
    "pypaimon": ("pypaimon_open.py", False),
}


@dataclass
class Series:
    """The counted rounds of one engine in one workload."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak_mb: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def computed(self) -> float:
        return statistics.median(self.cpu)

    @property
    def memory(self) -> float:
        return statistics.median(self.peak_mb)


def find_reference(console: Console) -> Path | None:
    """The environment of the peers, made if it is not there; None where this machine cannot have it."""
    folder = Path(os.environ.get("REFERENCE_DIR", Path.home() / ".cache" / "alluvium-reference"))
    if (folder / "venv" / "bin" / "python").exists() and (folder / "jars" / ".done").exists():
        return folder
    if not (SHARED / "setup").exists():
        console.print(f"[yellow]no peers: {SHARED} is not there[/]")
        return None
    console.print(f"installing the peers into {folder} (once; some minutes)")
    subprocess.run([str(SHARED / "setup"), str(folder)], check=True, stdout=subprocess.DEVNULL)
    return folder


class Fleet:
    """Workers by engine, started when first asked; none for a peer that is not installed."""

    def __init__(self, reference: Path | None, logs: Path) -> None:
        self._reference = reference
        self._logs = logs
        self._running: dict[str, Worker] = {}
        self.versions: dict[str, str] = {}

    def has(self, engine: str) -> bool:
        return ENGINES[engine][1] or self._reference is not None

    def get(self, engine: str, fresh: bool = False) -> Worker:
        if fresh:
            self.stop(engine)
        if engine not in self._running:
            self._running[engine] = self._start(engine)
            self.versions.update({f"{engine}: {name}": v for name, v in self._running[engine].versions.items()})
        return self._running[engine]

    def stop(self, *engines: str) -> None:
        for engine in engines or tuple(self._running):
            worker = self._running.pop(engine, None)
            if worker is not None:
                worker.close()

    def _start(self, engine: str) -> Worker:
        script, ours = ENGINES[engine]
        path = HERE / "workers" / script
        log = self._logs / f"{engine}.log"
        if ours:
            # This checkout, whichever the environment was made for.
            return Worker(engine, PROJECT_PYTHON, path, {"PYTHONPATH": str(ROOT / "src")}, log)
        assert self._reference is not None
        env = {"PYTHONPATH": str(SHARED), "REFERENCE_DIR": str(self._reference)}
        return Worker(engine, self._reference / "venv" / "bin" / "python", path, env, log)


def measure(
    workload: Workload, bench: Bench, fleet: Fleet, rounds: int, say: Callable[[str], None]
) -> dict[str, Series]:
    """Runs the rounds of a workload; engines that are not installed are left out.

    Raises:
        WorkerFailed: A worker died, or engines that must agree gave different answers.
    """
    engines = [engine for engine in workload.engines if fleet.has(engine)]
    results: dict[str, Series] = defaultdict(Series)
    for turn in range(-1, rounds):
        say(f"{workload.name}: round {turn + 1} of {rounds}")
        checks = {}
        for engine in engines:
            request = workload.request(bench, engine, turn)
            answer = fleet.get(engine, workload.fresh).ask(request)
            checks[engine] = answer["check"]
            if turn >= 0:
                results[engine].seconds.append(answer["seconds"])
                results[engine].cpu.append(answer["cpu"])
                results[engine].peak_mb.append(answer["peak_mb"])
        if workload.checks and len({json.dumps(check) for check in checks.values()}) > 1:
            raise WorkerFailed(f"{workload.name}: the engines disagree: {str(checks)[:1000]}")
    return dict(results)


def verdict(ratio: float | None, target: float) -> str:
    if ratio is None:
        return "-"
    colour = "green" if ratio <= target else "red"
    return f"[{colour}]{ratio:.2f} x[/] (<= {target:g})"


def ratio_of(workload: Workload, results: dict[str, Series], quantity: Callable[[Series], float]) -> float | None:
    """Ours over the measure; None if one of the two is absent."""
    measured = results.get(workload.engines[0])
    ours = results.get(workload.ours)
    return quantity(ours) / quantity(measured) if ours and measured and quantity(measured) else None


def extremes(workload: Workload, series: Series) -> str:
    """The slowest round, or the first and the last, where the workload wants them shown."""
    if workload.has_drift:
        return f"{series.seconds[0]:.3f} > {series.seconds[-1]:.3f}"
    return f"{max(series.seconds):.3f}" if workload.has_worst else ""


_FIGURES = ("median", "worst (first > last)", "ratio", "ours, wanted", "CPU s", "CPU ratio", "peak MB")


def report(all_results: dict[Workload, dict[str, Series]], scale: float, console: Console) -> None:
    table = Table(title=f"seconds (median, and of all cores); ratios to the first engine; scale {scale:g}")
    headers = (
        "work",
        "engine",
        "median",
        "worst (first > last)",
        "ratio",
        "ours, wanted",
        "CPU s",
        "CPU ratio",
        "peak MB",
    )
    for column in headers:
        table.add_column(column, justify="left" if column in ("work", "engine") else "right")
    for workload, results in all_results.items():
        first = results.get(workload.engines[0])
        for i, (engine, series) in enumerate(results.items()):
            memory = ""
            if workload.memory_target is not None:
                memory = f"{series.memory:.0f}"
                if engine == workload.ours:
                    memory_ratio = ratio_of(workload, results, lambda s: s.memory)
                    memory += " " + verdict(memory_ratio, workload.memory_target)
            table.add_row(
                workload.title if i == 0 else "",
                engine,
                f"{series.median:.3f}",
                extremes(workload, series),
                f"{series.median / first.median:.2f} x" if first else "",
                verdict(ratio_of(workload, results, lambda s: s.median), workload.target)
                if engine == workload.ours
                else "",
                f"{series.computed:.2f}",
                f"{series.computed / first.computed:.2f} x" if first and first.computed else "",
                memory,
                end_section=i == len(results) - 1,
            )
    console.print(table)


def keep(all_results: dict[Workload, dict[str, Series]], args: argparse.Namespace, versions: dict[str, str]) -> Path:
    """Writes the run as JSON; a second run of the same day gets a number."""
    document = {
        "at": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        "machine": {"cpus": os.cpu_count(), "platform": platform.platform(), "python": platform.python_version()},
        "scale": args.scale,
        "versions": dict(sorted(versions.items())),
        "workloads": {
            workload.name: {
                "target": workload.target,
                "ratio": ratio_of(workload, results, lambda s: s.median),
                "cpu_ratio": ratio_of(workload, results, lambda s: s.computed),
                "engines": {
                    engine: {
                        "median": series.median,
                        **{k: [round(x, 4) for x in v] for k, v in asdict(series).items()},
                    }
                    for engine, series in results.items()
                },
            }
            for workload, results in all_results.items()
        },
    }
    day = dt.datetime.now(dt.timezone.utc).date().isoformat()
    names = (f"{day}.json", *(f"{day}-{n}.json" for n in range(2, 1000)))
    path = next(HERE / "results" / name for name in names if not (HERE / "results" / name).exists())
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=[w.name for w in WORKLOADS], help="may be repeated")
    parser.add_argument("--scale", type=float, help="1.0 is 8 million rows (default; 0.05 with --quick)")
    parser.add_argument("--quick", action="store_true", help="small tables and few rounds: does it run at all?")
    args = parser.parse_args()
    args.scale = args.scale if args.scale is not None else 0.05 if args.quick else 1.0
    return args


def main() -> int:
    args = parse_arguments()
    console = Console(width=None if sys.stdout.isatty() else 140)
    folder = ROOT / ".bench"
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    bench = Bench(folder, args.scale)
    fleet = Fleet(find_reference(console), folder / "logs")
    chosen = [w for w in WORKLOADS if args.only is None or w.name in args.only]
    all_results: dict[Workload, dict[str, Series]] = {}
    failed = False
    try:
        with console.status("") as status:
            for workload in chosen:
                rounds = workload.quick_rounds if args.quick else workload.rounds
                try:
                    all_results[workload] = measure(workload, bench, fleet, rounds, status.update)
                    # A run of an hour that is ended before its table has told something, too.
                    told = {engine: f"{s.median:.2f} s" for engine, s in all_results[workload].items()}
                    console.print(f"{workload.name}: {told}", highlight=False)
                except WorkerFailed as failure:
                    console.print(f"[red]{failure}[/]", markup=True)
                    fleet.stop()
                    failed = True
    finally:
        fleet.stop()
        shutil.rmtree(folder / "out", ignore_errors=True)
    if all_results:
        report(all_results, args.scale, console)
        if not args.quick:
            console.print(f"kept in {keep(all_results, args, fleet.versions).relative_to(ROOT)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
