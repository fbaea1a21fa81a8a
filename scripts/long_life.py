"""Plays statements in one session and tells what it holds on to, now and then: does anything grow?

    python scripts/long_life.py --statements 10000 --every 1000 [--connect] [--minutes 60]

With `--connect` the session is one of Spark Connect, whose server runs in a JVM of this process. The exit code is 1 if
something was at each look of the second half more than at any of the first, beyond what moves by itself.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

import alluvium

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "support")]

from holdings import grown, held, play  # noqa: E402  # found by the path above

from model.engines.connect_engine import connect_session  # noqa: E402

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "1g",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def session(*, over_connect: bool) -> SparkSession:
    """A session in this process, or one of Spark Connect with its own server."""
    if not over_connect:
        spark = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        return spark
    return connect_session()


def main() -> int:
    """Plays, looks, and plays on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=1_000, help="statements between two looks")
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="no look begins later than this")
    parser.add_argument("--connect", action="store_true", help="over Spark Connect")
    given = parser.parse_args()
    spark = session(over_connect=given.connect)
    alluvium.enable(spark)
    looks = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for done in range(given.every, given.statements + 1, given.every):
            play(spark, Path(folder) / "tables", given.every)
            looks.append(held(spark))
            print(f"{done} statements, {time.monotonic() - began:.0f} s: {looks[-1]}", flush=True)
            if time.monotonic() - began > given.minutes * 60:
                break
    # Pools of threads, and what hangs on them, come and go: what grows is never again as little as it was once.
    half = (len(looks) + 1) // 2
    most = {name: max(look[name] for look in looks[:half]) for name in looks[0]}
    least = {name: min(look[name] for look in looks[half:] or looks[-1:]) for name in looks[0]}
    more = grown(most, least)
    print(f"grown, the second half of the looks beside the first: {more or 'nothing'}")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
