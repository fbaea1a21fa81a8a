"""Sequences: made from a seed, played by engines, shrunk where they fail."""

from __future__ import annotations

import itertools
import random
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from model import delta_game
from model.engines.refused import Refused
from model.observe import Reader
from model.paimon import game as paimon_game
from model.script import Engine, Game, Observer, Script, Step

#: By the name of the format.
GAMES: dict[str, Game] = {"delta": delta_game, "paimon": paimon_game}
_PLAYED = itertools.count()


@dataclass
class Counts:
    """What was played."""

    sequences: int = 0
    steps: int = 0
    failures: int = 0
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    skipped: int = 0


class Failure(Exception):
    """A sequence whose table is not what the model says; with what was done up to there."""

    def __init__(self, sequence: Script, at: int, cause: BaseException, calls: list[dict[str, Any]]) -> None:
        super().__init__(f"seed {sequence.seed}, step {at}: {type(cause).__name__}: {cause}")
        self.sequence, self.at, self.cause, self.calls = sequence, at, cause, calls

    @property
    def kind(self) -> str:
        """By what a shrunk sequence is known to fail alike."""
        text = "".join(c for c in str(self.cause)[:60] if not c.isdigit())
        return f"{type(self.cause).__name__}: {text.split(':')[0]}"


def make_sequence(
    seed: int, engines: Sequence[str], length: int, verbs: Sequence[str] | None = None, format: str = "delta"
) -> Script:
    """All that happens follows from the seed (and from what engines and verbs there are)."""
    return GAMES[format].make_script(seed, engines, length, verbs)


def play(
    sequence: Script,
    engines: Mapping[str, Engine],
    folder: Path,
    counts: Counts,
    readers: dict[str, Reader] | None = None,
) -> None:
    """Plays a sequence in a fresh folder below one: engines remember tables by their path.

    Raises:
        Failure: The table is not what the model says, or an engine failed.
    """
    folder = folder / f"{sequence.seed}-{next(_PLAYED)}"
    folder.mkdir(parents=True)
    game, calls = GAMES[sequence.format], list[dict[str, Any]]()
    at = -1
    try:
        observer = game.begin(str(folder / "t"), sequence, engines, calls)
        for at, step in enumerate(sequence.steps):  # noqa: B007  # told by the failure
            _do(game, observer, step, engines, calls, counts)
        observer.at_end(readers)
    except Exception as error:
        counts.failures += 1
        raise Failure(sequence, at, error, calls) from error
    finally:
        counts.sequences += 1
        shutil.rmtree(folder, ignore_errors=True)


def _do(
    game: Game,
    observer: Observer,
    step: Step,
    engines: Mapping[str, Engine],
    calls: list[dict[str, Any]],
    counts: Counts,
) -> None:
    chance, world = random.Random(step.seed), observer.world
    bound = game.VERBS[step.verb][0](world, chance)
    if bound is None:
        counts.skipped += 1
        return
    game.complete(bound, world)
    able = [e for e in (step.engine, *engines) if engines[e].can(bound.call, bool(world.now.constraints))]
    if not able:
        counts.skipped += 1
        return
    engine = engines[able[0]]
    calls.append({"engine": engine.name, **bound.call})
    try:
        engine.do(world.url, bound.call)
        counts.done[f"{engine.name}: {step.verb}"] += 1
        if not getattr(engine, "tells_kinds", True):
            bound.feed = None
        if hasattr(bound, "by"):
            bound.by = engine
    except Refused as refusal:
        counts.refused[f"{engine.name}: {step.verb}: {refusal}"] += 1
        bound.refuse()
    counts.steps += 1
    observer.after(bound, chance)


def shrink(
    failure: Failure,
    engines: Mapping[str, Engine],
    folder: Path,
    tries: int = 200,
    readers: dict[str, Reader] | None = None,
) -> Failure:
    """The shortest sequence of the same failure that leaving out steps, then properties, leads to."""
    steps = list(failure.sequence.steps[: failure.at + 1])
    best = Failure(replace(failure.sequence, steps=tuple(steps)), failure.at, failure.cause, failure.calls)
    size = max(1, len(steps) // 2)
    while size and tries > 0:
        start = 0
        while start < len(steps) and tries > 0:
            tries -= 1
            fewer = steps[:start] + steps[start + size :]
            found = _fails(replace(best.sequence, steps=tuple(fewer)), engines, folder, readers)
            if found is not None and found.kind == failure.kind:
                best, steps = found, fewer[: found.at + 1] if found.at >= 0 else fewer
            else:
                start += size
        size //= 2
    for name, _ in failure.sequence.properties:
        kept = tuple(p for p in best.sequence.properties if p[0] != name)
        found = _fails(replace(best.sequence, properties=kept), engines, folder, readers)
        if found is not None and found.kind == failure.kind:
            best = found
    return best


def _fails(
    sequence: Script, engines: Mapping[str, Engine], folder: Path, readers: dict[str, Reader] | None
) -> Failure | None:
    try:
        play(sequence, engines, folder, Counts(), readers)
    except Failure as failure:
        return failure
    return None
