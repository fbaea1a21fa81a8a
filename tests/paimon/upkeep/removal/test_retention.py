"""What expires first, beside a plain loop; what options, and callers, say of it."""

from __future__ import annotations

import random

import pytest

from alluvium.errors import InvalidRequest
from alluvium.paimon.upkeep.removal.retention import Retention, changelog_retention, snapshot_retention

NOW, HOUR = 1_700_000_000_000, 3_600_000


@pytest.mark.parametrize("seed", range(5))
def test_beside_a_plain_loop(seed: int) -> None:
    lot = random.Random(seed)
    for _ in range(60):
        compare(lot)


def compare(lot: random.Random) -> None:
    """Oldest first, one after the other, until one has a reason to stay; those that are too many have none by age."""
    first = lot.randint(1, 5)
    ids = [number for number in range(first, first + lot.randint(1, 12)) if number == first or lot.random() < 0.8]
    latest = max(ids[-1], lot.choice([ids[-1], ids[-1] + 2]))
    times = {number: NOW + lot.randint(-3, 3) + number for number in ids}
    least = lot.randint(1, 4)
    rule = Retention(lot.randint(least, 10), least, NOW + lot.randint(-4, 12), lot.choice([0, 1, 3, 100]))
    consumed = lot.choice([None, *range(1, latest + 2)])
    number = ids[0]
    while True:
        gone = number - ids[0]
        if latest - number < rule.least or gone >= rule.limit or (consumed is not None and number >= consumed):
            break
        is_surplus = latest - number >= rule.most
        if number in times and not is_surplus and times[number] >= rule.older_than_ms:
            break
        number += 1
    asked: list[int] = []

    def time_of(one: int) -> int:
        asked.append(one)
        return times[one]

    assert rule.first_kept(ids, latest, time_of, consumed) == number
    # A time is a request: only of those about which it decides.
    assert all(latest - one < rule.most and one <= number for one in asked) and len(set(asked)) == len(asked)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (10, 3, 500, 7)), ({"retain_max": 4}, (4, 3, 500, 7)), ({"retain_min": 1}, (10, 1, 500, 7)),
        ({"older_than_ms": 0}, (10, 3, 0, 7)), ({"max_deletes": 0}, (10, 3, 500, 0)), ({"retain_max": 3}, (3, 3, 500, 7)),
        ({"retain_min": 0}, None), ({"retain_min": 11}, None), ({"retain_max": 2}, None), ({"max_deletes": -1}, None),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_caller_says(given: dict[str, int], expected: tuple[int, ...] | None) -> None:
    own = Retention(10, 3, 500, 7)
    if expected is None:
        with pytest.raises(InvalidRequest) as caught:
            own.given(**given)
        assert caught.value.code == "invalid-retention"
        return
    assert own.given(**given) == Retention(*expected)


S = {
    "snapshot.num-retained.max": "20",
    "snapshot.num-retained.min": "5",
    "snapshot.time-retained": "2 h",
    "snapshot.expire.limit": "9",
}


@pytest.mark.parametrize(
    ("options", "snapshots", "changelogs"),
    [
        ({}, (2**31 - 1, 10, NOW - HOUR, 50), (2**31 - 1, 10, NOW - HOUR, 50)), (S, (20, 5, NOW - 2 * HOUR, 9), (20, 5, NOW - 2 * HOUR, 9)),
        ({**S, "changelog.num-retained.max": "30"}, (20, 5, NOW - 2 * HOUR, 9), (30, 5, NOW - 2 * HOUR, 9)),
        ({**S, "changelog.num-retained.min": "6"}, (20, 5, NOW - 2 * HOUR, 9), (20, 6, NOW - 2 * HOUR, 9)),
        ({**S, "changelog.time-retained": "3 h"}, (20, 5, NOW - 2 * HOUR, 9), (20, 5, NOW - 3 * HOUR, 9)),
    ],
    ids=str,
)  # fmt: skip
def test_what_options_say(options: dict[str, str], snapshots: tuple[int, ...], changelogs: tuple[int, ...]) -> None:
    assert snapshot_retention(options, NOW) == Retention(*snapshots)
    assert changelog_retention(options, NOW) == Retention(*changelogs)
