"""CREATE TEMPORARY VIEW ... USING: a temporary view of a table of ours by its path."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from alluvium.api.doors import DELTA
from alluvium.api.names.answered import PROVIDERS
from alluvium.api.names.frame_views import note_view
from alluvium.api.reader import WHERE_POSSIBLE, read
from alluvium.api.sql.call import Call, some
from alluvium.api.sql.tables.said import texts_of
from alluvium.errors import InvalidRequest
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.sessions.catalog import quoted_name


def run(call: Call) -> DataFrame | None:
    """Carries out `CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW v USING delta OPTIONS (path '...')`.

    Without other options it shows the newest version, whatever that is when it is asked.

    Raises:
        InvalidRequest: Columns are given (`schema-given`), or no path is (`no-path`).
    """
    plan = call.plan
    provider = str(plan.provider()).lower()
    if provider not in PROVIDERS:
        return None
    if plan.userSpecifiedSchema().isDefined():
        raise InvalidRequest(
            "the schema of a table comes from its log", code="schema-given", hint="leave the columns out"
        )
    options: dict[str, Any] = dict(texts_of(call, plan.options()))
    path = next((options.pop(name) for name in list(options) if name.lower() == "path"), None)
    if path is None:
        raise InvalidRequest("one path is needed", code="no-path", hint="OPTIONS (path '/data/table')")
    _make(
        call,
        f"{provider}.{quoted_name((path,))}",
        read(call.spark, path, **{"follow": WHERE_POSSIBLE, **options}) if options else None,
    )
    if not options and provider == DELTA.name:
        note_view(call.spark, _parts(plan), path)
    return call.nothing()


def _parts(plan: JavaObject) -> tuple[str, ...]:
    """The view's name as statements say it."""
    name = str(plan.tableIdent().table())
    return ("global_temp", name) if bool(getattr(plan, "global")()) else (name,)


def _make(call: Call, table: str, pinned: DataFrame | None) -> None:
    """Makes the view, of rows or else of a table by its name."""
    plan, name = call.plan, _name(call.plan.tableIdent())
    replaces, is_global = bool(plan.replace()), bool(getattr(plan, "global")())
    if pinned is None:
        kind = f"{'or replace ' if replaces else ''}{'global ' if is_global else ''}temporary view"
        call.run(f"create {kind} {name} as select * from {table}")
    elif is_global:
        (pinned.createOrReplaceGlobalTempView if replaces else pinned.createGlobalTempView)(name)
    else:
        (pinned.createOrReplaceTempView if replaces else pinned.createTempView)(name)


def _name(identifier: JavaObject) -> str:
    database = some(identifier.database())
    parts = (str(identifier.table()),) if database is None else (str(database), str(identifier.table()))
    return quoted_name(parts)
