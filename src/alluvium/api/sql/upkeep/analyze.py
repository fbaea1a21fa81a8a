"""ANALYZE TABLE ... COMPUTE STATISTICS of Paimon tables; of Delta tables it is refused."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.paimon.paimon_table import PaimonTable
from alluvium.api.sql.call import Call, some, texts
from alluvium.api.sql.tables import refused
from alluvium.errors import UnsupportedFeature


def run(call: Call) -> DataFrame | None:
    """Carries out the statement; the answer has no columns.

    Raises:
        UnsupportedFeature: `PARTITION (...)`: a table's statistics are those of all of its rows.
    """
    access = call.paimon(call.plan.children().head())
    if access is None:
        return refused.run(call)
    columns: tuple[str, ...] | None = ()
    if str(call.plan.nodeName()) == "AnalyzeColumn":
        named = some(call.plan.columnNames())
        columns = None if named is None else texts(named)
    elif not bool(call.plan.partitionSpec().isEmpty()):
        raise UnsupportedFeature(
            "ANALYZE TABLE ... PARTITION is not for Paimon tables",
            code="unsupported-statement",
            url=access.url,
            hint="leave PARTITION out",
        )
    PaimonTable.forPath(access.url, branch=access.branch).analyze(columns, spark=call.spark)
    return call.nothing()
