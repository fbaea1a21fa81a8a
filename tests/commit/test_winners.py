"""Who came in between: several winners of one rebase, the pauses before another attempt, what an interrupt leaves."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass, field

import pytest

from alluvium.commit.landed import landed
from alluvium.commit.loop import Entry, commit
from alluvium.errors import CommitConflict, CommitUnknown, Conflict, NotFound, StorageError
from alluvium.plan.retry import RetryPolicy
from alluvium.storage.store import PutOutcome
from alluvium.storage.stores.memory import MemoryStore


@dataclass
class WordLog:
    """A log of words: a draft may follow any word but its own.

    Attributes:
        log: The words that stand.
        faster: Before each publication these are there first.
        bases: What each entry was assembled on.
    """

    log: list[str] = field(default_factory=list)
    faster: list[list[str]] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)
    asked: list[tuple[int, str]] = field(default_factory=list)
    url: str = "memory:words"

    def assemble(self, draft: str, base: int) -> Entry:
        self.bases.append(base)
        return Entry(base, f"{base}.json", draft.encode())

    def publish(self, entry: Entry) -> PutOutcome:
        self.log += self.faster.pop(0) if self.faster else []
        if len(self.log) > entry.version:
            return PutOutcome.EXISTS
        self.log.append(entry.data.decode())
        return PutOutcome.DONE

    def landed(self, entry: Entry) -> bool | None:
        return False

    def refresh(self, base: int) -> tuple[int, tuple[str, ...]]:
        return len(self.log), tuple(self.log[base:])

    def conflicts(self, draft: str, base: int, winner: str) -> tuple[Conflict, ...]:
        self.asked.append((base, winner))
        return (Conflict("same-word", self.log.index(winner), None, f"it is {winner}"),) if winner == draft else ()


@pytest.mark.parametrize("came", [["a", "b"], ["b", "a"], ["b", "a", "c"]])
@pytest.mark.parametrize("before", [True, False])
def test_any_of_several_winners_may_forbid_the_draft(came: list[str], before: bool) -> None:
    """Those who committed before the first attempt, and those who were faster in it: the last one is not all of them."""
    words = WordLog(came) if before else WordLog(faster=[came])
    with pytest.raises(CommitConflict) as caught:
        commit(words, "a", 0, sleep=lambda _: None)
    assert (caught.value.code, caught.value.version, caught.value.url) == ("same-word", came.index("a"), words.url)
    assert caught.value.attempts == 1
    assert words.asked == [(0, word) for word in came]
    assert words.log == came


def test_each_winner_is_looked_at_once() -> None:
    """The second rebase begins where the first one ended."""
    words = WordLog(["x"], [["y", "z"], ["u"]])
    published = commit(words, "a", 0, sleep=lambda _: None)
    assert words.asked == [(0, "x"), (1, "y"), (1, "z"), (3, "u")]
    assert words.log == ["x", "y", "z", "u", "a"]
    assert (published.entry.version, published.base, published.attempts, words.bases) == (4, 4, 3, [1, 3, 4])


def test_conflicts_of_all_winners_are_told() -> None:
    words = WordLog(["a", "b", "a", "a"])
    with pytest.raises(CommitConflict, match=r"it is a \(and 2 more\)") as caught:
        commit(words, "a", 0)
    assert [conflict.rule for conflict in caught.value.conflicts] == ["same-word"] * 3
    with pytest.raises(CommitConflict) as caught:
        commit(WordLog(["a"]), "a", 0)
    assert "more" not in str(caught.value)


def test_nobody_is_looked_for_behind_a_base_of_this_moment() -> None:
    """The place itself tells whether the caller was right."""
    words = WordLog(["a"])
    with pytest.raises(CommitConflict):
        commit(words, "a", 0, is_current=True, sleep=lambda _: None)
    assert words.bases == [0]
    assert commit(WordLog(["b"]), "a", 1, is_current=True).attempts == 1


@pytest.mark.parametrize(("most", "pauses"), [(1, 0), (2, 1), (4, 3)])
def test_the_last_attempt_is_followed_by_no_pause(most: int, pauses: int) -> None:
    slept: list[float] = []
    words = WordLog(faster=[["x"]] * 9)
    with pytest.raises(CommitConflict, match=f"gave up after {most} attempts") as caught:
        commit(words, "a", 0, RetryPolicy(max_attempts=most), sleep=slept.append)
    assert (caught.value.code, caught.value.attempts, caught.value.version) == ("attempts-exhausted", most, most - 1)
    assert [conflict.rule for conflict in caught.value.conflicts] == ["attempts-exhausted"]
    assert len(slept) == pauses
    assert len(words.bases) == most


def test_who_won_says_more_than_that_all_attempts_are_lost() -> None:
    with pytest.raises(CommitConflict) as caught:
        commit(WordLog(faster=[["a"]]), "a", 0, RetryPolicy(max_attempts=1))
    assert caught.value.code == "same-word"


def test_pauses_double_up_to_their_limit_and_halve_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Full jitter: anything from none to the upper end, which is what is looked at here."""
    monkeypatch.setattr("random.uniform", lambda low, high: (low, high)[1] if low == 0 else None)
    policy = RetryPolicy(max_attempts=14, first_delay_ms=10, max_delay_ms=150)
    rise, fall = [0.01, 0.02, 0.04, 0.08], [0.08, 0.04, 0.02, 0.01]
    assert list(policy.delays_s()) == [*rise, 0.15, 0.15, 0.15, *fall, 0.01, 0.01]
    assert list(RetryPolicy(max_attempts=1).delays_s()) == []


def test_the_usual_patience() -> None:
    """A thousand attempts, and never a busy loop."""
    pauses = list(RetryPolicy().delays_s())
    assert len(pauses) == 999
    assert all(0 <= pause <= 2 for pause in pauses)
    assert max(pauses[:1]) <= 0.01
    assert max(pauses[10:]) <= 0.01
    assert sum(pauses) > 3


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_while_publishing_is_told_what_may_stand(
    interrupt: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    class Interrupted(WordLog):
        def publish(self, entry: Entry) -> PutOutcome:
            raise interrupt

    told = "interrupted while version 2 of memory:words was committed: it may stand"
    with caplog.at_level(logging.WARNING), pytest.raises(interrupt) as caught:
        commit(Interrupted(["x", "y"]), "a", 0)
    assert told in caplog.text
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == [told]


def test_an_unknown_outcome_names_its_place() -> None:
    class Silent(WordLog):
        puts = 0

        def publish(self, entry: Entry) -> PutOutcome:
            self.puts += 1
            return PutOutcome.UNKNOWN

        def landed(self, entry: Entry) -> bool | None:
            return None

    words = Silent(["x"])
    with pytest.raises(CommitUnknown) as caught:
        commit(words, "a", 0)
    assert (caught.value.version, caught.value.path, caught.value.url) == (1, "1.json", words.url)
    assert words.puts == 3


def test_whose_entry_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable place is as open as an empty one."""
    store = MemoryStore("landed", "t")
    assert landed(store, "0.json", b"ours") is None
    store.put("0.json", b"ours")
    assert landed(store, "0.json", b"ours") is True
    assert landed(store, "0.json", b"other") is False

    for error, answer in ((StorageError("503"), None), (NotFound("gone"), None)):
        with monkeypatch.context() as patch:

            def refuse(*_: object, raised: Exception = error) -> bytes:
                raise raised

            patch.setattr(MemoryStore, "get", refuse)
            assert landed(store, "0.json", b"ours") is answer
