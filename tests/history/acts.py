"""What a writer may do to the table, and what must come of it: each act is a function of the state that it read.

The table: accounts (`p` is `a` or `b`), events (`e`) and counts (`c`); a row is its partition, its `id`, a number `v`
and `last`, the act that wrote it last. An act is told in its commit (`userMetadata`), so that the log says by itself
what each version claims to be.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

#: Accounts, each with its partition; what they begin with.
ACCOUNTS = {1: "a", 2: "a", 3: "b", 4: "b"}
FIRST = 1_000
#: Ids of events and counts: writer, act, place.
WRITER, ACT = 100_000_000, 10
#: Events fall into so many classes by their id; conditions are about one.
CLASSES = 5

#: Partition and id; number and the act that wrote it last.
Key = tuple[str, int]
Value = tuple[int, str]
State = Mapping[Key, Value]
#: What is different afterwards; None: the row is gone.
Change = dict[Key, Value | None]


@dataclass(frozen=True)
class Act:
    """What a writer does; `writer` and `n` are nobody else's.

    Attributes:
        verb: One of `EFFECTS`.
        a: An account.
        b: Another one.
        amount: Of what is moved, or how many rows come.
        rest: A class of events.
    """

    writer: int
    n: int
    verb: str
    a: int = 1
    b: int = 2
    amount: int = 1
    rest: int = 0

    @property
    def token(self) -> str:
        """Its name in rows."""
        return f"{self.writer}:{self.n}"

    @property
    def ids(self) -> list[int]:
        """Of the rows that it adds."""
        return [self.writer * WRITER + self.n * ACT + place for place in range(self.amount)]

    @property
    def note(self) -> str:
        """What its commit says."""
        return json.dumps(asdict(self))

    @property
    def condition(self) -> str:
        """Which rows it changes, in SQL that each engine knows."""
        accounts = {"add": {self.a}, "move": {self.a, self.b}}.get(self.verb)
        if accounts is None:
            return f"p = 'e' AND id % {CLASSES} = {self.rest}"
        parts = [f"(p = '{ACCOUNTS[k]}' AND id = {k})" for k in sorted(accounts)]
        return " OR ".join(parts)


def act_of(note: str) -> Act:
    return Act(**json.loads(note))


#: Verbs, and how often a writer draws each.
WEIGHTS = {
    "append": 8,
    "add": 6,
    "move": 6,
    "stamp": 3,
    "drop": 2,
    "collect": 3,
    "count": 3,
    "compact": 2,
    "describe": 1,
}


def draw(seed: int, writer: int, n: int, verbs: frozenset[str]) -> Act:
    """The act that a writer does next: it follows from the seed."""
    chance = random.Random(f"{seed} {writer} {n}")
    can = [verb for verb in WEIGHTS if verb in verbs]
    verb = chance.choices(can, [WEIGHTS[v] for v in can])[0]
    a, b = chance.sample(sorted(ACCOUNTS), 2)
    amount = chance.randint(1, 3) if verb == "append" else 1 if verb == "count" else chance.randint(1, 9)
    return Act(writer, n, verb, a, b, amount, chance.randrange(CLASSES))


def is_met(act: Act, key: Key) -> bool:
    """Whether an event is of the class that an act is about."""
    return key[0] == "e" and key[1] % CLASSES == act.rest


def _append(act: Act, state: State) -> Change:
    return {("e", row): (10, act.token) for row in act.ids}


def _added(act: Act, state: State, amounts: Mapping[int, int]) -> Change:
    change: Change = {}
    for account, amount in amounts.items():
        key = (ACCOUNTS[account], account)
        change[key] = (state[key][0] + amount, act.token)
    return change


def _add(act: Act, state: State) -> Change:
    return _added(act, state, {act.a: act.amount})


def _move(act: Act, state: State) -> Change:
    return _added(act, state, {act.a: -act.amount, act.b: act.amount})


def _stamp(act: Act, state: State) -> Change:
    return {key: (v + act.amount, act.token) for key, (v, _) in state.items() if is_met(act, key)}


def _drop(act: Act, state: State) -> Change:
    return {key: None for key in state if is_met(act, key)}


def _collect(act: Act, state: State) -> Change:
    """Events of a class go, and an account gets what they were worth."""
    met = {key: v for key, (v, _) in state.items() if is_met(act, key)}
    return {**dict.fromkeys(met), **_added(act, state, {act.a: sum(met.values())})} if met else {}


def _count(act: Act, state: State) -> Change:
    """A row that says how many events of a class there are."""
    return {("c", act.ids[0]): (sum(is_met(act, key) for key in state), act.token)}


def _nothing(act: Act, state: State) -> Change:
    return {}


EFFECTS: dict[str, Callable[[Act, State], Change]] = {
    "append": _append,
    "add": _add,
    "move": _move,
    "stamp": _stamp,
    "drop": _drop,
    "collect": _collect,
    "count": _count,
    "compact": _nothing,
    "describe": _nothing,
}


def effect(act: Act, state: State) -> Change:
    """What must come of an act on a state."""
    return EFFECTS[act.verb](act, state)


def first_rows() -> dict[Key, Value]:
    """What the table begins with."""
    return {(p, account): (FIRST, "0:0") for account, p in ACCOUNTS.items()}
