"""What a stripe of an ORC file says of its columns, which Arrow takes for granted: it takes memory for as many values
as it is told of, and goes as far in them as their lengths say. It ends the process, where these are not true.

Specification: https://orc.apache.org/specification/ORCv1/ ("Stripes", "Column Encodings").
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import pyarrow as pa

from alluvium.codecs.footers.orc_runs import RunBounds, bounds_of_runs
from alluvium.codecs.footers.orc_tail import (
    UINT32,
    Message,
    OrcTail,
    kind_of,
    messages_of,
    names_of,
    number_of,
    numbers_of,
    plain_bytes,
    plain_chunks,
    read_stripe_footer,
    read_within,
    reading_orc,
    sole_kind,
)
from alluvium.errors import UnsupportedFeature

# Footer
_STRIPES, _TYPES = 3, 4
# StripeInformation
_OFFSET, _ROWS = 1, 5
# StripeFooter
_STREAMS, _ENCODINGS = 1, 2
# Stream, and its kinds
_STREAM_KIND, _COLUMN, _LENGTH = 1, 2, 3
_PRESENT, _DATA, _LENGTHS, _DICTIONARY, _SECONDARY, _NUM_STREAM_KINDS = 0, 1, 2, 3, 5, 11
_OF_VALUES = (_PRESENT, _DATA, _LENGTHS, _DICTIONARY, _SECONDARY)
# ColumnEncoding, and its kinds
_ENCODING, _DICTIONARY_SIZE = 1, 2
_NUM_ENCODINGS = 4
_DICTIONARIES, _SECOND_VERSION = (1, 3), (2, 3)
# Type, and its kinds
_SUBTYPES = 2
_STRUCT, _UNION, _DECIMAL = 12, 13, 14
_TEXTS, _LISTS = {7, 8, 16, 17}, {10, 11}

#: The most values that a byte of a stream can hold: bits in runs of 130 equal bytes, each of which is two.
_VALUES_A_BYTE = 520
#: For how many values, and bytes of texts, memory is taken without a look at what is there.
_FEW_VALUES, _FEW_BYTES = 1 << 12, 1 << 24
#: How much longer texts are than what they are compressed to, before it is looked at how much they are.
_GROWTH = 64
#: Of elements, and of bytes of texts, Arrow's offsets know no more.
_MOST = (1 << 31) - 1
_MAX_SCALE = 38


class StripeGuard:
    """Looks at stripes of a file before Arrow reads them.

    Args:
        file: A seekable file, which stays open.
        tail: What `orc_footer.read_sound_tail` read of it.
        path: For errors.

    Raises:
        CorruptTable: The tail is damaged.
    """

    def __init__(self, file: pa.NativeFile, tail: OrcTail, path: str | None = None) -> None:
        self._file, self._codec, self._path = file, tail.codec, path
        with reading_orc(path):
            self._stripes = messages_of(tail.footer, _STRIPES)
            self._types = messages_of(tail.footer, _TYPES)
            self._columns = list(zip(names_of(self._types[0]), numbers_of(self._types[0], _SUBTYPES), strict=True))

    def ensure_sound(self, number: int, names: Collection[str] | None = None) -> None:
        """Looks at what Arrow ends the process about, hangs on, or takes all memory for: lengths that are negative or
        add up to more than there is, more values than streams can hold, scales of decimals that are none.

        Args:
            number: Of the stripe.
            names: The columns at the top level that will be read; None: all.

        Raises:
            CorruptTable: There is such a thing in a column (`"damaged-file"`).
            UnsupportedFeature: A column is a union, which neither format has (`"unsupported-file-type"`), or the codec
                of the file is unknown (`"unsupported-codec"`).
        """
        with reading_orc(self._path):
            stripe = self._stripes[number]
            look = self._look_into(stripe)
            rows = number_of(stripe, _ROWS)
            for name, column in self._columns:
                if names is not None and name not in names:
                    continue
                if not look.has_room(column, rows):
                    raise ValueError(f"a stripe of {rows} rows has a column of fewer")
                look.at_column(column)

    def ensure_all_sound(self) -> None:
        """As `ensure_sound`, of all that is in the file."""
        for number in range(len(self._stripes)):
            self.ensure_sound(number)

    def _look_into(self, stripe: Message) -> _Look:
        at = number_of(stripe, _OFFSET)
        end, footer = read_stripe_footer(self._file, stripe, self._codec)
        streams: dict[tuple[int, int], _Stream] = {}
        for one in messages_of(footer, _STREAMS):
            column = number_of(one, _COLUMN) & UINT32
            stream = _Stream(at, number_of(one, _LENGTH))
            streams.setdefault((column, kind_of(one, _STREAM_KIND, _NUM_STREAM_KINDS)), stream)
            at += stream.length
        if at > end:
            raise ValueError("the streams of a stripe are longer than it is")
        return _Look(self._file, self._codec, self._types, streams, messages_of(footer, _ENCODINGS))


@dataclass(frozen=True, slots=True)
class _Stream:
    begin: int
    length: int


@dataclass(frozen=True, slots=True)
class _Look:
    """At the columns of a stripe.

    Attributes:
        streams: By the column and the kind; of equal ones the first, which is what Arrow takes.
        encodings: Of all columns.
    """

    file: pa.NativeFile
    codec: int
    types: list[Message]
    streams: dict[tuple[int, int], _Stream]
    encodings: list[Message]

    def at_column(self, column: int) -> None:
        """Looks at a column and its members."""
        kind = sole_kind(self.types[column])
        if kind == _UNION:
            raise UnsupportedFeature(
                "an ORC file has a union", code="unsupported-file-type", features=("union",), hint="leave it out"
            )
        if kind in _TEXTS:
            self._look_at_texts(column)
        elif kind in _LISTS:
            self._look_at_lists(column)
        elif kind == _DECIMAL:
            self._bounds(column, _SECONDARY, lambda bounds: True, _MAX_SCALE, is_signed=True)
        for member in numbers_of(self.types[column], _SUBTYPES):
            self.at_column(member)

    def has_room(self, column: int, count: int) -> bool:
        """Whether so many values can be in the streams of a column. Members of a struct that has nulls are not looked
        at: nobody says how many of its rows have them.
        """
        if sole_kind(self.types[column]) == _STRUCT and (column, _PRESENT) not in self.streams:
            return all(self.has_room(member, count) for member in numbers_of(self.types[column], _SUBTYPES))
        needed = count / _VALUES_A_BYTE
        own = [stream for kind in _OF_VALUES if (stream := self.streams.get((column, kind)))]
        if count <= _FEW_VALUES or sum(one.length for one in own) >= needed:
            return True
        return sum(self._plain_length(one, needed) for one in own) >= needed

    def _look_at_texts(self, column: int) -> None:
        encoding = self.encodings[column]
        in_dictionary = kind_of(encoding, _ENCODING, _NUM_ENCODINGS) in _DICTIONARIES
        stream = self.streams.get((column, _DICTIONARY if in_dictionary else _DATA), _Stream(0, 0))
        few = max(_FEW_BYTES, stream.length * _GROWTH)
        bounds = self._bounds(column, _LENGTHS, lambda bounds: bounds.total <= few)
        if in_dictionary and bounds.count < number_of(encoding, _DICTIONARY_SIZE) & UINT32:
            raise ValueError(f"a dictionary has {bounds.count} texts, and is said to have more")
        if bounds.total > few and self._plain_length(stream, bounds.total) < bounds.total:
            raise ValueError("texts are longer than what there is of them")

    def _look_at_lists(self, column: int) -> None:
        def have_room(bounds: RunBounds) -> bool:
            return all(self.has_room(member, bounds.total) for member in numbers_of(self.types[column], _SUBTYPES))

        if not have_room(self._bounds(column, _LENGTHS, have_room)):
            raise ValueError("lists are longer than what there is of them")

    def _bounds(
        self, column: int, kind: int, is_enough: Callable[[RunBounds], bool], most: int = _MOST, is_signed: bool = False
    ) -> RunBounds:
        """Of the integers of a stream; exact ones, where others do not tell that all is well."""
        stream = self.streams.get((column, kind))
        if stream is None:
            # Which Arrow says itself.
            return RunBounds()
        data = plain_bytes(read_within(self.file, stream.begin, stream.length), self.codec)
        version = 2 if kind_of(self.encodings[column], _ENCODING, _NUM_ENCODINGS) in _SECOND_VERSION else 1
        for exact in (False, True):
            bounds = bounds_of_runs(data, version, is_signed, exact)
            # What scales add up to says nothing.
            is_sound = bounds.least >= 0 and bounds.greatest <= most and (is_signed or bounds.total <= _MOST)
            if is_sound and is_enough(bounds):
                return bounds
        if not is_sound:
            raise ValueError(f"a stream has integers from {bounds.least} to {bounds.greatest}, of 0 to {most}")
        return bounds

    def _plain_length(self, stream: _Stream, enough: float) -> int:
        """How long a stream is without compression, up to what is enough."""
        length = 0
        for chunk in plain_chunks(read_within(self.file, stream.begin, stream.length), self.codec):
            length += len(chunk)
            if length >= enough:
                break
        return length
