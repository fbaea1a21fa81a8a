"""A commit that depends on what the table held is made anew where somebody else was faster."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from alluvium.errors import CommitConflict
from alluvium.plan.retry import RetryPolicy

log = logging.getLogger("alluvium")

_Done = TypeVar("_Done")


def again(attempt: Callable[[], _Done], retry: RetryPolicy, what: str) -> _Done:
    """What an attempt gives that reads the newest state, plans and commits.

    Args:
        attempt: Called anew after a conflict.
        retry: How often.
        what: For the log.

    Raises:
        CommitConflict: Somebody else won every time.
    """
    for _ in range(retry.max_repeats):
        try:
            return attempt()
        except CommitConflict as error:
            if error.code == "attempts-exhausted":
                raise
            log.warning("%s anew: %s", what, error.message)
    return attempt()
