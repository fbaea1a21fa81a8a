"""Sketches united: what they count, and that no bytes lead the library out of its memory."""

from __future__ import annotations

import json
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sketch_tables import library

from alluvium.codecs import sketches
from alluvium.codecs.sketches import unite_hll, unite_theta
from alluvium.errors import CorruptTable, UnsupportedFeature

datasketches = library()
HLL_4, HLL_6, HLL_8 = (getattr(datasketches.tgt_hll_type, name) for name in ("HLL_4", "HLL_6", "HLL_8"))


def hll(numbers: range, lg_k: int = 12, width: object = HLL_4) -> Any:
    sketch = datasketches.hll_sketch(lg_k, width)
    for number in numbers:
        sketch.update(number)
    return sketch


def theta(numbers: range) -> Any:
    sketch = datasketches.update_theta_sketch(12)
    for number in numbers:
        sketch.update(number)
    return sketch.compact()


def theta_table(numbers: range, lg_size: int = 13, family: int = 2) -> bytes:
    """A sketch that may still be updated, as Java writes its hash table."""
    compact = theta(numbers)
    slots = [0] * (1 << lg_size)
    slots[: compact.num_retained] = reversed(list(compact))
    empty = 4 if compact.is_empty() else 0
    head = bytes((3, 3, family, 12, lg_size, empty)) + compact.serialize()[6:8]
    return (
        head + struct.pack("<ifq", compact.num_retained, 1.0, compact.theta64) + struct.pack(f"<{len(slots)}q", *slots)
    )


def hll_estimate(image: bytes) -> float:
    return float(datasketches.hll_sketch.deserialize(image).get_estimate())


def theta_estimate(image: bytes) -> float:
    return float(datasketches.compact_theta_sketch.deserialize(image).get_estimate())


#: Two sketches and what Paimon Java 1.4.2 makes of them (`HllSketchUtil.union`, `ThetaSketch.union`), in hexadecimal.
JAVA = json.loads((Path(__file__).parent / "java_unions.json").read_text())


@pytest.mark.parametrize(("kind", "unite"), [("hll", unite_hll), ("theta", unite_theta)])
def test_unions_are_those_of_java(kind: str, unite: Callable[[bytes, bytes], bytes]) -> None:
    assert len(JAVA[kind]) > 5
    for older, newer, united in JAVA[kind]:
        assert unite(bytes.fromhex(older), bytes.fromhex(newer)).hex() == united, (older[:16], newer[:16])


@pytest.mark.parametrize("width", [HLL_4, HLL_6, HLL_8])
@pytest.mark.parametrize("count", [0, 3, 8, 30, 400, 20_000])
def test_hll_counts_what_both_have_once(count: int, width: object) -> None:
    left, right = hll(range(count), width=width), hll(range(count // 2, count * 2), width=width)
    forms = [(s.serialize_compact(), s.serialize_updatable()) for s in (left, right)]
    results = {unite_hll(a, b) for a in forms[0] for b in forms[1]}
    # A set's members stand in any order.
    assert len({(len(r), hll_estimate(r)) for r in results}) == 1, "compact or not, the union is the same"
    united = results.pop()
    # The format's fields: HyperLogLog, 2^12 registers of 4 bits, compact.
    assert (united[2], united[3], united[7] >> 2 & 3) == (7, 12, 0) and united[5] & 8
    assert hll_estimate(united) == pytest.approx(count * 2, rel=0.05)


def test_the_union_has_no_more_registers_than_the_newer_sketch() -> None:
    large, small = hll(range(9000), lg_k=14).serialize_compact(), hll(range(9000), lg_k=9).serialize_compact()
    assert unite_hll(large, small)[3] == unite_hll(small, large)[3] == 9
    # Lists and sets have no registers yet: the newer sketch says how many there will be.
    few = hll(range(3), lg_k=14).serialize_compact()
    assert (unite_hll(few, small)[3], unite_hll(hll(range(5), lg_k=9).serialize_compact(), few)[3]) == (9, 14)
    assert unite_hll(hll(range(90), lg_k=4).serialize_compact(), hll(range(90), lg_k=4).serialize_compact())[3] == 4


@pytest.mark.parametrize("count", [0, 1, 5, 3000, 20_000])
def test_theta_counts_what_both_have_once(count: int) -> None:
    left, right = theta(range(count)), theta(range(count // 2, count * 2))
    forms = [
        [s.serialize(), s.serialize(compress=True), theta_table(numbers), theta_table(numbers, family=1)]
        for s, numbers in ((left, range(count)), (right, range(count // 2, count * 2)))
    ]
    results = {unite_theta(a, b) for a in forms[0] for b in forms[1]}
    assert len(results) == 1, "compact, compressed or a hash table, the union is the same"
    united = datasketches.compact_theta_sketch.deserialize(results.pop())
    assert united.is_ordered() and united.num_retained <= 4096
    assert united.get_estimate() == pytest.approx(count * 2, rel=0.05)


def test_theta_keeps_the_smaller_theta() -> None:
    many, few = theta(range(50_000)), theta(range(50_000, 50_010))
    united = datasketches.compact_theta_sketch.deserialize(unite_theta(many.serialize(), few.serialize()))
    assert united.theta64 <= many.theta64


@pytest.mark.parametrize(
    ("image", "what"),
    [
        (b"", "0 bytes"),
        (b"nonsense", "version"),
        (hll(range(5)).serialize_compact()[:-1], "cut off"),
        (hll(range(30)).serialize_compact()[:10], "cut off"),
        (hll(range(30)).serialize_compact()[:-4], "cut off"),
        (hll(range(5000)).serialize_compact()[:38], "cut off"),
        (hll(range(5000)).serialize_compact()[:900], "cut off"),
        (hll(range(5000), width=HLL_8).serialize_compact()[:-1], "cut off"),
        (hll(range(5000), width=HLL_8).serialize_compact()[:-1] + b"\x50", "above 63"),
        (hll(range(5), lg_k=12).serialize_compact()[:3] + b"\x16" + hll(range(5)).serialize_compact()[4:], "begins"),
        (hll(range(5)).serialize_compact()[:6] + b"\x40" + hll(range(5)).serialize_compact()[7:], "says to hold 64"),
        (hll(range(5)).serialize_compact()[:-4] + bytes(4), "not those"),
        (hll(range(5000)).serialize_compact()[:6] + b"\x3c" + hll(range(5000)).serialize_compact()[7:], "exceptions"),
        (hll(range(5000)).serialize_compact()[:36] + b"\x05" + hll(range(5000)).serialize_compact()[37:], "cut off"),
        (hll(range(5000)).serialize_compact()[:-1] + b"\xff", "not those"),
        (theta(range(5)).serialize(), "version"),
    ],
)
def test_damaged_hll(image: bytes, what: str) -> None:
    for pair in ((image, hll(range(3)).serialize_compact()), (hll(range(3)).serialize_compact(), image)):
        with pytest.raises(CorruptTable, match=what) as caught:
            unite_hll(*pair)
        assert caught.value.code == "damaged-sketch"


@pytest.mark.parametrize(
    "image",
    [
        b"",
        b"nonsense",
        theta(range(5)).serialize()[:-1],
        theta(range(5)).serialize()[:9],
        theta_table(range(5))[:-1],
        theta_table(range(5))[:20],
        theta_table(range(5))[:4] + b"\xff" + theta_table(range(5))[5:],
        # Hashes of another seed cannot be compared.
        theta(range(5)).serialize()[:6] + b"xy" + theta(range(5)).serialize()[8:],
        hll(range(5)).serialize_compact(),
    ],
)
def test_damaged_theta(image: bytes) -> None:
    for pair in ((image, theta(range(3)).serialize()), (theta(range(3)).serialize(), image)):
        with pytest.raises(CorruptTable) as caught:
            unite_theta(*pair)
        assert caught.value.code == "damaged-sketch"


def test_no_damage_ends_the_process() -> None:
    """Without the look at the bytes one of some thousand such sketches makes the library write where it must not."""
    pick = random.Random(7)
    sound = [
        form
        for lg_k in (4, 7, 12)
        for width in (HLL_4, HLL_6, HLL_8)
        for count in (0, 5, 30, 5000)
        for s in (hll(range(count), lg_k, width),)
        for form in (s.serialize_compact(), s.serialize_updatable())
    ]
    outcomes = {True: 0, False: 0}
    for _ in range(4000):
        damaged = bytearray(pick.choice(sound))
        for _ in range(pick.randrange(1, 4)):
            damaged[pick.randrange(min(len(damaged), 48))] = pick.choice((0, 1, 255, pick.randrange(256)))
        try:
            unite_hll(bytes(damaged), pick.choice(sound))
            outcomes[True] += 1
        except CorruptTable:
            outcomes[False] += 1
    assert min(outcomes.values()) > 100


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketches", None)
    sketches._library.cache_clear()
    for unite, feature in ((unite_hll, "hll_sketch"), (unite_theta, "theta_sketch")):
        with pytest.raises(UnsupportedFeature) as caught:
            unite(b"", b"")
        assert (caught.value.code, caught.value.features) == ("missing-dependency", (feature,))
        assert "pip install alluvium[sketches]" in str(caught.value)
