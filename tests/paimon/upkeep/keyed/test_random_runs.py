"""What a writer merges of random runs: the rules of `UniversalCompaction` once more, said in another way."""

from __future__ import annotations

import random

import pytest

from alluvium.paimon.upkeep.keyed.universal import Run, Strategy, Unit, pick, pick_full


def random_runs(lot: random.Random, top: int) -> list[Run]:
    levels = [0] * lot.randint(0, 6) + sorted(lot.sample(range(1, top + 1), lot.randint(0, top)))
    numbers = iter(range(100))
    return [
        Run(
            level,
            lot.choice([1, 2, 10, 100, 101]),
            tuple(next(numbers) for _ in range(1 if level == 0 else lot.randint(1, 3))),
        )
        for level in levels
    ]


def expected(s: Strategy, runs: list[Run]) -> tuple[int, int] | None:
    """The level, and of how many runs."""
    top, sizes = s.levels - 1, [run.size for run in runs]
    everything = (top, len(runs))
    if len(runs) > 1:
        above = sum(run.size for run in runs if run.level < top)
        if (
            s.is_eager
            or sum(sizes) < (s.small_total or 0)
            or (s.large_increment is not None and above > s.large_increment)
        ):
            return everything
    candidates: list[tuple[int, bool]] = []
    if len(runs) >= s.trigger:
        if sum(sizes[:-1]) * 100 > s.max_amplification * sizes[-1]:
            return everything
        candidates.append((1, False))
    if len(runs) > s.trigger:
        candidates.append((len(runs) - s.trigger + 1, False))
    elif s.lifts_new and any(run.level == 0 for run in runs):
        candidates.append((sum(run.level == 0 for run in runs), True))
    for count, is_forced in candidates:
        while count < len(runs) and sizes[count] <= sum(sizes[:count]) * (100 + s.ratio) / 100:
            count += 1
        if count == 1 and not is_forced:
            continue
        if count == len(runs):
            return everything
        level = max(0, runs[count].level - 1)
        while level == 0 and count < len(runs):
            level = runs[count].level
            count += 1
        return (top if count == len(runs) else level, count)
    return None


@pytest.mark.parametrize("seed", range(6))
def test_beside_the_rules(seed: int) -> None:
    lot = random.Random(seed)
    for _ in range(100):
        compare(lot)


def compare(lot: random.Random) -> None:
    levels = lot.randint(2, 6)
    strategy = Strategy(
        lot.randint(2, 5), levels, lot.choice([0, 100, 200, 1000]), lot.choice([0, 1, 50]), is_eager=lot.random() < 0.1,
        small_total=lot.choice([None, None, 0, 12, 120]), large_increment=lot.choice([None, None, 0, 12, 120]),
        lifts_new=lot.random() < 0.3,
    )  # fmt: skip
    runs = random_runs(lot, levels - 1)
    found, wanted = pick(strategy, runs), expected(strategy, runs)
    if wanted is not None:
        files = tuple(number for run in runs[: wanted[1]] for number in run.files)
        # A file alone that would stay where it is, stays.
        is_idle = len(files) == 1 and runs[0].level == wanted[0]
        assert found == (None if is_idle else Unit(wanted[0], files))
    else:
        assert found is None
    every = tuple(number for run in runs for number in run.files)
    marked = set(lot.sample(every, lot.randint(0, len(every))))
    if len(runs) == 1 and runs[0].level == levels - 1:
        done = tuple(number for number in every if number in marked)
        assert pick_full(strategy, runs, marked) == (Unit(levels - 1, done) if done else None)
    else:
        assert pick_full(strategy, runs, marked) == (Unit(levels - 1, every) if runs else None)
    assert strategy.picks_early == (
        strategy.is_eager
        or strategy.lifts_new
        or strategy.small_total is not None
        or strategy.large_increment is not None
    )
