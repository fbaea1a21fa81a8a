"""DELETE and UPDATE of rows that merge by key: rows of the same keys are written, and no file that is there anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.any_rows import read_any
from alluvium.commands.own_reads import unpinned
from alluvium.commands.paimon.compact import compact_written
from alluvium.commands.paimon.own_reads import ensure_current
from alluvium.commands.paimon.repeated import repeated
from alluvium.commands.rows.row_condition import RowCondition, row_condition
from alluvium.commands.write import WriteRequest, write_rows
from alluvium.errors import InvalidRequest
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.view.merge import DEDUPLICATE, merge_engine
from alluvium.paimon.view.selection import with_new_rows
from alluvium.paimon.view.source import PaimonSource
from alluvium.paimon.write.crossing import moves_keys
from alluvium.paimon.write.keyed import ensure_rows_change
from alluvium.paimon.write.target import RETRACTS, PaimonTarget
from alluvium.plan.changes import Committed, Operation, Preview, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.naming.names import quote
from alluvium.spark.statements.resolve import Qualifier
from alluvium.spark.statements.statement import reads_so_far
from alluvium.spark.values.assign import assigned_columns, assignments
from alluvium.spark.values.columns import Assignment
from alluvium.spark.values.derive import derived_values
from alluvium.spark.values.storing import StorePolicy
from alluvium.spark.write import data_error
from alluvium.storage.store import OpenStore

#: How a table is called in expressions.
TABLE = ("__alluvium_table",)
_UPDATED, _DELETED = 2, 3


@dataclass(frozen=True, slots=True)
class Change:
    """A verb: which rows, and what becomes of them.

    Attributes:
        name: `"DELETE"` or `"UPDATE"`.
        condition: Which rows; None: all.
        values: Column to its value, of an UPDATE.
        open_store: The table's objects for Python workers.
        dry_run: Whether rows are only counted.
        alias: Of the table in expressions.
    """

    name: str
    condition: Column | str | None
    values: Mapping[str, Column | str]
    open_store: OpenStore
    dry_run: bool = False
    alias: Qualifier = TABLE

    @property
    def metric(self) -> str:
        """Under which its rows are counted."""
        return "numDeletedRows" if self.name == "DELETE" else "numUpdatedRows"


def upsert_rows(
    spark: SparkSession, snapshot: Snapshot, verb: Change, retry: RetryPolicy = DEFAULT_RETRY
) -> Committed | Preview:
    """Carries the verb out; again on the newest state where another writer's commit touched what was read.

    Raises:
        InvalidRequest: The condition or a value does not resolve (`"invalid-expression"`); a value does not fit; a key
            would change (`"key-changed"`).
        UnsupportedFeature: The table's rows do not change by their keys (`"unsupported-row-change"`).
        CommitConflict: Another writer won every time, or it may not be repeated.
    """
    ensure_rows_change(snapshot.schema, deletes=verb.name == "DELETE", updates=verb.name == "UPDATE")
    return repeated(spark, snapshot, retry, lambda base: _attempt(spark, base, verb, retry))


def _attempt(spark: SparkSession, snapshot: Snapshot, verb: Change, retry: RetryPolicy) -> Committed | Preview:
    kind = _DELETED if verb.name == "DELETE" else _UPDATED
    target = PaimonTarget(snapshot.store, snapshot.schema, snapshot, retry, kind=kind)
    if verb.name == "UPDATE":
        _ensure_keys_stay(verb, target)
    rows = read_any(spark, PaimonSource(with_new_rows(snapshot), is_exact=True), verb.open_store)
    with row_condition(rows, verb.condition, f"the condition of {verb.name}", verb.alias) as judged:
        changed = _changed(judged, verb, target)
        ensure_current(unpinned(reads_so_far()), snapshot)
        if verb.dry_run:
            try:
                counted = {verb.metric: str(changed.count())}
            except (PySparkException, Py4JJavaError) as error:
                raise data_error(error, target.url) from error
            return Preview(target.version, Operation(verb.name, metrics=counted), {})
        request = WriteRequest(
            None, Operation(verb.name), ReadScope.table(), assignment=Assignment.EXACT, open_store=verb.open_store
        )
        done = write_rows(changed, target, request)
        if done.attempts:
            compact_written(spark, target, done, verb.open_store)
    changed_rows = int(done.metrics.get("numOutputRows", "0"))
    if verb.name == "UPDATE":
        changed_rows -= int(done.metrics.get(RETRACTS, "0"))
    return replace(done, metrics={**done.metrics, verb.metric: str(changed_rows)})


def _ensure_keys_stay(verb: Change, target: PaimonTarget) -> None:
    """Another key is another row: that would be an insert beside the old one."""
    keys = {*target.table.primary_keys, *target.table.partition_keys}
    if moves_keys(target.table) and merge_engine(target.table) == DEDUPLICATE:
        keys = {*target.table.primary_keys}
    for column in sorted(assigned_columns(verb.values, target.schema, verb.alias) & keys):
        raise InvalidRequest(
            f"the key column {column!r} cannot be updated",
            code="key-changed",
            column=column,
            hint="delete the rows, and write them under their new keys",
        )


def _changed(judged: RowCondition, verb: Change, target: PaimonTarget) -> DataFrame:
    """The rows that are written: those that change, as they are afterwards."""
    frame, found = judged.over_first
    names = [quote(name) for name in target.schema.names]
    # Null counts as false.
    hit = frame.where(sf.coalesce(found, sf.lit(False)))
    if verb.name == "DELETE":
        return hit.select(*names)
    constant = [d for d in target.plan_write(None, ()).derived if d.is_constant]
    defaults = derived_values(judged.first, target.schema, constant)
    made = assignments(
        verb.values, target.schema, hit, verb.alias, "UPDATE", StorePolicy.ANSI, defaults, fills=False, is_update=True
    )
    after = [
        made.after(f.name, f.type, sf.col(quote(f.name))).alias(f.name) if f.name in made.columns else quote(f.name)
        for f in target.schema.fields
    ]
    return hit.select(*after)
