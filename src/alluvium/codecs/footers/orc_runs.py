"""Integers as ORC stores them, in runs: between which bounds they are, without a look at each of them.

Of a run whose values are packed its header tells how many bits they have, which bounds them; where that does not do,
they are unpacked.

Specification: https://orc.apache.org/specification/ORCv1/ ("Integer Run Length Encoding", versions 1 and 2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alluvium.codecs.footers.orc_tail import signed
from alluvium.storage.varint import read_unsigned

#: "the widths [...] are encoded into five bits".
_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
_SHORT_REPEAT, _DIRECT, _PATCHED_BASE = 0, 1, 2
#: "run lengths" of repeated values are one to eight more.
_MIN_REPEAT = 3
#: From which values on one of variable length takes more than a byte.
_ONE_BYTE = 128
#: Up to which values, and up to how many bits of deltas and patches, the sum of a run has room in 64 bits.
_SMALL, _MAX_BITS = 1 << 32, 48


@dataclass(frozen=True, slots=True)
class RunBounds:
    """Of some integers: how many, the least and the greatest they can be, and the most that their sum can be."""

    count: int = 0
    least: int = 0
    greatest: int = 0
    total: int = 0


def bounds_of_runs(data: bytes, version: int, is_signed: bool = False, exact: bool = False) -> RunBounds:
    """Bounds of all integers of a stream.

    Args:
        data: Without compression.
        version: Of the encoding, 1 or 2.
        is_signed: Whether they have signs ("zigzag").
        exact: Whether all packed values are unpacked: the bounds are what they are.

    Raises:
        ValueError, IndexError: The stream is damaged.
    """
    runs = _second(data, is_signed, exact) if version == 2 else _first(data, is_signed)
    count = least = greatest = total = 0
    for length, low, high, most in runs:
        count += length
        total += most
        if low < least:
            least = low
        if high > greatest:
            greatest = high
    return RunBounds(count, least, greatest, total)


#: How many values, the least, the greatest, and their sum.
_Run = tuple[int, int, int, int]


def _first(data: bytes, is_signed: bool) -> Iterator[_Run]:
    at = 0
    while at < len(data):
        control, at = data[at], at + 1
        if control < 128:
            length = control + _MIN_REPEAT
            step = int.from_bytes(data[at : at + 1], "little", signed=True)
            base, at = _varint(data, at + 1, is_signed)
            yield _fixed(base, step, length)
            continue
        for _ in range(256 - control):
            value, at = _varint(data, at, is_signed)
            yield 1, value, value, value


def _second(data: bytes, is_signed: bool, exact: bool) -> Iterator[_Run]:
    at, size = 0, len(data)
    while at < size:
        header = data[at]
        kind = header >> 6
        if kind == _SHORT_REPEAT:
            end, length = at + 2 + (header >> 3), (header & 7) + _MIN_REPEAT
            value = int.from_bytes(data[at + 1 : end], "big") if header > 7 else data[at + 1]
            value = signed(value) if is_signed else value
            yield length, value, value, value * length
            at = end
            continue
        code = header >> 1 & 31
        length = ((header & 1) << 8 | data[at + 1]) + 1
        at += 2
        if kind == _DIRECT:
            end = at + (length * _WIDTHS[code] + 7 >> 3)
            if exact:
                yield _exact(_unpacked(data, at, length, _WIDTHS[code]), is_signed)
            else:
                high = (1 << _WIDTHS[code] - is_signed) - 1
                yield length, -high - 1 if is_signed else 0, high, high * length
            at = end
        elif kind == _PATCHED_BASE:
            run, at = _patched(data, at, length, _WIDTHS[code])
            yield run
        elif not code and not is_signed and data[at] < _ONE_BYTE and data[at + 1] == 0:
            # One small value again and again: as fast as can be, since there are many of these.
            yield length, data[at], data[at], data[at] * length
            at += 2
        else:
            # Deltas of no bits are all the same.
            run, at = _delta(data, at, length, _WIDTHS[code] if code else 0, is_signed, exact)
            yield run
    if at > size:
        raise ValueError("a run is cut off")


def _patched(data: bytes, at: int, length: int, width: int) -> tuple[_Run, int]:
    """Always unpacked: patches are for the few values that have many more bits than the others."""
    base_bytes, patch_width = (data[at] >> 5) + 1, _WIDTHS[data[at] & 31]
    gap_width, patches = (data[at + 1] >> 5) + 1, data[at + 1] & 31
    if patch_width + gap_width > 64:
        raise ValueError(f"patches of {patch_width + gap_width} bits")
    at += 2
    base = int.from_bytes(data[at : at + base_bytes], "big")
    sign = 1 << base_bytes * 8 - 1
    base = sign - base if base & sign else base
    at += base_bytes
    stored = next(one for one in _WIDTHS if one >= patch_width + gap_width)
    listed = at + (length * width + 7 >> 3)
    end = listed + (patches * stored + 7 >> 3)
    entries = _unpacked(data, listed, patches, stored)
    gaps, changes = entries >> np.uint64(patch_width), entries & np.uint64((1 << patch_width) - 1)
    # Readers go on to the next one, be there one or not.
    if not patches or (gaps[-1] == 255 and changes[-1] == 0):
        raise ValueError("a patch is missing")
    if width + patch_width > _MAX_BITS or abs(base) > _SMALL:
        high = base + (1 << width + patch_width) - 1
        return (length, base, high, max(0, high) * length), end
    values = _unpacked(data, at, length, width)
    places = np.cumsum(gaps)
    within = places < length
    values[places[within]] |= changes[within] << np.uint64(width)
    return _run(values.astype(np.int64) + base), end


def _delta(data: bytes, at: int, length: int, width: int, is_signed: bool, exact: bool) -> tuple[_Run, int]:
    base, at = _varint(data, at, is_signed)
    step, at = _varint(data, at, True)
    if not width:
        return _fixed(base, step, length), at
    if length < 2:
        raise ValueError("a run of one value with a width of deltas")
    more, second = length - 2, base + step
    end = at + (more * width + 7 >> 3)
    most = more * ((1 << width) - 1)
    last = second - most if step < 0 else second + most
    low, high = min(base, second, last), max(base, second, last)
    # Of what falls the bound is soon below zero, where nothing is without a sign.
    is_asked = exact or (low < 0 and not is_signed)
    if is_asked and width <= _MAX_BITS and max(abs(base), abs(step)) <= _SMALL:
        moved = np.cumsum(_unpacked(data, at, more, width).astype(np.int64))
        return _run(np.array([base, second, *(second + (-moved if step < 0 else moved))])), end
    return (length, low, high, max(0, high) * length), end


def _fixed(base: int, step: int, length: int) -> _Run:
    last = base + step * (length - 1)
    return length, min(base, last), max(base, last), (base + last) * length // 2


def _varint(data: bytes, at: int, is_signed: bool) -> tuple[int, int]:
    value, at = read_unsigned(data, at)
    return (signed(value) if is_signed else value), at


def _unpacked(data: bytes, at: int, length: int, width: int) -> npt.NDArray[np.uint64]:
    """Values of so many bits each, the highest first."""
    stored = np.frombuffer(data, np.uint8, length * width + 7 >> 3, at)
    bits = np.unpackbits(stored, count=length * width).reshape(length, width)
    padded = np.zeros((length, 64), np.uint8)
    padded[:, 64 - width :] = bits
    return np.packbits(padded, axis=1).view(">u8").astype(np.uint64).reshape(length)


def _exact(values: npt.NDArray[np.uint64], is_signed: bool) -> _Run:
    high = int(values.max())
    if high > _SMALL:
        return len(values), -high if is_signed else 0, high, high * len(values)
    plain = values.astype(np.int64)
    return _run((plain >> 1) ^ -(plain & 1) if is_signed else plain)


def _run(values: npt.NDArray[np.int64]) -> _Run:
    """Of values whose sum has room in 64 bits."""
    return len(values), int(values.min()), int(values.max()), int(values.sum())
