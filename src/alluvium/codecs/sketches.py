"""Sketches of how many values differ: HyperLogLog and Theta, as Apache DataSketches writes them.

The library `datasketches` unites them. It is written in C++ and trusts HyperLogLog's bytes: a wrong number in them
makes it write outside of its memory. So the bytes are looked through before it gets them.

Layout: https://datasketches.apache.org/docs/HLL/HllSketches.html, `org.apache.datasketches.hll.PreambleUtil`,
`org.apache.datasketches.theta.PreambleUtil`.
"""

from __future__ import annotations

import functools
import importlib
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from alluvium.errors import CorruptTable, UnsupportedFeature

#: The family and version of HyperLogLog's bytes; of each mode (a list, a set, registers) the preamble's 4-byte words.
_HLL, _HLL_VERSION, _HLL_PREAMBLES = 7, 1, (2, 3, 10)
_LIST, _SET, _REGISTERS = range(3)
_HLL_4, _HLL_6, _HLL_8 = range(3)
#: A list holds 8 coupons at most, a set begins with places for 32.
_LG_LIST, _LG_SET = 3, 5
_COMPACT = 8
#: A register of 4 bits that has too large a value: the exceptions after the registers have it.
_EXCEPTION = 15
_MAX_VALUE = 63
#: Families of Theta: hash tables of two kinds, and what is compact.
_ALPHA, _QUICK_SELECT, _THETA = 1, 2, 3
_THETA_VERSION = 3
_EMPTY, _SINGLE, _IMMUTABLE_COMPACT_ORDERED = 4, 32, 2 | 8 | 16
#: `SetOperationBuilder`: as many hashes as a union of Theta sketches keeps, as a power of two.
_LG_THETA = 12

Words = npt.NDArray[np.uint32]


def unite_hll(older: bytes, newer: bytes) -> bytes:
    """The union of two HyperLogLog sketches: 4 bits a register, compact, as `HllSketchUtil.union` makes it.

    Args:
        older: A sketch.
        newer: Another one: the union has at most its number of registers.

    Raises:
        CorruptTable: `"damaged-sketch"`: bytes are no sketch.
        UnsupportedFeature: `"missing-dependency"`: the library is not installed.
    """
    library = _library("hll_sketch")
    for image in (older, newer):
        _ensure_hll(image)

    def united() -> bytes:
        first, then = library.hll_sketch.deserialize(newer), library.hll_sketch.deserialize(older)
        lg_k = first.lg_config_k
        if _mode(older) == _REGISTERS != _mode(newer):
            # Java adds a list to registers, of which it makes fewer first if need be. The library does both at once,
            # and then its estimate forgets the list, or, in this order, all but the list.
            fewer = _union_of(library, lg_k, then).get_result(library.tgt_hll_type.HLL_8)
            first, then = fewer, first
        union = _union_of(library, lg_k, first, then)
        return bytes(union.get_result(library.tgt_hll_type.HLL_4).serialize_compact())

    return _asked("HyperLogLog", united)


def _union_of(library: Any, lg_k: int, *sketches: Any) -> Any:
    union = library.hll_union(lg_k)
    for sketch in sketches:
        union.update(sketch)
    return union


def _mode(image: bytes) -> int:
    return image[7] & 3


def unite_theta(older: bytes, newer: bytes) -> bytes:
    """The union of two Theta sketches: at most 4096 hashes, compact and ordered, as `ThetaSketch.union` makes it.

    Args:
        older: A sketch, compact or not.
        newer: Another one.

    Raises:
        CorruptTable: `"damaged-sketch"`: bytes are no sketch.
        UnsupportedFeature: `"missing-dependency"`: the library is not installed.
    """
    library = _library("theta_sketch")
    images = [_compact_theta(image) for image in (older, newer)]

    def united() -> bytes:
        union = library.theta_union(_LG_THETA)
        for image in images:
            union.update(library.compact_theta_sketch.deserialize(image))
        result = union.get_result(True)
        return _as_java_writes(result.serialize(), result.is_empty())

    return _asked("Theta", united)


def _as_java_writes(theta: bytes, is_empty: bool) -> bytes:
    """What the format leaves open, Java's way, so that equal sketches are equal bytes, whoever united them."""
    if is_empty:
        return theta[:6] + bytes(2)
    if theta[0] == 1:
        return theta[:5] + bytes((theta[5] | _SINGLE,)) + theta[6:]
    # The sampling probability.
    return theta[:12] + struct.pack("<f", 1.0) + theta[16:]


@functools.cache
def _library(feature: str) -> Any:
    # Half a second of imports, which only those pay who have such columns; a failure is not kept.
    try:
        return importlib.import_module("datasketches")
    except ModuleNotFoundError as error:
        raise UnsupportedFeature(
            f"{feature} needs datasketches: {error}",
            code="missing-dependency",
            features=(feature,),
            hint="pip install alluvium[sketches], with Spark also where its Python workers run",
        ) from None


def _asked(kind: str, question: Callable[[], bytes]) -> bytes:
    try:
        return question()
    except (ValueError, RuntimeError, IndexError, MemoryError) as error:
        # What its C++ exceptions become.
        raise _damaged(kind, str(error)) from None


def _damaged(kind: str, what: str) -> CorruptTable:
    return CorruptTable(f"a value is no {kind} sketch: {what}", code="damaged-sketch")


def _ensure_hll(image: bytes) -> None:
    """Every number that memory is addressed by lies in its range."""
    if len(image) < 8:
        raise _damaged("HyperLogLog", f"it has {len(image)} bytes")
    preamble, version, family, lg_k = image[:4]
    mode, width = _mode(image), image[7] >> 2 & 3
    if (version, family) != (_HLL_VERSION, _HLL):
        raise _damaged("HyperLogLog", f"it is of version {version} and family {family}")
    if mode > _REGISTERS or width > _HLL_8 or preamble != _HLL_PREAMBLES[mode] or not 4 <= lg_k <= 21:
        raise _damaged("HyperLogLog", f"it begins with {image[:8].hex()}")
    if mode == _REGISTERS:
        _ensure_registers(image, lg_k, width)
    else:
        _ensure_coupons(image, mode, lg_k)


def _ensure_coupons(image: bytes, mode: int, lg_k: int) -> None:
    """A list or a set of what was counted: 6 bits of a value, 26 of a place."""
    lg_size, is_compact = image[4], bool(image[5] & _COMPACT)
    if mode == _LIST:
        count, start, fits = image[6], 8, lg_size == _LG_LIST
    else:
        (count,) = _unpacked("<i", image, 8)
        # Java writes 0 for "as large as it must be"; from 1/8 of the registers on there are registers.
        start, fits = 12, lg_size == 0 or _LG_SET <= lg_size <= max(lg_k - 3, _LG_SET)
    places = 1 << (lg_size or max(lg_k - 3, _LG_SET)) if fits else 0
    if not 0 <= count <= places:
        raise _damaged("HyperLogLog", f"it says to hold {count} values in 2^{lg_size}")
    coupons = _words(image, start, count if is_compact else places)
    if np.count_nonzero(coupons) != count or ((coupons >> 26 == 0) & (coupons != 0)).any():
        raise _damaged("HyperLogLog", "its values are not those that it says to hold")


def _ensure_registers(image: bytes, lg_k: int, width: int) -> None:
    lowest = image[6]
    (exceptions,) = _unpacked("<i", image, 36)
    slots = 1 << lg_k
    size = {_HLL_4: slots // 2, _HLL_6: slots * 3 // 4 + 1, _HLL_8: slots}[width]
    registers = np.frombuffer(image[40 : 40 + size], np.uint8)
    if len(registers) < size:
        raise _damaged("HyperLogLog", f"it is cut off after {len(image)} bytes")
    if width != _HLL_4:
        if exceptions or (width == _HLL_8 and int(registers.max()) > _MAX_VALUE):
            raise _damaged("HyperLogLog", "it has values above 63")
        return
    nibbles = np.stack([registers & 15, registers >> 4], axis=1).ravel()
    marked = np.flatnonzero(nibbles == _EXCEPTION)
    ordinary = int(np.where(nibbles == _EXCEPTION, 0, nibbles).max())
    is_compact, lg_size = bool(image[5] & _COMPACT), image[4]
    if not (0 <= exceptions <= slots and lg_size <= lg_k and lowest + ordinary <= _MAX_VALUE):
        raise _damaged("HyperLogLog", f"it says to have {exceptions} exceptions above {lowest}")
    stored = exceptions if is_compact else (1 << lg_size if exceptions else 0)
    pairs = _words(image, 40 + size, stored)
    pairs = pairs[pairs != 0]
    places, values = pairs & ((1 << 26) - 1), pairs >> 26
    if len(pairs) != exceptions or not np.array_equal(np.sort(places), marked) or (values < lowest + _EXCEPTION).any():
        raise _damaged("HyperLogLog", "its exceptions are not those of its registers")


def _words(image: bytes, start: int, count: int) -> Words:
    taken = image[start : start + 4 * count]
    if len(taken) < 4 * count:
        raise _damaged("HyperLogLog", f"it is cut off after {len(image)} bytes")
    return np.frombuffer(taken, "<u4")


def _unpacked(form: str, image: bytes, start: int, kind: str = "HyperLogLog") -> tuple[Any, ...]:
    try:
        return struct.unpack_from(form, image, start)
    except struct.error:
        raise _damaged(kind, f"it is cut off after {len(image)} bytes") from None


def _compact_theta(image: bytes) -> bytes:
    """A sketch's hash table as a compact sketch, which is all that the library reads; others as they are."""
    if len(image) < 8 or image[1] != _THETA_VERSION or image[2] not in (_ALPHA, _QUICK_SELECT):
        return image
    seed_hash = image[6:8]
    if image[5] & _EMPTY:
        return bytes((1, _THETA_VERSION, _THETA, 0, 0, _IMMUTABLE_COMPACT_ORDERED | _EMPTY)) + seed_hash
    _, _, theta = _unpacked("<ifq", image, 8, "Theta")
    table = image[24 : 24 + (8 << min(image[4], 32))]
    if len(table) < 8 << min(image[4], 32):
        raise _damaged("Theta", f"it is cut off after {len(image)} bytes")
    hashes = np.frombuffer(table, "<i8")
    kept = np.unique(hashes[(hashes > 0) & (hashes < theta)])
    head = bytes((3, _THETA_VERSION, _THETA, 0, 0, _IMMUTABLE_COMPACT_ORDERED)) + seed_hash
    return head + struct.pack("<ifq", len(kept), 1.0, theta) + kept.tobytes()
