"""Maps of Scala, as histories of delta-spark 4.4 show them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest

from alluvium.delta.description.scala_order import as_a_map_has, as_a_map_has_paths


def test_keys_of_a_columns_metadata():
    said = ["comment", "delta.columnMapping.physicalName", "delta.columnMapping.id"]
    assert as_a_map_has(said) == ["delta.columnMapping.id", "comment", "delta.columnMapping.physicalName"]
    assert as_a_map_has("edcba") == list("edcba"), "larger maps are of another kind"


def test_columns_of_one_statement():
    assert as_a_map_has_paths([("i d",), ("s",)]) == [("s",), ("i d",)]
    assert sorted(as_a_map_has_paths([("a", "b", "c"), ("a", "b", "d"), ("a",)])) == [
        ("a",),
        ("a", "b", "c"),
        ("a", "b", "d"),
    ]


def java_hash(text: str) -> int:
    """`String.hashCode`, by the formula of its documentation, as 32 bits without a sign."""
    units = text.encode("utf-16-be", "surrogatepass")
    numbers = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return sum(number * 31 ** (len(numbers) - 1 - at) for at, number in enumerate(numbers)) % 2**32


def murmur(numbers: Sequence[int], seed: int, count: int) -> int:
    """MurmurHash3 of 32 bits, of numbers for its blocks, as it is published."""

    def turned(value: int, by: int) -> int:
        return (value << by) % 2**32 + (value >> 32 - by)

    for number in numbers:
        seed ^= turned(number * 0xCC9E2D51 % 2**32, 15) * 0x1B873593 % 2**32
        seed = (turned(seed, 13) * 5 + 0xE6546B64) % 2**32
    seed ^= count
    for factor, by in ((0x85EBCA6B, 16), (0xC2B2AE35, 13)):
        seed = (seed ^ seed >> by) * factor % 2**32
    return seed ^ seed >> 16


def place(hashed: int) -> tuple[int, int]:
    """Where a mutable map of sixteen places keeps a key: by its low bits, and there by all of them."""
    spread = hashed ^ hashed >> 16
    return spread % 16, spread


TEXTS = [
    "",
    "a",
    "id",
    "hello",
    "comment",
    "__CHAR_VARCHAR_TYPE_STRING",
    "polygenelubricants",
    "Grüße",
    "日本",
    "😀",
    "\ud800",
    "z" * 40,
]


@pytest.mark.parametrize("seed", range(20))
def test_names_beside_the_formulas_of_java(seed: int) -> None:
    lot = random.Random(seed)
    names = lot.sample(TEXTS, lot.randint(0, 4))
    assert as_a_map_has(iter(names)) == sorted(names, key=lambda name: place(java_hash(name)))
    many = lot.sample(TEXTS, lot.randint(5, 9))
    assert as_a_map_has(many) == many
    assert java_hash("hello") == 99162322 and java_hash("polygenelubricants") == 2**31


@pytest.mark.parametrize("seed", range(30))
def test_sequences_of_names_beside_the_published_hash(seed: int) -> None:
    """A sequence whose hashes rise by equal steps is hashed as a range: its first, its step, its last."""
    lot = random.Random(seed)
    stepped = [
        ["a", "b"],
        ["a", "b", "c"],
        ["a", "c", "e"],
        ["a", "a", "a"],
        ["c", "b", "a"],
        ["a", "b", "d"],
        ["b", "a"],
    ]
    paths = [lot.choices(TEXTS, k=lot.randint(1, 4)) for _ in range(5)] + stepped

    def hashed(path: Sequence[str]) -> int:
        numbers, start = [java_hash(name) for name in path], java_hash("Seq")
        steps = {(after - before) % 2**32 for before, after in pairwise(numbers)}
        if len(steps) == 1:
            # Of three numbers no count goes into it.
            return murmur([numbers[0], steps.pop(), numbers[-1]], start, 0)
        return murmur(numbers, start, len(numbers))

    lot.shuffle(paths)
    assert as_a_map_has_paths(paths) == sorted(paths, key=lambda path: place(hashed(path)))
    assert as_a_map_has_paths([[]]) == [[]]
