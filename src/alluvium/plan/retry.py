"""How often, and how patiently, a lost commit is tried again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with full jitter.

    Attributes:
        max_attempts: Publications tried in all; 1 never retries.
        first_delay_ms: Upper end of the first pause.
        max_delay_ms: Upper end of any pause.
        max_repeats: How often a verb over rows is carried out anew because a winner touched rows that it had read, or
            files that it changes; 0 never.
    """

    max_attempts: int = 100
    first_delay_ms: int = 10
    max_delay_ms: int = 2_000
    max_repeats: int = 20

    def delays_s(self) -> Iterator[float]:
        """The pause before each further attempt, in seconds."""
        ceiling = float(self.first_delay_ms)
        for _ in range(self.max_attempts - 1):
            # Full jitter: writers that lost to the same winner must not come back at the same instant.
            yield random.uniform(0, ceiling) / 1000
            ceiling = min(ceiling * 2, self.max_delay_ms)


#: Retries whatever is proven safe, for about two minutes of contention.
DEFAULT_RETRY = RetryPolicy()
