"""The `stats` text of `add` actions, decoded for the leaves asked and nothing else.

Specification: Delta protocol, "Per-file Statistics". Statistics only ever save work, so what is malformed is unknown,
never an error.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from operator import attrgetter
from typing import TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import DECODE_ERRORS
from alluvium.schema.types import DataType
from alluvium.schema.types import Decimal as DecimalType

Path: TypeAlias = tuple[str, ...]

#: Names that msgspec cannot have as keys of a struct.
_UNFIT = re.compile(r'[\\"\x00-\x1f]')
#: How statistics begin where `numRecords` comes first. At most 18 digits fit 64 bits for certain.
_LEADING_NUM_RECORDS = r'^\{ ?"numRecords": ?(?P<n>[0-9]{1,18})[,}]'
_LEADING_BYTES = 40
#: Files decoded at a time, so that memory holds no more than that of their objects.
_SLICE = 16_384


def _exact(text: str) -> Decimal | None:
    """A number with its digits; None where its exponent is beyond all bounds."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


_GENERIC = msgspec.json.Decoder(float_hook=_exact)


@dataclass(frozen=True, slots=True)
class LeafTexts:
    """The raw JSON values of one leaf, one a file; None where the file has none."""

    low: list[object]
    high: list[object]
    null_count: list[object]


@dataclass(frozen=True, slots=True)
class DecodedStats:
    """What `decode_stats` found: global statistics, and the leaves asked, one value a file each."""

    num_records: list[object]
    tight_bounds: list[object]
    leaves: Mapping[Path, LeafTexts]


def decode_stats(texts: pa.Array, leaves: Mapping[Path, DataType]) -> DecodedStats:
    """Decodes the statistics of many files in one go.

    Args:
        texts: The `stats` of each file, null where it has none.
        leaves: Physical paths of the leaves asked, and their types.
    """
    return StatsDecoder(leaves).decode(texts)


class StatsDecoder:
    """Decodes the statistics of files piece by piece.

    Args:
        leaves: Physical paths of the leaves asked, and their types.
    """

    def __init__(self, leaves: Mapping[Path, DataType]) -> None:
        self._leaves = tuple(leaves)
        self._bounds = _node(leaves, ())
        # Counts are integers, whatever the type of their leaf.
        self._counts = _node(dict.fromkeys(leaves), ())
        self._record = msgspec.defstruct(
            "Record",
            [
                ("num_records", object, None),
                ("tight_bounds", object, None),
                *((name, self._bounds.type | None, None) for name in ("low", "high")),
                ("nulls", self._counts.type | None, None),
            ],
            rename={
                "num_records": "numRecords",
                "tight_bounds": "tightBounds",
                "low": "minValues",
                "high": "maxValues",
                "nulls": "nullCount",
            },
            gc=False,
        )
        self._decoder = msgspec.json.Decoder(self._record)

    def decode(self, texts: pa.Array) -> DecodedStats:
        """The statistics of some files.

        Args:
            texts: The `stats` of each file, null where it has none.
        """
        extracted = DecodedStats([], [], {path: LeafTexts([], [], []) for path in self._leaves})
        damaged: dict[int, Mapping[str, object]] = {}
        for start in range(0, len(texts), _SLICE):
            records = _decode_slice(texts.slice(start, _SLICE), self._decoder, self._record(), start, damaged)
            extracted.num_records.extend(map(attrgetter("num_records"), records))
            extracted.tight_bounds.extend(map(attrgetter("tight_bounds"), records))
            for part, attribute, kind in (
                ("low", "low", self._bounds),
                ("high", "high", self._bounds),
                ("nulls", "null_count", self._counts),
            ):
                found: dict[Path, list[object]] = {}
                kind.collect(list(map(attrgetter(part), records)), (), found)
                for path in self._leaves:
                    getattr(extracted.leaves[path], attribute).extend(found[path])
        _mend(extracted, damaged)
        return extracted


def _decode_slice(
    texts: pa.Array,
    decoder: msgspec.json.Decoder[msgspec.Struct],
    empty: object,
    start: int,
    damaged: dict[int, Mapping[str, object]],
) -> list[object]:
    # Bytes, not str: decoding UTF-8 would be done twice.
    encoded = texts.cast(pa.binary()).to_pylist()
    if not texts.null_count:
        with contextlib.suppress(*DECODE_ERRORS):
            return list(map(decoder.decode, encoded))
    records: list[object] = []
    for text in encoded:
        if text is None:
            records.append(empty)
            continue
        try:
            records.append(decoder.decode(text))
        except DECODE_ERRORS:
            damaged[start + len(records)] = _salvage(text)
            records.append(empty)
    return records


def leading_num_records(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """`numRecords` of each file without decoding the rest, where every text begins with it, as writers have it.

    Returns:
        int64, null where there are no statistics; None if a text begins otherwise, or is cut off.
    """
    counts: list[pa.Array] = []
    # One chunk at a time: the intermediate columns of all would be a sixth of what a large log takes.
    for chunk in texts.chunks:
        found = _leading_in_chunk(chunk)
        if found is None:
            return None
        counts.append(found)
    return pa.chunked_array(counts, pa.int64())


def _leading_in_chunk(texts: pa.Array) -> pa.Array | None:
    # What follows is not looked at, so the text must at least be whole.
    if pc.all(pc.ends_with(texts, "}")).as_py() is False:
        return None
    head = pc.binary_slice(texts.cast(pa.binary()), 0, _LEADING_BYTES)
    found = pc.struct_field(pc.extract_regex(head, _LEADING_NUM_RECORDS), "n")
    return pc.cast(found.cast(pa.string()), pa.int64()) if found.null_count == texts.null_count else None


@dataclass(frozen=True, slots=True)
class _Node:
    """How one level of a mirrored schema is decoded: its type, and how a member is taken out of it."""

    type: type
    members: Mapping[str, tuple[Callable[[object], object], _Node | None]]

    def collect(self, level: list[object], prefix: Path, leaves: dict[Path, list[object]]) -> None:
        """Takes all leaves at and below a level, one value a file each, into `leaves`."""
        for name, (take, below) in self.members.items():
            path = (*prefix, name)
            try:
                taken = list(map(take, level))
            except AttributeError:
                # Some files have nothing at this level.
                taken = [None if parent is None else take(parent) for parent in level]
            if below is None:
                leaves[path] = taken
            else:
                below.collect(taken, path, leaves)


def _node(leaves: Mapping[Path, DataType | None], prefix: Path) -> _Node:
    depth = len(prefix)
    names = list(dict.fromkeys(path[depth] for path in leaves if path[:depth] == prefix and len(path) > depth))
    below: dict[str, _Node | None] = {}
    fields: list[tuple[str, object, object]] = []
    for i, name in enumerate(names):
        path = (*prefix, name)
        if path in leaves:
            below[name] = None
            # A decimal goes around floats, which would round it.
            fields.append((f"f{i}", Decimal | None if isinstance(leaves[path], DecimalType) else object, None))
        else:
            node = _node(leaves, path)
            below[name] = node
            fields.append((f"f{i}", node.type | None, None))
    if any(_UNFIT.search(name) for name in names):
        decoded_as = dict[str, msgspec.Raw]
        takers = {name: _raw_member(name, kind, below[name]) for name, (_, kind, _) in zip(names, fields, strict=True)}
        return _Node(decoded_as, {name: (takers[name], below[name]) for name in names})
    struct = msgspec.defstruct("Level", fields, rename={f"f{i}": name for i, name in enumerate(names)}, gc=False)
    return _Node(struct, {name: (attrgetter(f"f{i}"), below[name]) for i, name in enumerate(names)})


def _raw_member(name: str, kind: object, below: _Node | None) -> Callable[[object], object]:
    decoder = msgspec.json.Decoder(kind)

    def take(parent: object) -> object:
        raw = parent.get(name) if isinstance(parent, dict) else None
        try:
            return None if raw is None else decoder.decode(raw)
        except DECODE_ERRORS:
            return None

    return take


def _salvage(text: bytes) -> Mapping[str, object]:
    """The document of a file whose statistics have an unexpected shape somewhere; {} if it is no JSON object."""
    try:
        document = _GENERIC.decode(text)
    except DECODE_ERRORS:
        return {}
    return document if isinstance(document, dict) else {}


def _mend(decoded: DecodedStats, damaged: Mapping[int, Mapping[str, object]]) -> None:
    """Fills in what a document of unexpected shape has in the expected places."""
    for row, document in damaged.items():
        decoded.num_records[row] = document.get("numRecords")
        decoded.tight_bounds[row] = document.get("tightBounds")
        for path, leaf in decoded.leaves.items():
            for key, values in (("minValues", leaf.low), ("maxValues", leaf.high), ("nullCount", leaf.null_count)):
                values[row] = _walk(document, (key, *path))


def _walk(document: Mapping[str, object], path: Sequence[str]) -> object:
    found: object = document
    for name in path:
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found
