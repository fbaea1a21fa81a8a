"""Starts one writer: run.py KIND URL NOTES SEED WRITER PAUSE_S (with `tests` and `tests/support` on the path)."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from history.acts import Act
from history.writers.loop import Idle, Lost, work

#: The module and the class of each kind of writer.
KINDS = {
    "python": ("alluvium_writer", "AlluviumWriter"),
    "deltalake": ("deltalake_writer", "DeltalakeWriter"),
    "spark": ("spark_writer", "AlluviumOnSpark"),
    "delta-spark": ("spark_writer", "DeltaSpark"),
}
#: Whose first act takes half a minute where others use the core, too: a contest would be over before.
NEED_PRACTICE = frozenset({"spark", "delta-spark"})


def practise(
    kind_of_writer: Callable[[str], Callable[[Act], None]], table: Path, writer: int, verbs: frozenset[str]
) -> None:
    """Each verb once, on a copy of the table as it is before the contest."""
    own = table.parent / f"practice-{writer}"
    shutil.copytree(table, own)
    act_on = kind_of_writer(str(own))
    for n, verb in enumerate(sorted(verbs), 1):
        with suppress(Idle, Lost):
            act_on(Act(writer, n, verb))
    shutil.rmtree(own)


def main() -> None:
    kind, url, notes, seed, writer, pause_s = sys.argv[1:]
    name, of_class = KINDS[kind]
    module = importlib.import_module(f"history.writers.{name}")
    kind_of_writer = getattr(module, of_class)
    if kind in NEED_PRACTICE and not (Path(notes) / "go").exists():
        practise(kind_of_writer, Path(url), int(writer), module.VERBS)
    engine = kind_of_writer(url)
    (Path(notes) / f"ready-{writer}").touch()
    work(engine, Path(notes), int(seed), int(writer), module.VERBS, float(pause_s))


if __name__ == "__main__":
    main()
