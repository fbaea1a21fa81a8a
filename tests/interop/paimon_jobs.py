"""Run with the reference's Python: scripts for Paimon Java, all of them in one JVM; then what pypaimon reads.

paimon_jobs.py JOBS.json: {"java": [SCRIPT, ...], "python": {TABLE: OUT.parquet}}
"""

import json
import sys
from pathlib import Path

import paimon_java
import pyarrow.parquet as pq
from pypaimon import CatalogFactory


def read_by_python(path, out):
    warehouse, database, name = path.rsplit("/", 2)
    table = CatalogFactory.create({"warehouse": warehouse}).get_table(f"{database.removesuffix('.db')}.{name}")
    builder = table.new_read_builder()
    pq.write_table(builder.new_read().to_arrow(builder.new_scan().plan().splits()), out)


def main():
    jobs = json.loads(Path(sys.argv[1]).read_text())
    for script in jobs["java"]:
        for step in script["steps"]:
            paimon_java.step(script["table"], *next(iter(step.items())))
    for table, out in jobs["python"].items():
        read_by_python(table, out)


main()
