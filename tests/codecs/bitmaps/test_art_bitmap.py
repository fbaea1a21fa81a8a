"""Java's bitmaps of 64-bit numbers: read, united, written."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alluvium.codecs.bitmaps import art_bitmap
from alluvium.codecs.bitmaps.art_bitmap import unite_64
from alluvium.errors import CorruptTable

EMPTY = b"\x00"
#: One number: a flag, a key, a leaf, an array of one container, an array of one number.
ZERO = bytes.fromhex(
    "01 0100000000000000 04000000 000000000000 0000000000000000 01000000 fe 01000000 01 02 01000000 0000"
    "0100000000000000 00000000 00000000"
)


def bitmap(numbers: set[int]) -> bytes:
    by_key: dict[bytes, list[int]] = {}
    for number in sorted(numbers):
        by_key.setdefault((number >> 16).to_bytes(6, "big"), []).append(number & 0xFFFF)
    made = {key: np.array(low, np.uint16) for key, low in by_key.items()}
    return art_bitmap._format({key: container_of(low) for key, low in made.items()})


def container_of(low: Any) -> Any:
    if len(low) <= 4096:
        return art_bitmap._of_values(low)
    bits = np.zeros(1 << 16, bool)
    bits[low] = True
    return art_bitmap._of_bits(bits)


def numbers_of(data: bytes) -> set[int]:
    return {
        int.from_bytes(key, "big") << 16 | int(low)
        for key, container in art_bitmap._parse(data).items()
        for low in (
            np.frombuffer(container.data, "<u2")
            if container.form == art_bitmap._ARRAY
            else np.flatnonzero(art_bitmap._bits(container))
        )
    }


def test_the_smallest() -> None:
    assert bitmap({0}) == ZERO
    assert unite_64(EMPTY, EMPTY) == EMPTY
    assert unite_64(EMPTY, ZERO) == unite_64(ZERO, EMPTY) == unite_64(ZERO, ZERO) == ZERO


@pytest.mark.long
def test_unions_are_those_of_java() -> None:
    """`RoaringBitmap64` of Paimon Java 1.4.2: the same numbers, be containers in another order or form."""
    java = json.loads((Path(__file__).parents[1] / "java_unions.json").read_text())["rbm64"]
    assert len(java) > 10
    for older, newer, united in java:
        assert numbers_of(unite_64(bytes.fromhex(older), bytes.fromhex(newer))) == numbers_of(bytes.fromhex(united))


@pytest.mark.long
@pytest.mark.parametrize("span", [1 << 17, 1 << 21, 1 << 23, 1 << 40, 1 << 64])
@pytest.mark.parametrize("count", [1, 5, 40, 3000])
def test_unions(count: int, span: int) -> None:
    """Nodes of 4, 16, 48 and 256 children; containers that are arrays, bits and runs."""
    pick = random.Random(count)
    left = {pick.randrange(span) for _ in range(count)}
    right = {pick.randrange(span) for _ in range(count)} | set(range(70_000, 80_000))
    for one in (left, right):
        assert numbers_of(bitmap(one)) == one
    united = unite_64(bitmap(left), bitmap(right))
    assert numbers_of(united) == left | right
    assert united == bitmap(left | right) or numbers_of(unite_64(united, united)) == left | right


def test_arrays_become_bits_and_runs() -> None:
    even, odd = set(range(0, 8000, 2)), set(range(1, 8001, 2))
    thirds = set(range(0, 1 << 16, 3))
    united = art_bitmap._parse(unite_64(bitmap(even), bitmap(odd)))
    assert [(c.form, c.cardinality) for c in united.values()] == [(art_bitmap._RUNS, 8000)]
    united = art_bitmap._parse(unite_64(bitmap(even), bitmap(thirds)))
    assert [(c.form, c.cardinality) for c in united.values()] == [(art_bitmap._BITS, len(even | thirds))]


@pytest.mark.parametrize(
    ("damaged", "what"),
    [
        (b"", "cut off"),
        (ZERO[:-20], "cut off"),
        (ZERO[:1] + b"\x02" + ZERO[2:], "1 keys, and says to have 2"),
        (ZERO[:9] + b"\x05" + ZERO[10:], "a node of kind 5"),
        (ZERO[:9] + b"\x00" + ZERO[10:], "has 0 children"),
        (ZERO[:19] + b"\x07" + ZERO[20:], "containers that it does not have"),
        (ZERO[:37] + b"\x03" + ZERO[38:], "kind 3"),
    ],
)
def test_damage(damaged: bytes, what: str) -> None:
    for pair in ((damaged, ZERO), (ZERO, damaged)):
        with pytest.raises(CorruptTable, match=what) as caught:
            unite_64(*pair)
        assert caught.value.code == "damaged-bitmap"


def test_damaged_containers_say_so_when_they_are_united() -> None:
    pair = bitmap({1, 5})
    swapped = pair.replace(bytes.fromhex("01000500"), bytes.fromhex("05000100"))
    assert swapped != pair
    with pytest.raises(CorruptTable, match="out of order"):
        unite_64(pair, swapped)
    bits = bitmap(set(range(0, 60_000, 3)))
    assert bits.count(bytes.fromhex("49922449922449")) > 1
    with pytest.raises(CorruptTable, match="holds"):
        unite_64(bits.replace(bytes.fromhex("49922449922449"), bytes(7), 1), ZERO)


@pytest.mark.long
def test_no_damage_gets_through_as_another_error() -> None:
    pick = random.Random(5)
    sound = bitmap({pick.randrange(1 << 22) for _ in range(300)} | set(range(70_000, 90_000)))
    outcomes = {True: 0, False: 0}
    for _ in range(600):
        damaged = bytearray(sound)
        damaged[pick.randrange(len(damaged))] = pick.randrange(256)
        try:
            unite_64(bytes(damaged[: pick.choice((None, pick.randrange(len(damaged))))]), sound)
            outcomes[True] += 1
        except CorruptTable:
            outcomes[False] += 1
    assert min(outcomes.values()) > 100


def test_nodes_of_every_kind_are_those_of_java() -> None:
    """`Roaring64Bitmap` of RoaringBitmap 1.x wrote these: nodes of 4, 16, 48 and 256 children, each from the fewest of
    its kind to the most, at the end of a key and in its middle. Our trees are the same, byte for byte; of the containers
    behind them Java counts places that it has kept free, and numbers them in the order in which they came.
    """
    java = json.loads((Path(__file__).parent / "java_nodes.json").read_text())
    assert {"last 4", "last 5", "last 16", "last 17", "last 48", "last 49"} <= java.keys()
    for name, (numbers, data) in java.items():
        assert numbers_of(bytes.fromhex(data)) == set(numbers), name
        ours = bitmap(set(numbers))
        # Behind the tree: counts, a container of 8 bytes for each number, and the last 16.
        tree = without_indexes(ours[: -(9 + 8 * len(numbers) + 16)])
        assert without_indexes(bytes.fromhex(data)).startswith(tree), name
        assert len(tree) >= 10 * len(numbers)


def without_indexes(tree: bytes) -> bytes:
    """Leaves without the numbers of their containers."""
    return re.sub(rb"(\x04\0\0\0.{6}).{8}", rb"\1", tree, flags=re.DOTALL)
