"""A commit that lost is made anew as often as one may, and no oftener."""

from __future__ import annotations

import logging

import pytest

from alluvium.errors import CommitConflict, NotFound
from alluvium.paimon.upkeep.again import again
from alluvium.plan.retry import RetryPolicy


class Attempts:
    """Loses some times, by one error each, and wins then."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.count = list(errors), 0

    def __call__(self) -> int:
        self.count += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.count


def lost(code: str = "concurrent-append") -> CommitConflict:
    return CommitConflict(f"lost by {code}", conflicts=(), code=code)


@pytest.mark.parametrize(
    ("losses", "repeats", "won"), [(0, 0, True), (1, 0, False), (1, 1, True), (2, 1, False), (3, 3, True), (4, 3, False)]
)  # fmt: skip
def test_as_often_as_one_may(losses: int, repeats: int, won: bool, caplog: pytest.LogCaptureFixture) -> None:
    attempts = Attempts(*(lost() for _ in range(losses)))
    with caplog.at_level(logging.WARNING, "alluvium"):
        if won:
            assert again(attempts, RetryPolicy(max_repeats=repeats), "mended") == losses + 1
        else:
            with pytest.raises(CommitConflict):
                again(attempts, RetryPolicy(max_repeats=repeats), "mended")
    assert attempts.count == min(losses, repeats) + 1
    assert caplog.text.count("mended anew: lost by") == min(losses, repeats)


def test_who_lost_every_race_does_not_begin_again() -> None:
    attempts = Attempts(lost("attempts-exhausted"))
    with pytest.raises(CommitConflict) as caught:
        again(attempts, RetryPolicy(max_repeats=5), "mended")
    assert (caught.value.code, attempts.count) == ("attempts-exhausted", 1)


def test_what_is_no_conflict_is_told_at_once() -> None:
    attempts = Attempts(NotFound("gone", code="missing"))
    with pytest.raises(NotFound):
        again(attempts, RetryPolicy(max_repeats=5), "mended")
    assert attempts.count == 1
