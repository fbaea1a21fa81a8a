"""Universal compaction: which sorted runs of a bucket are merged next, and into which level.

Specification: `org.apache.paimon.mergetree.compact.UniversalCompaction`, `EarlyFullCompaction`,
`ForceUpLevel0Compaction`, `CompactStrategy.pickFullCompaction`. Levels: each file of level 0 is a run of its own, the
newest first; every other level is one run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from alluvium.paimon.terms import compaction_options as c


@dataclass(frozen=True, slots=True)
class Run:
    """Files that do not overlap.

    Attributes:
        level: Theirs.
        size: Of all, bytes.
        files: Their numbers.
    """

    level: int
    size: int
    files: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """What is merged.

    Attributes:
        level: Where the rows come to stand.
        files: The files' numbers, newest run first.
    """

    level: int
    files: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Strategy:
    """What the options say.

    Attributes:
        trigger: So many runs are worth a compaction.
        levels: How many there are, 0 among them.
        max_amplification: Per cent by which all younger runs may be greater than the oldest.
        ratio: Per cent by which a run may be greater than the younger ones that it joins.
        is_eager: Whether a writer merges all runs when it begins (`compaction.optimization-interval`): what a writer
            remembers of its last full compaction ends with it, in Java, too.
        small_total: Buckets smaller than this are merged as a whole; None: no matter.
        large_increment: Where the runs above the last level are greater than this, all are merged; None: no matter.
        lifts_new: Whether every file of level 0 moves up.
    """

    trigger: int
    levels: int
    max_amplification: int
    ratio: int
    is_eager: bool = False
    small_total: int | None = None
    large_increment: int | None = None
    lifts_new: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Strategy:
        """That of a table."""
        return cls(
            c.TRIGGER.get(options),
            c.num_levels(options),
            c.MAX_AMPLIFICATION.get(options),
            c.SIZE_RATIO.get(options),
            c.INTERVAL_MS.get(options) is not None,
            c.TOTAL_SIZE.get(options),
            c.INCREMENTAL_SIZE.get(options),
            c.needs_lookup(options) or c.FORCE_UP.get(options),
        )

    @property
    def picks_early(self) -> bool:
        """Whether fewer runs than the trigger may be enough."""
        return self.is_eager or self.lifts_new or self.small_total is not None or self.large_increment is not None

    @property
    def top(self) -> int:
        """The last level."""
        return self.levels - 1


def pick(strategy: Strategy, runs: Sequence[Run]) -> Unit | None:
    """What a writer compacts by itself; None: nothing yet.

    Args:
        strategy: By which rules.
        runs: Those of a bucket, youngest first.
    """
    found = _picked(strategy, runs)
    if found is None or not found.files:
        return None
    # A file alone that stays in its level is as it was.
    alone = len(found.files) == 1 and next(run.level for run in runs if found.files[0] in run.files) == found.level
    return None if alone else found


def pick_full(strategy: Strategy, runs: Sequence[Run], marked: Collection[int] = ()) -> Unit | None:
    """All files of a bucket; of one that is a single run in the last level only files that rows were deleted of.

    Args:
        strategy: By which rules.
        runs: Those of the bucket.
        marked: Files that have a deletion vector.
    """
    if not runs:
        return None
    if len(runs) == 1 and runs[0].level == strategy.top:
        files = tuple(number for number in runs[0].files if number in marked)
        return Unit(strategy.top, files) if files else None
    return _joined(strategy.top, runs)


def _picked(strategy: Strategy, runs: Sequence[Run]) -> Unit | None:
    if (early := _early(strategy, runs)) is not None:
        return early
    if len(runs) >= strategy.trigger:
        younger, oldest = sum(run.size for run in runs[:-1]), runs[-1].size
        if younger * 100 > strategy.max_amplification * oldest:
            return _joined(strategy.top, runs)
        if (found := _by_ratio(strategy, runs, 1)) is not None:
            return found
    if len(runs) > strategy.trigger:
        return _by_ratio(strategy, runs, len(runs) - strategy.trigger + 1)
    new = sum(run.level == 0 for run in runs)
    return _by_ratio(strategy, runs, new, is_forced=True) if strategy.lifts_new and new else None


def _early(strategy: Strategy, runs: Sequence[Run]) -> Unit | None:
    if len(runs) <= 1:
        return None
    total, limit = strategy.small_total, strategy.large_increment
    increment = sum(run.size for run in runs if run.level != strategy.top)
    wanted = (
        strategy.is_eager
        or (total is not None and sum(run.size for run in runs) < total)
        or (limit is not None and increment > limit)
    )
    return _joined(strategy.top, runs) if wanted else None


def _by_ratio(strategy: Strategy, runs: Sequence[Run], count: int, *, is_forced: bool = False) -> Unit | None:
    """The first runs, and those after them that are not much greater than all before."""
    size = sum(run.size for run in runs[:count])
    for run in runs[count:]:
        if size * (100.0 + strategy.ratio) / 100.0 < run.size:
            break
        size += run.size
        count += 1
    return _output(strategy, runs, count) if is_forced or count > 1 else None


def _output(strategy: Strategy, runs: Sequence[Run], count: int) -> Unit:
    """The first runs as one, in the level before that of the next run."""
    level = strategy.top if count == len(runs) else max(0, runs[count].level - 1)
    if level == 0:
        # "Do not output level 0": further runs join, up to the first that has a level.
        for run in runs[count:]:
            count += 1
            if run.level != 0:
                level = run.level
                break
    return _joined(strategy.top if count == len(runs) else level, runs[:count])


def _joined(level: int, runs: Sequence[Run]) -> Unit:
    return Unit(level, tuple(number for run in runs for number in run.files))
