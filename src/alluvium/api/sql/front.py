"""The front of `spark.sql`: a statement about a table of ours becomes a call of a verb; all else goes on to Spark.

The first word decides, so that a query costs a look at one word. Statements that Spark can read are read by its own
parser, and the plan's outermost node chooses who carries them out; those that only Delta knows are read by `grammar`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.sql_formatter import SQLStringFormatter

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.names.warehouses import warehouses_of
from alluvium.api.sql.binding import bound, parsed_with
from alluvium.api.sql.call import Arguments, Call, identified
from alluvium.api.sql.grammar.parameters import bind_parameters
from alluvium.api.sql.grammar.parse import parse_statement
from alluvium.api.sql.kinds import Kind, kind_of
from alluvium.api.sql.rows.merge_text import in_sparks_words
from alluvium.api.sql.text.catalog_columns import with_session_columns
from alluvium.api.sql.text.terms import Settings, Statement, TableName
from alluvium.api.sql.unseen import named_as_ours
from alluvium.errors import InvalidRequest
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.sessions.active import active

_ROOM = "alluvium.api.sql."
#: By the outermost node of a parsed plan: the module that carries it out, by `run(call) -> DataFrame | None`. None
#: says that the statement is about somebody else's table.
_BY_NODE: Mapping[str, str] = {
    "AddColumns": "tables.alter_columns",
    "AddPartitions": "tables.refused",
    "AlterColumns": "tables.alter_columns",
    "AnalyzeColumn": "upkeep.analyze",
    "AnalyzeTable": "upkeep.analyze",
    "CacheTable": "kept.cached",
    "Call": "procedures.paimon",
    "CommentOnTable": "tables.properties",
    "CompoundBody": "programs.script",
    "CreateTable": "tables.create",
    "CreateTableAsSelect": "tables.create",
    "CreateTableLike": "tables.like",
    "CreateTableLikeCommand": "tables.like",
    "CreateTempViewUsing": "kept.temporary_view",
    "DeleteFromTable": "rows.delete",
    "DescribeColumn": "tables.describe",
    "DescribeRelation": "tables.describe",
    "DescribeTablePartition": "tables.describe",
    "DropColumns": "tables.alter_columns",
    "DropPartitions": "tables.partitions",
    "DropTable": "tables.drop",
    "ExecuteImmediateQuery": "programs.immediate",
    "ExplainCommand": "rows.explain",
    "InsertIntoDir": "rows.insert",
    "InsertIntoStatement": "rows.insert",
    "LoadData": "tables.refused",
    "MergeIntoTable": "rows.merge",
    "OverwriteByExpression": "rows.insert",
    "RecoverPartitions": "tables.refused",
    "RenameColumn": "tables.alter_columns",
    "RenamePartitions": "tables.refused",
    "RenameTable": "tables.rename",
    "RepairTable": "tables.refused",
    "ReplaceColumns": "tables.alter_columns",
    "ReplaceTable": "tables.create",
    "ReplaceTableAsSelect": "tables.create",
    "SetTableLocation": "tables.location",
    "SetTableProperties": "tables.properties",
    "SetTableSerDeProperties": "tables.refused",
    "ShowColumns": "tables.show",
    "ShowCreateTable": "tables.show",
    "ShowPartitions": "tables.show",
    "ShowTableProperties": "tables.properties",
    "TruncatePartition": "rows.truncate",
    "TruncateTable": "rows.truncate",
    "Union": "rows.insert",
    "UnresolvedExecuteImmediate": "programs.immediate",
    "UnresolvedInsert": "rows.insert",
    "UnsetTableProperties": "tables.properties",
    "UpdateTable": "rows.update",
}
#: Modules of statements that read or change rows: their errors are those of queries.
_LIKE_QUERIES = frozenset(
    ("kept.cached", "kept.temporary_view", "rows.delete", "rows.explain", "rows.insert", "rows.merge", "rows.update")
)
#: By the class of a statement that only Delta knows: the module, by `run(spark, statement) -> DataFrame | None`.
_BY_STATEMENT: Mapping[str, str] = {
    "AddConstraint": "upkeep.alter",
    "AddFeature": "upkeep.alter",
    "Clone": "upkeep.clone",
    "ClusterBy": "upkeep.alter",
    "ComputeStatistics": "upkeep.repair",
    "ConvertToDelta": "upkeep.convert",
    "DescribeDetail": "upkeep.history",
    "DescribeHistory": "upkeep.history",
    "DropConstraint": "upkeep.alter",
    "DropFeature": "upkeep.alter",
    "FsckRepair": "upkeep.repair",
    "Generate": "upkeep.generate",
    "Optimize": "upkeep.optimize",
    "Reorg": "upkeep.optimize",
    "Restore": "upkeep.history",
    "SyncIdentity": "upkeep.alter",
    "Vacuum": "upkeep.vacuum",
}
#: Spark takes them for descriptions of a column, of a table that is called DETAIL or HISTORY.
_TAKEN_FOR_ANOTHER = frozenset(("DescribeDetail", "DescribeHistory"))


def sql(
    original: Callable[..., DataFrame],
    spark: SparkSession,
    text: str,
    args: Arguments | None = None,
    frames: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Carries out a statement.

    Args:
        original: Spark's own `sql`.
        spark: A classic session.
        text: The statement.
        args: Values of its parameters, by name or by position.
        frames: What stands for `{name}` in the text, as PySpark has it.

    Raises:
        AlluviumError: As the verb that the statement calls.
    """
    text = with_session_columns(text, lambda: warehouses_of(spark))
    if kind_of(_with_variables(spark, text)) is Kind.QUERY:
        with named_as_ours(spark, text), counterparts("query"):
            return original(spark, text, args, **dict(frames or {}))
    with active(spark):
        if not frames:
            return _run(original, spark, text, args)
        formatter = SQLStringFormatter(spark)
        try:
            return _run(original, spark, formatter.format(text, **frames), args)
        finally:
            formatter.clear()


def _run(original: Callable[..., DataFrame], spark: SparkSession, text: str, args: Arguments | None) -> DataFrame:
    done = _Front(original, spark).again(text, args)
    if done is not None:
        return done
    with named_as_ours(spark, text):
        return original(spark, text, args)


@dataclass(frozen=True)
class _Front:
    """What statements within statements are given to."""

    original: Callable[..., DataFrame]
    spark: SparkSession

    def again(self, text: str, args: Arguments | None) -> DataFrame | None:
        """Carries out a statement; None: it is about somebody else's table."""
        substituted = _with_variables(self.spark, text)
        if kind_of(substituted) is Kind.DELTA_ONLY:
            statement = parse_statement(substituted, _settings(self.spark))
            if statement is not None:
                return self._delta_only(statement, args, substituted)
        plan = self._parsed(substituted)
        if plan is None and (spelled := in_sparks_words(substituted)) is not None:
            plan = self._parsed(spelled)
        if plan is None and args:
            # Values may stand where the grammar wants literals: then they are put in before it is parsed.
            plan, args = parsed_with(self.spark, substituted, args), None
        if plan is None:
            return None  # Spark says what is wrong with it
        if str(plan.nodeName()) == "CompoundBody":
            return self.part(plan, substituted, args)
        return self.part(plan if not args else bound(self.spark, plan, args, substituted), substituted)

    def _parsed(self, text: str) -> JavaObject | None:
        try:
            return self.spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
        except (PySparkException, Py4JJavaError):
            return None

    def part(self, plan: JavaObject, text: str, args: Arguments | None = None) -> DataFrame | None:
        """Carries out a parsed statement, or one within it."""
        plan = identified(self.spark, plan, self.run)
        queries = plan if str(plan.nodeName()) == "UnresolvedWith" else None
        inner = plan if queries is None else identified(self.spark, plan.child(), self.run)
        module = _BY_NODE.get(str(inner.nodeName()))
        if module is None:
            return None
        with counterparts("query") if module in _LIKE_QUERIES else nullcontext():
            return cast(
                "DataFrame | None", _module(module).run(Call(self.spark, text, inner, self.run, queries, self, args))
            )

    def _delta_only(self, statement: Statement, args: Arguments | None, text: str) -> DataFrame | None:
        given = bind_parameters(statement, args or {}, _settings(self.spark))
        name = type(given).__name__
        done = carry_out(self.spark, given)
        # Of somebody else's table it is Spark's, or an extension's, if that can read it.
        if done is None and (name in _TAKEN_FOR_ANOTHER or self._parsed(text) is None):
            target = getattr(given, "target", None)
            shown = ".".join(target.parts) if isinstance(target, TableName) else str(target)
            raise InvalidRequest(
                f"the statement is for Delta tables, and {shown!r} is a table of another format",
                code="not-delta",
                hint="CONVERT TO DELTA makes a Delta table of Parquet files",
            )
        return done

    def run(self, text: str) -> DataFrame:
        """A statement by Spark alone."""
        return self.original(self.spark, text)

    def knows(self, plan: JavaObject) -> bool:
        """Whether a statement may turn out to be ours when it is carried out."""
        kind = str(plan.nodeName())
        if kind == "UnresolvedWith":
            return self.knows(plan.child())
        return kind == "PlanWithUnresolvedIdentifier" or kind in _BY_NODE


def carry_out(spark: SparkSession, statement: Statement) -> DataFrame | None:
    """A statement that only Delta knows, its parameters bound; None: it is about somebody else's table."""
    return cast("DataFrame | None", _module(_BY_STATEMENT[type(statement).__name__]).run(spark, statement))


def _module(name: str) -> Any:
    """A module of statements, loaded when the first of its kind is met."""
    return importlib.import_module(_ROOM + name)


def _with_variables(spark: SparkSession, text: str) -> str:
    """The text with `${name}` put in, as Spark does before it parses."""
    if "${" not in text:
        return text
    substitution = java_of(spark).jvm.org.apache.spark.sql.internal.VariableSubstitution
    with active(spark):
        return str(substitution().substitute(text))


def _settings(spark: SparkSession) -> Settings:
    def is_on(name: str) -> bool:
        return str(spark.conf.get(name, "false")).lower() == "true"

    quoted = is_on("spark.sql.ansi.enabled") and is_on("spark.sql.ansi.doubleQuotedIdentifiers")
    return Settings(is_on("spark.sql.parser.escapedStringLiterals"), quoted)
