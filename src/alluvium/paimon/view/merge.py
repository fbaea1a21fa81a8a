"""The merge engine of a table with a primary key, from its options to `KeyMerge`.

Specification: `org.apache.paimon.mergetree.compact`; options `merge-engine`, `sequence.field`, `fields.*`.
"""

from __future__ import annotations

from dataclasses import replace

from alluvium.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.paimon.schema.merge_checks import AGGREGATORS
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataField
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.compaction_options import needs_lookup
from alluvium.plan.scan import KeyMerge, MergeRule, ScanPlan, SortColumn

#: Hidden columns of merged parts; the constant by which files of one section are told from others; and the one that
#: orders rows of equal sequence numbers.
SEQUENCE, KIND, GROUP, FILE_ORDER = "_SEQUENCE_NUMBER", "_VALUE_KIND", "_SECTION", "_FILE_ORDER"
#: The constant by which rows that a compaction has merged with all older ones are told from others.
LEVEL = "_LEVEL"

DEDUPLICATE, PARTIAL_UPDATE, AGGREGATION, FIRST_ROW = "deduplicate", "partial-update", "aggregation", "first-row"
#: The name that a function had once.
_LEGACY = {"first_not_null_value": "first_non_null_value"}


def merge_engine(schema: TableSchema) -> str:
    """The table's merge engine.

    Raises:
        UnsupportedFeature: There is no such engine here.
    """
    try:
        return o.MERGE_ENGINE.get(schema.options)
    except InvalidRequest:
        name = schema.options[o.MERGE_ENGINE.key]
        raise UnsupportedFeature(
            f"the merge engine {name!r}", code="unsupported-merge-engine", features=(name,)
        ) from None


def key_merge(schema: TableSchema, has_retracts: bool = True, has_ties: bool = False) -> KeyMerge:
    """How rows of equal keys merge in a table with a primary key.

    Args:
        schema: Of the table.
        has_retracts: Whether files may hold rows that take others back.
        has_ties: Whether rows of several files may have equal sequence numbers: the file that was added last wins then,
            with all columns.

    Raises:
        UnsupportedFeature: An engine or an aggregate function is not known.
        CorruptTable: An option names a column that does not exist.
    """
    options = schema.options
    engine = merge_engine(schema)
    fields = tuple(filter(None, o.SEQUENCE_FIELD.get(options)))
    descending = o.SEQUENCE_FIELD_SORT_ORDER.get(options) == "descending"
    given = (SortColumn(_column(schema, name), descending) for name in fields)
    order = (*given, SortColumn(SEQUENCE), *([SortColumn(FILE_ORDER)] if has_ties else []))
    rules: tuple[MergeRule, ...] = ()
    if engine in (PARTIAL_UPDATE, AGGREGATION):
        groups = _sequence_groups(schema) if engine == PARTIAL_UPDATE else {}
        values = [f for f in schema.fields if f.name not in schema.primary_keys]
        rules = tuple(_rule(f, schema, engine, fields, groups) for f in values)
    removes_on_delete = {
        PARTIAL_UPDATE: o.REMOVE_RECORD_ON_DELETE,
        AGGREGATION: o.AGGREGATION_REMOVE_RECORD_ON_DELETE,
    }.get(engine)
    return KeyMerge(
        group=GROUP,
        keys=schema.trimmed_primary_keys,
        order=order,
        kind=KIND,
        engine=engine,
        rules=rules,
        # Aggregations look at the option when they write, and take back what is there all the same.
        ignores_delete=engine != AGGREGATION and o.IGNORE_DELETE.get(options),
        removes_on_delete=removes_on_delete is not None and removes_on_delete.get(options),
        removing_groups=o.REMOVE_RECORD_ON_SEQUENCE_GROUP.get(options),
        has_retracts=has_retracts,
        level=LEVEL if rules and needs_lookup(options) else None,
    )


def _column(schema: TableSchema, name: str) -> str:
    if schema.find(name) is None:
        raise CorruptTable(f"an option names {name!r}, which is no column", code="invalid-options", column=name)
    return name


def _sequence_groups(schema: TableSchema) -> dict[str, tuple[str, ...]]:
    """Of each column in a group, the columns that order it: `fields.<g1[,g2]>.sequence-group = a,b`."""
    found: dict[str, tuple[str, ...]] = {}
    for key, value in schema.options.items():
        if key.startswith("fields.") and key.endswith(".sequence-group"):
            leaders = o.parse_names(key[len("fields.") : -len(".sequence-group")])
            sequence = tuple(_column(schema, name) for name in leaders)
            for name in (*o.parse_names(value), *sequence):
                found[_column(schema, name)] = sequence
    return found


def _rule(
    column: DataField, schema: TableSchema, engine: str, fields: tuple[str, ...], groups: dict[str, tuple[str, ...]]
) -> MergeRule:
    options = schema.options
    sequence = groups.get(column.name, ())
    function = o.aggregate_function(column.name).get(options)
    if column.name in fields:
        # "If the field is a sequence field, do not use aggregation": it goes with the last row.
        function = "last_value" if engine == AGGREGATION else None
    elif column.name in sequence:
        function = None
    elif function is None:
        function = options.get(o.DEFAULT_AGGREGATE_FUNCTION)
        if function is None and engine == AGGREGATION:
            function = "last_non_null_value"
    if function is None:
        return MergeRule(column.name, "last" if sequence else "last_non_null", sequence=sequence)
    function = _LEGACY.get(function, function)
    if function not in AGGREGATORS:
        raise UnsupportedFeature(
            f"the aggregate function {function!r}",
            code="unsupported-aggregate",
            column=column.name,
            features=(function,),
        )
    if function != "last_non_null_value" and engine == PARTIAL_UPDATE and not sequence:
        raise CorruptTable(
            f"the aggregate function of {column.name!r} needs a sequence group",
            code="invalid-options",
            column=column.name,
        )
    prefix = f"fields.{column.name}."
    skipped = (f"{prefix}aggregate-function", f"{prefix}ignore-retract", f"{prefix}sequence-group")
    given = {k[len(prefix) :]: v for k, v in options.items() if k.startswith(prefix) and k not in skipped}
    return MergeRule(
        column.name,
        function,
        tuple(sorted(given.items())),
        o.ignore_retract(column.name).get(options),
        sequence,
    )


def keep_deletes(plan: ScanPlan) -> ScanPlan:
    """The same plan, in whose result deletions stay, told from others by the column `_VALUE_KIND`."""
    parts = (p if p.merge is None else replace(p, merge=replace(p.merge, keeps_deletes=True)) for p in plan.parts)
    return replace(plan, parts=tuple(parts))
