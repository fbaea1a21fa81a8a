"""What every writer does until it is killed: it notes what it begins, does it, and notes what came of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from history.acts import Act, draw
from history.judge import read_notes

#: Who has tried so many acts may be killed: on a busy machine nobody else would ever come to one.
SEASONED = 2


class Lost(Exception):
    """Another writer was first, and nothing of this act stands."""


class Idle(Exception):
    """There is nothing to do, and nothing was committed."""


def work(
    act_on: Callable[[Act], None], notes: Path, seed: int, writer: int, verbs: frozenset[str], pause_s: float
) -> None:
    """Begins when `go` stands beside the notes, goes on after the last act that was begun, and ends when `stop` does."""
    starter = os.getppid()
    while not (notes / "go").exists() and os.getppid() == starter:
        time.sleep(0.01)
    acts, n = 0, max(read_notes(notes / str(writer)), default=0) + 1
    # Whose starter has died has nobody to stop it.
    while not (notes / "stop").exists() and os.getppid() == starter:
        act = draw(seed, writer, n, verbs)
        with open(notes / str(writer), "a") as file:
            # On a line of its own, whatever the one before had come to when it died.
            file.write(f"\n+ {n}\n")
            file.flush()
            word = done(act_on, act)
            file.write(f"= {n} {word}\n")
        n += 1
        acts += 1
        if acts == SEASONED:
            (notes / f"seasoned-{writer}").touch()
        time.sleep(pause_s)


def done(act_on: Callable[[Act], None], act: Act) -> str:
    """What came of an act, in a word; of an error that is no answer its own words."""
    try:
        act_on(act)
    except Lost:
        return "conflict"
    except Idle:
        return "nothing"
    except Exception as error:  # noqa: BLE001  # told to the judge; nobody else is there to hear
        return f"error: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return "done"
