"""The table whose rows a statement changes, under the name by which its expressions know it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from alluvium.api.delta.delta_access import PROVIDER, TableAccess, known_access
from alluvium.api.delta.delta_table import DeltaTable
from alluvium.api.names.frame_views import files_of, leaf_access, masked_files, named_table
from alluvium.api.names.paimon_access import PaimonAccess
from alluvium.api.sql.call import Call, some
from alluvium.api.sql.rows.session_table import SessionTable
from alluvium.commands.own_reads import unpinned
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.spark.jvm.failures import Unresolvable
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.scan.native_lane.index import items
from alluvium.spark.scan.own_table import OwnTable
from alluvium.spark.sessions.catalog import find_relation, quoted_name
from alluvium.spark.sessions.session import session_catalog
from alluvium.spark.statements.table_reads import reads_of_plan


class Needs(enum.Enum):
    """Which of a table's columns a statement must find in the view that it names, as in delta-spark."""

    ALL = "every one: its rows are written anew by them"
    NAMED = "those that it names"
    NONE = "none: it says nothing of them"


def changed_table(call: Call, node: JavaObject, needs: Needs = Needs.ALL) -> DeltaTable | SessionTable | None:
    """The table that a node names, be it under an alias, or by a temporary view that shows it as it is; None where it
    is somebody else's.

    Raises:
        InvalidRequest: `"changed-view"`: a view shows some of its rows, or of several tables, or is none of a session,
            or has not the columns that are needed.
    """
    alias = str(node.alias()) if str(node.nodeName()) == "SubqueryAlias" else None
    _ensure_no_query(call, node if alias is None else node.child())
    access = call.table(node)
    if access is None:
        relation = node if alias is None else node.child()
        parts = call.parts(relation)
        if parts is None:
            return None
        paimon = call.paimon(relation)
        if paimon is not None:
            return SessionTable.of(paimon, (alias,) if alias is not None else _called(paimon, parts))
        access = _viewed(call, parts, needs)
        if access is None:
            _ensure_not_others(call, parts)
            return None
        alias = alias or parts[-1]
    table = DeltaTable(call.spark, access)
    return table if alias is None else table.alias(alias)


def _ensure_no_query(call: Call, relation: JavaObject) -> None:
    """Refuses the name of a query that stands behind WITH, which hides a table of that name."""
    parts = call.parts(relation) if call.queries is not None else None
    if call.queries is None or parts is None or len(parts) != 1:
        return
    if parts[0].lower() in {str(pair._1()).lower() for pair in items(call.queries.cteRelations())}:
        raise Unresolvable(
            f"the statement changes rows of tables, and {parts[0]!r} is a query that stands behind WITH",
            code="changed-view",
            hint="name the table with its schema, or call the query otherwise",
        )


def _ensure_not_others(call: Call, parts: tuple[str, ...]) -> None:
    """Refuses the catalog's views, of which Spark would say that the table below does not support it."""
    try:
        entry = find_relation(call.spark, quoted_name(parts))
    except (InvalidRequest, UnsupportedFeature):
        return  # Spark says what is wrong with the name
    if entry is not None and not entry.provider:
        raise Unresolvable(
            f"the statement changes rows of tables, and {'.'.join(parts)!r} is a view",
            code="changed-view",
            hint="name the table that the view shows",
        )


def _called(paimon: PaimonAccess, parts: tuple[str, ...]) -> tuple[str, ...]:
    """By which name expressions call the table's columns: that of the catalog, or that of paimon.`/path` in Spark.

    In the place of a warehouse's name stands that of Spark's catalog, as in queries (`catalog_columns`).
    """
    return ("spark_catalog", *parts[-2:]) if paimon.entry is None else paimon.entry.parts


def _viewed(call: Call, parts: tuple[str, ...], needs: Needs) -> TableAccess | None:
    """The table of ours of which a temporary view shows all rows, and the columns that are needed, as in delta-spark.

    Raises:
        InvalidRequest: `"changed-view"`: it shows some of them, or of several tables.
    """
    catalog = session_catalog(call.spark)
    if not catalog.isTempView(call.java.seq(list(parts))):
        return None
    view = plan = call.spark.table(quoted_name(parts))._jdf.queryExecution().analyzed()
    while _shows_all(plan, needs):
        if (name := named_table(plan)) is None or _is_temporary(plan.child()):
            plan = plan.child()
        elif needs is not Needs.ALL or _names(plan) == _names(view):
            access = known_access(call.spark, name)
            if access is None or _shows_older(call, plan, access):
                break
            return access
        else:
            break
    found = leaf_access(call.spark, plan) if needs is not Needs.ALL or _names(plan) == _names(view) else None
    if found is not None and not _shows_older(call, plan, found):
        return found
    leaves = list(items(view.collectLeaves()))
    if not any(map(_is_ours, leaves)):
        return None
    raise Unresolvable(
        f"the rows of the temporary view {'.'.join(parts)!r} cannot be changed: {_shown(call, plan, leaves)}",
        code="changed-view",
        hint="name the table, and say in the condition which rows are meant",
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """What a temporary view shows: its rows, and by which name expressions call their columns."""

    rows: DataFrame
    name: tuple[str, ...]


def shown_by_view(call: Call, node: JavaObject) -> Shown | None:
    """What a node names, if it is a temporary view."""
    alias = str(node.alias()) if str(node.nodeName()) == "SubqueryAlias" else None
    parts = call.parts(node if alias is None else node.child())
    if parts is None or not session_catalog(call.spark).isTempView(call.java.seq(list(parts))):
        return None
    return Shown(call.spark.table(quoted_name(parts)), (alias or parts[-1],))


def _shows_older(call: Call, plan: JavaObject, access: TableAccess) -> bool:
    """Whether a view shows a version that was asked for: what goes by it would go from the newest."""
    reads = reads_of_plan(call.spark, plan, OwnTable(access.url))
    return len(unpinned(reads)) < len(reads)


def _shows_all(plan: JavaObject, needs: Needs) -> bool:
    """Whether a node has all rows that its child has, and no column that is called like another one of it."""
    kind = str(plan.nodeName())
    return kind in ("SubqueryAlias", "View") or (kind == "Project" and (needs is Needs.NONE or _keeps_names(plan)))


def _shown(call: Call, plan: JavaObject, leaves: Sequence[JavaObject]) -> str:
    """What a view shows in the place of a table, from the first node that is in the way."""
    accesses = [leaf_access(call.spark, leaf) for leaf in leaves]
    if len(accesses) == 1 and accesses[0] is not None and _shows_older(call, plan, accesses[0]):
        return "it shows a version of the table that was asked for, and not the newest"
    if len(leaves) == 1 and str(plan.nodeName()) == "Filter":
        return "it shows some of the table's rows alone"
    return "it shows something else than all columns and rows of one table, as it is now"


def _is_ours(leaf: JavaObject) -> bool:
    if str(leaf.getClass().getSimpleName()) != "LogicalRelation":
        return False
    if files_of(leaf) is not None:
        return True
    entry = some(leaf.catalogTable())
    provider = None if entry is None else some(entry.provider())
    return str(provider).lower() == PROVIDER


def _is_temporary(plan: JavaObject) -> bool:
    """Whether it is a temporary view; a global one stands below a name that is qualified as a table's is."""
    return str(plan.nodeName()) == "View" and bool(plan.isTempView())


def _keeps_names(project: JavaObject) -> bool:
    """Whether each column is one of the child's, under its name and of its type."""
    for column in items(project.projectList()):
        if str(column.nodeName()) == "Alias" and str(column.child().nodeName()) == "Cast":
            kept = column.child().child()
            # A condition on `cast(id as string)` means other rows than one on `id`.
            if str(kept.dataType().catalogString()) != str(column.dataType().catalogString()):
                return False
        else:
            kept = column.child() if str(column.nodeName()) == "Alias" else column
        if str(kept.nodeName()) != "AttributeReference" or str(kept.name()) != str(column.name()):
            return False
    return True


def _names(plan: JavaObject) -> tuple[str, ...]:
    index = masked_files(plan)
    return tuple(str(column.name()) for column in items(plan.output())) if index is None else index.columns
