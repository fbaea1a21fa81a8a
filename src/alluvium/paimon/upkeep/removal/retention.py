"""How many snapshots and changelogs stay, and for how long.

Specification: `org.apache.paimon.options.ExpireConfig`, `ExpireSnapshotsImpl.expire`, `ExpireChangelogImpl.expire`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from alluvium.errors import InvalidRequest
from alluvium.paimon.terms import life_options as life
from alluvium.paimon.terms.options import (
    CHANGELOG_NUM_RETAINED_MAX,
    CHANGELOG_NUM_RETAINED_MIN,
    SNAPSHOT_NUM_RETAINED_MAX,
    SNAPSHOT_NUM_RETAINED_MIN,
)


@dataclass(frozen=True, slots=True)
class Retention:
    """What stays.

    Attributes:
        most: So many of them at most, whatever their age.
        least: So many of them in any case.
        older_than_ms: Only those older than this go (milliseconds since 1970 UTC), but for those beyond `most`.
        limit: At most so many go at a time.
    """

    most: int
    least: int
    older_than_ms: int
    limit: int

    def given(
        self,
        retain_max: int | None = None,
        retain_min: int | None = None,
        older_than_ms: int | None = None,
        max_deletes: int | None = None,
    ) -> Retention:
        """With what a caller said in the place of the table's options.

        Raises:
            InvalidRequest: It makes no sense (`"invalid-retention"`).
        """
        wanted = (("most", retain_max), ("least", retain_min), ("older_than_ms", older_than_ms), ("limit", max_deletes))
        values = {name: value for name, value in wanted if value is not None}
        changed = replace(self, **values)
        changed.ensure_sensible()
        return changed

    def ensure_sensible(self) -> None:
        """Refuses what Java refuses.

        Raises:
            InvalidRequest: `"invalid-retention"`.
        """
        problem = None
        if self.least < 1:
            problem = f"at least 1 snapshot stays, not {self.least}"
        elif self.most < self.least:
            problem = f"the most that stay ({self.most}) are fewer than the least ({self.least})"
        elif self.limit < 0:
            problem = f"{self.limit} cannot go at a time"
        if problem is not None:
            raise InvalidRequest(problem, code="invalid-retention", hint="retain_max >= retain_min >= 1")

    def first_kept(
        self, ids: Sequence[int], latest: int, time_of: Callable[[int], int], consumed: int | None = None
    ) -> int:
        """The first id that stays.

        Args:
            ids: Those there are, ascending; at least one.
            latest: The id of the newest snapshot.
            time_of: When one was made, milliseconds since 1970 UTC.
            consumed: What the slowest consumer reads next.
        """
        earliest = ids[0]
        end = min(latest - self.least + 1, earliest + self.limit)
        if consumed is not None:
            end = min(end, consumed)
        for number in ids:
            if max(latest - self.most + 1, earliest) <= number < end and self.older_than_ms <= time_of(number):
                return number
        return max(end, earliest)


def snapshot_retention(options: Mapping[str, str], now_ms: int) -> Retention:
    """As the table's options say."""
    return Retention(
        SNAPSHOT_NUM_RETAINED_MAX.get(options),
        SNAPSHOT_NUM_RETAINED_MIN.get(options),
        now_ms - life.SNAPSHOT_TIME_RETAINED_MS.get(options),
        life.SNAPSHOT_EXPIRE_LIMIT.get(options),
    )


def changelog_retention(options: Mapping[str, str], now_ms: int) -> Retention:
    """As the table's options say; where they say nothing of changelogs, as of snapshots."""
    snapshots = snapshot_retention(options, now_ms)
    most, least = CHANGELOG_NUM_RETAINED_MAX.get(options), CHANGELOG_NUM_RETAINED_MIN.get(options)
    kept_ms = life.CHANGELOG_TIME_RETAINED_MS.get(options)
    return replace(
        snapshots,
        most=snapshots.most if most is None else most,
        least=snapshots.least if least is None else least,
        older_than_ms=snapshots.older_than_ms if kept_ms is None else now_ms - kept_ms,
    )
