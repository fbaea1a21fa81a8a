"""Live files written anew, so that what a feature left in them goes: rows and their identities stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from alluvium.codecs.footers.parquet_footer import FileFooter
from alluvium.commands.rows.row_identity import copied_ids
from alluvium.commands.written import written_files
from alluvium.commit.clear import clear
from alluvium.commit.loop import NOTHING_STANDS
from alluvium.delta.log_upkeep.checkpoints import refresh_to
from alluvium.delta.rows.candidates import candidates_of
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.mapping import MODE
from alluvium.delta.upkeep.drop.drop_feature import Rewrite
from alluvium.delta.upkeep.drop.removals import REMOVE_MAPPING, without_mapping
from alluvium.delta.upkeep.optimize import rewrite_metrics
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.changes import (
    TOUCHED_FILES,
    Committed,
    EditFigures,
    NewFiles,
    Operation,
    ReadScope,
    RewriteFiles,
)
from alluvium.plan.retry import RetryPolicy
from alluvium.plan.write import WRITTEN_FILES, WritePlan
from alluvium.spark.jvm.frames import select_texts
from alluvium.spark.naming.names import quote
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.values.derive import complete
from alluvium.spark.write import write_files
from alluvium.storage.locating import locating


def rewriter(spark: SparkSession, retry: RetryPolicy) -> Rewrite:
    """What a session does to files that must be written anew."""

    def rewrite(snapshot: Snapshot, files: pa.Table, config: TableConfig, operation: Operation) -> Snapshot:
        return rewrite_files(spark, snapshot, files, config, operation, retry)

    return rewrite


def remove_mapping(
    spark: SparkSession, snapshot: Snapshot, engine: str, keeps_property: bool, retry: RetryPolicy
) -> Committed:
    """Writes all rows into files that have the columns under their names, and ends column mapping, in one commit.

    Args:
        spark: The session that does it.
        snapshot: The newest version, of a table with column mapping.
        engine: For the history.
        keeps_property: Whether `delta.columnMapping.mode` says `none` afterwards, instead of nothing.
        retry: How often a lost commit is tried again.

    Raises:
        InvalidRequest: A column's name is one that only column mapping allows.
        CommitConflict: Another writer touched the files.
    """
    with locating(snapshot.store, snapshot.version):
        config = without_mapping(snapshot.config)
        if keeps_property:
            said = {**config.metadata.configuration, MODE: "none"}
            metadata = msgspec.structs.replace(config.metadata, configuration=said)
            config = parse_config(config.protocol, metadata)
    files = with_stats_text(snapshot.files)
    done = _rewrite(spark, snapshot, files, config, Operation(REMOVE_MAPPING, engine=engine), retry)
    return Committed(done.version, WRITTEN_FILES.empty_table(), {}, done.attempts)


def rewrite_files(
    spark: SparkSession,
    snapshot: Snapshot,
    files: pa.Table,
    config: TableConfig,
    operation: Operation,
    retry: RetryPolicy,
) -> Snapshot:
    """Writes the rows of some live files into new ones, in a commit that changes no row.

    Args:
        spark: The session that does it.
        snapshot: The newest version.
        files: Live files of it (`FILES`).
        config: The table after it.
        operation: For the history; metrics are added.
        retry: How often a lost commit is tried again.

    Returns:
        The version that it made.

    Raises:
        CommitConflict: Another writer touched the files.
        UnsupportedFeature: The table needs a writer that we are not.
    """
    return refresh_to(snapshot, _rewrite(spark, snapshot, files, config, operation, retry).version)


def _rewrite(
    spark: SparkSession,
    snapshot: Snapshot,
    files: pa.Table,
    config: TableConfig,
    operation: Operation,
    retry: RetryPolicy,
) -> Committed:
    target = DeltaTarget(snapshot.store, config, snapshot, retry)
    candidates = candidates_of(snapshot, files)
    # Their rows obey the table's conditions already.
    plan = replace(target.plan_write(None, ()).with_ids(candidates.stored_ids), checks=(), derived=(), rebalance=True)
    rows = read_native(spark, candidates)
    columns = [*map(quote, config.schema.names), *copied_ids(candidates)]
    with locating(snapshot.store, snapshot.version):
        try:
            written, footers = _write(select_texts(rows, columns), target, plan)
        except BaseException:
            clear(target.store, plan.directory)
            raise
        touched = pa.table([candidates.paths, pa.nulls(files.num_rows, pa.binary())], schema=TOUCHED_FILES)
        # Where the description changes with the files, rows that others add by the old one could not be read.
        read = ReadScope.nothing() if config == snapshot.config else ReadScope.table()
        changes = RewriteFiles(
            NewFiles(written, footers),
            touched,
            operation,
            read,
            describe=lambda figures: _metrics(operation, figures, written["size"]),
        )
        try:
            return target.commit(changes)
        except NOTHING_STANDS:
            clear(target.store, plan.directory)
            raise


def _write(rows: DataFrame, target: DeltaTarget, plan: WritePlan) -> tuple[pa.Table, tuple[FileFooter, ...]]:
    completed = complete(rows, plan.schema, plan)
    write_files(rows.sparkSession, completed.df, replace(completed.plan, checks=()))
    return written_files(target.store, plan)


def _metrics(operation: Operation, figures: EditFigures, sizes: pa.ChunkedArray) -> Mapping[str, str]:
    if operation.name != "REORG":
        # All that the reference's history tells of it.
        return {"numOutputBytes": str(figures.bytes_added)}
    return rewrite_metrics(figures, sizes)
