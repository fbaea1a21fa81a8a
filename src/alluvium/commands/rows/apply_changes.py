"""One way to apply changed rows to a table, for DELETE, UPDATE and MERGE."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from alluvium.commands.rows.mask_rows import MaskRows
from alluvium.commands.rows.patch_rows import PatchRows
from alluvium.commands.rows.rewrite_rows import RewriteRows
from alluvium.commands.rows.row_changes import Purpose, RowChanges
from alluvium.commands.rows.row_work import RowWork, milliseconds_since
from alluvium.commands.rows.upsert_rows import UpsertRows
from alluvium.commands.rows.verb import Verb
from alluvium.plan.changes import Committed, Preview, RowChangeMode
from alluvium.plan.ports import RowTarget
from alluvium.spark.positions import locate
from alluvium.spark.write import data_error

_WAYS: dict[RowChangeMode, type[MaskRows] | type[RewriteRows] | type[UpsertRows] | type[PatchRows]] = {
    RowChangeMode.PATCH_COLUMNS: PatchRows,
    RowChangeMode.MASK_ROWS: MaskRows,
    RowChangeMode.REWRITE_FILES: RewriteRows,
    RowChangeMode.UPSERT_KEYS: UpsertRows,
}


def apply_changes(
    spark: SparkSession,
    target: RowTarget,
    changes: RowChanges,
    verb: Verb,
    mode: RowChangeMode,
    *,
    dry_run: bool = False,
) -> Committed | Preview:
    """Carries the changes out and commits them.

    Raises:
        InvalidRequest: New rows do not fit the table; it is as it was.
        CommitConflict: Another writer touched what was read.
    """
    way, candidates = _WAYS[mode], changes.candidates
    begun = time.monotonic()
    with ExitStack() as opened:
        with _data_errors(target.url):
            # What keys become is in the rows as they are written.
            is_told = dry_run and way is not UpsertRows
            first = changes.first(candidates, Purpose.PLACES if is_told else way.purpose)
            opened.callback(first.release)
            has_matches = changes.join is not None
            located = locate(
                first.rows,
                candidates.columns,
                with_bits=way.needs_bits,
                with_matches=has_matches,
                only=changes.only,
            )
        if changes.join is not None:
            changes.join.ensure_single(located)
        work = way(RowWork(spark, target, changes, verb, located, milliseconds_since(begun)))
        if not dry_run:
            return work.apply(first)
        if isinstance(work, UpsertRows):
            work.ensure_keys_stay(first)
        return work.preview()


@contextmanager
def _data_errors(url: str) -> Iterator[None]:
    """The first job may be the one that computes new values."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise data_error(error, url) from error
