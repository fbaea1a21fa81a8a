"""Rows to Parquet files in Spark's Python workers, for types that Spark's own writer has no form for.

It takes longer than Spark's writer, and this package must be installed where the workers run.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from alluvium.codecs.partition_path import format_partition_path
from alluvium.plan.write import WritePlan
from alluvium.spark.scan.names import quote
from alluvium.storage.store import Store

#: Gives the table's objects; it is pickled, and called in the workers.
OpenStore: TypeAlias = Callable[[], Store]
_ROW_GROUP_ROWS = 1 << 20


def write_in_workers(
    rows: DataFrame, directories: Sequence[str], plan: WritePlan, open_store: OpenStore
) -> frozenset[str]:
    """Writes rows as files below the plan's directory, as Spark's own writer would lay them out.

    Args:
        rows: The columns of `plan.files`, then those of `directories`.
        directories: Columns whose values, texts or numbers, name the directories.
        plan: What to write; `files` says how columns are stored.
        open_store: Where to.

    Returns:
        The files that count: tasks that failed, and were run again, may have left others.
    """
    assert plan.files is not None
    options = dict(plan.options)
    writer = _Writer(
        plan.files, tuple(directories), plan.directory, plan.target_file_bytes, options["compression"],
        int(options.get("parquet.compression.codec.zstd.level", "1")), open_store,
    )  # fmt: skip
    ordered = rows.sortWithinPartitions(*(sf.col(quote(name)) for name in directories)) if directories else rows
    return frozenset(row[0] for row in ordered.mapInArrow(writer, "path string").collect())


@dataclass(frozen=True, slots=True)
class _Writer:
    """What a task does with its rows, which come in the order of their directories."""

    schema: pa.Schema
    directories: tuple[str, ...]
    root: str
    target_bytes: int
    compression: str
    level: int
    open_store: OpenStore

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = self.open_store()
        paths: list[str] = []
        current: _File | None = None
        for batch in batches:
            for place, piece in self._pieces(batch):
                if current is not None and (current.place != place or current.size >= self.target_bytes):
                    paths.append(current.close(store))
                    current = None
                current = current or self._open(place)
                current.add(piece)
        if current is not None:
            paths.append(current.close(store))
        yield pa.record_batch({"path": pa.array(paths, pa.string())})

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[str | None, ...], pa.Table]]:
        """Runs of rows of one directory."""
        table = pa.Table.from_batches([batch])
        stored = pa.table([stored_as(table[f.name].combine_chunks(), f.type) for f in self.schema], schema=self.schema)
        if not self.directories:
            yield (), stored
            return
        texts = [table[name].cast(pa.string()).combine_chunks() for name in self.directories]
        begins = [0, *_changes(texts), batch.num_rows]
        for begin, end in itertools.pairwise(begins):
            if end > begin:
                yield tuple(column[begin].as_py() for column in texts), stored.slice(begin, end - begin)

    def _open(self, place: tuple[str | None, ...]) -> _File:
        folder = format_partition_path(self.directories, place)
        path = f"{self.root}/{folder}/{uuid.uuid4()}.parquet" if folder else f"{self.root}/{uuid.uuid4()}.parquet"
        return _File(place, path, self.schema, self.compression, self.level)


@dataclass(slots=True)
class _File:
    """A file in the making, held in memory until it is whole."""

    place: tuple[str | None, ...]
    path: str
    schema: pa.Schema
    compression: str
    level: int
    _sink: pa.BufferOutputStream = field(default_factory=pa.BufferOutputStream)
    _writer: Any = None

    def add(self, rows: pa.Table) -> None:
        if self._writer is None:
            nanos = any(pa.types.is_timestamp(f.type) and f.type.unit == "ns" for f in self.schema)
            self._writer = pq.ParquetWriter(
                self._sink,
                self.schema,
                compression=self.compression,
                compression_level=self.level if self.compression == "zstd" else None,
                # As Spark's own writer has decimals of few digits; nanoseconds are known in this form alone.
                store_decimal_as_integer=True,
                use_deprecated_int96_timestamps=nanos,
                store_schema=False,
            )
        self._writer.write_table(rows, row_group_size=_ROW_GROUP_ROWS)

    @property
    def size(self) -> int:
        return int(self._sink.tell())

    def close(self, store: Store) -> str:
        """Puts the file; its path."""
        self._writer.close()
        store.put(self.path, self._sink.getvalue().to_pybytes())
        return self.path


def _changes(columns: Sequence[pa.Array]) -> list[int]:
    """Places at which a row is in another directory than the row before it."""
    codes = [column.dictionary_encode(null_encoding="encode").indices for column in columns]
    differs = [pc.not_equal(code.slice(1), code.slice(0, len(code) - 1)) for code in codes]
    either = differs[0]
    for one in differs[1:]:
        either = pc.or_(either, one)
    return [int(place) + 1 for place in pc.indices_nonzero(either).to_pylist()]


def stored_as(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Values as Spark has them under the type of the file; fractions of seconds are cut off downwards."""
    kind = values.type
    if kind == target:
        return values
    if pa.types.is_timestamp(target):
        if target.unit == "ms" and kind.unit == "us":
            values = pc.floor_temporal(values.cast(pa.timestamp("us")), unit="millisecond")
        return values.cast(pa.timestamp(target.unit)).cast(target)
    if pa.types.is_list(target):
        inner = stored_as(values.values, target.value_type)
        return pa.ListArray.from_arrays(values.offsets, inner, type=target, mask=values.is_null())
    if pa.types.is_map(target):
        keys, items = stored_as(values.keys, target.key_type), stored_as(values.items, target.item_type)
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=target, mask=values.is_null())
    if pa.types.is_struct(target):
        members = [stored_as(values.field(i), target.field(i).type) for i in range(target.num_fields)]
        return pa.StructArray.from_arrays(members, fields=list(target), mask=values.is_null())
    return values.cast(target)
