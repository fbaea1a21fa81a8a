"""The files that a predicate over partition columns chooses."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.optimize.rewriting import Chosen, not_of_partitions
from alluvium.commands.rows.row_condition import RowCondition, row_condition
from alluvium.delta.rows.candidates import candidates_of
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.view.scan import whole_files
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.errors import InvalidRequest
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.naming.names import quote
from alluvium.spark.scan.native_lane.index import items
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.statements.resolve import Qualifier


def choose_files(spark: SparkSession, snapshot: Snapshot, where: Sequence[str], name: Qualifier, verb: str) -> Chosen:
    """The files of the partitions for which all of some conditions are true; every file without one.

    Args:
        spark: A classic session.
        snapshot: The version.
        where: Conditions as SQL text.
        name: Of the table in them.
        verb: For errors: `"OPTIMIZE"`.

    Raises:
        InvalidRequest: One does not resolve (`invalid-expression`), or names a column that is none of the partition
            columns (`predicate-on-data`).
    """
    if not where:
        return Chosen(with_stats_text(snapshot.files))
    try:
        files = _chosen(spark, snapshot, where, name, verb)
    except InvalidRequest as error:
        if error.code == "invalid-expression":
            _ensure_known(_parsed(spark, where), snapshot.config, verb)
        raise
    return Chosen(with_stats_text(files), tuple(str(one.toString()) for one in _parsed(spark, where)))


def _chosen(spark: SparkSession, snapshot: Snapshot, where: Sequence[str], name: Qualifier, verb: str) -> pa.Table:
    text = " AND ".join(f"({one})" for one in where)
    rows = read_native(spark, DeltaSource(snapshot))
    with row_condition(rows, text, f"the condition of {verb}", name) as judged:
        _ensure_partitions_only(judged, snapshot.config, verb)
        whole = whole_files(snapshot, judged.where(snapshot.config.schema))
        if not whole.undecided.num_rows:
            return whole.every
        return pa.concat_tables([whole.every, _decided_by_rows(spark, snapshot, whole.undecided, judged)])


def _ensure_partitions_only(judged: RowCondition, config: TableConfig, verb: str) -> None:
    assert judged.found is not None, "there is a condition"
    columns = judged.found.java.references().toSeq()
    named = [str(columns.apply(n).name()) for n in range(columns.size())]
    partitions = {config.schema.find(name) for name in config.partition_columns}
    # Spark resolves names without regard to case, and tells them as they were said.
    others = sorted(column for column in named if config.schema.find(column) not in partitions)
    if others:
        raise not_of_partitions(others[0], config, verb)


def _parsed(spark: SparkSession, where: Sequence[str]) -> list[JavaObject]:
    parser = spark._jsparkSession.sessionState().sqlParser()
    try:
        return [parser.parseExpression(one) for one in where]
    except ParseException:
        return []  # Spark has told what is wrong with it


def _ensure_known(said: Sequence[JavaObject], config: TableConfig, verb: str) -> None:
    """Refuses a name that is no column's: as in the reference, it is none of the partition columns.

    Only of what Spark could not resolve: a name may be a variable's.
    """
    for one in said:
        leaves = items(one.collectLeaves())
        parts = [leaf.nameParts() for leaf in leaves if str(leaf.nodeName()) == "UnresolvedAttribute"]
        for name in (str(part.head()) for part in parts if part.size() == 1):
            if config.schema.find(name) is None:
                raise not_of_partitions(name, config, verb)


def _decided_by_rows(spark: SparkSession, snapshot: Snapshot, files: pa.Table, judged: RowCondition) -> pa.Table:
    """Of some files those for which Spark finds true what nobody else understands; only their footers are read."""
    candidates = candidates_of(snapshot, files)
    rows, chosen = judged.over(read_native(spark, candidates))
    number = sf.col(quote(candidates.columns.file))
    found = rows.where(chosen).select(number.alias("file")).distinct().toArrow()
    return candidates.only(found["file"].combine_chunks().cast(pa.int64())).files
