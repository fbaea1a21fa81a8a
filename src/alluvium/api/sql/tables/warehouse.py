"""CREATE TABLE ... AS SELECT into a Paimon warehouse; a table of columns alone is made by the catalog itself."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.names.paimon_access import PaimonAccess
from alluvium.api.names.warehouses import NamedTable, create_named, has_named, partition_key, url_of
from alluvium.api.sql.call import Call
from alluvium.errors import InvalidRequest, UnsupportedFeature


def create_in_warehouse(call: Call, named: NamedTable) -> DataFrame | None:
    """Carries out the statement; None where Spark is to ask the catalog.

    Raises:
        InvalidRequest: There is a table of that name (`"table-exists"`).
        UnsupportedFeature: REPLACE TABLE: the old one would be gone before the new one is there.
    """
    kind, plan = str(call.plan.nodeName()), call.plan
    if kind.startswith("Replace"):
        raise UnsupportedFeature(
            "tables of a warehouse are not replaced",
            code="unsupported-statement",
            features=("REPLACE TABLE",),
            hint="INSERT OVERWRITE, or DROP TABLE first",
        )
    if kind != "CreateTableAsSelect":
        return None
    if has_named(call.spark, named):
        if plan.ignoreIfExists():
            return call.nothing()
        raise InvalidRequest(
            f"there is a table {named.catalog}.{named.database}.{named.table} already",
            code="table-exists",
            url=url_of(call.spark, named),
        )
    rows = call.rows(plan.query())
    transforms = plan.partitioning()
    keys = [partition_key(transforms.apply(n)) for n in range(transforms.size())]
    spec = plan.tableSpec()
    as_java = call.java.jvm.scala.jdk.javaapi.CollectionConverters.asJava
    properties = {str(key): str(value) for key, value in dict(as_java(spec.properties())).items()}
    if spec.comment().isDefined():
        properties["comment"] = str(spec.comment().get())
    if spec.location().isDefined():
        properties["location"] = str(spec.location().get())
    table = create_named(call.spark, named, rows.schema, keys, properties)
    PaimonAccess(call.spark, table.url).insert(rows, False, {})
    return call.nothing()
