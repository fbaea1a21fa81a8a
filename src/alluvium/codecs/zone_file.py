"""The system's files of time zones (TZif, RFC 8536), of which `zoneinfo` does not tell when clocks change."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from struct import Struct

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.int64]

#: Magic, version, unused; counts of UT flags, standard flags, leap seconds, changes, kinds of time, letters of names.
_HEAD = Struct(">4sc15x6l")
_KIND = np.dtype([("offset", ">i4"), ("is_summer", "?"), ("name", "u1")])


@dataclass(frozen=True, slots=True)
class ZoneFile:
    """How far a zone's clock is ahead of UTC's.

    Attributes:
        changes: When that changes, seconds since 1970, in order.
        offsets: Seconds, from each change on.
        before: Seconds, before the first change, as ORC's library for C++ has it: the first that is not summer time of
            those behind a change. (`zoneinfo` has the local mean time.)
    """

    changes: Seconds
    offsets: Seconds
    before: int

    def offsets_s(self, instants: Seconds) -> Seconds:
        """Seconds at some instants, which are seconds since 1970; what follows the last change is not known."""
        at = np.searchsorted(self.changes, instants, "right")
        return np.concatenate([[self.before], self.offsets])[at]


@cache
def zone_file(key: str) -> ZoneFile | None:
    """The file of a zone; None: the system has none.

    Args:
        key: Of a `zoneinfo.ZoneInfo`, which lets none out of the folder.

    Raises:
        ValueError, struct.error: It is damaged.
    """
    path = Path(os.environ.get("TZDIR", "/usr/share/zoneinfo"), key)
    return _parsed(path.read_bytes()) if path.is_file() else None


def _parsed(data: bytes) -> ZoneFile:
    at, width, (_, version, *counts) = 0, 4, _HEAD.unpack_from(data)
    if version >= b"2":
        # The same again, in eight bytes a change.
        at, width = _HEAD.size + _length(counts, width), 8
        _, _, *counts = _HEAD.unpack_from(data, at)
    _, _, _, change_count, kind_count, _ = counts
    at += _HEAD.size
    changes = np.frombuffer(data, f">i{width}", change_count, at).astype(np.int64)
    at += change_count * width
    behind = np.frombuffer(data, np.uint8, change_count, at)
    kinds = np.frombuffer(data, _KIND, kind_count, at + change_count)
    offsets = kinds["offset"].astype(np.int64)
    standard = behind[~kinds["is_summer"][behind]]
    return ZoneFile(changes, offsets[behind], int(offsets[standard[0] if len(standard) else 0]))


def _length(counts: list[int], width: int) -> int:
    ut, standard, leaps, changes, kinds, letters = counts
    return changes * (width + 1) + kinds * _KIND.itemsize + letters + leaps * (width + 4) + standard + ut
