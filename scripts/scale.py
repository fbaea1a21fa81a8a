"""How time and memory grow with a table's log, and with the number of its commits (`docs/scale.md`).

    scale.py log [--files 1000000] [--commits 10000]    # a log of so many files in so many commits, step by step
    scale.py day [--seconds 86400]                      # an append for each second of a day, with upkeep
    scale.py wide [NAME]                                # 50,000 partitions, 5,000 columns, a MERGE of much
    scale.py plot docs/scale.svg                        # what was measured so far; needs matplotlib

Each step of `log` is a process of its own: told are its seconds, and the most memory that it ever had. The data files
of such a log are not there: the log is what is measured. Results are kept as lines of JSON in `--state` (`.scale`).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import alluvium
from alluvium.api.delta.maintenance import write_checkpoint
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.delta.view import recent

SOURCE = Path(alluvium.__file__).parents[1]
#: Files of the simulated log: rows of each, partitions, files of one part of its checkpoint.
ROWS, DAYS, PART = 1_000, 1_000, 1_000_000
#: Commits behind the checkpoint.
TAIL = 10
#: Who appends once a second finds a log that has come to rest: what was read of it is known by its files' times. Here
#: it rests after 10 ms instead of 50: the files of a disk in memory tell times to 4.
SETTLED_S, SETTLED_MS = 0.012, 10
#: For how long the log and removed files are kept, and how old what is to expire is made: days count by their midnight.
KEPT_S, OLD_S = 60, 4 * 86_400
METADATA = {
    "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": name, "type": kind, "nullable": True, "metadata": {}}
                for name, kind in (("id", "long"), ("day", "integer"))
            ],
        }
    ),
    "partitionColumns": ["day"],
    "configuration": {},
    "createdTime": 1_700_000_000_000,
}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
MAP = pa.map_(pa.string(), pa.string())
ADD = pa.struct(
    [("path", pa.string()), ("partitionValues", MAP), ("size", pa.int64()), ("modificationTime", pa.int64()),
     ("dataChange", pa.bool_()), ("stats", pa.string())]
)  # fmt: skip
CHECKPOINT = pa.schema(
    [
        ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
        (
            "metaData",
            pa.struct(
                [("id", pa.string()), ("format", pa.struct([("provider", pa.string()), ("options", MAP)])),
                 ("schemaString", pa.string()), ("partitionColumns", pa.list_(pa.string())), ("configuration", MAP),
                 ("createdTime", pa.int64())]
            ),
        ),
        ("add", ADD),
    ]
)  # fmt: skip


# --- a simulated log ---


def adds(first: int, count: int) -> pa.StructArray:
    """Some files, told by their numbers."""
    numbers = np.arange(first, first + count)
    texts = pc.cast(pa.array(numbers), pa.string())
    days = pc.cast(pa.array(numbers % DAYS), pa.string())
    low, high = (pc.cast(pa.array(numbers * ROWS + more), pa.string()) for more in (0, ROWS - 1))
    one = pa.scalar(f'{{"numRecords":{ROWS},"minValues":{{"id":')
    stats = pc.binary_join_element_wise(one, low, '},"maxValues":{"id":', high, '},"nullCount":{"id":0}}', "")
    paths = pc.binary_join_element_wise("day=", days, "/part-", pc.utf8_lpad(texts, 10, "0"), ".snappy.parquet", "")
    keys = pa.array(np.full(count, "day"))
    offsets = pa.array(np.arange(count + 1, dtype=np.int32))
    return pa.StructArray.from_arrays(
        [paths, pa.MapArray.from_arrays(offsets, keys, days), pa.array(np.full(count, 10_000)),
         pa.array(1_700_000_000_000 + numbers), pa.array(np.ones(count, bool)), stats],
        fields=list(ADD),
    )  # fmt: skip


def lines(first: int, count: int) -> Iterator[str]:
    """The same as lines of a commit."""
    for add in adds(first, count).to_pylist():
        yield json.dumps({"add": {**add, "partitionValues": dict(add["partitionValues"])}}) + "\n"


def build(table: Path, files: int, commits: int) -> None:
    """Commits with as many files each, and a checkpoint in parts behind all of them but the last few."""
    log = table / "_delta_log"
    log.mkdir(parents=True)
    each, covered = files // commits, commits - 1 - min(TAIL, commits // 2)
    head = f'{{"protocol":{json.dumps(PROTOCOL)}}}\n{{"metaData":{json.dumps(METADATA)}}}\n'
    for version in range(commits):
        text = "".join(lines(version * each, each))
        (log / f"{version:020}.json").write_text(f"{head if version == 0 else ''}{text}")
    total = (covered + 1) * each
    starts = range(0, total, PART)
    for number, start in enumerate(starts, 1):
        name = f"{covered:020}.checkpoint.{number:010}.{len(starts):010}.parquet"
        pq.write_table(_part(start, min(PART, total - start)), log / name, compression="zstd", row_group_size=100_000)
    (log / "_last_checkpoint").write_text(json.dumps({"version": covered, "size": total + 2, "parts": len(starts)}))


def _part(start: int, count: int) -> pa.Table:
    """A part of the checkpoint; the first one says what the table is."""
    others = [pa.nulls(count, CHECKPOINT.field(n).type) for n in (0, 1)]
    files = pa.Table.from_arrays([*others, adds(start, count)], schema=CHECKPOINT)
    if start:
        return files
    options = {"format": {"provider": "parquet", "options": []}, "configuration": []}
    head = [{"protocol": PROTOCOL}, {"metaData": {**METADATA, **options}}]
    return pa.concat_tables([pa.Table.from_pylist(head, schema=CHECKPOINT), files])


# --- steps: each a process of its own ---


def _open(url: str, files: int) -> Any:
    return alluvium.open(url).version


def _plan_by_partition(url: str, files: int) -> Any:
    found = alluvium.open(url).files("day = 5").num_rows
    assert found == files // DAYS, found
    return found


def _plan_by_statistics(url: str, files: int) -> Any:
    found = alluvium.open(url).files(f"id = {files // 2 * ROWS + 7}").num_rows
    assert found == 1, found
    return found


def _refresh(url: str, files: int) -> Any:
    """Behind an append of somebody else, with all files listed."""
    view = alluvium.open(url)
    view.count()
    alluvium.write(_row(), url, mode="append")
    began = time.perf_counter()
    view.refresh().count()
    return time.perf_counter() - began


def _row() -> pa.Table:
    return pa.table({"id": pa.array([-1], pa.int64()), "day": pa.array([0], pa.int32())})


def _append(url: str, files: int) -> Any:
    return alluvium.write(_row(), url, mode="append").version


def _checkpoint(url: str, files: int) -> Any:
    return write_checkpoint(url)


def _vacuum(url: str, files: int) -> Any:
    return PortableDeltaTable.forPath(url).vacuum(dry_run=True).files.num_rows


STEPS: dict[str, Callable[[str, int], Any]] = {
    "open": _open,
    "plan by partition": _plan_by_partition,
    "plan by statistics": _plan_by_statistics,
    "append": _append,
    "refresh": _refresh,
    "vacuum, dry run": _vacuum,
    "checkpoint": _checkpoint,
}


def log(asked: argparse.Namespace) -> None:
    """Builds it, and has each step measured."""
    table = asked.folder / f"log-{asked.files}-{asked.commits}"
    if not table.exists():
        began = time.perf_counter()
        build(table, asked.files, asked.commits)
        print(f"built in {time.perf_counter() - began:.0f} s", flush=True)
    for name in asked.steps or STEPS:
        command = [sys.executable, __file__, "step", name, str(table), "--files", str(asked.files)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        told = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"error": done.stderr[-600:]}
        _tell(asked, {"what": "log", "files": asked.files, "commits": asked.commits, "step": name, **told})
    if not asked.keep:
        shutil.rmtree(table)


def step(asked: argparse.Namespace) -> None:
    """One step, in this process."""
    began = time.perf_counter()
    result = STEPS[asked.name](str(asked.table), asked.files)
    seconds = result if isinstance(result, float) else time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"seconds": round(seconds, 3), "peak_mb": peak}))


# --- a day ---


@contextmanager
def _folder(asked: argparse.Namespace) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="scale-", dir=asked.folder))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def day(asked: argparse.Namespace) -> None:
    """An append for each second of a day: checkpoints and the clean-up of the log by themselves, a compaction and a
    vacuum for each hour. Removed files are kept for a minute by the clock, the log for an hour of that day: what of it
    is older is made so old that it expires, which goes by whole days.
    """
    with _folder(asked) as folder:
        url = str(folder / "t")
        _play_day(asked, url)


def _play_day(asked: argparse.Namespace, url: str) -> None:
    recent.SETTLED_NEAR_MS = SETTLED_MS
    alluvium.write(_row(), url, mode="append")
    table = PortableDeltaTable.forPath(url)
    kept = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")
    table.alter().set_properties(dict.fromkeys(kept, f"interval {KEPT_S} seconds"))
    hour, times, upkeep = asked.seconds // 24, list[float](), list[float]()
    for number in range(1, asked.seconds + 1):
        time.sleep(SETTLED_S)
        began = time.perf_counter()
        alluvium.write(_row(), url, mode="append")
        times.append(time.perf_counter() - began)
        if number % hour:
            continue
        _grow_old(Path(url), number - hour)
        began = time.perf_counter()
        table.optimize().executeCompaction()
        table.vacuum()
        upkeep.append(time.perf_counter() - began)
        entries = sum(1 for _ in Path(url, "_delta_log").iterdir())
        found = {"median_ms": statistics.median(times) * 1000, "worst_ms": max(times) * 1000, "upkeep_s": upkeep[-1]}
        found = {name: round(value, 1) for name, value in found.items()}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        files = alluvium.open(url).files().num_rows
        _tell(
            asked, {"what": "day", "append": number, **found, "files": files, "log_entries": entries, "peak_mb": peak}
        )
        times = []
    assert alluvium.open(url).count() == asked.seconds + 1


def _grow_old(table: Path, version: int) -> None:
    """The log up to a version, and all data files that there are: their rows have been put together, or will be now."""
    then = time.time() - OLD_S
    for file in [*table.glob("*.parquet"), *(table / "_delta_log").glob("0*")]:
        if file.parent == table or int(file.name[:20]) <= version:
            os.utime(file, (then, then))


# --- tables that are wide, and rows that do not fit ---


@contextmanager
def _spark(master: str, driver_memory: str) -> Iterator[SparkSession]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    builder = SparkSession.builder.master(master).config("spark.driver.memory", driver_memory)
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "32").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


def wide(asked: argparse.Namespace) -> None:
    """Each in a session of its own, and so in a process of its own."""
    if asked.name is None:
        for name in WIDE:
            subprocess.run([sys.executable, *sys.argv, name], check=True)
        return
    with _folder(asked) as folder:
        for told, seconds in WIDE[asked.name](str(folder / "t")):
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            found = {"what": asked.name, "step": told, "seconds": round(seconds, 2), "peak_mb": peak}
            _tell(asked, found)


Timed = Iterator[tuple[str, float]]


def _timed(told: str, act: Callable[[], Any], wanted: Any = None) -> tuple[str, float]:
    began = time.perf_counter()
    found = act()
    assert wanted is None or found == wanted, f"{told}: {found}, not {wanted}"
    return told, time.perf_counter() - began


def _partitions(url: str, count: int = 50_000) -> Timed:
    """One file each."""
    with _spark("local[2]", "1g") as spark:
        df = spark.range(count).selectExpr("id", "cast(id as int) p")
        yield _timed("append", lambda: alluvium.write(df, url, mode="append", partition_by=("p",)))
        table = alluvium.DeltaTable.forPath(spark, url)
        yield _timed("read one", lambda: alluvium.read(spark, url).where("p = 5").count(), 1)
        yield _timed("read all", lambda: alluvium.read(spark, url).selectExpr("sum(id)").first()[0], sum(range(count)))
        yield _timed("delete one", lambda: table.delete("p = 7"))
        one = spark.range(1).selectExpr("id", "9 p")
        how = {"mode": "overwrite", "partitionOverwriteMode": "dynamic"}
        yield _timed("replace one", lambda: alluvium.write(one, url, **how))
    yield _timed("open and list one, without Spark", lambda: alluvium.open(url).files("p = 5").num_rows, 1)
    yield _timed("count, without Spark", lambda: alluvium.open(url).count(), count - 1)
    yield _timed("checkpoint", lambda: write_checkpoint(url))


def _columns(url: str, count: int = 5_000) -> Timed:
    with _spark("local[2]", "1g") as spark:
        df = spark.range(100).select("id", *(F.col("id").alias(f"c{n}") for n in range(1, count)))
        yield _timed("append", lambda: alluvium.write(df, url, mode="append"))
        named = f"c{count - 1}"
        yield _timed("read one", lambda: alluvium.read(spark, url).selectExpr(f"sum({named})").first()[0], 4950)
        table = alluvium.DeltaTable.forPath(spark, url)
        yield _timed("update one", lambda: table.update("id = 5", {named: "0"}))
        yield _timed("merge all", lambda: _merge_all(table, alluvium.read(spark, url).where("id < 10")))
    yield _timed("open and read one, without Spark", lambda: len(alluvium.open(url).to_arrow([named])), 100)
    yield _timed("checkpoint", lambda: write_checkpoint(url))


def _merge_all(table: alluvium.DeltaTable, source: DataFrame) -> None:
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _large_merge(url: str, rows: int = 20_000_000) -> Timed:
    """A source of 2.5 GB, executors of 1 GB each, a driver of 512 MB."""
    with _spark("local-cluster[2,1,1024]", "512m") as spark:
        texts = [F.sha2(F.concat(F.lit(str(n)), F.col("id").cast("string")), 256).alias(f"s{n}") for n in range(2)]
        target = spark.range(0, rows, 20).select("id", *texts)
        yield _timed("append of a twentieth", lambda: alluvium.write(target, url, mode="append"))
        source = spark.range(rows).select("id", *reversed(texts))
        yield _timed("merge", lambda: _merge_all(alluvium.DeltaTable.forPath(spark, url), source))
        yield _timed("count", lambda: alluvium.read(spark, url).count(), rows)


WIDE: dict[str, Callable[[str], Timed]] = {
    "partitions": _partitions,
    "columns": _columns,
    "merge": _large_merge,
}


# --- what was measured ---


def _tell(asked: argparse.Namespace, found: dict[str, Any]) -> None:
    asked.state.mkdir(exist_ok=True)
    with (asked.state / "results.jsonl").open("a") as out:
        out.write(json.dumps(found) + "\n")
    print(json.dumps(found), flush=True)


def plot(asked: argparse.Namespace) -> None:
    """Seconds and memory of each step by the number of files, each as it was measured last, as a drawing."""
    # Loaded by name: only who draws needs it.
    pyplot = importlib.import_module("matplotlib.pyplot")
    told = [json.loads(line) for line in (asked.state / "results.jsonl").read_text().splitlines()]
    found = {(one["step"], one["files"]): one for one in told if one["what"] == "log" and "seconds" in one}
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4))
    for axis, of, title in zip(axes, ("seconds", "peak_mb"), ("seconds", "memory of the process, MB"), strict=True):
        for step in STEPS:
            points = sorted((files, one[of]) for (name, files), one in found.items() if name == step)
            axis.plot(*zip(*points, strict=True), marker="o", label=step)
        axis.set(xscale="log", yscale="log", xlabel="files", title=title)
    axes[0].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(asked.drawing)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, run in (("log", log), ("day", day), ("step", step), ("wide", wide), ("plot", plot)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("--state", type=Path, default=Path(".scale"))
        command.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where tables are made")
        if name == "day":
            command.add_argument("--seconds", type=int, default=86_400)
            continue
        if name == "plot":
            command.add_argument("drawing", type=Path)
            continue
        if name == "wide":
            command.add_argument("name", nargs="?", choices=[*WIDE])
            continue
        command.add_argument("--files", type=int, default=1_000_000)
        if name == "log":
            command.add_argument("--commits", type=int, default=10_000)
            command.add_argument("--steps", nargs="*", choices=[*STEPS])
            command.add_argument("--keep", action="store_true", help="the table, for another call")
        else:
            command.add_argument("name")
            command.add_argument("table", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    asked = _parse()
    asked.run(asked)
