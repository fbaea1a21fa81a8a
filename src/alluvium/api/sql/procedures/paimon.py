"""`CALL sys.<name>(...)` of Paimon tables, arguments by position or by name."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BooleanType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from alluvium.api.names.paimon_access import known_paimon
from alluvium.api.names.warehouses import find_named, url_of, warehouses_of
from alluvium.api.paimon.life.procedure import (
    BOOLEAN,
    INT,
    LONG,
    STRING,
    Given,
    Procedure,
    Value,
    bind_arguments,
    database_in,
)
from alluvium.api.paimon.life.procedures import find_procedure
from alluvium.api.sql.call import Call, texts
from alluvium.errors import InvalidRequest, NotFound
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.sessions.catalog import parse_name, quoted_name
from alluvium.spark.sessions.session import time_zone

_BRANCH = "$branch_"
_SYS = "sys"
_TIMES = (DateType, TimestampType, TimestampNTZType)
_TYPES = {STRING: StringType(), INT: IntegerType(), LONG: LongType(), BOOLEAN: BooleanType()}


def run(call: Call) -> DataFrame | None:
    """Carries out a `CALL`; None where the procedure is of another catalog than ours."""
    parts = texts(call.plan.procedure().nameParts())
    catalog, namespace, name = parts[:-2], parts[-2].lower() if len(parts) > 1 else "", parts[-1]
    known = ("spark_catalog", *warehouses_of(call.spark))
    if namespace != _SYS or len(catalog) > 1 or (catalog and catalog[0] not in known):
        return None
    procedure = find_procedure(name)
    positional, named = _arguments(call)
    values = bind_arguments(name, procedure, positional, named)
    rows = procedure.run(_given(call, procedure, values, catalog[0] if catalog else None))
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
    found = call.run("select 1").select(sf.lit(1).alias("none"), *columns)
    # A driver's Python has times of its own zone, or of none: as text they are the session's.
    texts = [sf.col(f.name).cast("string") if isinstance(f.dataType, _TIMES) else sf.col(f.name) for f in found.schema]
    values = found.select(*texts).collect()[0][1:]
    pairs = list(zip(names, values, strict=True))
    return [value for name, value in pairs if name is None], {name: v for name, v in pairs if name is not None}


def _is_named(node: JavaObject) -> bool:
    return str(node.getClass().getSimpleName()) == "NamedArgumentExpression"


def _given(call: Call, procedure: Procedure, values: Mapping[str, Value], catalog: str | None) -> Given:
    zone = time_zone(call.spark)
    if procedure.subject is None:
        return Given(_warehouse(call, catalog), values, zone)
    if (name := database_in(procedure, values)) is not None:
        warehouse, database = _database(call, name, catalog)
        return Given(warehouse, values, zone, database=database)
    url, branch = _table(call, str(values[procedure.subject]), catalog)
    target = None if procedure.target is None else _place(call, str(values[procedure.target]), catalog)
    return Given(url, values, zone, branch, target=target)


def _warehouse(call: Call, catalog: str | None) -> str:
    """Where the warehouse is that the call is about: the catalog that it names, or the current one.

    Raises:
        InvalidRequest: That is none (`"no-warehouse"`).
    """
    known = warehouses_of(call.spark)
    name = catalog or str(call.spark.catalog.currentCatalog())
    if name not in known:
        raise InvalidRequest(
            f"the catalog {name} is no Paimon warehouse",
            code="no-warehouse",
            hint=f"CALL {next(iter(known), 'lake')}.sys...",
        )
    return known[name]


def _database(call: Call, text: str, catalog: str | None) -> tuple[str, str]:
    """The warehouse and the database that an argument names.

    Raises:
        InvalidRequest: It names none (`"invalid-name"`), or one of no warehouse (`"no-warehouse"`).
    """
    *above, database = parse_name(call.spark, text)
    if len(above) > 1:
        raise InvalidRequest(f"{text!r} names no database", code="invalid-name", hint="database.*, or lake.database.*")
    return _warehouse(call, above[0] if above else catalog), database


def _table(call: Call, text: str, catalog: str | None) -> tuple[str, str | None]:
    """Where the table is that an argument names, and which of its branches is meant: `db.t$branch_x`.

    Raises:
        NotFound: There is no Paimon table of that name (`"not-a-table"`).
    """
    name, has_branch, branch = text, "", ""
    if _BRANCH in text:
        whole, has_branch, branch = text.replace("`", "").partition(_BRANCH)
        name = quoted_name(whole.split("."))
    access = known_paimon(call.spark, _within(call, name, catalog))
    if access is None:
        raise NotFound(f"{text!r} is no Paimon table", code="not-a-table", hint="database.table, or paimon.`/path`")
    return access.url, branch if has_branch else None


def _place(call: Call, text: str, catalog: str | None) -> str:
    """Where a table is, or would be, that an argument names.

    Raises:
        InvalidRequest: It is no name of a table in a warehouse, and no path (`"invalid-name"`).
    """
    name = _within(call, text, catalog)
    named, access = find_named(call.spark, parse_name(call.spark, name)), known_paimon(call.spark, name)
    if named is not None and named.branch is None and named.system is None:
        return url_of(call.spark, named)
    if named is None and access is not None:
        return access.url
    raise InvalidRequest(
        f"{text!r} names no place for a table", code="invalid-name", hint="lake.database.table, or paimon.`/path`"
    )


def _within(call: Call, name: str, catalog: str | None) -> str:
    """A name of two parts is one of the catalog that the call names."""
    is_ours = catalog is not None and catalog != "spark_catalog" and len(parse_name(call.spark, name)) == 2
    return f"{quoted_name((str(catalog),))}.{name}" if is_ours else name
