"""The order in which the reference writes what it keeps in hash maps (Scala 2.13): histories are compared as texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

_BITS = 0xFFFFFFFF
#: A map of at most this many entries gives them in the order of the mutable one that it was made of.
_SMALL = 4
#: Places of a new mutable map, which is enough for what one statement says.
_PLACES = 16


def as_a_map_has(names: Iterable[str]) -> list[str]:
    """Keys of a mutable map, in its order; those of more than four are left as they are."""
    given = list(names)
    return given if len(given) > _SMALL else sorted(given, key=lambda name: _place(_hash(name)))


def as_a_map_has_paths(paths: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    """Keys of a mutable map that are sequences of names, in its order."""
    return sorted(paths, key=lambda path: _place(_sequence_hash(path)))


def _place(hashed: int) -> tuple[int, int]:
    spread = hashed ^ (hashed >> 16)
    return spread & (_PLACES - 1), spread


def _hash(text: str) -> int:
    """Java's `String.hashCode`, which goes by UTF-16."""
    units = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (31 * found + (high << 8) + low) & _BITS
    return found


def _sequence_hash(names: Sequence[str]) -> int:
    """`MurmurHash3.arraySeqHash`, for which a sequence of equal steps is a range."""
    hashes = [_hash(name) for name in names]
    seed = _hash("Seq")
    if len(hashes) < 2:
        return _finished(_mixed_all(seed, hashes) ^ len(hashes))
    steps = {(after - before) & _BITS for before, after in pairwise(hashes)}
    if len(steps) == 1:
        return _finished(_mixed(_mixed(_mixed(seed, hashes[0]), steps.pop()), hashes[-1]))
    return _finished(_mixed_all(seed, hashes) ^ len(hashes))


def _mixed_all(seed: int, hashes: Iterable[int]) -> int:
    for one in hashes:
        seed = _mixed(seed, one)
    return seed


def _mixed(hashed: int, more: int) -> int:
    mixed = hashed ^ (_rotated(more * 0xCC9E2D51 & _BITS, 15) * 0x1B873593 & _BITS)
    return (_rotated(mixed, 13) * 5 + 0xE6546B64) & _BITS


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & _BITS


def _finished(hashed: int) -> int:
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _BITS
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _BITS
    return hashed ^ hashed >> 16
