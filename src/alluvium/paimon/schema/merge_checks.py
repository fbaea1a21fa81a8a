"""The rules of merge engines: sequence groups of partial updates, aggregators and the types that they take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from alluvium.errors import suggest
from alluvium.paimon import options as o
from alluvium.paimon.schema.types import NUMERIC, DataType

if TYPE_CHECKING:
    from alluvium.paimon.schema.table_schema import TableSchema

#: What is wrong, and the column.
Found: TypeAlias = "tuple[str, str | None]"

_GROUP = ".sequence-group"
#: Aggregators, and the roots that they take; None: all.
AGGREGATORS: Mapping[str, frozenset[str] | None] = {
    "sum": NUMERIC,
    "product": NUMERIC,
    "max": None,
    "min": None,
    "last_value": None,
    "last_non_null_value": None,
    "first_value": None,
    "first_non_null_value": None,
    "first_not_null_value": None,
    "listagg": frozenset({"VARCHAR"}),
    "bool_and": frozenset({"BOOLEAN"}),
    "bool_or": frozenset({"BOOLEAN"}),
    "collect": frozenset({"ARRAY"}),
    "merge_map": frozenset({"MAP"}),
    "merge_map_with_keytime": frozenset({"MAP"}),
    "nested_update": frozenset({"ARRAY"}),
    "nested_partial_update": frozenset({"ARRAY"}),
    "theta_sketch": frozenset({"VARBINARY"}),
    "hll_sketch": frozenset({"VARBINARY"}),
    "rbm32": frozenset({"VARBINARY"}),
    "rbm64": frozenset({"VARBINARY"}),
    "primary-key": None,
}


def sequence_groups(options: Mapping[str, str]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """`fields.<columns>.sequence-group`: the columns that order, and those that they order."""
    prefix = f"{o.FIELDS_PREFIX}."
    return {
        tuple(key[len(prefix) : -len(_GROUP)].split(",")): tuple(value.split(","))
        for key, value in options.items()
        if key.startswith(prefix) and key.endswith(_GROUP)
    }


def check_sequence_groups(schema: TableSchema) -> Iterator[Found]:
    """Groups of merge-engine partial-update, and what excludes them."""
    options = schema.options
    if not schema.primary_keys or o.MERGE_ENGINE.get(options) != "partial-update":
        return
    groups = sequence_groups(options)
    seen: set[str] = set()
    for leading, ordered in groups.items():
        for name in (*leading, *ordered):
            if schema.find(name) is None:
                yield f"a sequence group names {name!r}, which is no column", name
        for name in ordered:
            if name in seen:
                yield f"column {name!r} is in two sequence groups", name
            seen.add(name)
    ignores, removes = o.IGNORE_DELETE.get(options), o.REMOVE_RECORD_ON_DELETE.get(options)
    by_group = o.REMOVE_RECORD_ON_SEQUENCE_GROUP.get(options)
    if ignores and removes:
        yield f"{o.IGNORE_DELETE.key} does not go with {o.REMOVE_RECORD_ON_DELETE.key}", None
    if ignores and by_group:
        yield f"{o.IGNORE_DELETE.key} does not go with {o.REMOVE_RECORD_ON_SEQUENCE_GROUP.key}", None
    if removes and groups:
        yield f"sequence groups do not go with {o.REMOVE_RECORD_ON_DELETE.key}", None
    leading_names = {name for leading in groups for name in leading}
    for name in by_group:
        if name not in leading_names:
            yield f"{o.REMOVE_RECORD_ON_SEQUENCE_GROUP.key} names {name!r}, which leads no sequence group", name


def check_aggregators(schema: TableSchema) -> Iterator[Found]:
    """Aggregators that exist, for columns of types that they take."""
    engine = o.MERGE_ENGINE.get(schema.options)
    if not schema.primary_keys or engine not in ("aggregation", "partial-update"):
        return
    default = schema.options.get(o.DEFAULT_AGGREGATE_FUNCTION)
    groups = sequence_groups(schema.options)
    leading = {name for group in groups for name in group} | set(o.SEQUENCE_FIELD.get(schema.options))
    grouped = {name for ordered in groups.values() for name in ordered}
    for f in schema.fields:
        if f.name in schema.primary_keys or f.name in leading:
            continue
        named = schema.options.get(f"{o.FIELDS_PREFIX}.{f.name}.aggregate-function")
        aggregator = named or default
        if aggregator is None:
            continue
        if engine == "partial-update" and named and f.name not in grouped and named not in _WITHOUT_GROUP:
            yield f"aggregate function {named} of column {f.name!r} needs a sequence group", f.name
            continue
        yield from _check_aggregator(aggregator, f.name, f.type)


#: In partial updates these need no order.
_WITHOUT_GROUP = frozenset({"last_non_null_value"})


def _check_aggregator(aggregator: str, name: str, t: DataType) -> Iterator[Found]:
    if aggregator not in AGGREGATORS:
        yield f"unknown aggregate function {aggregator!r} of column {name!r} ({suggest(aggregator, AGGREGATORS)})", name
        return
    roots = AGGREGATORS[aggregator]
    if roots is not None and t.root not in roots:
        yield f"aggregate function {aggregator} of column {name!r} does not take {t}", name
    elif aggregator.startswith("nested_") and (t.element is None or t.element.root != "ROW"):
        yield f"aggregate function {aggregator} of column {name!r} takes ARRAY<ROW>, not {t}", name
