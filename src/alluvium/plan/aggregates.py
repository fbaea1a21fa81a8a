"""Which aggregate functions take which columns, with which options: for whoever reads or writes rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pyarrow as pa

#: What may become of rows of a nested table whose key is null.
NULL_KEYS = ("merge", "ignore", "error")
_WHOLE = re.compile(r"[+-]?\d{1,10}", re.ASCII)


def takes(function: str, kind: pa.DataType) -> bool:
    """Whether a function merges values of a type; functions that nobody knows merge none.

    Specification: the factories of `org.apache.paimon.mergetree.compact.aggregate`, and what their functions compare.

    Args:
        function: As `MergeRule.function` has it.
        kind: Of the column.
    """
    return function in _TAKEN and _TAKEN[function](kind)


def check_options(function: str, parameters: Mapping[str, str], kind: pa.DataType) -> str | None:
    """What is wrong with the options of a function, which nobody could merge by; None: nothing.

    Specification: `FieldNestedUpdateAggFactory`, `FieldNestedPartialUpdateAggFactory`, `FieldMergeMapWithKeyTimeAgg`.

    Args:
        function: As `MergeRule.function` has it.
        parameters: Of the function, by name.
        kind: Of the column, which the function takes.
    """
    check = _CHECKED.get(function)
    return None if check is None else check(parameters, kind)


def named_fields(text: str) -> tuple[str, ...]:
    """The fields that an option lists."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def time_field(parameters: Mapping[str, str], kind: pa.DataType) -> str:
    """The field of a map's rows that says of which time they are: "default to the last field"."""
    names = [field.name for field in kind.item_type]
    return parameters.get("ts-field", names[-1])


def _check_nested(parameters: Mapping[str, str], kind: pa.DataType) -> str | None:
    known = [field.name for field in kind.value_type]
    key, sequence = (named_fields(parameters.get(name, "")) for name in ("nested-key", "nested-sequence-field"))
    for name in (*key, *sequence):
        if name not in known:
            return f"{name!r} is no field of the nested table, which has {', '.join(known)}"
    if len(set(key)) < len(key) or (not key and "nested-key" in parameters):
        return f"nested-key is {parameters['nested-key']!r}, which names no field, or one of them twice"
    null_keys = parameters.get("nested-key-null-strategy", "merge").lower()
    if null_keys not in NULL_KEYS:
        return f"nested-key-null-strategy is {null_keys!r}, and not one of {', '.join(NULL_KEYS)}"
    if not key and (sequence or "nested-key-null-strategy" in parameters):
        return "a nested table without nested-key has neither a sequence nor keys that are null"
    return None


def _check_limited(parameters: Mapping[str, str], kind: pa.DataType) -> str | None:
    limit = parameters.get("count-limit", "0")
    if not _WHOLE.fullmatch(limit):
        return f"count-limit is {limit!r}, which is no number"
    return _check_nested(parameters, kind)


def _check_keyed(parameters: Mapping[str, str], kind: pa.DataType) -> str | None:
    if not named_fields(parameters.get("nested-key", "")):
        return "nested_partial_update needs nested-key"
    return _check_nested(parameters, kind)


def _check_distinct(parameters: Mapping[str, str], kind: pa.DataType) -> str | None:
    distinct = parameters.get("distinct", "false")
    return None if distinct.lower() in ("true", "false") else f"distinct is {distinct!r}, and neither true nor false"


def _check_timed(parameters: Mapping[str, str], kind: pa.DataType) -> str | None:
    field, names = time_field(parameters, kind), [field.name for field in kind.item_type]
    if field in names and pa.types.is_string(kind.item_type.field(names.index(field)).type):
        return None
    return f"{field!r} is no text in the rows of the map, which have {', '.join(names)}"


def _is_any(kind: pa.DataType) -> bool:
    return True


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_compared(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)


def _is_nested_table(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) and pa.types.is_struct(kind.value_type))


def _is_timed(kind: pa.DataType) -> bool:
    # "ROW type must have at least 2 fields"
    return bool(pa.types.is_map(kind) and pa.types.is_struct(kind.item_type) and kind.item_type.num_fields > 1)


_TAKEN: Mapping[str, Callable[[pa.DataType], bool]] = {
    # Past every function: the value of the last row.
    **dict.fromkeys(("last", "last_non_null"), _is_any),
    **dict.fromkeys(("last_value", "last_non_null_value", "first_value", "first_non_null_value"), _is_any),
    "primary-key": _is_any,
    **dict.fromkeys(("min", "max"), _is_compared),
    **dict.fromkeys(("sum", "product"), _is_number),
    **dict.fromkeys(("bool_and", "bool_or"), pa.types.is_boolean),
    "listagg": pa.types.is_string,
    "collect": pa.types.is_list,
    "merge_map": pa.types.is_map,
    "merge_map_with_keytime": _is_timed,
    **dict.fromkeys(("nested_update", "nested_partial_update"), _is_nested_table),
    **dict.fromkeys(("rbm32", "rbm64", "hll_sketch", "theta_sketch"), pa.types.is_binary),
}

_CHECKED: Mapping[str, Callable[[Mapping[str, str], pa.DataType], str | None]] = {
    **dict.fromkeys(("listagg", "collect"), _check_distinct),
    "nested_update": _check_limited,
    "nested_partial_update": _check_keyed,
    "merge_map_with_keytime": _check_timed,
}
