"""Shredded variants put together again, all rows of a column at once.

Specification: Parquet, VariantShredding.md, "Reconstructing a Shredded Variant". The work goes by the shape of the
column: each level of `typed_value` is put together for all rows, from its members upward.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from alluvium.codecs.variants.byte_ranges import Ints, Ranges, coalesce, concat, missing, ranges_of, to_binary
from alluvium.codecs.variants.variant_encoding import (
    Dictionaries,
    encode_column,
    encode_containers,
    ensure_metadata,
    malformed,
    null_for_missing,
    parse_dictionaries,
    parse_objects,
)
from alluvium.errors import UnsupportedFeature

#: Levels of `typed_value` within one another.
MAX_DEPTH = 100
#: What the offsets of an Arrow column of binaries can count.
MAX_BYTES = (1 << 31) - 1

_is = pa.types


def rebuild(group: pa.StructArray) -> tuple[pa.Array, pa.Array]:
    """The metadata and the values of a Parquet group of variants, shredded or not.

    Args:
        group: Rows with members `metadata`, optionally `value` and `typed_value`; null is no variant.

    Returns:
        Two columns of binaries without nulls, empty where the group is null.

    Raises:
        CorruptTable: The bytes are no variants, or contradict one another.
        UnsupportedFeature: More than 2 GiB of values.
    """
    # "The Parquet columns used to store variant metadata and values must be accessed by name, not by position."
    members = _members(group)
    if "metadata" not in members:
        raise malformed("it has no metadata")
    valid = np.asarray(group.is_valid())
    metadata = members["metadata"].cast(pa.binary())
    if not np.asarray(metadata.is_valid())[valid].all():
        raise malformed("its metadata is null")
    ensure_metadata(metadata)
    found = _Rebuilder.of(metadata, members).values(members, _codes(metadata, members), 0)
    values = null_for_missing(found).only(valid)
    if int(values.lengths.sum()) > MAX_BYTES:
        raise UnsupportedFeature(
            "the variants of one batch have more than 2 GiB",
            code="oversized-variants",
            features=["variantShredding"],
            hint="read fewer rows at a time: to_batches(batch_size=...)",
        )
    return metadata.fill_null(b""), to_binary(values, pa.binary())


def _members(group: pa.Array) -> dict[str, pa.Array]:
    """The members of a struct by name; null where it is null."""
    if not _is.is_struct(group.type):
        raise malformed(f"{group.type} stands where a group of value and typed_value must")
    return dict(zip((f.name for f in group.type), map(_plain, group.flatten()), strict=True))


def _plain(values: pa.Array) -> pa.Array:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    return values.dictionary_decode() if _is.is_dictionary(values.type) else values


def _codes(metadata: pa.Array, members: dict[str, pa.Array]) -> Ints:
    """For each row, which of the distinct metadata it has; 0 where it has none."""
    if "typed_value" not in members:
        return np.zeros(len(metadata), np.int64)
    return np.asarray(metadata.dictionary_encode().indices.fill_null(0)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Rebuilder:
    """Makes values of shredded groups; knows the names of fields."""

    names: Dictionaries

    @classmethod
    def of(cls, metadata: pa.Array, members: dict[str, pa.Array]) -> _Rebuilder:
        """For rows of these metadata; where nothing is shredded, their names do not matter."""
        known = metadata.dictionary_encode().dictionary if "typed_value" in members else metadata[:0]
        return cls(parse_dictionaries(known))

    def values(self, members: dict[str, pa.Array], codes: Ints, depth: int) -> Ranges:
        """The values of a group's rows; missing where both `value` and `typed_value` are null.

        Args:
            members: Of the group.
            codes: Which metadata each row has.
            depth: Levels above this one.
        """
        if depth > MAX_DEPTH:
            raise malformed(f"it is shredded into more than {MAX_DEPTH} levels")
        value = _binaries(members["value"]) if "value" in members else missing(len(codes))
        if "typed_value" not in members:
            return value
        typed = members["typed_value"]
        if _is.is_struct(typed.type):
            return self.objects(value, typed, codes, depth)
        if _is.is_list(typed.type) or _is.is_large_list(typed.type) or _is.is_fixed_size_list(typed.type):
            made = self.arrays(typed, codes, depth)
        else:
            made = encode_column(typed)
        # "When both `value` and `typed_value` for a field are non-null, engines should fail."
        if (value.present & made.present).any():
            raise malformed("both value and typed_value are set")
        return coalesce(made, value)

    def arrays(self, typed: pa.Array, codes: Ints, depth: int) -> Ranges:
        counts = np.asarray(typed.value_lengths().fill_null(0)).astype(np.int64)
        elements = self.values(_members(_plain(typed.flatten())), np.repeat(codes, counts), depth + 1)
        # "All elements of an array must be present": one that is missing is a variant null, as anywhere else.
        return encode_containers(np.asarray(typed.is_valid()), counts, null_for_missing(elements))

    def objects(self, value: Ranges, typed: pa.StructArray, codes: Ints, depth: int) -> Ranges:
        present = np.asarray(typed.is_valid())
        parts = [self.shredded(name, group, codes, depth) for name, group in _members(typed).items()]
        is_object = present & value.present
        if is_object.any():
            parts.append(self.leftover(value, np.flatnonzero(is_object), codes))
        fields = _joined([part for part in parts if len(part.rows)])
        counts = np.bincount(fields.rows, minlength=len(codes)).astype(np.int64)
        made = encode_containers(present, counts, fields.values, fields.ids)
        return coalesce(made, value)

    def shredded(self, name: str, group: pa.Array, codes: Ints, depth: int) -> _Fields:
        """One field of objects, in the rows that have it."""
        values = self.values(_members(group), codes, depth + 1)
        # "A field's `value` and `typed_value` are set to null (missing) to indicate that the field does not exist".
        rows = np.flatnonzero(values.present)
        rank = self.names.rank(name)
        ids = np.zeros(0, np.int64) if rank is None else self.names.ids(rank)[codes[rows]]
        # "All field names of a Variant, whether shredded or not, must be present in the metadata."
        if len(rows) and (rank is None or (ids < 0).any()):
            raise malformed(f"the shredded field {name!r} is not among the names in its metadata")
        return _Fields(rows, np.full(len(rows), rank or 0, np.int64), ids[: len(rows)], values.at(rows))

    def leftover(self, value: Ranges, rows: Ints, codes: Ints) -> _Fields:
        """The fields that are not shredded of objects in these rows."""
        parsed = parse_objects(value.at(rows))
        own = rows[parsed.rows]
        if (parsed.ids >= self.names.sizes[codes[own]]).any():
            raise malformed("a field of an object has an id that its metadata does not know")
        ranks = self.names.ranks[self.names.first[codes[own]] + parsed.ids]
        return _Fields(own, ranks, parsed.ids, parsed.values)


@dataclass(frozen=True, slots=True)
class _Fields:
    """Fields of the objects of a column: the row, the rank of the name, its id and the value of each."""

    rows: Ints
    ranks: Ints
    ids: Ints
    values: Ranges


def _joined(parts: list[_Fields]) -> _Fields:
    """All fields, those of a row together and sorted by name."""
    if not parts:
        nothing = np.zeros(0, np.int64)
        return _Fields(nothing, nothing, nothing, missing(0))
    rows, ranks, ids = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "ranks", "ids"))
    keys = rows * (int(ranks.max()) + 1) + ranks
    order = np.argsort(keys, kind="stable")
    # "It is an error for an object to contain two fields with the same name", and "the `value` column of a partially
    # shredded object must never contain fields represented by the Parquet columns in `typed_value`".
    if (np.diff(keys[order]) == 0).any():
        raise malformed("an object has a field twice")
    return _Fields(rows[order], ranks[order], ids[order], concat([part.values for part in parts]).at(order))


def _binaries(values: pa.Array) -> Ranges:
    found = ranges_of(values)
    if (~found.present & np.asarray(values.is_valid())).any():
        raise malformed("its value has no bytes")
    return found
