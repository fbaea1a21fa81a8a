"""Properties and comments of tables: ALTER TABLE SET | UNSET TBLPROPERTIES, COMMENT ON TABLE, SHOW TBLPROPERTIES.

What is shown of them hides secrets, by the session's own rule: `spark.redaction.regex`, and
`spark.sql.redaction.options.regex`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.delta.delta_table import DeltaTable
from alluvium.api.sql.call import Call, some, texts
from alluvium.api.sql.tables.said import texts_of
from alluvium.delta.terms.config import TableConfig

_SHOWN = StructType([StructField("key", StringType(), False), StructField("value", StringType(), False)])


def run(call: Call) -> DataFrame | None:
    """Carries out one of the statements."""
    access = call.table(call.plan.table())
    if access is None:
        return None
    kind = str(call.plan.nodeName())
    if kind == "ShowTableProperties":
        key = some(call.plan.propertyKey())
        return _shown(call, access, None if key is None else str(key))
    table = DeltaTable(call.spark, access)
    if kind == "SetTableProperties":
        table.setProperties(_entries(call))
    elif kind == "UnsetTableProperties":
        # As in the reference, where one that is not set is no error with `IF EXISTS` or without.
        table.unsetProperties(*texts(call.plan.propertyKeys()), ifExists=True)
    else:
        table.setProperties({"comment": str(call.plan.comment())})
    return call.nothing()


def _entries(call: Call) -> dict[str, str]:
    entries = call.plan.properties().toSeq()
    return {str(entries.apply(n)._1()): str(entries.apply(n)._2()) for n in range(entries.size())}


def _shown(call: Call, access: TableAccess, key: str | None) -> DataFrame:
    """All properties by name, those of the protocol among them; of one that is not there, that."""
    known = shown_properties(call, access.snapshot().config)
    if key is None:
        return call.rows_of(_SHOWN, sorted(known.items()))
    name = access.name or f"delta.`{access.url}`"
    return call.rows_of(_SHOWN, [(key, known.get(key, f"Table {name} does not have property: {key}"))])


def shown_properties(call: Call, config: TableConfig) -> dict[str, str]:
    """The properties as they are shown, in the order of their names."""
    known = dict(config.metadata.configuration)
    known["delta.minReaderVersion"] = str(config.protocol.min_reader_version)
    known["delta.minWriterVersion"] = str(config.protocol.min_writer_version)
    listed = (*(config.protocol.reader_features or ()), *(config.protocol.writer_features or ()))
    known |= {f"delta.feature.{name}": "supported" for name in listed}
    return without_secrets(call, known)


def without_secrets(call: Call, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with a mark in the place of what Spark takes for secrets, in the order of their names."""
    given = call.java.jvm.java.util.HashMap()
    for key, value in properties.items():
        given.put(key, value)
    conf = call.spark._jsparkSession.sessionState().conf()
    shown = texts_of(call, conf.redactOptions(call.java.python_utils.toScalaMap(given)))
    return dict(sorted(shown.items()))
