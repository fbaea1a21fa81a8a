"""Runs the scenarios in one engine, in a session of its own, and tells what the table was after every step.

    run_scenarios.py ACTS theirs ROOT OUT.json [NAME ...]    in the reference's Python, its folder on PYTHONPATH
    run_scenarios.py ACTS ours ROOT OUT.json [NAME ...]      in the project's Python

Acts, joined by `+`: play (the scenarios), go_on (with the tables of the other engine), read (everything at the end).
Tables lie in folders whose names need escaping.
"""

import json
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from observe import Eye, feed, rows_of
from scenarios import columns, tables, values  # noqa: F401  # they register themselves
from scenarios.bench import SCENARIOS, Bench


def table_path(root: Path, engine: str, name: str) -> Path:
    return root / f"{engine} 100%ü" / name


def session(engine: str):
    if engine == "theirs":
        from engines import delta_session

        from delta import tables as delta

        return delta_session(), delta
    from pyspark.sql import SparkSession

    import alluvium

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    alluvium.enable(spark)
    return spark, alluvium


def attempt(function) -> str | None:
    """What went wrong, in words; None if nothing did."""
    try:
        function()
    except Exception as error:  # the engine's verdict is data here
        return f"{type(error).__name__}: {error}"[:600]
    return None


def play(spark, delta, name: str, path: Path) -> dict:
    """Each step's error and, where there was none, what the table is then."""
    bench, eye, told = Bench(spark, delta, str(path)), Eye(spark, delta, path), []
    for step, function in SCENARIOS[name].steps(bench):
        error = attempt(function)
        told.append({"step": step, "error": error, **eye.look(error)})
    return {"steps": told, "end": eye.end() if path.exists() else None}


def finish(spark, delta, name: str, path: Path) -> list[dict]:
    """Another engine goes on with the table."""
    found, eye, told = SCENARIOS[name], Eye(spark, delta, path), []
    bench = Bench(spark, delta, str(path))
    table = f"delta.`{path}`"
    steps = [("append", lambda: bench.write(found.more))]
    if not bench.is_ours:
        steps.append(("optimize", lambda: spark.sql(f"OPTIMIZE {table}").collect()))
        if found.delete is not None:
            steps.append(("delete", lambda: spark.sql(f"DELETE FROM {table} WHERE {found.delete}")))
    for step, function in steps:
        error = attempt(function)
        told.append({"step": step, "error": error, **eye.look(error)})
    return told


def play_all(engine: str, spark, delta, root: Path, names: list[str]) -> dict:
    told = {}
    for name in names:
        started = time.monotonic()
        path = table_path(root, engine, name)
        told[name] = play(spark, delta, name, path)
        if path.exists() and engine == "theirs":
            # We continue this copy of the reference's table.
            shutil.copytree(path, table_path(root, "theirs, continued", name))
        print(f"{engine} {name} {time.monotonic() - started:.1f} s", flush=True)
    return told


def go_on(engine: str, spark, delta, root: Path, names: list[str]) -> dict:
    """The reference continues both engines' tables, we the copies of the reference's."""
    told = {}
    for name in names:
        for owner in ("ours", "theirs") if engine == "theirs" else ("theirs, continued",):
            path = table_path(root, owner, name)
            told[f"{owner}/{name}"] = {"before": rows_of(spark, path), "steps": finish(spark, delta, name, path)}
    return told


def read_all(engine: str, spark, delta, root: Path, names: list[str]) -> dict:
    """All rows and change feeds, in the end."""
    told = {}
    for name in names:
        for owner in ("ours", "theirs", "theirs, continued"):
            path, start = table_path(root, owner, name), SCENARIOS[name].changes
            changes = None if start is None else feed(spark, path, start)
            told[f"{owner}/{name}"] = {"rows": rows_of(spark, path), "changes": changes}
    return told


if __name__ == "__main__":
    acts, engine, root, out, *names = sys.argv[1:]
    spark, delta = session(engine)
    known = {"play": play_all, "go_on": go_on, "read": read_all}
    told = {act: known[act](engine, spark, delta, Path(root), names or [*SCENARIOS]) for act in acts.split("+")}
    Path(out).write_text(json.dumps(told))
