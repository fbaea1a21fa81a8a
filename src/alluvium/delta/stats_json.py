"""The `stats` text of `add` actions, decoded for the leaves asked and nothing else.

Specification: Delta protocol, "Per-file Statistics". Statistics only ever save work, so what is malformed is unknown,
never an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import attrgetter
from typing import TypeAlias

import msgspec
import pyarrow as pa

from alluvium.schema.types import DataType
from alluvium.schema.types import Decimal as DecimalType

Path: TypeAlias = tuple[str, ...]

#: Names that msgspec cannot have as keys of a struct.
_UNFIT = re.compile(r'[\\"\x00-\x1f]')
_GENERIC = msgspec.json.Decoder(float_hook=Decimal)


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
    kind = _node(leaves, ())
    record = msgspec.defstruct(
        "Record",
        [
            ("num_records", object, None),
            ("tight_bounds", object, None),
            *((name, kind.type | None, None) for name in ("low", "high")),
            ("nulls", _node(dict.fromkeys(leaves), ()).type | None, None),
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
    decode = msgspec.json.Decoder(record).decode
    empty = record()
    records: list[object] = []
    damaged: dict[int, Mapping[str, object]] = {}
    # Bytes, not str: decoding UTF-8 would be done twice.
    for text in texts.cast(pa.binary()).to_pylist():
        if text is None:
            records.append(empty)
            continue
        try:
            records.append(decode(text))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            damaged[len(records)] = _salvage(text)
            records.append(empty)
    parts: list[dict[Path, list[object]]] = []
    for part in ("low", "high", "nulls"):
        parts.append({})
        kind.collect(list(map(attrgetter(part), records)), (), parts[-1])
    extracted = DecodedStats(
        list(map(attrgetter("num_records"), records)),
        list(map(attrgetter("tight_bounds"), records)),
        {path: LeafTexts(*(found[path] for found in parts)) for path in leaves},
    )
    _mend(extracted, damaged)
    return extracted


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
        except msgspec.MsgspecError:
            return None

    return take


def _salvage(text: bytes) -> Mapping[str, object]:
    """The document of a file whose statistics have an unexpected shape somewhere; {} if it is no JSON object."""
    try:
        document = _GENERIC.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
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
