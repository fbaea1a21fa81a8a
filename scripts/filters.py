"""Random conditions over random tables, until a time is over: counts, and every difference (`filter_fuzz.py`).

python scripts/filters.py --minutes 60 --first 1000
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from filter_fuzz import Found, play
from jvm import OPTIONS
from pyspark.sql import SparkSession


def main() -> int:
    """Plays seed after seed.

    Returns:
        1 where anything differs.
    """
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--minutes", type=float, default=10)
    asked.add_argument("--first", type=int, default=0, help="the first seed")
    asked.add_argument("--seeds", type=int, default=1 << 30, help="so many seeds at most")
    asked.add_argument("--conditions", type=int, default=60)
    asked.add_argument("--folder", type=Path, default=None, help="for the tables; kept where something differs")
    given = asked.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="filters-"))
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = session.config("spark.sql.shuffle.partitions", "2").config("spark.driver.extraJavaOptions", OPTIONS)
    spark = session.config("spark.sql.warehouse.dir", str(folder / "warehouse")).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    # Conditions that fail are no news.
    logging.disable(logging.CRITICAL)
    found, until, told = Found(), time.monotonic() + 60 * given.minutes, 0
    for seed in range(given.first, given.first + given.seeds):
        if time.monotonic() > until:
            break
        play(spark, seed, folder, found, conditions=given.conditions)
        for difference in found.differences[told:]:
            print("DIFFERS", *difference, sep=" | ", flush=True)
        told = len(found.differences)
    for name, count in sorted(found.counts.items()):
        print(f"{count:8} {name}")
    print(f"{told:8} differences")
    return 1 if told else 0


if __name__ == "__main__":
    raise SystemExit(main())
