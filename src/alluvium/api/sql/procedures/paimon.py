"""`CALL sys.<name>(...)` of Paimon tables, arguments by position or by name."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructType

from alluvium.api.names.paimon_access import known_paimon
from alluvium.api.names.warehouses import warehouses_of
from alluvium.api.paimon.life.procedures import BOOLEAN, INT, LONG, STRING, Given, Value, bind_arguments, find_procedure
from alluvium.api.paimon.paimon_table import PaimonTable
from alluvium.api.sql.call import Call, texts
from alluvium.errors import NotFound
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.sessions.catalog import parse_name, quoted_name
from alluvium.spark.sessions.session import time_zone

_BRANCH = "$branch_"
_SYS = "sys"
_TYPES = {STRING: StringType(), INT: IntegerType(), LONG: LongType(), BOOLEAN: BooleanType()}


def run(call: Call) -> DataFrame | None:
    """Carries out a `CALL`; None where the procedure is of another catalog than ours."""
    parts = texts(call.plan.procedure().nameParts())
    catalog, namespace, name = parts[:-2], parts[-2].casefold() if len(parts) > 1 else "", parts[-1]
    known = ("spark_catalog", *warehouses_of(call.spark))
    if namespace != _SYS or len(catalog) > 1 or (catalog and catalog[0] not in known):
        return None
    procedure = find_procedure(name)
    positional, named = _arguments(call)
    values = bind_arguments(name, procedure, positional, named)
    table = _table(call, str(values["table"]), catalog[0] if catalog else None)
    rows = procedure.run(Given(table, values, time_zone(call.spark)))
    schema = StructType()
    for column, kind in procedure.result:
        schema.add(column, _TYPES[kind])
    return call.rows_of(schema, rows)


def _arguments(call: Call) -> tuple[list[Value], dict[str, Value]]:
    """The arguments, computed as Spark computes constants."""
    given = call.plan.args()
    nodes = [given.apply(n) for n in range(given.size())]
    names = [str(node.key()) if _is_named(node) else None for node in nodes]
    columns = [
        Column(call.java.expression_utils.column(node.value() if _is_named(node) else node)).alias(f"a{n}")
        for n, node in enumerate(nodes)
    ]
    values = call.run("select 1").select(sf.lit(1).alias("none"), *columns).collect()[0][1:]
    pairs = list(zip(names, values, strict=True))
    return [value for name, value in pairs if name is None], {name: v for name, v in pairs if name is not None}


def _is_named(node: JavaObject) -> bool:
    return str(node.getClass().getSimpleName()) == "NamedArgumentExpression"


def _table(call: Call, text: str, catalog: str | None) -> PaimonTable:
    """The table that an argument names, or one of its branches: `db.t$branch_x`.

    Raises:
        NotFound: There is no Paimon table of that name (`"not-a-table"`).
    """
    name, has_branch, branch = text, "", ""
    if _BRANCH in text:
        whole, has_branch, branch = text.replace("`", "").partition(_BRANCH)
        name = quoted_name(whole.split("."))
    if catalog is not None and catalog != "spark_catalog" and len(parse_name(call.spark, name)) == 2:
        name = f"{quoted_name((catalog,))}.{name}"
    access = known_paimon(call.spark, name)
    if access is None:
        raise NotFound(f"{text!r} is no Paimon table", code="not-a-table", hint="database.table, or paimon.`/path`")
    return PaimonTable.forPath(access.url, branch=branch if has_branch else None)
