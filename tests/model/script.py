"""A sequence before it is played: a table, and what happens to it, as all follows from a seed; and who plays it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from model.observe import Reader
from model.state import Column


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
    format: str = "delta"
    keys: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "format": self.format,
            "keys": self.keys,
            "columns": [[c.name, c.type] for c in self.columns],
            "properties": dict(self.properties),
            "partition": self.partition,
            "clustered": self.clustered,
            "maker": self.maker,
            "converts": self.converts,
            "steps": [[s.verb, s.engine, s.seed] for s in self.steps],
        }


class Observer(Protocol):
    """Looks at a table that is played with."""

    world: Any

    def after(self, bound: Any, chance: random.Random) -> None:
        """Compares it with what must be."""

    def at_end(self, readers: dict[str, Reader] | None = None) -> None:
        """Compares all that it was, too."""


class Game(Protocol):
    """A table format as sequences play it."""

    #: Name to what binds it (from the world and a lot), and how often it comes.
    VERBS: Mapping[str, tuple[Any, int]]

    def make_script(self, seed: int, engines: Sequence[str], length: int, verbs: Sequence[str] | None) -> Script:
        """A sequence; all of it follows from the arguments."""

    def begin(self, url: str, script: Script, engines: Mapping[str, Engine], calls: list[dict[str, Any]]) -> Observer:
        """Makes the table."""

    def complete(self, bound: Any, world: Any) -> None:
        """Adds to a call what engines without SQL need to know."""


def random_steps(
    chance: random.Random,
    known: Mapping[str, tuple[Any, int]],
    engines: Sequence[str],
    length: int,
    verbs: Sequence[str] | None,
) -> tuple[Step, ...]:
    chosen = {name: weight for name, (_, weight) in known.items() if verbs is None or name in verbs}
    return tuple(
        Step(
            chance.choices(list(chosen), list(chosen.values()))[0], chance.choice(list(engines)), chance.getrandbits(32)
        )
        for _ in range(length)
    )
