"""Plays scripts of row changes in one engine: for each table and step the versions before and after, and what went wrong.

Imported by the project's tests, and by the reference engine's Python (reference_server.py).
"""

import importlib
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from dml import made, refusals, settings, values, verbs  # noqa: F401  # they register themselves
from dml.stage import SCRIPTS, Stage
from row_texts import row_texts


def versions(path: Path) -> int:
    return len([p for p in (path / "_delta_log").glob("*.json") if p.stem.isdigit()])


def tables_of(names) -> dict:
    """Scripts, or single tables of them (`script-table`), as pairs of script and table; no names: all."""
    every = {f"{name}-{table}": (name, table) for name, script in SCRIPTS.items() for table in script.tables}
    return {key: pair for key, pair in every.items() if not names or key in names or pair[0] in names}


def play(spark, delta, root: Path, names=()) -> dict:
    """By script and table: what each step came to. Tables go to folders under the root."""
    told = {}
    for key, (name, table) in tables_of(names).items():
        path, steps, properties = root / key, [], SCRIPTS[name].tables[table]
        stage = Stage(spark, delta, str(path), properties)
        for step, function in SCRIPTS[name].steps(stage):
            before, started, error = versions(path), time.monotonic(), None
            try:
                function()
            except Exception as problem:  # the engine's verdict is data here
                error = f"{type(problem).__name__}: {problem}"[:1500]
            seconds = round(time.monotonic() - started, 2)
            steps.append({"step": step, "first": before, "end": versions(path), "error": error, "took": seconds})
        told[key] = steps
    return told


def read(spark, path: Path) -> dict:
    """The rows that a table has in the end, and all its changes, where it keeps them."""

    def rows(**options) -> list[str]:
        df = spark.read.format("delta").options(**options).load(str(path))
        return row_texts(df.drop("_commit_timestamp").toArrow())

    keeps = "delta.enableChangeDataFeed" in (path / "_delta_log" / f"{0:020}.json").read_text()
    return {"rows": rows(), "feed": rows(readChangeFeed="true", startingVersion="1") if keeps else None}


def run(spark, job: dict) -> dict:
    """A job of reference_server.py: plays scripts into a folder of its own, and reads what another engine left."""
    told = play(spark, importlib.import_module("delta.tables"), Path(job["root"]), job["scripts"])
    found = {path.name: read(spark, path) for path in sorted(Path(job["others"]).glob("*"))}
    return {"played": told, "read": found}
