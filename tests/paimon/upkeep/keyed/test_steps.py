"""What becomes of the files of a unit: the rules of `MergeTreeCompactTask` and its rewriters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from alluvium.paimon.upkeep.keyed.steps import Bucket, File, Rules, Step, plan_steps
from alluvium.paimon.upkeep.keyed.universal import Unit

RULES = Rules(70, 5, False, "", False, True, False)
SMALL, LARGE = File(0, 10, False, False), File(0, 70, False, False)


def planned(
    files: list[File], sections: list[tuple[int, ...]], level: int = 5, highest: int = 5, rules: Rules = RULES
) -> list[Step]:
    unit = Unit(level, tuple(range(len(files))))
    return list(plan_steps(Bucket(unit, tuple(sections), highest, 5), files, rules))


def test_large_files_move_up_between_small_ones_that_are_joined() -> None:
    steps = planned([SMALL, SMALL, LARGE, SMALL, SMALL], [(0, 1), (2,), (3,), (4,)])
    assert [(s.files, s.rewrites, s.drops) for s in steps] == [
        ((0, 1), True, True),
        ((2,), False, False),
        ((3, 4), True, True),
    ]


@pytest.mark.parametrize(
    ("file", "level", "rewrites"),
    [
        (SMALL, 5, False),
        (replace(SMALL, takes_back=True), 5, True),
        (replace(SMALL, takes_back=True), 4, False),
        (replace(SMALL, level=5), 5, None),
        (replace(SMALL, level=5, is_marked=True), 5, True),
        (replace(SMALL, is_expired=True), 3, True),
        (replace(SMALL, level=5, is_expired=True), 5, True),
    ],
)
def test_a_file_alone(file: File, level: int, rewrites: bool | None) -> None:
    steps = planned([file], [(0,)], level)
    assert [s.rewrites for s in steps] == ([] if rewrites is None else [rewrites])


def test_deletions_stay_where_older_rows_may_be() -> None:
    assert [s.drops for s in planned([SMALL, SMALL], [(0, 1)], 4)] == [False]
    assert [s.drops for s in planned([SMALL, SMALL], [(0, 1)], 4, highest=3)] == [True]
    with_vectors = replace(RULES, has_vectors=True, looks_up=True)
    assert [s.drops for s in planned([SMALL, SMALL], [(0, 1)], 4, rules=with_vectors)] == [True]


def test_what_is_told() -> None:
    full = replace(RULES, tells="full-compaction")
    assert [(s.rewrites, s.logs) for s in planned([SMALL], [(0,)], rules=full)] == [(False, True)]
    assert [(s.rewrites, s.logs) for s in planned([SMALL], [(0,)], 4, rules=full)] == [(False, False)]
    lookup = replace(RULES, tells="lookup", looks_up=True)
    assert [(s.rewrites, s.logs, s.looks) for s in planned([SMALL], [(0,)], 4, rules=lookup)] == [(False, True, True)]
    sums = replace(lookup, keeps_last=False)
    assert [(s.rewrites, s.logs) for s in planned([SMALL], [(0,)], 4, rules=sums)] == [(True, True)]
    assert [(s.rewrites, s.logs) for s in planned([SMALL], [(0,)], 5, rules=sums)] == [(False, True)]
    old = replace(SMALL, level=3)
    assert [(s.logs, s.looks) for s in planned([old, old], [(0,), (1,)], 4, rules=lookup)] == [(False, False)]
