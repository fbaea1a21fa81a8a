"""EXPLAIN of a statement that changes rows, or makes a table: what our verb would do, for Spark has no plan of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from alluvium.api.sql.call import Call
from alluvium.api.sql.rows import delete, insert, merge, update
from alluvium.api.sql.tables import create

#: By the node of what is explained; None as the answer says that it is about somebody else's table.
_BY_NODE: Mapping[str, Callable[[Call], str | None]] = {
    "DeleteFromTable": delete.explain,
    "MergeIntoTable": merge.explain,
    "UpdateTable": update.explain,
}
_MAKES = frozenset(("CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect"))


def run(call: Call) -> DataFrame | None:
    """Carries out `EXPLAIN [mode] DELETE | INSERT | MERGE | UPDATE | CREATE TABLE`: one text in a column `plan`, as
    Spark's own.

    A MERGE counts its source; UPDATE and DELETE look for the rows that they would change; of an INSERT, and of a table
    made of rows, the plan of these is shown. Nothing is written.
    """
    explained = call.plan.logicalPlan()
    queries = explained if str(explained.nodeName()) == "UnresolvedWith" else None
    explained = explained if queries is None else explained.child()
    kind, inner = str(explained.nodeName()), replace(call, plan=explained, queries=queries)
    if kind in insert.INSERTS:
        text = insert.explain(inner, call.plan.mode())
    elif kind in _MAKES:
        text = create.explain(inner, call.plan.mode())
    else:
        explain = _BY_NODE.get(kind)
        text = None if explain is None else explain(inner)
    return None if text is None else call.rows_of(StructType([StructField("plan", StringType())]), [(text,)])
