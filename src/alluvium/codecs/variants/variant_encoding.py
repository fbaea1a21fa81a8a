"""Variants as bytes: typed columns, arrays and objects put into the encoding, dictionaries and objects taken out of it.

Specification: Parquet, VariantEncoding.md. Bytes that are read are untrusted: every length and offset is checked
before anything is looked up by it. Integers, decimals and offsets take the fewest bytes that hold them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.variants.byte_ranges import (
    Bytes,
    Ints,
    Mask,
    Ranges,
    copy_ranges,
    missing,
    packed,
    ranges_of,
    read_ints,
    starts_of,
    to_binary,
    within,
    write_ints,
    write_rows,
)
from alluvium.errors import CorruptTable

_is = pa.types

PRIMITIVE, SHORT_STRING, OBJECT, ARRAY = range(4)
NULL, TRUE, FALSE, INT8, INT16, INT32, INT64, DOUBLE, DECIMAL4, DECIMAL8, DECIMAL16 = range(11)
DATE, TIMESTAMP, TIMESTAMP_NTZ, FLOAT, BINARY, STRING, TIME_NTZ, TIMESTAMP_NANOS, TIMESTAMP_NTZ_NANOS, UUID = range(
    11, 21
)

#: "The `version` is a 4-bit value that must always contain the value `1`."
VERSION = 1
#: "A string with a length less than 64 bytes"
MAX_SHORT_STRING = 63
#: "When more than 255 elements are present, `is_large` must be set to true."
_MAX_SMALL = 255
_VARIANT_NULL = bytes([NULL])


def malformed(problem: str) -> CorruptTable:
    """The error of bytes that are no variant."""
    return CorruptTable(
        f"a variant is malformed: {problem}",
        code="malformed-variant",
        hint="the data file was damaged, or written by a broken client; rewrite it",
    )


def _ensure(holds: Mask | np.bool_, problem: str) -> None:
    if not np.all(holds):
        raise malformed(problem)


def null_for_missing(values: Ranges) -> Ranges:
    """The values, with the variant null where there is none.

    "If a Variant is missing in a context where a value is required, readers must return a Variant null (`00`)".
    """
    if values.present.all():
        return values
    data = np.concatenate([values.data, np.frombuffer(_VARIANT_NULL, np.uint8)])
    starts = np.where(values.present, values.starts, len(values.data))
    return Ranges(data, starts, np.where(values.present, values.lengths, 1))


# Values of one type


def encode_column(values: pa.Array) -> Ranges:
    """The values of a primitive column, null being missing.

    Raises:
        CorruptTable: A type that no variant has.
    """
    kind = values.type
    if _is.is_null(kind):
        return missing(len(values))
    present = np.asarray(values.is_valid())
    if _is.is_boolean(kind):
        truth = np.asarray(values.fill_null(False))
        return _fixed(present, np.where(truth, TRUE, FALSE), np.zeros((len(values), 0), np.uint8), 0)
    if _is.is_signed_integer(kind):
        return _integers(present, _numbers(values.cast(pa.int64()), "<i8"))
    if _is.is_decimal(kind) and kind.precision <= 38:
        return _decimals(present, values.cast(pa.decimal128(38, kind.scale)))
    if _is.is_fixed_size_binary(kind) and kind.byte_width == 16:
        held = b"".join(values.fill_null(bytes(16)).to_pylist()) if values.offset else None
        rows = np.frombuffer(values.buffers()[1] if held is None else held, np.uint8)[: len(values) * 16]
        return _fixed(present, UUID, rows.reshape(-1, 16), 16)
    if _is_text(kind):
        return _texts(present, ranges_of(values))
    if _is_bytes(kind):
        return _sized(present, ranges_of(values), BINARY)
    header = _header_of(kind)
    if header is None:
        raise malformed(f"its typed_value is of type {kind}, which no variant has")
    width = kind.bit_width // 8
    return _fixed(present, header, _numbers(values, f"<u{width}").view(np.uint8).reshape(-1, width), width)


def _is_text(kind: pa.DataType) -> bool:
    return bool(_is.is_string(kind) or _is.is_large_string(kind) or _is.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(_is.is_binary(kind) or _is.is_large_binary(kind) or _is.is_binary_view(kind))


def _header_of(kind: pa.DataType) -> int | None:
    """The type id of values whose bytes in Arrow are those of the encoding."""
    if kind == pa.float32() or kind == pa.float64():
        return FLOAT if kind == pa.float32() else DOUBLE
    if kind == pa.date32():
        return DATE
    if kind == pa.time64("us"):
        return TIME_NTZ
    if _is.is_timestamp(kind) and kind.unit in ("us", "ns"):
        micros, nanos = (TIMESTAMP_NTZ, TIMESTAMP_NTZ_NANOS) if kind.tz is None else (TIMESTAMP, TIMESTAMP_NANOS)
        return micros if kind.unit == "us" else nanos
    return None


def _numbers(values: pa.Array, dtype: str) -> npt.NDArray[np.int64]:
    """The fixed-width values as they lie in memory; anything where null."""
    held = np.frombuffer(values.buffers()[1], dtype) if len(values) else np.zeros(0, dtype)
    return held[values.offset : values.offset + len(values)]


def _fixed(present: Mask, types: int | npt.NDArray[np.int64], rows: Bytes, widths: int | Ints) -> Ranges:
    """A header byte, and the first `widths` bytes of each row."""
    sizes = np.broadcast_to(np.asarray(widths, np.int64), present.shape)
    lengths = np.where(present, 1 + sizes, 0)
    values = packed(np.empty(int(lengths.sum()), np.uint8), lengths)
    values.data[values.starts[present]] = (np.broadcast_to(types, present.shape)[present] << 2) | PRIMITIVE
    write_rows(values.data, values.starts + 1, rows, np.where(present, sizes, 0))
    return values


def _integers(present: Mask, numbers: Ints) -> Ranges:
    # The size of a number says nothing of it: "user expressions operating on an int8 value of 1 should behave the
    # same as a decimal16 with scale 2 and unscaled value 100".
    wide = [(numbers < -(1 << bits)) | (numbers >= 1 << bits) for bits in (7, 15, 31)]
    step = np.sum(wide, axis=0, dtype=np.int64)
    return _fixed(present, INT8 + step, np.ascontiguousarray(numbers).view(np.uint8).reshape(-1, 8), 1 << step)


def _decimals(present: Mask, values: pa.Array) -> Ranges:
    scale = values.type.scale
    if scale < 0:
        raise malformed(f"its typed_value is a decimal of scale {scale}")
    halves = np.frombuffer(values.buffers()[1], "<i8").reshape(-1, 2) if len(values) else np.zeros((0, 2), "<i8")
    halves = halves[values.offset : values.offset + len(values)]
    low, high = halves[:, 0], halves[:, 1]
    in_low = high == (low >> 63)
    step = np.full(len(values), 2)
    for index, digits in ((1, 18), (0, 9)):
        if scale <= digits:
            step[in_low & (low < 10**digits) & (low > -(10**digits))] = index
    rows = np.empty((len(values), 17), np.uint8)
    rows[:, 0] = scale
    rows[:, 1:] = np.ascontiguousarray(halves).view(np.uint8).reshape(-1, 16)
    return _fixed(present, DECIMAL4 + step, rows, 1 + (4 << step))


def _texts(present: Mask, texts: Ranges) -> Ranges:
    short = texts.lengths <= MAX_SHORT_STRING
    return _with_sizes(present, texts, np.where(short, (texts.lengths << 2) | SHORT_STRING, STRING << 2), ~short)


def _sized(present: Mask, texts: Ranges, kind: int) -> Ranges:
    return _with_sizes(present, texts, np.full(len(texts), kind << 2), np.ones(len(texts), np.bool_))


def _with_sizes(present: Mask, texts: Ranges, headers: Ints, sized: Mask) -> Ranges:
    """A header byte, four bytes of length where `sized`, and the text."""
    ahead = np.where(sized, 5, 1)
    lengths = np.where(present, ahead + texts.lengths, 0)
    values = packed(np.empty(int(lengths.sum()), np.uint8), lengths)
    values.data[values.starts[present]] = headers[present]
    write_ints(values.data, values.starts + 1, texts.lengths, np.where(present & sized, 4, 0))
    copy_ranges(texts.only(present), values.data, values.starts + ahead)
    return values


# Arrays and objects


def encode_containers(present: Mask, counts: Ints, members: Ranges, ids: Ints | None = None) -> Ranges:
    """Arrays, or (given the ids of their fields) objects.

    Args:
        present: Which rows hold one; the others are missing, and have no members.
        counts: Members of each row.
        members: The members of all rows, those of a row one behind the other (for objects, sorted by name).
        ids: The field id of each member.
    """
    ends = np.concatenate(([0], np.cumsum(members.lengths)))
    first = starts_of(counts)
    sizes = ends[first + counts] - ends[first]
    large = counts > _MAX_SMALL
    count_width = np.where(large, 4, 1)
    offset_width = _width(sizes)
    header = ARRAY | (offset_width - 1) << 2 | large.astype(np.int64) << 4
    id_width = np.zeros(len(counts), np.int64)
    if ids is not None:
        id_width = _width(_greatest(ids, counts))
        header = OBJECT | (offset_width - 1) << 2 | (id_width - 1) << 4 | large.astype(np.int64) << 6
    lengths = 1 + count_width + counts * id_width + (counts + 1) * offset_width + sizes
    lengths = np.where(present, lengths, 0)
    values = packed(np.empty(int(lengths.sum()), np.uint8), lengths)
    values.data[values.starts[present]] = header[present]
    write_ints(values.data, values.starts + 1, counts, np.where(present, count_width, 0))
    place = values.starts + 1 + count_width
    steps, rows = within(counts), np.repeat(np.arange(len(counts)), counts)
    if ids is not None:
        write_ints(values.data, place[rows] + steps * id_width[rows], ids, id_width[rows])
        place = place + counts * id_width
    relative = ends[:-1] - ends[first][rows]
    write_ints(values.data, place[rows] + steps * offset_width[rows], relative, offset_width[rows])
    write_ints(values.data, place + counts * offset_width, sizes, np.where(present, offset_width, 0))
    place = place + (counts + 1) * offset_width
    copy_ranges(members, values.data, place[rows] + relative)
    return values


def _width(numbers: Ints) -> Ints:
    """Bytes that an unsigned number takes, 1 to 4."""
    widths: Ints = 1 + np.sum([numbers >= 1 << bits for bits in (8, 16, 24)], axis=0, dtype=np.int64)
    return widths


def _greatest(numbers: Ints, counts: Ints) -> Ints:
    found = np.zeros(len(counts), np.int64)
    filled = counts > 0
    if filled.any():
        found[filled] = np.maximum.reduceat(numbers, starts_of(counts)[filled])
    return found


# Taking apart


@dataclass(frozen=True, slots=True)
class Dictionaries:
    """The names in several metadata.

    Attributes:
        first: Place of each dictionary's first name among all names.
        sizes: How many it has.
        ranks: For each name of each dictionary, where it stands among all names in the order of bytes.
        sorted_names: All names, each once, in that order.
    """

    first: Ints
    sizes: Ints
    ranks: Ints
    sorted_names: pa.Array

    def rank(self, name: str) -> int | None:
        """Where a name stands; None if no dictionary has it."""
        found: int | None = self.sorted_names.index(pa.scalar(name.encode(), self.sorted_names.type)).as_py()
        return None if found is None or found < 0 else found

    def ids(self, rank: int) -> Ints:
        """The id of a name in each dictionary, -1 where it is not in it."""
        places = np.flatnonzero(self.ranks == rank)
        of = np.searchsorted(self.first + self.sizes, places, side="right")
        found = np.full(len(self.first), -1, np.int64)
        found[of] = places - self.first[of]
        return found


def ensure_metadata(metadata: pa.Array) -> None:
    """Looks at the first bytes of each metadata (null: none).

    Raises:
        CorruptTable: Another version, or too short.
    """
    _check_headers(ranges_of(metadata.drop_null()))


def _check_headers(held: Ranges) -> tuple[Ints, Ints]:
    _ensure(held.lengths >= 3, "its metadata is cut off")
    header = held.data[held.starts].astype(np.int64)
    # "An implementation is not expected to parse a Variant value whose metadata version is higher"
    _ensure(header & 0x0F == VERSION, f"its metadata is not of version {VERSION}")
    width = (header >> 6) + 1
    _ensure(held.lengths >= 1 + width, "its metadata is cut off")
    size = read_ints(held.data, held.starts + 1, width)
    _ensure(held.lengths >= 1 + width * (size + 2), "its metadata has fewer bytes than names")
    return width, size


def parse_dictionaries(metadata: pa.Array) -> Dictionaries:
    """The names in metadata, none of which is null.

    Raises:
        CorruptTable: Another version, or offsets that lead out of the bytes.
    """
    held = ranges_of(metadata)
    width, size = _check_headers(held)
    rows = np.repeat(np.arange(len(held)), size + 1)
    offsets = read_ints(held.data, held.starts[rows] + (1 + within(size + 1)) * width[rows] + 1, width[rows])
    texts = held.starts + 1 + width * (size + 2)
    last = starts_of(size + 1) + size
    _ensure(offsets[last - size] == 0, "the first name in its metadata does not begin at 0")
    _ensure(texts + offsets[last] <= held.starts + held.lengths, "a name in its metadata ends behind the last byte")
    lengths = np.diff(offsets, append=0)
    inner = np.ones(len(offsets), np.bool_)
    inner[last] = False
    _ensure(lengths[inner] >= 0, "the offsets in its metadata go back")
    names = to_binary(Ranges(held.data, (texts[rows] + offsets)[inner], lengths[inner]), pa.large_binary())
    coded = names.dictionary_encode()
    order = pc.sort_indices(coded.dictionary)
    rank_of = np.empty(len(order), np.int64)
    rank_of[np.asarray(order)] = np.arange(len(order))
    return Dictionaries(starts_of(size), size, rank_of[np.asarray(coded.indices)], coded.dictionary.take(order))


@dataclass(frozen=True, slots=True)
class ObjectFields:
    """The fields of several objects: the row of each, its id and its value."""

    rows: Ints
    ids: Ints
    values: Ranges


def parse_objects(values: Ranges) -> ObjectFields:
    """The fields of objects, all of which are there; what is in their values is not looked at.

    Raises:
        CorruptTable: No object, or offsets that lead out of its bytes.
    """
    header = values.data[values.starts].astype(np.int64)
    _ensure(header & 3 == OBJECT, "beside the shredded fields of an object stands something else than an object")
    offset_width, id_width = (header >> 2 & 3) + 1, (header >> 4 & 3) + 1
    count_width = np.where(header >> 6 & 1, 4, 1)
    _ensure(values.lengths >= 1 + count_width, "an object is cut off")
    counts = read_ints(values.data, values.starts + 1, count_width)
    inside = 1 + count_width + counts * id_width + (counts + 1) * offset_width
    _ensure(inside <= values.lengths, "an object has fewer bytes than fields")
    rows, steps = np.repeat(np.arange(len(values)), counts), within(counts)
    place = values.starts + 1 + count_width
    ids = read_ints(values.data, place[rows] + steps * id_width[rows], id_width[rows])
    place = place + counts * id_width
    offsets = read_ints(values.data, place[rows] + steps * offset_width[rows], offset_width[rows])
    total = read_ints(values.data, place + counts * offset_width, offset_width)
    _ensure(inside + total <= values.lengths, "an object ends behind its last byte")
    _ensure(offsets < total[rows], "a field of an object begins behind its last byte")
    # "the actual `value` entries do not need to be in any particular order": one ends where the next one begins.
    places, own = np.unique(rows << 32 | offsets, return_inverse=True)
    following = np.append(places[1:], -1)
    ends = np.where(following >> 32 == places >> 32, following & 0xFFFFFFFF, total[places >> 32])
    starts = (values.starts + inside)[rows] + offsets
    return ObjectFields(rows, ids, Ranges(values.data, starts, ends[own] - offsets))
