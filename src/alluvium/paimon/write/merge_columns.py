"""The columns of rows taken over into a table's schema: new ones are added, types become wide enough.

Specification: `org.apache.paimon.schema.SchemaMergingUtils`, by which `write.merge-schema` works.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from alluvium.errors import InvalidRequest
from alluvium.paimon.schema.casts import can_cast, may_cast
from alluvium.paimon.schema.logical import as_brought, fields_from_logical, to_logical
from alluvium.paimon.schema.numbering import number_within
from alluvium.paimon.schema.table_schema import TableSchema, next_version
from alluvium.paimon.schema.types import DATETIME, TIMESTAMPS, DataField, DataType, highest_field_id
from alluvium.schema import types as t

#: Digits of the greatest numbers of whole types.
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}


def merge_columns(schema: TableSchema, data: t.Struct, explicit: bool = False) -> TableSchema:
    """The schema that holds the columns of rows, too; the schema itself where it does already.

    Args:
        schema: The table's newest.
        data: The columns of the rows.
        explicit: Whether a column's type may become one that not all of its values fit into
            (`write.merge-schema.explicit-cast`).

    Raises:
        InvalidRequest: A column's values do not go into the type of the table's, nor the reverse
            (`"cast-not-allowed"`), or the column is a key (`"key-column"`).
    """
    merge = _Merge(explicit, max(schema.highest_field_id, highest_field_id(schema.fields)))
    keys = {*schema.primary_keys, *schema.partition_keys, *schema.bucket_keys}
    fields = merge.fields(schema.fields, fields_from_logical(data), (), keys)
    if fields == schema.fields:
        return schema
    return next_version(schema, fields, merge.highest)


@dataclass(slots=True)
class _Merge:
    """One merge: what it allows, and the greatest id so far."""

    explicit: bool
    highest: int

    def fields(
        self, base: Sequence[DataField], update: Sequence[DataField], path: tuple[str, ...], keys: set[str]
    ) -> tuple[DataField, ...]:
        """Columns in the table's order, then new ones in that of the rows."""
        given = {f.name.lower(): f for f in update}
        merged = []
        for f in base:
            found = given.pop(f.name.lower(), None)
            place = (*path, f.name)
            if found is not None:
                retype = self._key if f.name in keys else self._type
                f = replace(f, type=retype(f.type, found.type, place))
            merged.append(f)
        for f in given.values():
            # Java numbers what is inside of a new column first, other than where one is added by ALTER TABLE.
            inner = number_within(f.type, self._next_id)
            merged.append(replace(f, id=self._next_id(), type=inner.with_nullable(True)))
        return tuple(merged)

    def _next_id(self) -> int:
        self.highest += 1
        return self.highest

    def _key(self, base: DataType, update: DataType, path: tuple[str, ...]) -> DataType:
        """Keys keep their types: rows that are there lie where their values of the old type put them."""
        if not _fits(update, base):
            raise _refused("key-column", f"is a key of type {base}, and the rows have {update}", path)
        return base

    def _type(self, base: DataType, update: DataType, path: tuple[str, ...]) -> DataType:
        nested = self._nested(base, update, path)
        if nested is not None:
            return nested.with_nullable(base.nullable)
        wanted = update.with_nullable(base.nullable)
        if base.root == update.root == "DECIMAL":
            # Of another scale nothing is merged; values of fewer digits fit as they are.
            wanted = replace(wanted, precision=max(base.precision, update.precision))
            return wanted if base.scale == update.scale else self._kept(base, update, path)
        if wanted == base or to_logical(update) == as_brought(to_logical(base)) != to_logical(base):
            return base
        may = may_cast(base.with_nullable(True), update.with_nullable(True), self.explicit) and can_cast(base, update)
        if self.explicit:
            return wanted if may else self._kept(base, update, path)
        # Java merges these, too, though values that are there would be read as others, or as nulls. The rows' fit.
        if (base.root in TIMESTAMPS and update.root in DATETIME and base.root != update.root) or (
            base.root in ("FLOAT", "DOUBLE") and update.root == "DECIMAL"
        ):
            return base
        if base.root == update.root:
            loses = base.length > update.length or base.precision > update.precision
        else:
            loses = update.root == "DECIMAL" and _DIGITS.get(base.root, 0) > update.precision - update.scale
        return wanted if may and not loses else self._kept(base, update, path)

    def _kept(self, base: DataType, update: DataType, path: tuple[str, ...]) -> DataType:
        if not _fits(update, base):
            raise _refused("cast-not-allowed", f"is {base}, and the rows have {update}", path)
        return base

    def _nested(self, base: DataType, update: DataType, path: tuple[str, ...]) -> DataType | None:
        """What has types inside, merged from the inside; None: one of them has none, or they differ in kind."""
        if base.root != update.root:
            return None
        if base.root == "ROW":
            return replace(base, fields=self.fields(base.fields, update.fields, path, set()))
        if base.root == "MAP" and base.key and base.value and update.key and update.value:
            key = self._key(base.key, update.key, (*path, "key"))
            return replace(base, key=key, value=self._type(base.value, update.value, (*path, "value")))
        if base.root == "ARRAY" and base.element and update.element:
            return replace(base, element=self._type(base.element, update.element, (*path, "element")))
        return None


def _fits(update: DataType, base: DataType) -> bool:
    """Whether a column holds values of a type without a change."""
    if base.root == update.root == "DECIMAL":
        return update.scale <= base.scale and update.precision - update.scale <= base.precision - base.scale
    return to_logical(update) == as_brought(to_logical(base)) or _lossless(update.with_nullable(True), base)


def _lossless(source: DataType, target: DataType) -> bool:
    return may_cast(source, target.with_nullable(True), False) and can_cast(source, target)


def _refused(code: str, problem: str, path: tuple[str, ...]) -> InvalidRequest:
    name = ".".join(path)
    return InvalidRequest(
        f"column {name!r} {problem}",
        code=code,
        column=name,
        hint="cast the rows, or say write.merge-schema.explicit-cast = true" if code == "cast-not-allowed" else None,
    )
