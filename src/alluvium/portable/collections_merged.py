"""Aggregates whose accumulators are texts, lists, maps and bitmaps: Python values, touched only where a row adds.

No kernel of Arrow joins lists or maps of many keys, so these go value by value; only columns with such a function pay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap, BitMap64

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.plan.scan import MergeRule

Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Collected:
    """Accumulators in Python."""

    def __init__(self, rule: MergeRule, values: pa.Array) -> None:
        self._rule = rule
        self._values = values
        self._parameters = dict(rule.parameters)
        self._add, self._retract = COLLECTORS[rule.function]

    def begin(self, count: int) -> None:
        self._state: list[Any] = [None] * count

    def add(self, rows: Indices, flags: Flags) -> None:
        self._apply(self._add, rows, flags, False)

    def add_reversed(self, rows: Indices, flags: Flags) -> None:
        self._apply(self._add, rows, flags, True)

    def retract(self, rows: Indices, flags: Flags) -> None:
        if self._rule.ignores_retract:
            return
        if self._retract is None:
            raise UnsupportedFeature(
                f"the aggregate function {self._rule.function!r} cannot take a row back",
                code="unsupported-retract",
                column=self._rule.column,
                features=(self._rule.function,),
                hint=f"set fields.{self._rule.column}.ignore-retract to leave such rows aside",
            )
        self._apply(self._retract, rows, flags, False)

    def _apply(
        self, function: Callable[[Any, Any, dict[str, str]], Any], rows: Indices, flags: Flags, swap: bool
    ) -> None:
        places = np.flatnonzero(flags)
        taken = self._values.take(pa.array(rows[places])).to_pylist()
        for place, value in zip(places.tolist(), taken, strict=True):
            state = self._state[place]
            left, right = (value, state) if swap else (state, value)
            self._state[place] = function(left, right, self._parameters)

    def reset(self, flags: Flags) -> None:
        for place in np.flatnonzero(flags).tolist():
            self._state[place] = None

    def result(self) -> pa.Array:
        return pa.array(self._state, self._values.type)


def _is_distinct(parameters: dict[str, str]) -> bool:
    return parameters.get("distinct", "false").lower() == "true"


def _listagg(state: str | None, value: str | None, parameters: dict[str, str]) -> str | None:
    if state is None or value is None:
        return value if state is None else state
    if not state or not value:
        # `FieldListaggAgg`: what is empty adds nothing, not even the delimiter.
        return state or value
    delimiter = parameters.get("list-agg-delimiter", ",")
    if not _is_distinct(parameters):
        return f"{state}{delimiter}{value}"
    known = state.split(delimiter)
    for token in value.split(delimiter):
        if token and token not in known:
            known.append(token)
            state = f"{state}{delimiter}{token}"
    return state


def _collect(state: list[Any] | None, value: list[Any] | None, parameters: dict[str, str]) -> list[Any] | None:
    if state is None and value is None:
        return None
    joined = [*(state or ()), *(value or ())]
    return _unique(joined) if _is_distinct(parameters) else joined


def _unique(values: list[Any]) -> list[Any]:
    seen: set[str] = set()
    kept = []
    for value in values:
        key = repr(value)
        if key not in seen:
            seen.add(key)
            kept.append(value)
    return kept


def _uncollect(state: list[Any] | None, value: list[Any] | None, parameters: dict[str, str]) -> list[Any] | None:
    """Each value taken back removes one that is equal."""
    if state is None or value is None:
        return state
    left = list(state)
    for one in value:
        if one in left:
            left.remove(one)
    return left


def _merge_map(state: list[Any] | None, value: list[Any] | None, parameters: dict[str, str]) -> list[Any] | None:
    if state is None or value is None:
        return value if state is None else state
    merged = {repr(key): (key, item) for key, item in state}
    merged.update({repr(key): (key, item) for key, item in value})
    return list(merged.values())


def _unmerge_map(state: list[Any] | None, value: list[Any] | None, parameters: dict[str, str]) -> list[Any] | None:
    if state is None or value is None:
        return state
    gone = {repr(key) for key, _ in value}
    return [(key, item) for key, item in state if repr(key) not in gone]


def _nested_key(row: dict[str, Any], parameters: dict[str, str]) -> str:
    names = [name.strip() for name in parameters.get("nested-key", "").split(",") if name.strip()]
    return repr([row[name] for name in names] if names else row)


def _nested_update(state: list[Any] | None, value: list[Any] | None, parameters: dict[str, str]) -> list[Any] | None:
    """Rows of a list by their key, later ones instead of earlier; without a key all are kept."""
    unknown = set(parameters) - {"nested-key", "count-limit"}
    if unknown or "count-limit" in parameters:
        raise UnsupportedFeature(
            "a limit or a sequence of nested updates", code="unsupported-aggregate", features=("nested_update",)
        )
    if state is None or value is None:
        # Nothing to join: what is there is not looked at.
        return value if state is None else state
    joined = [row for row in (*state, *value) if row is not None]
    if not parameters.get("nested-key"):
        return joined
    return list({_nested_key(row, parameters): row for row in joined}.values())


def _un_nested(state: list[Any] | None, value: list[Any] | None, parameters: dict[str, str]) -> list[Any] | None:
    if state is None or value is None:
        return state
    if parameters.get("nested-key"):
        gone = {_nested_key(row, parameters) for row in value if row is not None}
        return [row for row in state if _nested_key(row, parameters) not in gone]
    return _uncollect(state, value, parameters)


def _bitmap_union(kind: Any) -> Callable[[Any, Any, dict[str, str]], Any]:
    def union(state: bytes | None, value: bytes | None, parameters: dict[str, str]) -> bytes | None:
        if state is None or value is None:
            return value if state is None else state
        try:
            joined = kind.deserialize(state) | kind.deserialize(value)
        except (ValueError, RuntimeError) as error:
            raise CorruptTable(f"a value is no bitmap: {error}", code="damaged-bitmap") from None
        joined.run_optimize()
        return bytes(joined.serialize())

    return union


#: What adds, and what takes back, by Paimon's name of the function.
COLLECTORS: dict[
    str, tuple[Callable[[Any, Any, dict[str, str]], Any], Callable[[Any, Any, dict[str, str]], Any] | None]
] = {
    "listagg": (_listagg, None),
    "collect": (_collect, _uncollect),
    "merge_map": (_merge_map, _unmerge_map),
    "nested_update": (_nested_update, _un_nested),
    "rbm32": (_bitmap_union(BitMap), None),
    "rbm64": (_bitmap_union(BitMap64), None),
}
