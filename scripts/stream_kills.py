"""Kills the driver of streaming queries again and again, and looks whether a row was lost or came twice.

    python scripts/stream_kills.py /tmp/kills --kills 200 --seed 7

Three queries copy one table: rows as they are, rows without duplicates (which keeps state), and counts that replace
each other (complete). While they run, rows are appended; at a random instant the driver and its JVM get SIGKILL. What
was counted so far stays in the folder: called again, it goes on until there are as many kills as asked for. At the end
the queries run to their end, and what they wrote is compared with the source by rows, transactions and offsets.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import alluvium
from alluvium.errors import NotFound

#: Name of a query, and its output mode.
QUERIES = {"plain": "append", "stateful": "append", "complete": "complete"}
#: Rows of an append.
ROWS = 5
#: Of a driver that lives for seconds: what starts soon counts for more than what runs long.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def drive(folder: Path, to_the_end: bool) -> None:
    """The driver: starts the queries, and appends rows until it is killed; or waits until all is read."""
    spark = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    alluvium.enable(spark)
    if not to_the_end:
        append(spark, folder)
    queries = [start(spark, folder, name, to_the_end) for name in QUERIES]
    while not to_the_end:
        append(spark, folder)
        failed = next((query for query in queries if not query.isActive), None)
        if failed is not None:
            failed.awaitTermination()
    for query in queries:
        query.awaitTermination()


def start(spark: SparkSession, folder: Path, name: str, to_the_end: bool) -> StreamingQuery:
    """Starts a query, or goes on with it."""
    # Small batches, so that many are killed; what is left at the end nobody kills.
    files = 1000 if to_the_end else 1
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", files).load(str(folder / "source"))
    if name == "stateful":
        rows = rows.dropDuplicates(["id"])
    if name == "complete":
        rows = rows.groupBy("id").count()
    writer = rows.writeStream.format("delta").outputMode(QUERIES[name])
    writer = writer.option("checkpointLocation", str(folder / f"{name}-checkpoint"))
    writer = writer.trigger(availableNow=True) if to_the_end else writer.trigger(processingTime="0 seconds")
    return writer.start(str(folder / name))


def append(spark: SparkSession, folder: Path) -> None:
    """Appends the next few rows to the source."""
    count = written(folder)
    alluvium.write(spark.range(count, count + ROWS).coalesce(1), str(folder / "source"), mode="append")


def written(folder: Path) -> int:
    """How many rows the source has: 0, 1, 2 and so on."""
    try:
        return int(sum(alluvium.open(str(folder / "source")).files()["num_rows"].to_pylist()))
    except NotFound:
        return 0


def version_of(path: Path) -> int:
    """The newest version of a table; -1: there is none."""
    names = [p.stem for p in (path / "_delta_log").glob("*.json") if p.stem.isdigit()]
    return int(max(names)) if names else -1


@contextmanager
def driver(folder: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A driver, in a group of its own: killed at the end with its JVM, and with the player."""
    command = [sys.executable, __file__, str(folder), "--drive", *more]
    with (folder / "driver.log").open("ab") as log:
        process = subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def kill_once(folder: Path, chance: random.Random) -> None:
    """Lets the queries run until one has written something, and a little longer."""
    waits_for = chance.choice(list(QUERIES))
    before = version_of(folder / waits_for)
    with driver(folder) as process:
        until = time.monotonic() + 120
        while version_of(folder / waits_for) == before and time.monotonic() < until:
            if process.poll() is not None:
                raise SystemExit(f"the driver ended by itself, see {folder / 'driver.log'}")
            # Not more often: whoever looks takes time from those who are looked at.
            time.sleep(0.05)
        time.sleep(chance.uniform(0, 2))


def judge(folder: Path) -> list[str]:
    """What is wrong with what the queries wrote, after they have run to their end."""
    with driver(folder, "--to-the-end") as process:
        if process.wait() != 0:
            return [f"the last run failed, see {folder / 'driver.log'}"]
    count = written(folder)
    wrong = []
    for name in QUERIES:
        view = alluvium.open(str(folder / name))
        rows = view.to_arrow()
        if name == "complete" and set(rows["count"].to_pylist()) != {1}:
            wrong.append(f"{name}: counts are {Counter(rows['count'].to_pylist())}")
        found = Counter(rows["id"].to_pylist())
        lost, doubled = set(range(count)) - set(found), [n for n, times in found.items() if times > 1]
        if lost or doubled or len(found) != count:
            wrong.append(f"{name}: {len(lost)} rows lost, {len(doubled)} twice, {len(found)} there, {count} written")
        epochs = [int(h["operationParameters"]["epochId"]) for h in view.history()]
        if epochs != sorted(set(epochs), reverse=True):
            wrong.append(f"{name}: batches were committed in the order {epochs[::-1]}")
        offsets = [int(p.name) for p in (folder / f"{name}-checkpoint" / "offsets").iterdir() if p.name.isdigit()]
        if max(offsets) != max(view.txns.values()):
            wrong.append(f"{name}: the last offset is {max(offsets)}, the last transaction {view.txns}")
    return wrong


def play(folder: Path, kills: int, seed: int, seconds: float) -> int:
    """Kills until there are so many, or time is up; how many things are wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "kills"
    done = int(kept.read_text()) if kept.exists() else 0
    end = time.monotonic() + seconds
    while done < kills and time.monotonic() < end:
        kill_once(folder, random.Random(f"{seed} {done}"))
        done += 1
        kept.write_text(str(done))
    wrong = judge(folder)
    versions = {name: version_of(folder / name) + 1 for name in QUERIES}
    print(f"{done} kills, {written(folder)} rows, commits: {versions}, seed {seed}")
    print("\n".join(wrong) or "no row lost, none twice, each batch committed once")
    return len(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="tables, checkpoints and counts")
    parser.add_argument("--kills", type=int, default=100, help="how many, with those of earlier calls")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no more kills after so long")
    parser.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--to-the-end", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.drive:
        drive(given.folder, given.to_the_end)
        return 0
    # Whoever ends the player ends its driver.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    return play(given.folder, given.kills, given.seed, given.seconds)


if __name__ == "__main__":
    sys.exit(main())
