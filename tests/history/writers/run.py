"""Starts one writer: run.py KIND URL NOTES SEED WRITER PAUSE_S (with `tests` and `tests/support` on the path)."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from history.writers.loop import work

#: The module and the class of each kind of writer.
KINDS = {
    "python": ("alluvium_writer", "AlluviumWriter"),
    "deltalake": ("deltalake_writer", "DeltalakeWriter"),
    "spark": ("spark_writer", "AlluviumOnSpark"),
    "delta-spark": ("spark_writer", "DeltaSpark"),
}


def main() -> None:
    kind, url, notes, seed, writer, pause_s = sys.argv[1:]
    name, of_class = KINDS[kind]
    module = importlib.import_module(f"history.writers.{name}")
    engine = getattr(module, of_class)(url)
    (Path(notes) / f"ready-{writer}").touch()
    work(engine, Path(notes), int(seed), int(writer), module.VERBS, float(pause_s))


if __name__ == "__main__":
    main()
