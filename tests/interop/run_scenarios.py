"""The scenarios in one engine, and what the table was after every step.

The project's own process plays them in its session, the reference's in one of its server (`run`), side by side.
Acts: play (the scenarios), go_on (with the tables of the other engine), read (everything at the end). Tables lie in
folders whose names need escaping; what an act tells of a scenario is ROOT/told/ENGINE/ACT/NAME.json.
"""

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jvm
from observe import Eye, feed, rows_of
from scenarios import columns, everyday, features, tables, upkeep, values  # noqa: F401  # they register themselves
from scenarios.bench import SCENARIOS, Bench

#: How long one engine waits for the other.
PATIENCE_S = 1200


def table_path(root: Path, engine: str, name: str) -> Path:
    return root / f"{engine} 100%ü" / name


#: Tables of a few rows: nothing is worth spreading. Minutes of a run go into queries that take no time.
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    **jvm.INTERPRETED,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
}

ACTS = ("play", "go_on", "read")


def run(spark, job):
    """A job of the reference's server: `root`, `names`."""
    from delta import tables as delta

    carry_out("theirs", spark, delta, Path(job["root"]), job["names"])


def carry_out(engine: str, spark: Any, delta: Any, root: Path, names: Sequence[str]) -> None:
    """Plays all acts of an engine.

    Args:
        engine: `ours` or `theirs`.
        spark: A session that nobody else has: it gets `SETTINGS`.
        delta: The engine's module, with its `DeltaTable`.
        root: A folder that both engines have.
        names: Of scenarios; none: all.
    """
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    known = {"play": play_one, "go_on": go_on, "read": read_one}
    try:
        for act, name in in_turn(ACTS, names or [*SCENARIOS]):
            tell(root, engine, act, name, known[act](engine, spark, delta, root, name))
    except BaseException:
        # The other engine would wait for what never comes.
        failed(root).touch()
        raise


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
    found: dict = {}
    error = attempt(lambda: found.update(eye.end()))
    return {"steps": told, "end": found if error is None else error}


def finish(spark, delta, name: str, path: Path, steps: tuple[str, ...]) -> list[dict]:
    """An engine goes on with a table."""
    found, eye, told = SCENARIOS[name], Eye(spark, delta, path), []
    bench = Bench(spark, delta, str(path))
    known = {
        "append": lambda: bench.write(found.more),
        "delete": lambda: bench.table().delete(found.delete),
        "optimize": lambda: bench.table().optimize().executeCompaction(),
    }
    for step in steps:
        if step == "delete" and found.delete is None:
            continue
        error = attempt(known[step])
        told.append({"step": step, "error": error, **eye.look(error)})
    return told


def play_one(engine: str, spark, delta, root: Path, name: str) -> dict:
    path = table_path(root, engine, name)
    told = play(spark, delta, name, path)
    if path.exists() and engine == "theirs":
        # We continue this copy of the reference's table.
        shutil.copytree(path, table_path(root, "theirs, continued", name))
    return told


def go_on(engine: str, spark, delta, root: Path, name: str) -> dict:
    """The reference continues both engines' tables; we the copy of the reference's, and ours once it is done with it."""
    told = {}
    if engine == "theirs":
        await_told(root, "ours", "play", name)
        owners = {"ours": ("append", "delete", "optimize"), "theirs": ("append", "delete", "optimize")}
    else:
        await_told(root, "theirs", "go_on", name)
        owners = {"theirs, continued": ("append", "delete"), "ours": ("append",)}
    for owner, steps in owners.items():
        path = table_path(root, owner, name)
        told[owner] = {"before": rows_of(spark, path), "steps": finish(spark, delta, name, path, steps)}
    return told


def read_one(engine: str, spark, delta, root: Path, name: str) -> dict:
    """All rows and change feeds, in the end."""
    await_told(root, {"ours": "theirs", "theirs": "ours"}[engine], "go_on", name)
    told = {}
    for owner in ("ours", "theirs", "theirs, continued"):
        path, start = table_path(root, owner, name), SCENARIOS[name].changes
        told[owner] = {"rows": rows_of(spark, path), "changes": None if start is None else changes(spark, path, start)}
    return told


def changes(spark, path: Path, start: int) -> list[str] | str:
    """The change feed; of ranges that cannot be read, as across a rename, that they are refused."""
    found = []
    return "refused" if attempt(lambda: found.extend(feed(spark, path, start))) is not None else found


def await_told(root: Path, engine: str, act: str, name: str) -> None:
    """The engines run beside each other: one waits until the other is done with a table."""
    file, until = told_file(root, engine, act, name), time.monotonic() + PATIENCE_S
    while not file.exists():
        if failed(root).exists() or time.monotonic() > until:
            raise TimeoutError(f"{engine} did not get to {act} {name}")
        time.sleep(0.1)


def failed(root: Path) -> Path:
    """Is there where one engine has failed."""
    return root / "failed"


def told_file(root: Path, engine: str, act: str, name: str) -> Path:
    return root / "told" / engine / act / f"{name}.json"


def tell(root: Path, engine: str, act: str, name: str, told: dict) -> None:
    """Written one by one: the other engine may be waiting, and a run that is cut off has told what it came to."""
    file = told_file(root, engine, act, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    hidden = file.with_suffix(".part")
    hidden.write_text(json.dumps(told))
    hidden.rename(file)


def in_turn(acts: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each act one scenario behind the act before it: the other engine has mostly done by then what this one waits for."""
    for step in range(len(names) + len(acts) - 1):
        for behind, act in enumerate(acts):
            if 0 <= step - behind < len(names):
                yield act, names[step - behind]
