"""The rules of merge engines: sequence groups of partial updates, and aggregators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeAlias

from alluvium.errors import suggest
from alluvium.paimon.schema.types import DataField
from alluvium.paimon.terms import options as o

#: What is wrong, and the column.
Found: TypeAlias = "tuple[str, str | None]"

_GROUP = ".sequence-group"
#: In partial updates these need no order.
_WITHOUT_GROUP = frozenset({"last_non_null_value"})
#: Every aggregate function, by Paimon's name; engines know all of them. Whether a column has a type that its aggregator
#: takes shows when rows are written or merged, as in Paimon.
AGGREGATORS = frozenset({
    "sum", "product", "max", "min", "last_value",
    "last_non_null_value", "first_value", "first_non_null_value", "first_not_null_value", "listagg",
    "bool_and", "bool_or", "collect", "merge_map", "merge_map_with_keytime",
    "nested_update", "nested_partial_update", "theta_sketch", "hll_sketch", "rbm32",
    "rbm64", "primary-key",
})  # fmt: skip


class CheckedSchema(Protocol):
    """What checks ask of a schema, whoever holds it: the schema itself is made of values that have passed them."""

    @property
    def version(self) -> int:
        """The version of the file's form."""

    @property
    def fields(self) -> tuple[DataField, ...]:
        """Columns in order."""

    @property
    def options(self) -> Mapping[str, str]:
        """The table's options."""

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Columns that name a row's directory."""

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """Columns that tell rows apart."""

    @property
    def bucket_keys(self) -> tuple[str, ...]:
        """Columns by whose hash rows go to buckets."""

    @property
    def crosses_partitions(self) -> bool:
        """Whether a key's row may move from partition to partition."""

    def find(self, name: str) -> DataField | None:
        """The column of that name."""


def sequence_groups(options: Mapping[str, str]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """`fields.<columns>.sequence-group`: the columns that order, and those that they order."""
    prefix = f"{o.FIELDS_PREFIX}."
    return {
        tuple(key[len(prefix) : -len(_GROUP)].split(",")): tuple(value.split(","))
        for key, value in options.items()
        if key.startswith(prefix) and key.endswith(_GROUP)
    }


def check_sequence_groups(schema: CheckedSchema) -> Iterator[Found]:
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


def check_aggregators(schema: CheckedSchema) -> Iterator[Found]:
    """Aggregators that exist, and in partial updates an order for them."""
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
        aggregator = schema.options.get(f"{o.FIELDS_PREFIX}.{f.name}.aggregate-function", default)
        if aggregator is None:
            continue
        if aggregator not in AGGREGATORS:
            hint = suggest(aggregator, AGGREGATORS)
            yield f"unknown aggregate function {aggregator!r} of column {f.name!r} ({hint})", f.name
        elif engine == "partial-update" and f.name not in grouped and aggregator not in _WITHOUT_GROUP:
            yield f"aggregate function {aggregator} of column {f.name!r} needs a sequence group", f.name
