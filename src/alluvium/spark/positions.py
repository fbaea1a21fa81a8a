"""Which rows of which files a verb changes: counted, and as bits, by Spark. No row reaches the driver."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.codecs.bitmaps.bits import BLOCK_BITS, roaring_of_blocks
from alluvium.plan.changes import ChangeKind, RowColumns
from alluvium.spark.jvm.frames import aggregate, select_texts
from alluvium.spark.naming.names import quote
from alluvium.spark.sessions.clone import with_settings
from alluvium.spark.sessions.session import default_parallelism

#: Of a row that may change: what becomes of it, a `ChangeKind`.
KIND = "__alluvium_kind"
#: Whether it takes part in a match that must be the row's only one.
MATCHED = "__alluvium_matched"
_BLOCK, _BITS, _FOUND = "block", "bits", "found"


@dataclass(frozen=True, slots=True)
class Located:
    """Where rows change.

    Attributes:
        blocks: For each file and block of rows, or for each file where nobody asks for more: `file`, `block`, `bits`,
            and counts `updated`, `inserted`, `unmatched_updated`, `unmatched_deleted`, `gone` (rows that go),
            `matches`, `matched` (rows that have any); inserted rows have no file.
    """

    blocks: pa.Table

    def total(self, name: str) -> int:
        """The sum of a count."""
        return int(pc.sum(self.blocks[name]).as_py() or 0)

    @property
    def changed(self) -> pa.Table:
        """Files that lose rows: `file`, `gone`."""
        rows = self.blocks.filter(pc.and_(self.blocks["file"].is_valid(), pc.greater(self.blocks["gone"], 0)))
        return _by_file(rows)

    @property
    def met(self) -> pa.Array:
        """Numbers of the files that lose rows or have matches."""
        return pc.unique(self.blocks["file"].drop_null()).cast(pa.int64())

    def bitmaps(self) -> dict[int, tuple[bytes, int]]:
        """For each file that loses rows their bitmap (portable 64-bit format), and how many they are."""
        rows = self.blocks.filter(pc.and_(self.blocks["file"].is_valid(), pc.greater(self.blocks["gone"], 0)))
        found: dict[int, list[tuple[int, bytes]]] = {}
        # One step for every 32,768 rows of a file.
        for batch in rows.select(["file", _BLOCK, _BITS]).to_batches():
            for file, block, bits in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                found.setdefault(file, []).append((block, bits))
        return {file: roaring_of_blocks(blocks) for file, blocks in found.items()}


def _by_file(rows: pa.Table) -> pa.Table:
    summed = rows.group_by("file").aggregate([("gone", "sum")])
    return pa.table({"file": summed["file"].cast(pa.int64()), "gone": summed["gone_sum"].cast(pa.int64())})


def changed_rows(rows: DataFrame) -> DataFrame:
    """Without rows that stay as they are, and have no match."""
    return rows.where(f"{KIND} <> {int(ChangeKind.COPY)} or {MATCHED}")


def locate(
    rows: DataFrame,
    columns: RowColumns,
    *,
    with_bits: bool = True,
    with_matches: bool = True,
    only: ChangeKind | None = None,
) -> Located:
    """Runs one aggregate over rows that have `KIND`, `MATCHED`, and the columns that say where they are.

    Args:
        rows: The rows.
        columns: Names of the columns that say where they are.
        with_bits: Whether anybody will ask for `bitmaps`: 4 KB for each block that loses rows.
        with_matches: Whether rows can have matches at all.
        only: What becomes of every one of these rows, an update or a deletion; None: their `KIND` says it. Spark
            plans and compiles much less where there is one thing to count.
    """
    if only is not None:
        return _locate_alike(rows, columns, only, with_bits)
    # One text: of each function that Python calls by itself, PySpark tells the JVM where that was, in a dozen requests.
    updated, deleted, inserted = (
        f"{KIND} = {int(kind)}" for kind in (ChangeKind.UPDATE, ChangeKind.DELETE, ChangeKind.INSERT)
    )
    goes, row = f"({updated} or {deleted})", quote(columns.row)
    # Of bits that are null the aggregate takes no notice.
    bits = f"bitmap_construct_agg(if({goes}, {row} % {BLOCK_BITS}, null))"
    matches = f"bitmap_construct_agg(if({MATCHED}, {row} % {BLOCK_BITS}, null))"
    asked = {
        "updated": f"count_if({updated})",
        "unmatched_updated": f"count_if({updated} and not {MATCHED})",
        "unmatched_deleted": f"count_if({deleted} and not {MATCHED})",
        "inserted": f"count_if({inserted})",
        "matches": f"count_if({MATCHED})" if with_matches else "0L",
        "matched": f"bitmap_count({matches})" if with_matches else "0L",
        "gone": f"bitmap_count({bits})" if with_matches else f"count_if({goes})",
        **({_BITS: bits} if with_bits else {}),
    }
    found = sf.expr(f"struct({', '.join(f'{sql} as {name}' for name, sql in asked.items())}) as {_FOUND}")
    # Nobody asks where in its file a row is: to number the rows is what Spark's reader is slowest at.
    block = f"{row} div {BLOCK_BITS}" if with_bits or with_matches else "0L"
    placed = changed_rows(rows).selectExpr(f"{quote(columns.file)} as file", f"{block} as {_BLOCK}", row, KIND, MATCHED)
    grouped = placed.groupBy("file", _BLOCK).agg(found).toArrow()
    members = pa.chunked_array(grouped[_FOUND].chunks, grouped.schema.field(_FOUND).type).combine_chunks()
    return Located(pa.table([grouped["file"], grouped[_BLOCK], *members.flatten()], ["file", _BLOCK, *asked]))


def _planned_at_once(spark: SparkSession) -> dict[str, str]:
    """Settings for an aggregate that leaves next to nothing for its exchange.

    To plan the second stage when the first has ended, as Spark does by itself, takes longer here than to run it.
    """
    cores = default_parallelism(spark) or 1
    session = int(spark.conf.get("spark.sql.shuffle.partitions", "200") or "200")
    return {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": str(min(cores, session))}


def _locate_alike(rows: DataFrame, columns: RowColumns, only: ChangeKind, with_bits: bool) -> Located:
    """Where rows are of all of which the same becomes."""
    row = quote(columns.row)
    block = f"{row} div {BLOCK_BITS}" if with_bits else "0L"
    shown = [f"{quote(columns.file)} as file", f"{block} as {_BLOCK}", *([row] if with_bits else [])]
    bits = [f"bitmap_construct_agg({row} % {BLOCK_BITS}) as {_BITS}"] if with_bits else []
    counted = aggregate(select_texts(rows, shown), ("file", _BLOCK), ("count(1) as gone", *bits))
    with with_settings(counted, _planned_at_once(rows.sparkSession)) as planned:
        found = planned.toArrow()
    nothing = pa.repeat(pa.scalar(0, pa.int64()), found.num_rows)
    for name in ("unmatched_updated", "unmatched_deleted", "inserted", "matches", "matched"):
        found = found.append_column(name, nothing)
    return Located(found.append_column("updated", found["gone"] if only is ChangeKind.UPDATE else nothing))
