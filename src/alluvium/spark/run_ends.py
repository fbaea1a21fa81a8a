"""What no footer tells of files that are in the order of a key: their first and last keys, and how many rows of theirs
take others back.

Of a key of one column its bounds are the ends, and of rows of one kind all are counted: then nothing is read. Otherwise
a job of Spark's reads the columns in question, and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from alluvium.codecs.footers.parquet_footer import FileFooter, RunEnds
from alluvium.plan.write import KeyedRows, WritePlan
from alluvium.schema.types import BYTE, Field, Struct
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.types import to_spark
from alluvium.spark.workers.run_bounds import RETRACTS, key_bounds
from alluvium.storage.paths import decode_uri_path

#: Of writers, after which bounds need not be values of the file.
_CUTS = "parquet.statistics.truncate.length"


def with_ends(
    spark: SparkSession, plan: WritePlan, keyed: KeyedRows, paths: Sequence[str], footers: Sequence[FileFooter]
) -> tuple[FileFooter, ...]:
    """The footers, each with the ends of its file.

    Args:
        spark: Where files are read, if need be.
        plan: By which they were written.
        keyed: How their rows merged.
        paths: Of the files, relative to the table's root.
        footers: Of each.
    """
    exact = _CUTS not in dict(plan.options)
    told = [f.ends or (footer_ends(f, keyed) if exact else None) for f in footers]
    if None not in told:
        return tuple(replace(f, ends=ends) for f, ends in zip(footers, told, strict=True))
    read = _read_ends(spark, plan, keyed)
    return tuple(replace(f, ends=ends or read[path]) for path, f, ends in zip(paths, footers, told, strict=True))


def footer_ends(footer: FileFooter, keyed: KeyedRows) -> RunEnds | None:
    """What the bounds of a file tell; None: not all."""
    kinds = footer.columns.get((keyed.merge.kind or "",))
    if len(keyed.stored_keys) > 1 or kinds is None or kinds.min is None or kinds.max is None:
        return None
    # Of files that were merged as a whole nothing is left that takes others back.
    may_retract = keyed.regrouped is None or keyed.regrouped.may_retract
    is_mixed = kinds.min != kinds.max and may_retract
    if is_mixed and any(kind in RETRACTS for kind in range(int(kinds.min), int(kinds.max) + 1)):
        return None
    key = footer.columns.get((keyed.stored_keys[0],))
    if key is None or key.min is None or key.max is None:
        return None
    return RunEnds((key.min,), (key.max,), footer.num_rows if kinds.min in RETRACTS else 0)


def _read_ends(spark: SparkSession, plan: WritePlan, keyed: KeyedRows) -> dict[str, RunEnds]:
    kind = keyed.merge.kind or ""
    types = {f.name: f.type for f in (*plan.schema.fields, *keyed.stored.fields)}
    wanted = Struct((*(Field(name, types[name]) for name in keyed.stored_keys), Field(kind, BYTE)))
    reader = spark.read.schema(to_spark(wanted)).option("recursiveFileLookup", "true")
    # Where one folder is read, partitions are not looked for in the names of others.
    files = reader.format(plan.file_format).load(f"{plan.root.rstrip('/')}/{plan.directory}")
    key = sf.struct(*(sf.col(quote(name)) for name in keyed.stored_keys))
    retracts = sf.count_if(sf.col(quote(kind)).isin(*RETRACTS))
    ends = (sf.min(key).alias("first"), sf.max(key).alias("last"), retracts.alias("n"))
    found = files.groupBy(sf.col("_metadata.file_path").alias("path")).agg(*ends).toArrow()
    keys = [
        list(zip(*(key_bounds(member) for member in found[name].combine_chunks().flatten()), strict=True))
        for name in ("first", "last")
    ]
    paths = [_within(plan, path) for path in found["path"].to_pylist()]
    return {
        path: RunEnds(first, last, count)
        for path, first, last, count in zip(paths, *keys, found["n"].to_pylist(), strict=True)
    }


def _within(plan: WritePlan, address: str) -> str:
    """A file's path within the table, out of its address as Spark has it: escaped, in whichever spelling."""
    return plan.directory + decode_uri_path(address.partition(plan.directory)[2])
