"""A cast from the type of an old file to the type of today, fields of rows by their ids."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import UnsupportedFeature
from alluvium.paimon.casts import numbers, texts, times
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.type_text import parse_type_text
from alluvium.paimon.schema.types import DataType
from alluvium.schema.arrow import to_arrow

_INTS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
#: How many the largest has.
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}
_TEXTS = ("CHAR", "VARCHAR")
_BYTES = ("BINARY", "VARBINARY", "BLOB")
_NESTED = ("ARRAY", "MAP", "MULTISET", "ROW", "VECTOR")

#: Names that stand in a text of SQL as they are.
_PLAIN_NAME = re.compile(r"[^'\\\\\n]+")
_WHOLE_TEXT = parse_type_text("STRING")


@dataclass(frozen=True, slots=True)
class PaimonCast:
    """Implements `plan.scan.Conversion` by Paimon's cast rules."""

    source: DataType
    target: DataType

    def convert(self, values: pa.Array, time_zone: str) -> pa.Array:
        return cast(values, self.source, self.target, time_zone)

    def sql(self, operand: str) -> str | None:
        """Only what Spark does in the same way: widening of numbers, whole numbers as texts, rows made of such."""
        if self.source.root == self.target.root == "ROW":
            return _row_sql(operand, self.source, self.target)
        is_exact = _is_widened(self.source, self.target) or _is_spelled(self.source, self.target)
        return f"cast({operand} as {to_logical(self.target)})" if is_exact else None


def _is_widened(source: DataType, target: DataType) -> bool:
    """Whether each number of one type is one of the other."""
    if target.root == "DECIMAL" and source.root in (*_INTS, "DECIMAL"):
        scale = source.scale if source.root == "DECIMAL" else 0
        digits = source.precision - scale if source.root == "DECIMAL" else _DIGITS[source.root]
        return target.scale >= scale and target.precision - target.scale >= digits
    widened = source.root in (*_INTS, "FLOAT") and target.root in (*_INTS, "DOUBLE")
    wider = (*_INTS, "FLOAT", "DOUBLE")
    return widened and wider.index(source.root) <= wider.index(target.root)


def _is_spelled(source: DataType, target: DataType) -> bool:
    """Whether whole numbers become texts that hold all their digits, and the sign."""
    return source.root in _INTS and target.root == "VARCHAR" and target.length > _DIGITS[source.root]


def _row_sql(operand: str, source: DataType, target: DataType) -> str | None:
    """A row put together of the members of an older one; None where SQL cannot say one of them."""
    known = {f.id: f for f in source.fields}
    members = []
    for f in target.fields:
        old = known.get(f.id)
        value: str | None = None
        if old is not None:
            value = f"{operand}.`{old.name.replace('`', '``')}`"
            value = PaimonCast(old.type, f.type).sql(value) if _differs(old.type, f.type) else value
        elif f.type.root not in _NESTED:
            value = f"cast(null as {to_logical(f.type)})"
        if value is None or not _PLAIN_NAME.fullmatch(f.name):
            return None
        members.append(f"'{f.name}', {value}")
    return f"if({operand} is null, null, named_struct({', '.join(members)}))" if members else None


def cast_between(source: DataType, target: DataType) -> PaimonCast | None:
    """The cast that a column needs; None where its values are as they should be.

    Raises:
        UnsupportedFeature: Paimon has no such cast (`"unsupported-cast"`).
    """
    if not _differs(source, target):
        return None
    _ensure_castable(source, target)
    return PaimonCast(source, target)


def _differs(source: DataType, target: DataType) -> bool:
    if source.root != target.root:
        # A text that may be longer, or bytes that may be, are what they were.
        return True
    if source.root == "ROW":
        names = [(f.id, f.name) for f in source.fields] != [(f.id, f.name) for f in target.fields]
        pairs = zip(source.fields, target.fields, strict=False)
        return names or any(_differs(old.type, new.type) for old, new in pairs)
    for old, new in ((source.element, target.element), (source.key, target.key), (source.value, target.value)):
        if old is not None and new is not None and _differs(old, new):
            return True
    if source.root in ("VARCHAR", "VARBINARY"):
        return source.length > target.length
    return (source.length, source.precision, source.scale) != (target.length, target.precision, target.scale)


def _ensure_castable(source: DataType, target: DataType) -> None:
    if source.root in _NESTED or target.root in _NESTED:
        both = {source.root, target.root}
        if source.root == target.root or both <= {"ARRAY", "VECTOR"}:
            for old, new in ((source.element, target.element), (source.key, target.key), (source.value, target.value)):
                if old is not None and new is not None and _differs(old, new):
                    _ensure_castable(old, new)
            by_id = {f.id: f.type for f in source.fields}
            for f in target.fields:
                if f.id in by_id and _differs(by_id[f.id], f.type):
                    _ensure_castable(by_id[f.id], f.type)
            return
        if target.root in _TEXTS and source.root in ("ARRAY", "MAP", "ROW"):
            for inner in (source.element, source.key, source.value, *(f.type for f in source.fields)):
                if inner is not None and inner.root not in _TEXTS:
                    _ensure_castable(inner, target)
            return
        raise _no_cast(source, target)
    if source.root == target.root or _has_executor(source.root, target.root):
        return
    raise _no_cast(source, target)


def _has_executor(source: str, target: str) -> bool:
    numeric = (*_INTS, "FLOAT", "DOUBLE", "DECIMAL")
    stamp = source.startswith("TIMESTAMP")
    temporal = ("DATE", "TIME_WITHOUT_TIME_ZONE")
    if target in _TEXTS:
        return source not in ("VARIANT",)
    if target in _BYTES:
        return source in (*_TEXTS, *_BYTES)
    if target == "BOOLEAN":
        return source in (*_INTS, *_TEXTS)
    if target in numeric:
        from_stamp = stamp and target in ("INTEGER", "BIGINT")
        return source in (*numeric, "BOOLEAN", *_TEXTS) or from_stamp
    if target in temporal:
        return source in _TEXTS or stamp
    if target.startswith("TIMESTAMP"):
        return source in (*_TEXTS, *temporal, "INTEGER", "BIGINT") or stamp
    return False


def _no_cast(source: DataType, target: DataType) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"files hold a column as {source.root} that is {target.root} today, and there is no cast",
        code="unsupported-cast",
        features=("cast",),
    )


def cast(values: pa.Array, source: DataType, target: DataType, time_zone: str) -> pa.Array:
    """Values of one type as another's; see `cast_between` for which pairs there are.

    Raises:
        InvalidRequest: A value cannot be cast (`"invalid-cast"`).
    """
    if not _differs(source, target):
        return values
    root = target.root
    if root in _NESTED:
        return _nested(values, source, target, time_zone)
    if root in _TEXTS and source.root in _NESTED:
        return cast(_spelled(values, source, time_zone), _WHOLE_TEXT, target, time_zone)
    if root in _TEXTS:
        return texts.to_text(values, source, target, time_zone)
    if root in _BYTES:
        return texts.to_bytes(values, target)
    if root == "BOOLEAN":
        return numbers.to_boolean(values, source, target)
    if root in _INTS:
        if source.root.startswith("TIMESTAMP"):
            return times.to_seconds(values, source, target)
        return numbers.to_integer(values, source, target)
    if root in ("FLOAT", "DOUBLE"):
        return numbers.to_floating(values, source, target)
    if root == "DECIMAL":
        return numbers.to_decimal(values, source, target)
    if root == "DATE":
        return times.to_date(values, source, target, time_zone)
    if root == "TIME_WITHOUT_TIME_ZONE":
        return times.to_time(values, source, target, time_zone)
    return times.to_timestamp(values, source, target, time_zone)


def _spelled(values: pa.Array, source: DataType, time_zone: str) -> pa.Array:
    """Values of several parts as Java's casts spell them: `[1, null]`, `{a -> 1}`, `{1, x}`."""

    def text(parts: pa.Array, kind: DataType | None) -> pa.Array:
        assert kind is not None
        return pc.fill_null(cast(parts, kind, _WHOLE_TEXT, time_zone), "null")

    whole = pa.concat_arrays([values, values.slice(0, 0)])
    if source.root == "ROW":
        members = [text(member, f.type) for f, member in zip(source.fields, whole.flatten(), strict=True)]
        inside = pc.binary_join_element_wise(*members, ", ") if members else pa.repeat(pa.scalar(""), len(whole))
        spelled = pc.binary_join_element_wise("{", inside, "}", "")
    elif source.root == "MAP":
        pairs = pc.binary_join_element_wise(text(whole.keys, source.key), text(whole.items, source.value), " -> ")
        lists = pa.ListArray.from_arrays(pc.cast(whole.offsets, pa.int32()), pairs)
        spelled = pc.binary_join_element_wise("{", pc.binary_join(lists, ", "), "}", "")
    else:
        lists = pa.ListArray.from_arrays(pc.cast(whole.offsets, pa.int32()), text(whole.values, source.element))
        spelled = pc.binary_join_element_wise("[", pc.binary_join(lists, ", "), "]", "")
    return pc.if_else(whole.is_valid(), spelled, pa.scalar(None, pa.string()))


def _nested(values: pa.Array, source: DataType, target: DataType, time_zone: str) -> pa.Array:
    kind = to_arrow(to_logical(target))
    if target.root == "ROW":
        members = dict(
            zip((f.id for f in source.fields), zip(source.fields, values.flatten(), strict=True), strict=True)
        )
        arrays = []
        for f, arrow in zip(target.fields, kind, strict=True):
            if f.id in members:
                old, member = members[f.id]
                arrays.append(cast(member, old.type, f.type, time_zone))
            else:
                arrays.append(pa.nulls(len(values), arrow.type))
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=values.is_null())
    whole = values if values.offset == 0 else pa.concat_arrays([values, values.slice(0, 0)])
    if target.root in ("MAP", "MULTISET"):
        keys, items = whole.keys, whole.items
        if target.root == "MULTISET":
            assert source.element is not None
            assert target.element is not None
            keys = cast(keys, source.element, target.element, time_zone)
        else:
            assert source.key is not None
            assert target.key is not None
            assert source.value is not None
            assert target.value is not None
            keys = cast(keys, source.key, target.key, time_zone)
            items = cast(items, source.value, target.value, time_zone)
        return pa.MapArray.from_arrays(whole.offsets, keys, items, type=kind, mask=whole.is_null())
    assert source.element is not None
    assert target.element is not None
    elements = cast(whole.values, source.element, target.element, time_zone)
    offsets = pc.cast(whole.offsets, pa.int32())
    return pa.ListArray.from_arrays(offsets, elements, type=kind, mask=whole.is_null())
