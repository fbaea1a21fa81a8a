"""Every single request of a commit fails once, before and after it took effect, softly and as a crash.

After each: the table is readable at a version that somebody committed, no rows are lost or doubled, and the next
writer succeeds.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pytest
from faulty_store import Crash, Fault, FaultyStore, When
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.errors import AlluviumError, CommitConflict, CommitUnknown
from alluvium.plan.changes import Replace
from alluvium.plan.retry import RetryPolicy
from alluvium.storage.open import open_store

# The tenth version brings a checkpoint, so that its requests are among those that fail.
BEFORE = 9


def make(url: str, versions: int = BEFORE + 1) -> None:
    for n in range(versions):
        commit_rows(open_target(open_store(url)), [n])


def ids(url: str) -> list[int]:
    return sorted(alluvium.open(url).to_arrow(["id"]).column("id").to_pylist())


def requests_of_one_commit(tmp_path: Path) -> int:
    url = str(tmp_path / "count")
    make(url)
    store = FaultyStore(open_store(url))
    commit_rows(open_target(store), [100])
    return len(store.requests)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*its checkpoint is not")
@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("when", list(When))
@pytest.mark.parametrize("replace", [None, Replace()])
def test_each_request_fails_once(tmp_path: Path, when: When, crash: bool, replace: Replace | None) -> None:
    total = requests_of_one_commit(tmp_path)
    assert total > 5
    for at in range(1, total + 1):
        url = str(tmp_path / f"t{at}")
        make(url)
        store = FaultyStore(open_store(url), Fault(at, when, crash=crash))
        committed = None
        with_us = [100] if replace is not None else [*range(BEFORE + 1), 100]
        try:
            committed = commit_rows(open_target(store), [100], replace=replace)
        except (AlluviumError, Crash) as error:
            outcome = error
        else:
            outcome = None
        found = ids(url)
        assert found in (list(range(BEFORE + 1)), with_us), (at, outcome)
        if committed is not None:
            assert found == with_us, f"request {at}: reported as committed"
            assert committed.version == BEFORE + 1
        elif not isinstance(outcome, (Crash, CommitUnknown)):
            assert found == list(range(BEFORE + 1)), f"request {at}: reported as failed, yet committed: {outcome!r}"
        commit_rows(open_target(open_store(url)), [200])
        assert 200 in ids(url)


def test_a_lost_answer_to_the_conditional_put_is_settled(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    make(url, 2)
    store = FaultyStore(open_store(url), Fault(1, When.AFTER, "put_if_absent"))
    assert commit_rows(open_target(store), [100]).version == 2
    assert store.failed == 1
    assert ids(url) == [0, 1, 100]


def test_a_winner_behind_a_lost_answer(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    make(url, 2)
    other = open_target(open_store(url))
    fault = Fault(1, When.BEFORE, "put_if_absent", meanwhile=lambda: commit_rows(other, [50]))
    committed = commit_rows(open_target(FaultyStore(open_store(url), fault)), [100])
    assert (committed.version, committed.attempts) == (3, 2)
    assert ids(url) == [0, 1, 50, 100]


def test_a_store_that_never_answers_is_unknown(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    make(url, 2)
    faults = [Fault(n, When.BEFORE, "put_if_absent") for n in range(1, 10)]
    with pytest.raises(CommitUnknown) as caught:
        commit_rows(open_target(FaultyStore(open_store(url), *faults)), [100])
    assert caught.value.version == 2 and "hint:" in str(caught.value)
    assert ids(url) == [0, 1]


def test_attempts_are_bounded_by_the_policy(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    make(url, 2)

    def win() -> None:
        commit_rows(open_target(open_store(url)), [50])

    faults = [Fault(n, When.BEFORE, "put_if_absent", meanwhile=win) for n in range(1, 10)]
    target = open_target(FaultyStore(open_store(url), *faults), retry=RetryPolicy(max_attempts=2, first_delay_ms=1))
    with pytest.raises(CommitConflict) as caught:
        commit_rows(target, [100])
    assert caught.value.code == "attempts-exhausted"


def test_a_checkpoint_that_fails_is_a_warning(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    make(url)
    store = FaultyStore(open_store(url), Fault(1, When.BEFORE, "put", path="checkpoint"))
    with pytest.warns(UserWarning, match="is committed, its checkpoint is not"):
        assert commit_rows(open_target(store), [100]).version == 10
    assert len(ids(url)) == 11


@pytest.mark.parametrize("are_errors", [False, True])
@pytest.mark.parametrize("error", [pa.ArrowInvalid("no"), MemoryError("no"), TypeError("no")])
@pytest.mark.parametrize("what", ["write_checkpoint_at", "clean_up_log", "checksum_after"])
def test_whatever_goes_wrong_after_a_commit_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, error: Exception, are_errors: bool
) -> None:
    """A caller who is told of a failure writes the rows again."""
    url = str(tmp_path / "t")
    make(url)

    def fail(*args: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(f"alluvium.delta.log_upkeep.checkpoints.{what}", fail)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error" if are_errors else "always")
        assert commit_rows(open_target(open_store(url)), [100]).version == 10
    assert are_errors or [str(w.message) for w in caught if "version 10" in str(w.message)]
    assert ids(url) == [*range(BEFORE + 1), 100]


def test_who_interrupts_a_checkpoint_is_told_that_the_commit_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url = str(tmp_path / "t")
    make(url)

    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("alluvium.delta.log_upkeep.checkpoints.write_checkpoint_at", interrupt)
    with pytest.raises(KeyboardInterrupt):
        commit_rows(open_target(open_store(url)), [100])
    assert "is committed, its checkpoint was interrupted" in caplog.text
    assert ids(url) == [*range(BEFORE + 1), 100]
