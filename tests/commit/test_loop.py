"""The commit loop, on a real in-memory log whose store misbehaves on purpose."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from alluvium.commit.loop import Entry, commit, refused
from alluvium.errors import CommitConflict, CommitUnknown, Conflict, StorageError
from alluvium.plan.retry import RetryPolicy
from alluvium.storage.store import PutOutcome


@dataclass
class CounterLog:
    """A log of integers: an entry adds to the sum. `script` names the fault of each publication in turn."""

    log: list[bytes] = field(default_factory=list)
    script: list[str] = field(default_factory=list)
    url: str = "memory:counter"

    def assemble(self, draft: str, base: int) -> Entry:
        return Entry(base, f"{base}.json", f"{draft} on {base}".encode())

    def publish(self, entry: Entry) -> PutOutcome:
        fault = self.script.pop(0) if self.script else "none"
        if fault == "lose":
            self.log.append(b"winner")
        if fault == "drop":
            return PutOutcome.UNKNOWN
        if fault == "refuse":
            raise StorageError("403")
        if len(self.log) > entry.version:
            return PutOutcome.EXISTS
        self.log.append(entry.data)
        return {"silent": PutOutcome.UNKNOWN, "echo": PutOutcome.EXISTS}.get(fault, PutOutcome.DONE)

    def landed(self, entry: Entry) -> bool | None:
        return self.log[entry.version] == entry.data if len(self.log) > entry.version else None

    def refresh(self, base: int) -> tuple[int, tuple[bytes, ...]]:
        return len(self.log), tuple(self.log[base:])

    def conflicts(self, draft: str, base: int, winner: bytes) -> tuple[Conflict, ...]:
        return (Conflict("test", base, "WRITE", "no"),) if draft == "fragile" else ()


def test_first_attempt_wins() -> None:
    log = CounterLog()
    published = commit(log, "a", 0)
    assert (published.entry.version, published.attempts, log.log) == (0, 1, [b"a on 0"])


def test_loser_is_assembled_anew_on_the_winner() -> None:
    log = CounterLog(script=["lose", "lose"])
    published = commit(log, "a", 0, sleep=lambda _: None)
    assert log.log == [b"winner", b"winner", b"a on 2"]
    assert published.attempts == 3


@pytest.mark.parametrize("fault", ["silent", "echo"])
def test_a_lost_answer_is_settled_by_reading_back(fault: str) -> None:
    log = CounterLog(script=[fault])
    assert commit(log, "a", 0).attempts == 1
    assert log.log == [b"a on 0"], "committed once, not twice"


def test_a_put_that_never_arrived_is_sent_again() -> None:
    log = CounterLog(script=["drop"])
    commit(log, "a", 0)
    assert log.log == [b"a on 0"]


def test_a_silent_store_is_reported_as_unknown() -> None:
    log = CounterLog(script=["drop"] * 10)
    with pytest.raises(CommitUnknown) as caught:
        commit(log, "a", 0)
    assert caught.value.path == "0.json"


def test_a_refusal_after_a_lost_answer_is_unknown() -> None:
    """The first put may have taken effect: who was told of a plain failure would write the rows again."""
    with pytest.raises(CommitUnknown):
        commit(CounterLog(script=["drop", "refuse"]), "x", 0, sleep=lambda _: None)
    with pytest.raises(StorageError):
        commit(CounterLog(script=["refuse"]), "x", 0, sleep=lambda _: None)


def test_conflict_names_the_winner() -> None:
    log = CounterLog(script=["lose"])
    with pytest.raises(CommitConflict) as caught:
        commit(log, "fragile", 0)
    assert caught.value.conflicts[0].rule == "test"
    assert log.log == [b"winner"]


def test_attempts_are_bounded() -> None:
    log = CounterLog(script=["lose"] * 10)
    with pytest.raises(CommitConflict, match="gave up after 3 attempts"):
        commit(log, "a", 0, RetryPolicy(max_attempts=3), sleep=lambda _: None)


@pytest.mark.parametrize(
    ("timestamp_ms", "told"),
    [
        (
            1_700_000_000_123,
            "version 0 by MERGE of another engine at 2023-11-14 22:13:20.123Z was committed first: it did (a, b)",
        ),
        (None, "version 0 by MERGE of another engine was committed first: it did (a, b)"),
        # The winner's word may be anything.
        (10**17, "version 0 by MERGE of another engine was committed first: it did (a, b)"),
    ],
)
def test_a_conflict_tells_who_won_when_and_on_what(timestamp_ms: int | None, told: str) -> None:
    class Told(CounterLog):
        def conflicts(self, draft: str, base: int, winner: bytes) -> tuple[Conflict, ...]:
            return (Conflict("test", base, "MERGE", "it did", ("a", "b"), "another engine", timestamp_ms),)

    with pytest.raises(CommitConflict) as caught:
        commit(Told(script=["lose"]), "a", 0)
    assert caught.value.message == told
    assert caught.value.attempts == 1


@pytest.mark.parametrize("operation", [None, "MERGE"])
@pytest.mark.parametrize("engine", [None, "E"])
@pytest.mark.parametrize("timestamp_ms", [None, 0])
@pytest.mark.parametrize("paths", [(), ("a",)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_nobody_says_is_left_out(
    operation: str | None, engine: str | None, timestamp_ms: int | None, paths: tuple[str, ...], count: int
) -> None:
    found = [Conflict("rule", 4, operation, "it did", paths, engine, timestamp_ms)] * count
    error = refused(found, 7, "memory://t")
    parts = [
        " by MERGE" if operation else "",
        " of E" if engine else "",
        " at 1970-01-01 00:00:00.000Z" if timestamp_ms == 0 else "",
    ]
    more = "" if count == 1 else f" (and {count - 1} more)"
    assert error.message == f"version 4{''.join(parts)} was committed first: it did{' (a)' if paths else ''}{more}"
    assert (error.code, error.attempts, error.url, error.version, list(error.conflicts)) == (
        "rule",
        7,
        "memory://t",
        4,
        found,
    )


def test_who_has_come_before_is_looked_for_before_the_first_put() -> None:
    """Unless the caller has looked this moment: what was opened long ago may have a free place that is history."""
    overtaken = CounterLog([b"winner"], script=["refuse"])
    with pytest.raises(CommitConflict):
        commit(overtaken, "fragile", 0)
    with pytest.raises(StorageError):
        commit(overtaken, "fragile", 0, is_current=True)
