"""Rows of a table with a primary key: how they merge and are numbered before they are written, and which tables want
more of a writer than that.

Specification: spec/paimon-format.md (e), "Key-table writer"; `org.apache.paimon.mergetree.MergeTreeWriter`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon.files.key_stats import key_name, stored_key_names
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.arrow import to_arrow
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.type_json import parse_type
from alluvium.paimon.schema.types import DataField
from alluvium.paimon.terms import options as o
from alluvium.paimon.view.fallback import ensure_own_rows
from alluvium.paimon.view.merge import (
    AGGREGATION,
    DEDUPLICATE,
    FIRST_ROW,
    KIND,
    PARTIAL_UPDATE,
    SEQUENCE,
    key_merge,
    merge_engine,
)
from alluvium.plan.aggregates import check_options, takes
from alluvium.plan.scan import KeyMerge, MergeRule
from alluvium.plan.write import BUCKET_COLUMN, FIRST_COLUMN, Check, KeyedRows
from alluvium.schema import types as t
from alluvium.schema.types import Struct

#: "`_KEY_<f>` = 1073741823 + id(f); `_SEQUENCE_NUMBER` 2147483646 (BIGINT NOT NULL), `_VALUE_KIND` 2147483645"
_FIRST_KEY_ID, _SEQUENCE_ID, _KIND_ID = 1_073_741_823, 2_147_483_646, 2_147_483_645
_UPDATE_BEFORE, _DELETE = 1, 3
#: Column of rows that say their kind themselves, beside those of the table.
KIND_COLUMN = "__alluvium_row_kind"
#: Functions that take values back.
_RETRACTABLE = frozenset({
    "last", "last_non_null", "sum", "product", "last_value", "last_non_null_value", "collect", "merge_map",
    "nested_update", "primary-key",
})  # fmt: skip
#: Functions by which a value is another when it comes a second time.
_ADDING = frozenset({"sum", "product", "listagg", "collect", "nested_update"})
#: What a table may ask of whoever writes it, and nobody here does.
_NOT_YET = (o.SNAPSHOT_ORDERING, o.PK_CLUSTERING_OVERRIDE, o.CHAIN_TABLE, o.FORCE_LOOKUP)
#: Types that are one to Arrow with those that a function of Java's takes.
_NOT_TAKEN: Mapping[str, tuple[str, ...]] = {
    "merge_map": ("MULTISET",),
    **dict.fromkeys(("rbm32", "rbm64", "hll_sketch", "theta_sketch"), ("BINARY",)),
}
_STRING = parse_type("STRING")
_PER_LEVEL = ("file.format.per.level", "file.compression.per.level", "metadata.stats-mode.per.level")


@dataclass(frozen=True, slots=True)
class RowKinds:
    """Rows of several kinds, each of which says its own.

    Attributes:
        takes_back: Whether rows may be among them that take others back.
    """

    takes_back: bool


def ensure_keyed_writable(schema: TableSchema) -> None:
    """Refuses tables that want more than new rows beside the old ones.

    Raises:
        InvalidRequest: As of `time_column`, or `"invalid-table-option"`: options contradict each other.
        UnsupportedFeature: `"unsupported-option"`, `"unsupported-type"`, `"unsupported-aggregate"`, or as of
            `key_merge`.
    """
    options = schema.options
    bucket = o.BUCKET.get(options)
    if bucket == o.DYNAMIC_BUCKET and o.INDEX_FILE_IN_DATA_FILE_DIR.get(options):
        raise _not_written(o.INDEX_FILE_IN_DATA_FILE_DIR.key, "index files beside data", "leave the option out")
    ensure_levels_alike(schema)
    time_column(schema)
    for name in schema.trimmed_primary_keys:
        column = schema.find(name)
        if column is not None and to_logical(column.type) in (t.FLOAT, t.DOUBLE):
            raise UnsupportedFeature(
                f"the key {name!r} is of type {column.type}: zero has two signs in it, which are two keys to some",
                code="unsupported-type",
                column=name,
                features=(str(column.type),),
            )
    _ensure_merging(schema, key_merge(schema))


def _ensure_merging(schema: TableSchema, merge: KeyMerge) -> None:
    """Refuses what could be written, and nobody could merge from the second row of a key on.

    Specification: `FieldAggregatorFactory`, `AggregateMergeFunction.Factory`: Java makes such tables, and its writers
    refuse the first row.
    """
    for rule in merge.rules:
        column = schema.find(rule.column)
        if column is not None and not _is_taken(rule.function, column):
            raise UnsupportedFeature(
                f"the aggregate function {rule.function!r} does not merge values of type {column.type}",
                code="unsupported-aggregate",
                column=rule.column,
                features=(rule.function,),
                hint=f"{o.aggregate_function(rule.column).key} names another one",
            )
        problem = None if column is None else _options_problem(rule, column)
        if problem is not None:
            raise InvalidRequest(
                f"nobody could merge {rule.column!r} by {rule.function!r}: {problem}",
                code="invalid-table-option",
                column=rule.column,
                hint=f"correct the options fields.{rule.column}.*",
            )
    both = [f.name for f in schema.fields if o.ignore_retract(f.name).get(schema.options)]
    if both and merge.engine == AGGREGATION and merge.removes_on_delete:
        raise InvalidRequest(
            f"{o.AGGREGATION_REMOVE_RECORD_ON_DELETE.key} does not go with {o.ignore_retract(both[0]).key}",
            code="invalid-table-option",
            column=both[0],
            hint="a deletion takes the row away, or leaves the column as it is",
        )


def _is_taken(function: str, column: DataField) -> bool:
    kind = column.type.with_nullable(True)
    if function == "listagg":
        # Joined texts have no longest.
        return kind == _STRING
    return takes(function, to_arrow(kind)) and kind.root not in _NOT_TAKEN.get(function, ())


def _options_problem(rule: MergeRule, column: DataField) -> str | None:
    return check_options(rule.function, dict(rule.parameters), to_arrow(column.type.with_nullable(True)))


def time_column(schema: TableSchema) -> DataField | None:
    """The column by which rows expire; None: they stay.

    Raises:
        InvalidRequest: `"invalid-table-option"`: the options do not name it, or say no time.
    """
    if o.RECORD_LEVEL_EXPIRE_TIME.get(schema.options) is None:
        return None
    name = o.RECORD_LEVEL_TIME_FIELD.get(schema.options)
    column = schema.find(name)
    if column is None:
        raise InvalidRequest(
            f"{o.RECORD_LEVEL_EXPIRE_TIME.key} is set, but no column says of which time rows are",
            code="invalid-table-option",
            column=name or None,
            hint=f"{o.RECORD_LEVEL_TIME_FIELD.key} names it",
        )
    return column


def ensure_levels_alike(schema: TableSchema) -> None:
    """Refuses tables whose files, or their order, are not those of all others.

    Raises:
        UnsupportedFeature: `"unsupported-option"`.
    """
    for option in _NOT_YET:
        if option.get(schema.options):
            raise _not_written(option.key, f"{option.key} = true", "write it with Paimon's own engine")
    for name in _PER_LEVEL:
        if name in schema.options:
            raise _not_written(name, name, "write it with Paimon's own engine")


def _not_written(feature: str, what: str, hint: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"tables with a primary key and {what} are read, but not written yet",
        code="unsupported-option",
        features=(feature,),
        hint=hint,
    )


def keyed_rows(
    schema: TableSchema, stored: Struct, base: Snapshot | None, kind: int | RowKinds | None = None
) -> KeyedRows:
    """How rows merge before they are written, and how they are numbered.

    Args:
        schema: The table's, its options with those of the call on top.
        stored: `hidden_fields` as the engine writes them.
        base: Whose rows the new ones come after; None: they come in the place of all that are there.
        kind: Of all rows, or what they say of it in a column of their own; None: they are inserts, or say it by the
            table's `rowkind.field`.
    """
    options, first = schema.options, None if base is None else first_numbers(base)
    waits = o.BUCKET.get(options) == o.POSTPONE_BUCKET
    # "Overwrite mode currently does not commit any changelog".
    # Postponed rows are told of when they come into buckets.
    logs = base is not None and not waits and o.CHANGELOG_PRODUCER.get(options) == "input"
    known = KeyedRows(
        _merged_in_writer(schema, False),
        stored,
        stored_key_names(schema),
        SEQUENCE,
        first_numbers=None if waits else first,
        logs=logs,
        waits=waits,
    )
    if isinstance(kind, RowKinds):
        return replace(known, merge=_merged_in_writer(schema, kind.takes_back), kind_column=KIND_COLUMN)
    if kind is not None:
        takes_back = kind in (_UPDATE_BEFORE, _DELETE)
        return replace(known, merge=_merged_in_writer(schema, takes_back), kind=kind)
    kinds = o.ROWKIND_FIELD.get(options) or None
    skipped: tuple[int, ...] = ()
    if o.IGNORE_DELETE.get(options):
        skipped = (_UPDATE_BEFORE, _DELETE)
    elif o.IGNORE_UPDATE_BEFORE.get(options):
        skipped = (_UPDATE_BEFORE,)
    merge = _merged_in_writer(schema, kinds is not None and _DELETE not in skipped)
    return replace(known, merge=merge, kind_text=kinds, skipped_kinds=skipped)


def _merged_in_writer(schema: TableSchema, has_retracts: bool) -> KeyMerge:
    """How rows merge that were written together.

    `SortBufferWriteBuffer` puts them in ascending order, whatever `sequence.field.sort-order` says: that is for rows
    that were not.
    """
    merge = key_merge(schema, has_retracts)
    order = tuple(replace(column, descending=False) for column in merge.order)
    # Rows that are ignored are never written.
    return replace(merge, order=order, keeps_deletes=True, ignores_delete=False, level=None)


def hidden_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """The columns of files before those of the rows: keys, number and kind."""
    found = []
    if not o.THIN_MODE.get(schema.options):
        keys = (schema.find(name) for name in schema.trimmed_primary_keys)
        found = [replace(f, id=_FIRST_KEY_ID + f.id, name=key_name(f.name)) for f in keys if f is not None]
    found.append(DataField(_SEQUENCE_ID, SEQUENCE, parse_type("BIGINT NOT NULL")))
    return (*found, DataField(_KIND_ID, KIND, parse_type("TINYINT NOT NULL")))


def first_numbers(base: Snapshot) -> pa.Table | None:
    """Of each bucket with files: its partition's values, its number, and the one that comes after its rows'."""
    entries = base.entries
    if not entries.num_rows:
        return None
    tops = entries.group_by(["partition", "bucket"]).aggregate([("max_sequence_number", "max")])
    partitions = partitions_of(tops, base.schema)
    columns = {name: partitions.column(name) for name in base.schema.partition_keys}
    first = pc.add(tops["max_sequence_number_max"], 1)
    return pa.table({**columns, BUCKET_COLUMN: tops["bucket"], FIRST_COLUMN: first})


def ensure_rows_change(schema: TableSchema, deletes: bool = True, updates: bool = True) -> None:
    """Refuses tables of whose rows single ones are not taken back or given other values by rows of the same keys.

    Specification: `PrimaryKeyTableUtils.validatePKUpsertDeletable`, `RowLevelOp.checkValidity`.

    Args:
        schema: Of the table, with a primary key.
        deletes: Whether rows are taken back, and
        updates: whether they are given other values.

    Raises:
        UnsupportedFeature: `"unsupported-row-change"`, or as of `ensure_keyed_writable`.
    """
    ensure_own_rows(schema)
    asked, hint = None, "overwrite partitions with the rows that shall be there"
    engine = merge_engine(schema)
    if o.ROWKIND_FIELD.get(schema.options):
        asked = o.ROWKIND_FIELD.key
    elif updates and engine not in (DEDUPLICATE, PARTIAL_UPDATE):
        asked = f"{o.MERGE_ENGINE.key} = {engine}"
    elif updates and (adds := _adds_again(schema)) is not None:
        asked = f"{o.MERGE_ENGINE.key} = {engine} and the aggregate function {adds.function} of {adds.column!r}"
        hint = "write rows of the keys and of what is to be added"
    elif deletes and o.IGNORE_DELETE.get(schema.options):
        asked = f"{o.IGNORE_DELETE.key} = true"
    elif deletes and (needed := _needed_for_deletes(schema)) is not None:
        asked = f"{o.MERGE_ENGINE.key} = {engine}"
        if needed:
            hint = f"its deletions take rows away where {needed} = true, which is said when the table is created"
    if asked is not None:
        raise UnsupportedFeature(
            f"rows of tables with {asked} are not {'deleted' if deletes else 'updated'} one by one",
            code="unsupported-row-change",
            features=(asked,),
            hint=hint,
        )
    ensure_keyed_writable(schema)


def _adds_again(schema: TableSchema) -> MergeRule | None:
    """The aggregate that would take a row's own value for one more: an update writes all columns of a row."""
    if merge_engine(schema) != PARTIAL_UPDATE:
        return None
    return next((rule for rule in key_merge(schema).rules if rule.function in _ADDING), None)


def _needed_for_deletes(schema: TableSchema) -> str | None:
    """The option without which the engine takes no deletions ("": no option helps); None: it takes them."""
    engine = merge_engine(schema)
    if engine == DEDUPLICATE:
        return None
    if engine == PARTIAL_UPDATE:
        return None if o.REMOVE_RECORD_ON_DELETE.get(schema.options) else o.REMOVE_RECORD_ON_DELETE.key
    if engine == AGGREGATION:
        option = o.AGGREGATION_REMOVE_RECORD_ON_DELETE
        return None if option.get(schema.options) else option.key
    return ""


def kind_checks(schema: TableSchema, keyed: KeyedRows) -> Iterator[Check]:
    """What rows may say of their kind."""
    if keyed.kind_text is None:
        return
    kind = "`" + keyed.kind_text.replace("`", "``") + "`"
    yield Check(
        f"{o.ROWKIND_FIELD.key} {keyed.kind_text}",
        f"{kind} in ('+I', '-U', '+U', '-D')",
        (keyed.kind_text,),
        "invalid-row-kind",
        hint="a kind is +I, -U, +U or -D",
    )
    if keyed.merge.has_retracts and (reason := _refuses_retracts(keyed.merge, schema)):
        taken = ["+I", "+U"] + (["-U"] if _UPDATE_BEFORE in keyed.skipped_kinds else [])
        if keyed.merge.engine == AGGREGATION and keyed.merge.removes_on_delete:
            taken.append("-D")
        yield Check(
            f"{o.ROWKIND_FIELD.key} {keyed.kind_text} of {reason}",
            f"{kind} in ({', '.join(map(repr, taken))})",
            (keyed.kind_text,),
            "unsupported-retract",
            hint=f"set {o.IGNORE_DELETE.key} = true, or say by the engine's options what a deletion does",
        )


def _refuses_retracts(merge: KeyMerge, schema: TableSchema) -> str | None:
    """Why rows cannot be taken back, as Java's merge functions see it; None: they can."""
    if merge.engine == FIRST_ROW:
        return f"{o.MERGE_ENGINE.key} {FIRST_ROW}"
    grouped = any(rule.sequence for rule in merge.rules)
    if merge.engine == PARTIAL_UPDATE and not grouped and not o.REMOVE_RECORD_ON_DELETE.get(schema.options):
        return f"{o.MERGE_ENGINE.key} {PARTIAL_UPDATE}"
    for rule in merge.rules:
        if rule.function not in _RETRACTABLE and not rule.ignores_retract:
            return f"the aggregate function {rule.function}"
    return None
