"""Who commits beside those who never stop, in a time that only pauses and requests make pass: no clock, no processes."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from alluvium.commit.loop import Entry, commit
from alluvium.errors import Conflict
from alluvium.plan.retry import DEFAULT_RETRY
from alluvium.storage.store import PutOutcome


@dataclass
class BusyLog:
    """A log to which others append, at random instants, `rate` times a second.

    Attributes:
        look_s: How long it takes to look who has committed, and to read what.
        put_s: How long a put takes; its place is taken in the middle of it.
    """

    chance: random.Random
    rate: float
    look_s: float
    put_s: float
    now_s: float = 0.0
    length: int = 0
    url: str = "memory:busy"
    others: Iterator[float] = field(init=False)

    def __post_init__(self) -> None:
        self.others = itertools.accumulate(self.chance.expovariate(self.rate) for _ in itertools.count())
        self.next_s = next(self.others)

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        while self.next_s <= self.now_s:
            self.length += 1
            self.next_s = next(self.others)

    def assemble(self, draft: str, base: int) -> Entry:
        return Entry(base, f"{base}.json", draft.encode())

    def publish(self, entry: Entry) -> PutOutcome:
        self.pass_time(self.put_s / 2)
        is_free = self.length == entry.version
        self.length += is_free
        self.pass_time(self.put_s / 2)
        return PutOutcome.DONE if is_free else PutOutcome.EXISTS

    def landed(self, entry: Entry) -> bool | None:
        return False

    def refresh(self, base: int) -> tuple[int, tuple[bytes, ...]]:
        seen = self.length
        self.pass_time(self.look_s)
        return seen, ()

    def conflicts(self, draft: str, base: int, winner: bytes) -> tuple[Conflict, ...]:
        return ()


@pytest.mark.parametrize(
    ("look_s", "put_s", "most", "bound_s"),
    [(0.03, 0.01, 25, 2), (0.1, 0.05, 400, 60)],
    ids=["a disk", "an object store whose commit takes as long as three appends"],
)
def test_twenty_appends_a_second_do_not_keep_a_commit_from_its_end(
    look_s: float, put_s: float, most: int, bound_s: float
) -> None:
    """A pause between the look and the put would be lost for certain: with one, some of these never came to an end."""
    for seed in range(50):
        log = BusyLog(random.Random(seed), 20, look_s, put_s)
        random.seed(seed)
        published = commit(log, "update", 0, sleep=log.pass_time)
        assert published.attempts <= most, f"seed {seed}"
        assert log.now_s <= bound_s, f"seed {seed}"


def test_who_has_lost_most_often_waits_least() -> None:
    """Writers of one kind that begin their next commit at once: none of them waits long for one."""
    waited = []
    for seed in range(5):
        random.seed(seed)
        waited += list(races(writers=8, cycle_s=0.03, until_s=60))
    assert len(waited) > 5_000
    assert max(waited) < 15


def races(writers: int, cycle_s: float, until_s: float) -> Iterator[float]:
    """How long each commit of some writers took."""
    length = 0
    pauses = [DEFAULT_RETRY.delays_s() for _ in range(writers)]
    began = [0.0] * writers
    # A look, which has seen nothing yet, or a put: when, whose, and how long the log was at the look.
    steps: list[tuple[float, int, int | None]] = [(random.uniform(0, cycle_s), n, None) for n in range(writers)]
    while True:
        now_s, writer, seen = heapq.heappop(steps)
        if now_s > until_s:
            # Those who still wait count, too.
            yield from (until_s - start for start in began)
            return
        if seen is None:
            heapq.heappush(steps, (now_s + cycle_s * random.uniform(0.7, 1.3), writer, length))
        elif seen == length:
            yield now_s - began[writer]
            length, began[writer], pauses[writer] = length + 1, now_s, DEFAULT_RETRY.delays_s()
            heapq.heappush(steps, (now_s, writer, None))
        else:
            heapq.heappush(steps, (now_s + next(pauses[writer]), writer, None))
