"""Aggregates whose accumulators are texts, lists, maps, bitmaps and sketches: Python values, touched only where a row
adds.

No kernel of Arrow joins lists or maps of many keys, so these go value by value; only columns with such a function pay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alluvium.codecs.bitmaps.art_bitmap import unite_64
from alluvium.codecs.bitmaps.roaring import unite_32
from alluvium.codecs.sketches import unite_hll, unite_theta
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.plan.aggregates import check_options, time_field
from alluvium.plan.scan import MergeRule
from alluvium.portable.merging.nested_tables import nested_partial_update, nested_update

Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
#: From an accumulator and a row's value to the accumulator; either may be null.
Combine: TypeAlias = "Callable[[Any, Any], Any]"
#: What adds, and what takes back if anything does, made once of a column's options and type.
Make: TypeAlias = "Callable[[Mapping[str, str], pa.DataType], tuple[Combine, Combine | None]]"


@dataclass(frozen=True, slots=True)
class Collector:
    """An aggregate function.

    Attributes:
        make: It itself.
        turns: Older rows come before what is there; False: they are added like newer ones.
    """

    make: Make
    turns: bool = True


class Collected:
    """Accumulators in Python.

    Args:
        rule: Of the column.
        values: The column, all rows, of a type that the function takes.

    Raises:
        CorruptTable: `"invalid-options"`: the options of the function make no sense.
    """

    def __init__(self, rule: MergeRule, values: pa.Array) -> None:
        self._rule = rule
        self._values = values
        self._turns = COLLECTORS[rule.function].turns
        parameters = dict(rule.parameters)
        if (problem := check_options(rule.function, parameters, values.type)) is not None:
            raise CorruptTable(problem, code="invalid-options", column=rule.column)
        self._add, self._retract = COLLECTORS[rule.function].make(parameters, values.type)

    def begin(self, count: int) -> None:
        self._state: list[Any] = [None] * count

    def add(self, rows: Indices, flags: Flags) -> None:
        self._apply(self._add, rows, flags, False)

    def add_reversed(self, rows: Indices, flags: Flags) -> None:
        self._apply(self._add, rows, flags, self._turns)

    def retract(self, rows: Indices, flags: Flags) -> None:
        if self._rule.ignores_retract or not flags.any():
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

    def _apply(self, function: Combine, rows: Indices, flags: Flags, swap: bool) -> None:
        places = np.flatnonzero(flags)
        taken = self._values.take(pa.array(rows[places])).to_pylist()
        try:
            for place, value in zip(places.tolist(), taken, strict=True):
                state = self._state[place]
                self._state[place] = function(value, state) if swap else function(state, value)
        except (CorruptTable, UnsupportedFeature) as error:
            # Functions see values, and know not whose.
            error.column = self._rule.column
            error.message = f"column {error.column!r}: {error.message}"
            raise

    def put(self, rows: Indices, flags: Flags) -> None:
        places = np.flatnonzero(flags)
        values = self._values.take(pa.array(rows[places])).to_pylist()
        for place, value in zip(places.tolist(), values, strict=True):
            self._state[place] = value

    def result(self) -> pa.Array:
        return pa.array(self._state, self._values.type)


def _is_distinct(parameters: Mapping[str, str]) -> bool:
    return parameters.get("distinct", "false").lower() == "true"


def _listagg(parameters: Mapping[str, str], kind: pa.DataType) -> tuple[Combine, None]:
    delimiter, distinct = parameters.get("list-agg-delimiter", ","), _is_distinct(parameters)

    def add(state: str | None, value: str | None) -> str | None:
        if state is None or value is None:
            return value if state is None else state
        if not state or not value:
            # `FieldListaggAgg`: what is empty adds nothing, not even the delimiter.
            return state or value
        if not distinct:
            return f"{state}{delimiter}{value}"
        known = state.split(delimiter)
        for token in value.split(delimiter):
            if token and token not in known:
                known.append(token)
                state = f"{state}{delimiter}{token}"
        return state

    return add, None


def _collect(parameters: Mapping[str, str], kind: pa.DataType) -> tuple[Combine, Combine]:
    distinct = _is_distinct(parameters)

    def add(state: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
        if state is None and value is None:
            return None
        joined = [*(state or ()), *(value or ())]
        return list({repr(one): one for one in joined}.values()) if distinct else joined

    return add, _uncollect


def _uncollect(state: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
    """Each value taken back removes one that is equal."""
    if state is None or value is None:
        return state
    left = list(state)
    for one in value:
        if one in left:
            left.remove(one)
    return left


def _merge_map(parameters: Mapping[str, str], kind: pa.DataType) -> tuple[Combine, Combine]:
    def add(state: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
        if state is None or value is None:
            return value if state is None else state
        return list({repr(key): (key, item) for key, item in (*state, *value)}.values())

    def retract(state: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
        if state is None or value is None:
            return state
        gone = {repr(key) for key, _ in value}
        return [(key, item) for key, item in state if repr(key) not in gone]

    return add, retract


def _merge_map_with_keytime(parameters: Mapping[str, str], kind: pa.DataType) -> tuple[Combine, None]:
    """Of each key the row with the largest time, which is a text; a key whose row is null goes away."""
    field = time_field(parameters, kind)

    def time_of(row: dict[str, Any] | None) -> bytes | None:
        # Java compares texts by their UTF-16.
        return None if row is None or row[field] is None else row[field].encode("utf-16-be")

    def add(state: list[Any] | None, value: list[Any] | None) -> list[Any] | None:
        if state is None or value is None:
            return value if state is None else state
        merged = {repr(key): (key, row) for key, row in state}
        for key, row in value:
            name, time = repr(key), time_of(row)
            if row is None:
                merged.pop(name, None)
            elif time is not None:
                known = time_of(merged[name][1]) if name in merged else None
                if known is None or time > known:
                    merged[name] = (key, row)
        return list(merged.values())

    return add, None


def _union(unite: Callable[[bytes, bytes], bytes]) -> Make:
    """Bytes that are united two at a time; where there is nothing to unite nobody looks at them."""

    def add(state: bytes | None, value: bytes | None) -> bytes | None:
        if state is None or value is None:
            return value if state is None else state
        return unite(state, value)

    return lambda parameters, kind: (add, None)


#: By Paimon's name.
COLLECTORS: Mapping[str, Collector] = {
    "listagg": Collector(_listagg),
    # `FieldCollectAgg` overrides `aggReversed`.
    "collect": Collector(_collect, turns=False),
    "merge_map": Collector(_merge_map),
    "merge_map_with_keytime": Collector(_merge_map_with_keytime),
    "nested_update": Collector(nested_update),
    "nested_partial_update": Collector(nested_partial_update),
    "rbm32": Collector(_union(unite_32)),
    "rbm64": Collector(_union(unite_64)),
    "hll_sketch": Collector(_union(unite_hll)),
    "theta_sketch": Collector(_union(unite_theta)),
}
