"""MERGE INTO."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from alluvium.api.delta.delta_merge import DeltaMergeBuilder
from alluvium.api.paimon.paimon_merge import PaimonMergeBuilder
from alluvium.api.sql.call import Call, some
from alluvium.api.sql.rows.changed_table import changed_table
from alluvium.api.sql.rows.set_list import set_list
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.scan.native_lane.index import items

#: Both have the same methods.
_Builder = DeltaMergeBuilder | PaimonMergeBuilder


def run(call: Call) -> DataFrame | None:
    """Carries a MERGE out; the answer is the four counts of `DeltaMergeBuilder.execute`."""
    merge = _merge(call)
    if merge is None:
        return None
    done = merge.execute()
    assert isinstance(done, DataFrame)
    return done


def explain(call: Call) -> str | None:
    """How it would be carried out; None where it is about somebody else's table."""
    merge = _merge(call)
    return None if merge is None else str(merge.explain())


def _merge(call: Call) -> _Builder | None:
    plan = call.plan
    table = changed_table(call, plan.targetTable())
    if table is None:
        return None
    merge: _Builder = table.merge(call.rows(plan.sourceTable()), call.column(plan.mergeCondition()))
    if plan.withSchemaEvolution():
        merge = merge.withSchemaEvolution()
    for action in items(plan.matchedActions()):
        merge = _when_matched(call, merge, action)
    for action in items(plan.notMatchedActions()):
        merge = _when_not_matched(call, merge, action)
    for action in items(plan.notMatchedBySourceActions()):
        merge = _when_not_matched_by_source(call, merge, action)
    return merge


def _when_matched(call: Call, merge: _Builder, action: JavaObject) -> _Builder:
    condition, kind = _condition(call, action), _kind(action)
    if kind == "DeleteAction":
        return merge.whenMatchedDelete(condition)
    if kind == "UpdateStarAction":
        return merge.whenMatchedUpdateAll(condition)
    return merge.whenMatchedUpdate(condition, set_list(call, action.assignments(), "WHEN MATCHED THEN UPDATE"))


def _when_not_matched(call: Call, merge: _Builder, action: JavaObject) -> _Builder:
    condition = _condition(call, action)
    if _kind(action) == "InsertStarAction":
        return merge.whenNotMatchedInsertAll(condition)
    values = set_list(call, action.assignments(), "WHEN NOT MATCHED THEN INSERT")
    return merge.whenNotMatchedInsert(condition, values)


def _when_not_matched_by_source(call: Call, merge: _Builder, action: JavaObject) -> _Builder:
    condition = _condition(call, action)
    if _kind(action) == "DeleteAction":
        return merge.whenNotMatchedBySourceDelete(condition)
    values = set_list(call, action.assignments(), "WHEN NOT MATCHED BY SOURCE THEN UPDATE")
    return merge.whenNotMatchedBySourceUpdate(condition, values)


def _condition(call: Call, action: JavaObject) -> Column | None:
    condition = some(action.condition())
    return None if condition is None else call.column(condition)


def _kind(action: JavaObject) -> str:
    return str(action.getClass().getSimpleName())
