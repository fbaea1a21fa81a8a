"""Sequences: made from a seed, played by engines, shrunk where they fail."""

from __future__ import annotations

import itertools
import random
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from alluvium.delta.view.snapshot import RECENT
from model.engines.refused import Refused
from model.observe import Observer, Reader, newest_on_disk
from model.state import ID, Bound, Column, Version, World
from model.verbs.all_verbs import VERBS
from model.verbs.rows import KEYS, new_row, table_of

#: What a table may be from its first version on.
FEATURES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
    "delta.enableTypeWidening": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpointPolicy": "v2",
    "delta.checkpointInterval": "3",
}


#: Engines that cannot say all of what a table is when they make it.
NOT_MAKERS = frozenset({"deltalake", "connect"})
_PLAYED = itertools.count()


class Engine(Protocol):
    """Who carries out calls."""

    name: str

    def can(self, call: dict[str, Any], constrained: bool) -> bool:
        """Whether it has the verb at all."""

    def do(self, url: str, call: dict[str, Any]) -> None:
        """Carries it out, or raises."""


@dataclass(frozen=True)
class Step:
    """What a step is before the table is known: the verb, who does it, and what all choices follow from."""

    verb: str
    engine: str
    seed: int


@dataclass(frozen=True)
class Script:
    """A table and what happens to it."""

    seed: int
    columns: tuple[Column, ...]
    partition: tuple[str, ...]
    clustered: tuple[str, ...]
    properties: tuple[tuple[str, str], ...]
    maker: str
    converts: bool
    steps: tuple[Step, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "columns": [[c.name, c.type] for c in self.columns],
            "properties": dict(self.properties),
            "partition": self.partition,
            "clustered": self.clustered,
            "maker": self.maker,
            "converts": self.converts,
            "steps": [[s.verb, s.engine, s.seed] for s in self.steps],
        }


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


def make_sequence(seed: int, engines: Sequence[str], length: int, verbs: Sequence[str] | None = None) -> Script:
    """All that happens follows from the seed (and from what engines and verbs there are)."""
    chance = random.Random(seed)
    columns = (
        Column(ID, ID, "long"),
        Column("p", "p", "int"),
        Column("v", "v", "string"),
        Column("n", "n", chance.choice(["int", "short"])),
    )
    if chance.random() < 0.25:
        columns = (*columns, Column("seq", "seq", "long", numbered=True))
    kind = chance.choice(["plain", "partitioned", "clustered"])
    partition = chance.choice([("p",), ("p",), ("v",), ("p", "v")]) if kind == "partitioned" else ()
    properties = tuple((k, v) for k, v in FEATURES.items() if chance.random() < 0.4)
    chosen = {name: weight for name, (_, weight) in VERBS.items() if verbs is None or name in verbs}
    steps = tuple(
        Step(
            chance.choices(list(chosen), list(chosen.values()))[0], chance.choice(list(engines)), chance.getrandbits(32)
        )
        for _ in range(length)
    )
    maker = chance.choice([name for name in engines if name not in NOT_MAKERS])
    first = Step("append", chance.choice(list(engines)), chance.getrandbits(32))
    return Script(
        seed,
        columns,
        partition,
        ("n",) if kind == "clustered" else (),
        properties,
        maker,
        # Of Parquet files that lie there; a column of numbers, and clustering, tables get when they are made.
        maker == "python"
        and kind != "clustered"
        and len(columns) == 4
        and "v" not in partition
        and chance.random() < 0.3,
        (first, *steps),
    )


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
    RECENT.clear()
    world, calls = World(str(folder / "t")), []
    at = -1
    try:
        observer = _create(world, sequence, engines, calls)
        for at, step in enumerate(sequence.steps):  # noqa: B007  # told by the failure
            _do(observer, step, engines, calls, counts)
        observer.at_end(readers)
    except Exception as error:
        counts.failures += 1
        raise Failure(sequence, at, error, calls) from error
    finally:
        counts.sequences += 1
        shutil.rmtree(folder, ignore_errors=True)


def _create(world: World, sequence: Script, engines: Mapping[str, Engine], calls: list[dict[str, Any]]) -> Observer:
    first = Version(sequence.columns, {}, dict(sequence.properties), sequence.partition, sequence.clustered)
    call = {
        "verb": "create",
        "columns": [[c.name, c.type] for c in first.columns],
        "numbered": None if first.numbered is None else first.numbered.name,
        "partition": list(first.partition),
        "clustered": list(first.clustered),
        "properties": first.properties,
    }
    if sequence.converts:
        chance = random.Random(sequence.seed)
        # Partition columns of folders stand behind those of the files.
        first = replace(first, columns=tuple(sorted(first.columns, key=lambda c: c.key in first.partition)))
        first = first.with_rows({key: new_row(chance, first, key) for key in chance.sample(range(KEYS), 5)})
        call |= {"verb": "convert", **table_of(first, list(first.rows.values()))}
    calls.append({"engine": sequence.maker, **call})
    engines[sequence.maker].do(world.url, call)
    world.newest = newest_on_disk(world.url)
    # What it took to get there had the rows, but not all of the properties yet.
    world.versions = {v: replace(first, properties={}) for v in range(world.newest)} | {world.newest: first}
    return Observer(world)


def _do(
    observer: Observer, step: Step, engines: Mapping[str, Engine], calls: list[dict[str, Any]], counts: Counts
) -> None:
    chance, world = random.Random(step.seed), observer.world
    bound = VERBS[step.verb][0](world, chance)
    if bound is None:
        counts.skipped += 1
        return
    _complete(bound, world)
    able = [e for e in (step.engine, *engines) if engines[e].can(bound.call, bool(world.now.constraints))]
    if not able:
        counts.skipped += 1
        return
    engine = engines[able[0]]
    calls.append({"engine": engine.name, **bound.call})
    try:
        engine.do(world.url, bound.call)
        counts.done[f"{engine.name}: {step.verb}"] += 1
    except Refused as refusal:
        counts.refused[f"{engine.name}: {step.verb}: {refusal}"] += 1
        bound.refused = True
        bound.vacuums = bound.forgets = False
    counts.steps += 1
    observer.after(bound, chance)


def _complete(bound: Bound, world: World) -> None:
    """What engines without SQL need to know: which rows go, which change, which come."""
    now, after, call = world.now, bound.after, bound.call
    if call["verb"] in ("delete", "update", "merge", "replace_using"):
        gone = [k for k in now.rows if k not in after.rows or k in bound.fresh]
        updated = [after.shown(after.rows[k]) for k in bound.updated]
        born = [{c.name: after.rows[k].get(c.key) for c in after.given} for k in bound.fresh]
        call["edits"] = {"key": now.column(ID).name, "gone": gone, "updated": updated, "born": born}


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
