"""Plays scripts of row changes in one engine: for each table and step the versions before and after, and what went wrong.

run_dml.py ROOT OUT.json [SCRIPT ...]    in the reference's Python, its folder on PYTHONPATH
"""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from dml import made, refusals, values, verbs  # noqa: F401  # they register themselves
from dml.stage import SCRIPTS, Stage


def versions(path: Path) -> int:
    return len([p for p in (path / "_delta_log").glob("*.json") if p.stem.isdigit()])


def play(spark, delta, root: Path, names=(), out: Path | None = None) -> dict:
    """By script and table: what each step came to. Tables go to folders under the root."""
    told = {}
    for name in names or SCRIPTS:
        for table, properties in SCRIPTS[name].tables.items():
            path, steps = root / f"{name}-{table}", []
            stage = Stage(spark, delta, str(path), properties)
            for step, function in SCRIPTS[name].steps(stage):
                before, started, error = versions(path), time.monotonic(), None
                try:
                    function()
                except Exception as problem:  # the engine's verdict is data here
                    error = f"{type(problem).__name__}: {problem}"[:1500]
                seconds = round(time.monotonic() - started, 2)
                steps.append({"step": step, "first": before, "end": versions(path), "error": error, "took": seconds})
            told[f"{name}-{table}"] = steps
            if out is not None:
                out.write_text(json.dumps(told))
    return told


if __name__ == "__main__":
    from engines import delta_session

    from delta import tables

    root, out, *names = sys.argv[1:]
    play(delta_session(), tables, Path(root), names, Path(out))
