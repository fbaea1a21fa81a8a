"""Which aggregate functions take columns of which types: whoever reads rows, and whoever writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa


def takes(function: str, kind: pa.DataType) -> bool:
    """Whether a function merges values of a type; functions that nobody knows merge none.

    Specification: the factories of `org.apache.paimon.mergetree.compact.aggregate`, and what their functions compare.

    Args:
        function: As `MergeRule.function` has it.
        kind: Of the column.
    """
    return function in _TAKEN and _TAKEN[function](kind)


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
