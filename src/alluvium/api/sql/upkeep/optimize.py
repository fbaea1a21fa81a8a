"""OPTIMIZE and REORG TABLE."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.sql.grammar.optimize import Optimize, Reorg
from alluvium.api.sql.text.terms import PathLiteral
from alluvium.api.sql.upkeep.targets import delta_table
from alluvium.errors import UnsupportedFeature
from alluvium.plan.changes import Preview
from alluvium.spark.naming.names import quote


def run(spark: SparkSession, statement: Optimize | Reorg) -> DataFrame | None:
    """Carries out one of the statements; both answer what the methods of DeltaTable do."""
    with _door(statement):
        table = delta_table(spark, statement.target)
    if table is None:
        return None
    builder = table.optimize()
    if statement.where is not None:
        builder = builder.where(statement.where.text)
    if isinstance(statement, Reorg):
        _ensure_purge(statement)
        return _answer(builder.executePurge())
    if statement.full:
        builder = replace(builder, _full=True)
    names = [".".join(quote(part) for part in path) for path in statement.zorder_by]
    return _answer(builder.executeZOrderBy(*names))


def _door(statement: Optimize | Reorg) -> AbstractContextManager[None]:
    if isinstance(statement, Reorg):
        return counterparts("reorg")
    return counterparts("path") if isinstance(statement.target, PathLiteral) else nullcontext()


def _answer(done: DataFrame | Preview) -> DataFrame:
    assert isinstance(done, DataFrame), "a statement has no dry run"
    return done


def _ensure_purge(statement: Reorg) -> None:
    if statement.iceberg_compat_version is not None:
        raise UnsupportedFeature(
            "REORG TABLE ... APPLY (UPGRADE UNIFORM ...) is not implemented",
            code="unsupported-statement",
            hint="set the property delta.enableIcebergCompatV2 on a table that has no deletion vectors",
        )
