"""Which runs are merged next: the rules of `UniversalCompaction`."""

from __future__ import annotations

import pytest

from alluvium.paimon.upkeep.keyed.universal import Run, Strategy, Unit, pick, pick_full

TOP = 5


def runs(*given: tuple[int, int]) -> list[Run]:
    """Levels and sizes, youngest first; a file a run."""
    return [Run(level, size, (number,)) for number, (level, size) in enumerate(given)]


def picked(*given: tuple[int, int], **options: str) -> tuple[int, int] | None:
    """The level, and how many runs."""
    found = pick(Strategy.of({"num-levels": "6", **options}), runs(*given))
    if found is None:
        return None
    assert found.files == tuple(range(len(found.files)))
    return found.level, len(found.files)


@pytest.mark.parametrize(
    ("given", "options", "expected"),
    [
        # Fewer runs than the trigger are left alone.
        ([(0, 1)] * 4, {}, None),
        # Size amplification: what is younger is more than twice the oldest.
        ([(0, 1)] * 5, {}, (TOP, 5)),
        # Not amplified; the ratio stops at a run that is greater, whose level is the bound.
        ([(0, 1), (0, 1), (0, 1), (4, 10), (5, 100)], {}, (3, 3)),
        # The run of the next level joins, for nothing comes to level 0.
        ([(0, 1), (0, 1), (0, 1), (1, 10), (5, 100)], {}, (1, 4)),
        ([(0, 1), (0, 1), (0, 10), (0, 10), (1, 100), (5, 1000)], {}, (1, 5)),
        # The ratio goes through to the last one.
        ([(0, 1), (0, 1), (3, 2), (4, 4), (5, 8)], {}, (TOP, 5)),
        # More runs than the trigger: as many as are too many, though each is greater than those before.
        ([(0, 1), (0, 9), (2, 90), (3, 900), (4, 9000), (5, 90000)], {}, (1, 2)),
        ([(0, 1), (5, 100)], {"compaction.optimization-interval": "1 h"}, (TOP, 2)),
        ([(5, 100)], {"compaction.optimization-interval": "1 h"}, None),
        ([(0, 1), (5, 100)], {"compaction.total-size-threshold": "102 b"}, (TOP, 2)),
        ([(0, 1), (5, 100)], {"compaction.total-size-threshold": "101 b"}, None),
        ([(0, 7), (5, 100)], {"compaction.incremental-size-threshold": "6 b"}, (TOP, 2)),
        ([(0, 1), (5, 100)], {"changelog-producer": "lookup"}, (4, 1)),
        ([(0, 1), (1, 100)], {"deletion-vectors.enabled": "true"}, (TOP, 2)),
        ([(0, 1)], {"merge-engine": "first-row"}, (TOP, 1)),
        ([(4, 1), (5, 100)], {"compaction.force-up-level-0": "true"}, None),
        ([(0, 1), (0, 1), (5, 2)], {"num-sorted-run.compaction-trigger": "3", "compaction.size-ratio": "0",
                                   "compaction.max-size-amplification-percent": "100"}, (TOP, 3)),
    ],
)  # fmt: skip
def test_what_a_writer_picks(
    given: list[tuple[int, int]], options: dict[str, str], expected: tuple[int, int] | None
) -> None:
    assert picked(*given, **options) == expected


def test_a_full_compaction_takes_all_but_what_is_done() -> None:
    strategy = Strategy.of({"num-levels": "6"})
    assert pick_full(strategy, []) is None
    assert pick_full(strategy, runs((0, 1))) == Unit(TOP, (0,))
    done = [Run(TOP, 9, (0, 1, 2))]
    assert pick_full(strategy, done) is None
    assert pick_full(strategy, done, {1}) == Unit(TOP, (1,))


@pytest.mark.parametrize(
    "options",
    [
        {"compaction.optimization-interval": "1 h"}, {"compaction.total-size-threshold": "1 b"},
        {"compaction.incremental-size-threshold": "1 b"}, {"compaction.force-up-level-0": "true"},
    ],
)  # fmt: skip
def test_who_may_merge_fewer_runs_than_the_trigger(options: dict[str, str]) -> None:
    assert Strategy.of({"num-levels": "6", **options}).picks_early
    assert not Strategy.of({"num-levels": "6"}).picks_early
