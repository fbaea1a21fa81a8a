"""Pauses between attempts: longer first, then shorter for who goes on losing, at random below a ceiling."""

from __future__ import annotations

import random

import pytest

from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy


@pytest.mark.parametrize("lost", range(14))
def test_ceilings(lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten milliseconds, doubled at each of five losses and halved at each of the next five."""
    monkeypatch.setattr(random, "uniform", lambda low, high: high - low)
    ceiling_ms = 10 * 2 ** (lost if lost <= 5 else max(0, 10 - lost))
    assert list(RetryPolicy().delays_s())[lost] == ceiling_ms / 1000
    assert list(RetryPolicy(max_delay_ms=50).delays_s())[lost] == min(ceiling_ms, 50) / 1000
    assert list(RetryPolicy(first_delay_ms=1).delays_s())[lost] == ceiling_ms / 10_000


def test_there_is_a_pause_before_each_further_attempt() -> None:
    for attempts in (1, 2, 7):
        assert len(list(RetryPolicy(max_attempts=attempts).delays_s())) == attempts - 1
    random.seed(4)
    delays = list(DEFAULT_RETRY.delays_s())
    assert len(delays) == 999 and len(set(delays)) > 900 and all(0 <= one <= 2 for one in delays)
