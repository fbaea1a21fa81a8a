"""Records of many Parquet files, chosen by a function on Spark's workers: only what it keeps reaches the driver."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from alluvium.errors import InvalidRequest
from alluvium.spark.scan.readable import EXACT

#: From the values of a column of structs to the records to keep. It is pickled: Spark's workers need this package.
Choose = Callable[[pa.StructArray], pa.RecordBatch]

#: Spark takes paths for patterns.
_PATTERN = re.compile(r"([\[\]{}*?\\])")


def choose_records(
    spark: SparkSession, addresses: Sequence[str], column: str, choose: Choose, max_records: int
) -> list[pa.RecordBatch]:
    """The records that `choose` keeps, over all files.

    Args:
        spark: The session.
        addresses: Hadoop path strings of Parquet files.
        column: A column of structs in these files; rows where it is null do not count.
        choose: Called on a worker with some thousand values at a time.
        max_records: More than this may not come to the driver.

    Raises:
        InvalidRequest: `"too-many-files"`: more were kept; `"missing-dependency"`: the workers lack this package.
    """

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kept = 0
        for batch in batches:
            chosen = choose(batch.column(0))
            kept += chosen.num_rows
            # Beyond the limit they are counted, and not sent.
            sent = chosen if kept <= max_records else chosen.slice(0, 0)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, sent.schema) as writer:
                writer.write_batch(sent)
            records = pa.array([sink.getvalue().to_pybytes()], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([chosen.num_rows], pa.int64()), records], ["kept", "records"])

    escaped = [_PATTERN.sub(r"\\\1", address) for address in addresses]
    reader = spark.read.options(mergeSchema="true", **EXACT)
    rows = reader.parquet(*escaped).select(column).where(f"{column} is not null")
    # Without a shuffle, and under the reader's own splits: a large file goes to several workers.
    try:
        answers = rows.mapInArrow(work, "kept bigint, records binary").where("kept > 0").collect()
    except PythonException as error:
        if "ModuleNotFoundError" not in str(error):
            raise
        raise InvalidRequest(
            "the Python of Spark's workers lacks a package that reading so large a log needs",
            code="missing-dependency",
            hint="install alluvium there (PYSPARK_PYTHON says which Python), or raise"
            " spark.alluvium.log.maxCheckpointBytes so that the driver reads the log",
        ) from None
    total = sum(row["kept"] for row in answers)
    if total > max_records:
        raise InvalidRequest(
            f"the query needs {total:,} data files, more than the {max_records:,} that the driver may hold",
            code="too-many-files",
            hint="filter by a partition column, or raise spark.alluvium.log.maxFiles and the driver's memory",
        )
    return [batch for row in answers for batch in pa.ipc.open_stream(bytes(row["records"]))]
