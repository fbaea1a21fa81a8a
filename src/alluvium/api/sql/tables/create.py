"""CREATE TABLE and REPLACE TABLE, of columns or of a query's rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from alluvium.api.delta.creation.create import create
from alluvium.api.delta.creation.request import Mode, Wanted
from alluvium.api.delta.delta_access import PROVIDER, path_in_name
from alluvium.api.names.catalog_writer import create_of_rows
from alluvium.api.names.warehouses import find_named
from alluvium.api.options import PARQUET_WRITE, WRITE, WRITE_LATER, parse_options
from alluvium.api.sql.call import Call, some
from alluvium.api.sql.tables.columns import columns_of
from alluvium.api.sql.tables.said import Said, makes_ours, said_of
from alluvium.api.sql.tables.warehouse import create_in_warehouse
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema.types import Struct
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.naming.types import to_spark
from alluvium.spark.sessions.catalog import find_table, is_path, quoted_name
from alluvium.spark.statements.conditions import ensure_condition

#: Options of the writer that say how files are made; of other options a table of rows keeps nothing.
_FOR_FILES = frozenset(name.lower() for name in PARQUET_WRITE)


def run(call: Call) -> DataFrame | None:
    """Carries out `CREATE [OR REPLACE] TABLE`, `REPLACE TABLE`, each with `AS query` or without."""
    plan = call.plan
    parts, spec = call.parts(plan.name()), plan.tableSpec()
    if parts is not None and (named := find_named(call.spark, parts)) is not None:
        return create_in_warehouse(call, named, _mode(call))
    if parts is None or not makes_ours(call, some(spec.provider()), some(spec.serde())):
        return None
    name, mode = quoted_name(parts), _mode(call)
    try:
        known = find_table(call.spark, name)
    except UnsupportedFeature:
        return None  # a table of another catalog, be its format called like ours
    if known is not None and known.provider != PROVIDER and mode is Mode.CREATE_IF_NOT_EXISTS:
        return call.nothing()
    _ensure_whole_path(call, name)
    said = said_of(call, plan.partitioning())
    wanted = Wanted(
        mode,
        name,
        location=said.location,
        partition_by=said.partition_by,
        cluster_by=said.cluster_by,
        properties={**said.properties, **said.checks},
        comment=said.comment,
        compares=True,
    )
    if _is_of_rows(plan):
        _of_rows(call, wanted, said.options)
    else:
        _of_columns(call, wanted, said)
    return call.nothing()


def explain(call: Call, mode: JavaObject) -> str | None:
    """What would be made, with Spark's plan of its rows; None where it is no table of ours."""
    plan = call.plan
    parts, spec = call.parts(plan.name()), plan.tableSpec()
    if parts is None or find_named(call.spark, parts) is not None:
        return None
    if not makes_ours(call, some(spec.provider()), some(spec.serde())):
        return None
    made = f"{_mode(call).operation} {quoted_name(parts)}"
    if not _is_of_rows(plan):
        return made
    return f"{made} AS SELECT\n{call.rows(plan.query())._jdf.queryExecution().explainString(mode)}"


def _is_of_rows(plan: JavaObject) -> bool:
    return str(plan.nodeName()).endswith("AsSelect")


def _ensure_whole_path(call: Call, name: str) -> None:
    path = path_in_name(call.spark, name)
    if path is not None and not is_path(path):
        raise InvalidRequest(
            f"delta.`{path}` is neither a table of a database delta nor a whole path",
            code="invalid-table-name",
            hint="begin the path with / or with its scheme",
        )


def _mode(call: Call) -> Mode:
    plan = call.plan
    if str(plan.nodeName()).startswith("Replace"):
        return Mode.CREATE_OR_REPLACE if plan.orCreate() else Mode.REPLACE
    return Mode.CREATE_IF_NOT_EXISTS if plan.ignoreIfExists() else Mode.CREATE


def _of_rows(call: Call, wanted: Wanted, options: Mapping[str, str]) -> None:
    properties = {k: v for k, v in options.items() if k.lower().startswith("delta.")}
    kept = {k: v for k, v in options.items() if k.lower() in _FOR_FILES or ("." in k and k not in properties)}
    parsed = parse_options({**properties, **kept}, WRITE, WRITE_LATER)
    create_of_rows(call.rows(call.plan.query()), wanted, parsed)


def _of_columns(call: Call, wanted: Wanted, said: Said) -> None:
    columns = columns_of(call.java, call.plan.columns())
    if said.checks:
        rows = call.spark.createDataFrame([], to_spark(Struct(columns)))
        for name, condition in said.checks.items():
            ensure_condition(rows, name, condition)
    # As the reference: the options are among the properties, under two names.
    told = {**{f"option.{k}": v for k, v in said.options.items()}, **said.options}
    create(call.spark, replace(wanted, columns=columns, properties={**told, **wanted.properties}))
