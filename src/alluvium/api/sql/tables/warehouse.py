"""CREATE TABLE ... AS SELECT into a Paimon warehouse; a table of columns alone is made by the catalog itself."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.delta.creation.request import Mode
from alluvium.api.names.warehouse_rows import MadeOfRows, make_of_rows
from alluvium.api.names.warehouses import NamedTable, has_named, partition_key
from alluvium.api.sql.call import Call, some
from alluvium.errors import UnsupportedFeature


def create_in_warehouse(call: Call, named: NamedTable, mode: Mode) -> DataFrame | None:
    """Carries out the statement; None where Spark is to ask the catalog.

    Raises:
        InvalidRequest: There is a table of that name (`"table-exists"`).
        UnsupportedFeature: REPLACE TABLE: the old one would be gone before the new one is there.
    """
    plan = call.plan
    if not str(plan.nodeName()).endswith("AsSelect"):
        if mode.replaces and has_named(call.spark, named):
            raise UnsupportedFeature(
                "tables of a warehouse are not replaced",
                code="unsupported-statement",
                features=("REPLACE TABLE",),
                hint="INSERT OVERWRITE, or DROP TABLE first",
            )
        return None
    if mode is Mode.CREATE_IF_NOT_EXISTS and has_named(call.spark, named):
        return call.nothing()  # the query is not even looked at
    transforms = plan.partitioning()
    keys = [partition_key(transforms.apply(n)) for n in range(transforms.size())]
    make_of_rows(call.rows(plan.query()), named, MadeOfRows(mode, keys, _properties(call)))
    return call.nothing()


def _properties(call: Call) -> dict[str, str]:
    spec = call.plan.tableSpec()
    as_java = call.java.jvm.scala.jdk.javaapi.CollectionConverters.asJava
    said = {str(key): str(value) for key, value in dict(as_java(spec.properties())).items()}
    beside = {"comment": some(spec.comment()), "location": some(spec.location()), "provider": some(spec.provider())}
    return {**said, **{key: str(value) for key, value in beside.items() if value is not None}}
