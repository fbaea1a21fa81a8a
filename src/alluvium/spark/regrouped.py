"""Rows of files that become others: merged by key within groups of files, with what is told of how they changed.

One exchange brings the rows of a group together, as in `keyed`; rows that were looked up for what a key was come with
those of their bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from alluvium.errors import UnsupportedFeature
from alluvium.plan.scan import KeyMerge
from alluvium.plan.write import DROPS, LOG_COLUMN, LOGS, LOOKS, REWRITES, KeyedRows, Regrouped, WritePlan
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Map, Struct
from alluvium.spark.keyed import ages, kept_rows, placed_columns
from alluvium.spark.naming.names import quote, unused_name
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.scan.merged import KEEP_ONE, aggregated, merge_problem, newest_level, with_lone
from alluvium.spark.workers.worker_merge import merged_in_workers

_BEFORE, _NEW, _COUNT, _LAST = "__alluvium_before", "__alluvium_new", "__alluvium_count", "__alluvium_last"
_RETRACTS = "(1, 3)"


def merged_groups(
    rows: DataFrame, directories: Sequence[str], plan: WritePlan, keyed: KeyedRows
) -> tuple[DataFrame, list[str]]:
    """One row a key of each group, and behind another directory those that tell of changes; the columns that name
    directories.

    Args:
        rows: The plan's columns, those of the rows' fate, and those that name directories, the last of them the group.
        directories: These.
        plan: How they are written.
        keyed: How they merge.

    Raises:
        UnsupportedFeature: `"unsupported-merge-write"`: Spark has no operator for the merge, and workers are not asked.
    """
    how, merge = keyed.regrouped, keyed.merge
    assert how is not None, "the rows are those of files"
    types = _types(plan, keyed, how, directories)
    problem = None if merge.engine in KEEP_ONE else merge_problem(types, merge)
    if problem is not None and how.merges is None:
        raise UnsupportedFeature(
            f"Spark cannot merge {problem}, as it must to compact them",
            code="unsupported-merge-write",
            url=plan.root,
            hint="compact it with the engine of the format",
        )
    rows = counted_rows(rows, merge)
    rows = rows.select(*placed_columns(rows, directories))
    within = [*directories]
    if how.joins:
        within = [how.place, *directories]
        rows = _grouped(rows.repartition(sf.col(quote(how.place))), directories[-1], how, merge)
    else:
        rows = rows.repartition(*(sf.col(quote(name)) for name in directories))
    if how.looks_up and (how.joins or how.logs or merge.engine not in KEEP_ONE):
        of_key = [*map(quote, within), *map(quote, merge.keys)]
        if merge.engine not in KEEP_ONE:
            rows, merge = with_lone(rows, merge, of_key, f"({quote(directories[-1])} & {LOOKS}) = 0")
            keyed = replace(keyed, merge=merge)
        rows = newest_level(rows, how.level, of_key)
    if not how.logs:
        merged = _merged(rows, within, types, keyed, {})
        return merged.where(sql_column(_stays(directories[-1], merge))), list(directories)
    return _told(rows, within, directories, plan, keyed, how)


def counted_rows(rows: DataFrame, merge: KeyMerge) -> DataFrame:
    """Rows of files but for those that a merge passes over: who asks which keys are written anew must not ask these."""
    if merge.engine in KEEP_ONE and (merge.ignores_delete or not KEEP_ONE[merge.engine]):
        # Others look at such rows: a partial update begins with the values of the deletion that a key begins with.
        return rows.where(sql_column(f"{quote(merge.kind or '')} not in {_RETRACTS}"))
    return rows


def _types(plan: WritePlan, keyed: KeyedRows, how: Regrouped, directories: Sequence[str]) -> dict[str, DataType]:
    """Of all columns while rows merge."""
    types = {f.name: f.type for f in plan.schema.fields}
    own = {c.name: t.LONG for c in keyed.merge.order if c.name not in types}
    hidden = {**own, keyed.merge.kind or "": t.BYTE, how.place: t.LONG}
    return {**types, **hidden, **dict.fromkeys(directories[:-1], t.STRING), directories[-1]: t.INTEGER}


def _grouped(rows: DataFrame, code: str, how: Regrouped, merge: KeyMerge) -> DataFrame:
    """The rows of keys that are in a group, each with its code; what was looked up for a first row keeps others out."""
    over = f"over (partition by {', '.join(map(quote, (how.place, *merge.keys)))})"
    found = unused_name("__alluvium_code", rows.columns)
    rows = rows.select("*", sql_column(f"max({quote(code)}) {over}").alias(found))
    if merge.engine == "first-row":
        there = unused_name("__alluvium_there", rows.columns)
        rows = rows.select("*", sql_column(f"max({quote(code)} is null) {over}").alias(there))
        return rows.where(~sf.col(quote(there))).drop(there, found)
    rows = rows.where(sf.col(quote(found)).isNotNull())
    return rows.withColumn(code, sf.col(quote(found))).drop(found)


def _merged(
    rows: DataFrame, within: Sequence[str], types: dict[str, DataType], keyed: KeyedRows, beside: dict[str, str]
) -> DataFrame:
    """One row a key, and aggregates over all rows of it."""
    merge, how = keyed.merge, keyed.regrouped
    assert how is not None, "the rows are those of files"
    if merge.engine not in KEEP_ONE and merge_problem(types, merge) is not None:
        assert how.merges is not None, "it would have been refused"
        over = f"over (partition by {', '.join(map(quote, (*within, *merge.keys)))})"
        found = [sql_column(f"{text} {over}").alias(name) for name, text in beside.items()]
        return merged_in_workers(rows.select("*", *found), within, merge, how.merges)
    if merge.engine not in KEEP_ONE:
        return aggregated(rows, types, merge, [*map(quote, within), *map(quote, merge.keys)], beside)
    if not beside:
        return kept_rows(rows, within, merge)
    by = f"partition by {', '.join(map(quote, (*within, *merge.keys)))} order by {', '.join(ages(merge))}"
    over = f"over ({by} rows between unbounded preceding and unbounded following)"
    found = [sql_column(f"{text} {over}").alias(name) for name, text in beside.items()]
    return kept_rows(rows.select("*", *found), within, merge)


def _stays(code: str, merge: KeyMerge) -> str:
    """Whether a row comes into a file of rows."""
    kept = f"({quote(code)} & {DROPS}) = 0 or {quote(merge.kind or '')} not in {_RETRACTS}"
    return f"({quote(code)} & {REWRITES}) <> 0 and ({kept})"


def _told(
    rows: DataFrame,
    within: Sequence[str],
    directories: Sequence[str],
    plan: WritePlan,
    keyed: KeyedRows,
    how: Regrouped,
) -> tuple[DataFrame, list[str]]:
    """The rows, and each that came, went or became another, by what was there before."""
    merge, types = keyed.merge, _types(plan, keyed, how, directories)
    kind, level = merge.kind or "", quote(how.level)
    values = [*(f.name for f in plan.schema.fields), keyed.number]
    was = f"{level} = {how.before}" if how.before is not None else f"{level} > 0"
    whole = f"struct({', '.join(map(quote, (*values, kind)))})"
    beside = {
        _BEFORE: f"first(if({was}, {whole}, null), true)",
        _NEW: f"max({level} <= 0)",
        _COUNT: "count(1)",
    }
    merged = _merged(rows, within, types, keyed, beside)
    is_told = f"({quote(directories[-1])} & {LOGS}) <> 0 and " + (
        f"({_BEFORE} is null or {_COUNT} > 1)" if how.before is not None else _NEW
    )
    if merge.engine == "first-row":
        is_told = f"{is_told} and {_BEFORE} is null"
    was_there = f"coalesce({_BEFORE}.{quote(kind)} not in {_RETRACTS}, false)"
    is_there = f"{quote(kind)} not in {_RETRACTS}"
    # "FirstRowMergeFunctionWrapper" tells of the row as it is.
    came = quote(kind) if merge.engine == "first-row" else "0"
    differs = _differs(types, how)

    def row(log: int, of: str, said: str) -> str:
        members = ", ".join(f"{of}{quote(name)} as {quote(name)}" for name in values)
        return f"named_struct('{LOG_COLUMN}', {log}, '{_LAST}', struct({members}), 'kind', cast({said} as tinyint))"

    before = f"{_BEFORE}."
    made = [
        (_stays(directories[-1], merge), row(0, "", quote(kind))),
        (f"{is_told} and {was_there} and not {is_there}", row(1, before, "3")),
        (f"{is_told} and {was_there} and {is_there} and {differs}", row(1, before, "1")),
        (f"{is_told} and {was_there} and {is_there} and {differs}", row(1, "", "2")),
        (f"{is_told} and not {was_there} and {is_there}", row(1, "", came)),
    ]
    entries = ", ".join(f"if({condition}, {text}, null)" for condition, text in made)
    places = ", ".join(map(quote, directories))
    out = merged.select(
        sql_column(f"struct({places})").alias("places"), sql_column(f"explode(array({entries}))").alias("made")
    )
    columns = [sf.col(f"places.{quote(name)}").alias(name) for name in directories]
    columns += [sf.col(f"made.{_LAST}.{quote(name)}").alias(name) for name in values]
    columns += [sf.col("made.kind").alias(kind), sf.col(f"made.{LOG_COLUMN}").alias(LOG_COLUMN)]
    told = out.where(sf.col("made").isNotNull()).select(*columns)
    return told, [LOG_COLUMN, *directories]


def _differs(types: dict[str, DataType], how: Regrouped) -> str:
    """Whether a row is another one than before."""
    if how.compared is None:
        return "true"
    equal = []
    for name in how.compared:
        old, new = f"{_BEFORE}.{quote(name)}", quote(name)
        if _has_map(types[name]):
            # Spark compares no maps.
            old, new = f"to_json({old})", f"to_json({new})"
        equal.append(f"{old} <=> {new}")
    return f"not ({' and '.join(equal) or 'true'})"


def _has_map(kind: DataType) -> bool:
    if isinstance(kind, Struct):
        return any(_has_map(f.type) for f in kind.fields)
    return isinstance(kind, Map) or (isinstance(kind, Array) and _has_map(kind.element))
