"""Rows that merge by key, by Spark's own operators: a window where a key keeps one of its rows, aggregates where each
column is made of several.

Every expression here is free of the order in which rows arrive: age is part of the expression, so neither spilling nor
an exchange between can change the outcome. What cannot be said so (functions over collections, rows taken back from
aggregates) is left to the Python workers, see `unmergeable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from alluvium.errors import UnsupportedFeature
from alluvium.plan.scan import KeyMerge, MergeRule, ScanPart, ScanPlan
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Decimal, Map, Struct
from alluvium.schema.walk import holds
from alluvium.spark.naming.names import quote, quote_text, sql_type, unused_name
from alluvium.spark.naming.sql_text import sql_column

_RETRACTS = "(1, 3)"
_NEWEST, _LONE = "__alluvium_newest", "__alluvium_lone"
#: Engines that keep a row of each key; the place in the order of age that this row has.
KEEP_ONE = {"deduplicate": True, "first-row": False}
#: Keys of floating point are left out: Spark takes -0.0 and 0.0 for one key, as nobody else does.
_KEYS = (*t.INTEGRAL, t.STRING, t.BINARY, t.BOOLEAN, t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ)
_FLOATING = (t.FLOAT, t.DOUBLE)
#: Bits that Java's integers lack to 64.
_MISSING_BITS = {t.BYTE: 56, t.SHORT: 48, t.INTEGER: 32}


@dataclass(frozen=True, slots=True)
class _Column:
    """A column to be merged.

    Attributes:
        name: As SQL.
        type: Of its values.
        age: SQL of what orders the rows of a key.
        rule: How it merges.
    """

    name: str
    type: DataType
    age: str
    rule: MergeRule

    @property
    def parameters(self) -> Mapping[str, str]:
        return dict(self.rule.parameters)

    @property
    def counts(self) -> str:
        """SQL of whether a row's group of sequence columns has a value: rows without one are skipped."""
        return " or ".join(f"{quote(name)} is not null" for name in self.rule.sequence) or "true"

    @property
    def rank(self) -> str:
        """SQL of a row's age within its group, null where the row is skipped."""
        if not self.rule.sequence:
            return self.age
        members = ", ".join(quote(name) for name in self.rule.sequence)
        return f"if({self.counts}, struct({members}, {self.age}), null)"

    def in_order(self) -> str:
        """SQL of an array of the values that are not null, oldest first."""
        values = f"collect_list(struct({self.age} as a, {self.name} as v)) filter (where {self.name} is not null)"
        return f"transform(array_sort({values}), x -> x.v)"


def _last(c: _Column) -> str:
    return f"max_by({c.name}, {c.rank})"


def _last_value(c: _Column) -> str:
    return f"max_by({c.name}, if({c.name} is not null, {c.age}, null))"


def _first(c: _Column) -> str:
    return f"min_by({c.name}, {c.age})"


def _first_value(c: _Column) -> str:
    return f"min_by({c.name}, if({c.name} is not null, {c.age}, null))"


def _plain(function: str) -> Callable[[_Column], str]:
    return lambda c: f"{function}({c.name}) filter (where {c.counts})"


def _extreme(function: str, zero: str) -> Callable[[_Column], str]:
    """The least or the greatest value. As Java's `Double.compare`, -0.0 is less than 0.0; Spark calls them equal.

    Args:
        function: `min` or `max`.
        zero: As text, the one that is taken where both are there.
    """
    plain = _plain(function)

    def text(c: _Column) -> str:
        found = plain(c)
        if c.type not in _FLOATING:
            return found
        # One of the values: of two constants that it calls equal Spark's optimizer takes either.
        is_zero = f"({c.counts}) and {c.name} = 0 and cast({c.name} as string) = '{zero}'"
        return f"if({found} = 0, coalesce({function}({c.name}) filter (where {is_zero}), {found}), {found})"

    return text


def _sum(c: _Column) -> str:
    """Integers wrap as Java's do, whatever the session makes of an overflow; floating point is added in order."""
    if c.type in _FLOATING:
        return _folded(c, "+")
    kept = f"filter (where {c.counts})"
    if c.type in _MISSING_BITS:
        total = f"sum(cast({c.name} as bigint)) {kept}"
        bits = _MISSING_BITS[c.type]
        return f"cast(shiftright(shiftleft({total}, {bits}), {bits}) as {sql_type(c.type)})"
    low, high = f"sum({c.name} & 4294967295) {kept}", f"sum(shiftright({c.name}, 32)) {kept}"
    return f"(shiftleft({high} + shiftright({low}, 32), 32) | ({low} & 4294967295))"


def _product(c: _Column) -> str:
    return _folded(c, "*")


def _folded(c: _Column, operator: str) -> str:
    kind = sql_type(c.type)
    # Of an empty list, and before the first of its values, there is nothing.
    step = f"(s, v) -> coalesce(cast(s {operator} v as {kind}), v)"
    return f"aggregate({c.in_order()}, cast(null as {kind}), {step})"


def _listagg(c: _Column) -> str:
    # Texts that are empty add nothing, not even the delimiter.
    joined = (
        f"array_join(filter({c.in_order()}, x -> x <> ''), {quote_text(c.parameters.get('list-agg-delimiter', ','))})"
    )
    return f"if(count({c.name}) = 0, cast(null as string), {joined})"


#: What each function becomes.
_FUNCTIONS: Mapping[str, Callable[[_Column], str]] = {
    "last": _last,
    "last_value": _last,
    "primary-key": _last,
    "last_non_null": _last_value,
    "last_non_null_value": _last_value,
    "first_value": _first,
    "first_non_null_value": _first_value,
    "min": _extreme("min", "-0.0"),
    "max": _extreme("max", "0.0"),
    "bool_and": _plain("bool_and"),
    "bool_or": _plain("bool_or"),
    "sum": _sum,
    "product": _product,
    "listagg": _listagg,
}
#: Those whose value does not depend on which rows are older than the group's newest.
_IN_GROUPS = ("last", "last_value", "min", "max", "bool_and", "bool_or", "sum")


def merging_parts(plan: ScanPlan) -> list[tuple[ScanPart, ...]]:
    """The parts whose rows merge, those that merge with each other together."""
    merges = dict.fromkeys(part.merge for part in plan.parts if part.merge is not None)
    return [tuple(part for part in plan.parts if part.merge == merge) for merge in merges]


def unmergeable(plan: ScanPlan) -> str | None:
    """Why Spark's operators cannot merge the rows of a plan as it wants; None: they can."""
    for part in plan.parts:
        if part.merge is not None:
            types = {c.name: c.type for c in part.output}
            if (problem := merge_problem(types, part.merge)) is not None:
                return problem
    return None


def ensure_mergeable(plan: ScanPlan) -> None:
    """See `unmergeable`.

    Raises:
        UnsupportedFeature: `"unsupported-scan"`.
    """
    if (problem := unmergeable(plan)) is not None:
        raise UnsupportedFeature(
            f"Spark cannot merge {problem}",
            code="unsupported-scan",
            url=plan.root,
            hint="Python workers can: leave lane= out; or read without Spark: alluvium.open(url)",
        )


def merge_problem(types: Mapping[str, DataType], merge: KeyMerge) -> str | None:
    """What of a merge Spark's operators do not do; None: they do all of it.

    Args:
        types: Of the rows' columns, by their names.
        merge: How the rows merge.
    """
    for name in merge.keys:
        if types[name] not in _KEYS and not isinstance(types[name], Decimal):
            return f"rows that merge by a key of type {types[name]}"
    if any(holds(types[c.name], t.VARIANT) or isinstance(types[c.name], Map) for c in merge.order):
        return "rows that merge in an order that Spark does not have"
    if merge.engine in KEEP_ONE:
        return None
    if merge.engine not in ("partial-update", "aggregation"):
        return f"rows that merge by {merge.engine}"
    if merge.has_retracts:
        return f"rows of {merge.engine} that take others back"
    if any(c.descending for c in merge.order):
        return f"rows of {merge.engine} in descending order"
    return next((text for rule in merge.rules if (text := _rule_problem(rule, types[rule.column]))), None)


def _rule_problem(rule: MergeRule, kind: DataType) -> str | None:
    function = rule.function
    if function not in _FUNCTIONS or (rule.sequence and function not in _IN_GROUPS):
        return f"columns that merge by {function}"
    if function in ("min", "max") and isinstance(kind, (Array, Map, Struct)):
        # Spark would compare some of them, and nobody else does.
        return f"columns of type {kind} that merge by {function}"
    if function == "sum" and kind not in t.INTEGRAL and (kind not in _FLOATING or rule.sequence):
        return f"sums of {kind}"
    if function == "product" and kind not in _FLOATING:
        return f"products of {kind}"
    if function == "listagg" and dict(rule.parameters).get("distinct", "false").lower() == "true":
        return "distinct lists of texts"
    return None


def merge_frame(frame: DataFrame, part: ScanPart, merge: KeyMerge, schema: Struct, apart: Sequence[str]) -> DataFrame:
    """One row a key.

    Args:
        frame: The rows, with all columns of the parts' output.
        part: One of the parts; all have the same columns.
        merge: How.
        schema: Of the result.
        apart: Columns that are the same for all rows of a group, which filters may be about.
    """
    if merge.ignores_delete and merge.kind is not None:
        frame = frame.where(sql_column(f"{quote(merge.kind)} not in {_RETRACTS}"))
    # The key first: Spark sorts by the first eight bytes, and looks at the rest only where these are equal.
    within = [quote(name) for name in dict.fromkeys((*merge.keys, merge.group, *apart))]
    types = {c.name: c.type for c in part.output}
    if (level := merge.level) is not None:
        # A key that has rows of two levels is merged, be there a single one to merge in the end.
        frame, merge = with_lone(frame, merge, within)
        frame = newest_level(frame, level, within)
    merged = _kept_one(frame, merge, within) if merge.engine in KEEP_ONE else aggregated(frame, types, merge, within)
    return merged.select(*(sql_column(quote(f.name)).alias(f.name, metadata=dict(f.metadata)) for f in schema.fields))


def with_lone(
    frame: DataFrame, merge: KeyMerge, within: Sequence[str], may_stay: str = "true"
) -> tuple[DataFrame, KeyMerge]:
    """The rows with the column `KeyMerge.lone`, and the merge that names it.

    Args:
        frame: All rows of each key.
        merge: How they merge.
        within: The columns by which rows are one, as SQL.
        may_stay: SQL of whether a row that is its key's only one stays as it is.
    """
    lone = unused_name(_LONE, frame.columns)
    text = f"({may_stay}) and count(1) over (partition by {', '.join(within)}) = 1"
    return frame.select("*", sql_column(text).alias(lone)), replace(merge, lone=lone)


def newest_level(frame: DataFrame, level: str, within: Sequence[str]) -> DataFrame:
    """Of the rows of a key those of level 0, and that of the lowest level above: it was merged with those above it.

    Args:
        frame: The rows.
        level: The column of their levels.
        within: The columns by which rows are one, as SQL.
    """
    lowest = unused_name("__alluvium_lowest", frame.columns)
    over = f"over (partition by {', '.join(within)})"
    found = frame.select("*", sql_column(f"min(if({quote(level)} > 0, {quote(level)}, null)) {over}").alias(lowest))
    return found.where(sql_column(f"{quote(level)} <= 0 or {quote(level)} = {quote(lowest)}")).drop(lowest)


def _kept_one(frame: DataFrame, merge: KeyMerge, within: Sequence[str]) -> DataFrame:
    last = KEEP_ONE[merge.engine]
    if not last and merge.kind is not None:
        frame = frame.where(sql_column(f"{quote(merge.kind)} not in {_RETRACTS}"))
    # "null is smallest in both directions": the oldest row.
    order = ", ".join(
        f"{quote(c.name)} {'desc' if last != c.descending else 'asc'} nulls {'last' if last else 'first'}"
        for c in merge.order
    )
    place = f"row_number() over (partition by {', '.join(within)} order by {order})"
    newest = frame.select("*", sql_column(place).alias(_NEWEST)).where(f"{_NEWEST} = 1")
    hides_retracts = merge.kind is not None and merge.has_retracts and not (merge.keeps_deletes or merge.ignores_delete)
    return newest.where(sql_column(f"{quote(merge.kind or '')} not in {_RETRACTS}")) if hides_retracts else newest


def aggregated(
    frame: DataFrame,
    types: Mapping[str, DataType],
    merge: KeyMerge,
    within: Sequence[str],
    beside: Mapping[str, str] | None = None,
) -> DataFrame:
    """One row a key, each column of it made of those of all rows.

    Args:
        frame: The rows.
        types: Of their columns, by their names.
        merge: How they merge.
        within: The columns by which rows are one, as SQL.
        beside: Further aggregates, as SQL, by their names.
    """
    age = quote(merge.order[0].name)
    if len(merge.order) > 1:
        age = f"struct({', '.join(quote(c.name) for c in merge.order)})"
    rules = {rule.column: rule for rule in merge.rules}
    is_lone = "count(*) = 1" if merge.lone is None else f"bool_and({quote(merge.lone)})"
    made = []
    for column, kind in types.items():
        name = quote(column)
        if name in within:
            continue
        newest = f"max_by({name}, {age})"
        text = newest
        if rule := rules.get(column):
            text = _FUNCTIONS[rule.function](_Column(name, kind, age, rule))
            if rule.sequence:
                # No function sees such a row; those without a group would make the same of it.
                text = f"if({is_lone}, {newest}, {text})"
        elif column == merge.kind:
            # What was merged is an insert.
            text = f"if({is_lone}, {newest}, cast(0 as tinyint))"
        made.append(sql_column(text).alias(column))
    made += [sql_column(text).alias(name) for name, text in (beside or {}).items()]
    return frame.groupBy(*(sql_column(name) for name in within)).agg(*made)
