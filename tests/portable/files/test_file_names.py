"""Columns of a file by their names, and a file that is damaged."""

from __future__ import annotations

import random

import pytest

from alluvium.portable.files.file_names import damaged, own_names


@pytest.mark.parametrize(
    ("names", "wanted", "found"),
    [
        (["a", "B"], ["a", "b", "c"], {"a": "a", "b": "B"}),
        (["A", "a"], ["a", "A"], {"a": "a", "A": "A"}),
        # None is written so: the first of those that differ by case alone.
        (["Ab", "aB", "AB"], ["ab"], {"ab": "Ab"}),
        (["x"], ["X", "x"], {"X": "x", "x": "x"}),
        ([], ["a"], {}),
        (["a"], [], {}),
    ],
)
def test_exact_names_go_first(names: list[str], wanted: list[str], found: dict[str, str]) -> None:
    assert own_names(names, wanted) == found and list(own_names(names, wanted)) == list(found)


@pytest.mark.parametrize("seed", range(20))
def test_names_beside_a_loop(seed: int) -> None:
    lot = random.Random(seed)
    some = ["a", "A", "ab", "aB", "Ab", "AB", "é", "É"]
    names, wanted = lot.sample(some, lot.randint(0, 6)), lot.sample([*some, "c"], 4)
    expected = {}
    for name in wanted:
        alike = [one for one in names if one == name] or [one for one in names if one.lower() == name.lower()]
        if alike:
            expected[name] = alike[0]
    assert own_names(names, wanted) == expected


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("first line\nsecond line"), "first line"),
        (ValueError(""), "ValueError"),
        ("its values are no rows", "its values are no rows"),
    ],
)
def test_what_is_said_of_a_damaged_file(error: object, said: str) -> None:
    """One line of what the library says, or of which kind it is."""
    found = damaged("d/f", error)
    assert (found.code, found.path) == ("damaged-file", "d/f")
    assert f"cannot be read: {said}" in str(found) and "second" not in str(found)
