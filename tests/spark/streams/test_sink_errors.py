"""What a batch ended of, without a JVM."""

from __future__ import annotations

import pytest

from alluvium.spark.streams.sink import _how_stopped


def in_a_circle(text: str) -> Exception:
    """Errors that lead to each other, as Python leaves them where one that was told on is raised again."""
    told, cause = ValueError("told"), ValueError(text)
    told.__cause__, cause.__context__ = cause, told
    return told


@pytest.mark.timeout(20)
def test_errors_that_lead_to_each_other_come_to_an_end() -> None:
    assert _how_stopped(in_a_circle("no number")) is None
    assert (
        _how_stopped(in_a_circle("first\njava.lang.InterruptedException: x\nlast"))
        == "java.lang.InterruptedException: x"
    )
