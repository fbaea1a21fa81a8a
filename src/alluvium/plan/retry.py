"""How often, and how patiently, a lost commit is tried again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

#: After so many losses the pauses become shorter again.
_RISES = 5


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Fair back-off with full jitter: pauses get longer first, and shorter for who goes on losing.

    The first losses spread writers out that met by chance. Were the pauses to grow for ever, who has waited longest
    would wait longest again, and those who came last would pass by; so whoever has lost most often tries soonest. That
    somebody wins each time is certain, however soon all of them try.

    Attributes:
        max_attempts: Publications tried in all; 1 never retries.
        first_delay_ms: Upper end of the first pause, and of those of who has lost often.
        max_delay_ms: Upper end of any pause.
        max_repeats: How often a verb over rows is carried out anew because a winner touched rows that it had read, or
            files that it changes; 0 never.
    """

    max_attempts: int = 1_000
    first_delay_ms: int = 10
    max_delay_ms: int = 2_000
    max_repeats: int = 20

    def delays_s(self) -> Iterator[float]:
        """The pause before each further attempt, in seconds."""
        for lost in range(self.max_attempts - 1):
            ceiling = self.first_delay_ms * 2 ** max(0, _RISES - abs(lost - _RISES))
            # Full jitter: writers that lost to the same winner must not come back at the same instant.
            yield random.uniform(0, min(ceiling, self.max_delay_ms)) / 1000


#: Retries whatever is proven safe: a thousand times somebody else was faster.
DEFAULT_RETRY = RetryPolicy()
