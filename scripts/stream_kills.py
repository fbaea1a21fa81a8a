"""Kills the driver of streaming queries again and again, and looks whether a row was lost or came twice.

    python scripts/stream_kills.py /tmp/kills --kills 200 --seed 7

Three queries copy one table: rows as they are, rows without duplicates (which keeps state), and counts that replace
each other (complete). While they run, rows are appended; at a random instant the driver and its JVM get SIGKILL. What
was counted so far stays in the folder: called again, it goes on until there are as many kills as asked for. At the end
the queries run to their end, and what they wrote is compared with the source by rows, transactions and offsets.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import alluvium

#: Name of a query, and its output mode.
QUERIES = {"plain": "append", "stateful": "append", "complete": "complete"}
#: Rows of an append.
ROWS = 5


def drive(folder: Path, to_the_end: bool) -> None:
    """The driver: starts the queries, and runs until it is killed, or all is read."""
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.driver.memory": "1g"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    alluvium.enable(spark)
    trigger = {"availableNow": True} if to_the_end else {"processingTime": "0 seconds"}
    queries = []
    for name, mode in QUERIES.items():
        rows = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(folder / "source"))
        if name == "stateful":
            rows = rows.dropDuplicates(["id"])
        if name == "complete":
            rows = rows.groupBy("id").count()
        writer = rows.writeStream.format("delta").outputMode(mode).trigger(**trigger)
        writer = writer.option("checkpointLocation", str(folder / f"{name}-checkpoint"))
        queries.append(writer.start(str(folder / name)))
    for query in queries:
        query.awaitTermination()


def append(folder: Path, count: int) -> int:
    """Appends the next few rows; how many there are then."""
    rows = pa.table({"id": pa.array(range(count, count + ROWS), pa.int64())})
    alluvium.write(rows, str(folder / "source"), mode="append")
    return count + ROWS


def version_of(path: Path) -> int:
    """The newest version of a table; -1: there is none."""
    names = [p.stem for p in (path / "_delta_log").glob("*.json") if p.stem.isdigit()]
    return int(max(names)) if names else -1


def start(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    """Starts the driver in a group of its own, so that its JVM dies with it."""
    command = [sys.executable, __file__, str(folder), "--drive", *more]
    log = (folder / "driver.log").open("ab")
    return subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)


def kill_once(folder: Path, chance: random.Random, count: int) -> int:
    """Lets the queries run until one has written something, and a little longer; how many rows the source has then."""
    before = {name: version_of(folder / name) for name in QUERIES}
    for _ in range(chance.randrange(1, 6)):
        count = append(folder, count)
    driver = start(folder)
    waits_for = chance.choice(list(QUERIES))
    until = time.monotonic() + 120
    while version_of(folder / waits_for) == before[waits_for] and time.monotonic() < until:
        if driver.poll() is not None:
            raise SystemExit(f"the driver ended by itself, see {folder / 'driver.log'}")
        time.sleep(0.005)
    end = time.monotonic() + chance.uniform(0, 1.5)
    while time.monotonic() < end:
        if chance.random() < 0.1:
            count = append(folder, count)
        time.sleep(min(0.05, max(0.0, end - time.monotonic())))
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    return count


def judge(folder: Path, count: int) -> list[str]:
    """What is wrong with what the queries wrote, after they have run to their end."""
    if start(folder, "--to-the-end").wait() != 0:
        return [f"the last run failed, see {folder / 'driver.log'}"]
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
    """Kills until there are so many, or time is up; the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "counts.json"
    counts = json.loads(kept.read_text()) if kept.exists() else {"kills": 0, "rows": append(folder, 0)}
    end = time.monotonic() + seconds
    while counts["kills"] < kills and time.monotonic() < end:
        chance = random.Random(f"{seed} {counts['kills']}")
        # A player that was stopped may have appended more than it has written down.
        counts["rows"] = alluvium.open(str(folder / "source")).to_arrow().num_rows
        counts["rows"] = kill_once(folder, chance, counts["rows"])
        counts["kills"] += 1
        kept.write_text(json.dumps(counts))
    wrong = judge(folder, alluvium.open(str(folder / "source")).to_arrow().num_rows)
    versions = {name: version_of(folder / name) + 1 for name in QUERIES}
    print(f"{counts['kills']} kills, {counts['rows']} rows, commits: {versions}, seed {seed}")
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
    return play(given.folder, given.kills, given.seed, given.seconds)


if __name__ == "__main__":
    sys.exit(main())
