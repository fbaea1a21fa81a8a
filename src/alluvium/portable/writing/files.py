"""Rows as Parquet files below a directory, as Spark's own writer would lay them out: each of one partition.

A file is held in memory until it is whole. Of many partitions the largest files are put first when memory runs short.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from alluvium.codecs.file_forms import FileForm, FileWriter, stored_as
from alluvium.codecs.footers.column_bounds import ColumnBounds
from alluvium.codecs.footers.parquet_footer import FileFooter, FooterColumn, read_footer
from alluvium.codecs.partition_path import format_partition_path
from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest
from alluvium.plan.scan import FIELD_ID
from alluvium.plan.write import WritePlan
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Array, DataType, Field, Map, Struct
from alluvium.schema.walk import holds
from alluvium.storage.store import Store

#: From values of a type to the texts that name directories.
PartitionTexts: TypeAlias = Callable[[pa.Array, DataType], pa.Array]
#: Bytes of files that are not whole yet.
_HELD_BYTES = 512 << 20
#: Each of these has buffers of its own.
_MOST_OPEN = 1000
#: Of the rows of a row group, not encoded.
_GROUP_BYTES = 64 << 20
_CODECS = {"none": "none", "uncompressed": "none", "snappy": "snappy", "gzip": "gzip", "brotli": "brotli",
           "lz4": "lz4", "lz4_raw": "lz4", "lz4raw": "lz4", "zstd": "zstd"}  # fmt: skip
_ZSTD_LEVEL = "parquet.compression.codec.zstd.level"
_PARQUET_ID = b"PARQUET:field_id"


def ensure_portable(plan: WritePlan) -> None:
    """Refuses plans that this lane does not carry out.

    Raises:
        UnsupportedFeature: `"needs-spark"`.
    """
    keyed = plan.keyed or plan.bucket or plan.assigned or plan.crossing or plan.unseen
    if keyed is not None or plan.file_format != "parquet" or plan.files is not None or plan.is_staged:
        raise UnsupportedFeature(
            "files of this table are written by Spark alone",
            code="needs-spark",
            hint="alluvium.write(spark.createDataFrame(...), url, ...)",
        )


@dataclass
class FilesInTheMaking:
    """The files of one job.

    Attributes:
        plan: How rows are written.
        store: Where to; paths are relative to the table.
        texts: From values of a type to the texts that name directories.
        written: Files that are whole, and what their footers tell.
    """

    plan: WritePlan
    store: Store
    texts: PartitionTexts
    written: dict[str, FileFooter] = field(default_factory=dict, init=False)
    _open: dict[tuple[str | None, ...], _File] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        options = dict(self.plan.options)
        self._codec = _codec(options.get("compression", "snappy"))
        self._schema = stored_schema(self.plan)
        self._form = FileForm("parquet", self._schema, self._codec, _number(_ZSTD_LEVEL, options.get(_ZSTD_LEVEL, "3")))
        most = _number("maxRecordsPerFile", options.get("maxRecordsPerFile", "0"))
        self._most_rows = most if most > 0 else None

    def add(self, rows: pa.Table) -> None:
        """Writes rows that are complete."""
        for place, piece in self._pieces(rows):
            for part in self._fitting(place, piece):
                file = self._open.get(place)
                if file is None:
                    file = self._open[place] = self._begun()
                file.add(part)
                if file.writer.size >= self.plan.target_file_bytes or file.rows == self._most_rows:
                    self._close(place)
        while len(self._open) > 1 and self._holds_much():
            self._close(max(self._open, key=lambda place: self._open[place].held_bytes))

    def finish(self) -> Mapping[str, FileFooter]:
        """Puts what is left.

        Returns:
            All files of the job, and what their footers tell.
        """
        for place in list(self._open):
            self._close(place)
        return self.written

    def _holds_much(self) -> bool:
        return len(self._open) > _MOST_OPEN or sum(file.held_bytes for file in self._open.values()) > _HELD_BYTES

    def _begun(self) -> _File:
        floating = [c for c in self.plan.stats_columns if c.type in t.FLOATING]
        with _refusing():
            return _File(self._form.open(), ColumnBounds(floating), min(_GROUP_BYTES, self.plan.target_file_bytes // 8))

    def _fitting(self, place: tuple[str | None, ...], rows: pa.Table) -> Iterator[pa.Table]:
        """The rows in parts that files have room for."""
        start = 0
        while start < rows.num_rows:
            before = self._open[place].rows if place in self._open else 0
            room = rows.num_rows if self._most_rows is None else self._most_rows - before
            yield rows.slice(start, room)
            start += room

    def _pieces(self, rows: pa.Table) -> Iterator[tuple[tuple[str | None, ...], pa.Table]]:
        """The rows of each partition, as files have them."""
        stored = self._stored(rows)
        if not self.plan.partition_by:
            if rows.num_rows:
                yield (), stored
            return
        types = {f.name: f.type for f in self.plan.schema.fields}
        texts = [self.texts(rows[name].combine_chunks(), types[name]) for name in self.plan.partition_by]
        codes = [text.dictionary_encode(null_encoding="encode") for text in texts]
        groups, group = np.unique(np.stack([code.indices.to_numpy() for code in codes]), axis=1, return_inverse=True)
        order = np.argsort(group.reshape(-1), kind="stable")
        bounds = np.cumsum(np.bincount(group.reshape(-1), minlength=groups.shape[1]))
        for number, end in enumerate(bounds):
            start = bounds[number - 1] if number else 0
            place = tuple(c.dictionary[int(k)].as_py() for c, k in zip(codes, groups[:, number], strict=True))
            yield place, stored.take(pa.array(order[start:end]))

    def _stored(self, rows: pa.Table) -> pa.Table:
        plan = self.plan
        names = [name for name, _ in _file_columns(plan)]
        arrays = [stored_as(rows[name].combine_chunks(), f.type) for name, f in zip(names, self._schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def _close(self, place: tuple[str | None, ...]) -> None:
        file, plan = self._open.pop(place), self.plan
        folder = format_partition_path([plan.stored_name(name) for name in plan.partition_by], place)
        codec = "" if self._codec == "none" else f".{self._codec}"
        name = f"part-{len(self.written):05d}-{uuid.uuid4()}-c000{codec}.parquet"
        path = "/".join(part for part in (plan.directory, folder, name) if part)
        content = file.finish()
        self.store.put(path, content)
        self.written[path] = file.footer(content, plan.stats_columns)


@dataclass
class _File:
    """A file in the making.

    Attributes:
        writer: Of its bytes.
        floating: Bounds that it will not tell itself.
        group_bytes: Of rows that make a row group: of many partitions each batch brings a few rows to each.
        rows: How many it has.
    """

    writer: FileWriter
    floating: ColumnBounds
    group_bytes: int
    rows: int = field(default=0, init=False)
    _waiting: list[pa.Table] = field(default_factory=list, init=False)
    _waiting_bytes: int = field(default=0, init=False)

    @property
    def held_bytes(self) -> int:
        """What of it is in memory."""
        return self.writer.size + self._waiting_bytes

    def add(self, rows: pa.Table) -> None:
        self.rows += rows.num_rows
        self.floating.add(rows)
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes >= self.group_bytes:
            self._write()

    def finish(self) -> bytes:
        """The whole file."""
        self._write()
        with _refusing():
            return self.writer.finish()

    def _write(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if waiting:
            with _refusing():
                self.writer.add(pa.concat_tables(waiting).combine_chunks())

    def footer(self, content: bytes, columns: Sequence[FooterColumn]) -> FileFooter:
        """What is known of it."""
        found = read_footer(pa.BufferReader(content), columns, is_own=True)
        return replace(found, columns={**found.columns, **self.floating.footer().columns})


@contextmanager
def _refusing() -> Iterator[None]:
    """What Arrow has against the rows, as an error of ours."""
    try:
        yield
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise InvalidRequest(
            f"the rows cannot be stored in a Parquet file: {error}",
            code="invalid-data",
            hint="nothing was written; drop or convert the column",
        ) from error


def _codec(text: str) -> str:
    known = _CODECS.get(text.lower())
    if known is None:
        raise InvalidRequest(
            f"there is no compression {text!r} without Spark",
            code="invalid-option",
            hint=suggest(text, _CODECS),
        )
    return known


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidRequest(
            f"the option {name!r} must be a whole number, not {text!r}", code="invalid-option"
        ) from None


def stored_schema(plan: WritePlan) -> pa.Schema:
    """The columns of the files: by their names there, with field ids where the plan has some."""
    return pa.schema([_file_field(f) for _, f in _file_columns(plan)])


def _file_columns(plan: WritePlan) -> list[tuple[str, Field]]:
    """The table's columns that files have, by their names, and as files have them."""
    stored = (plan.stored or plan.schema).fields
    # Columns without a type, and of variants, have nothing but nulls here: what readers take a missing column for.
    pairs = [
        (n, f)
        for n, f in zip(plan.schema.names, stored, strict=True)
        if f.type != t.VOID and not holds(f.type, t.VARIANT)
    ]
    by_name = dict(pairs)
    own = [(name, f) for name, f in pairs if name not in plan.partition_by]
    return [*own, *((name, by_name[name]) for name in plan.partition_by if plan.materialize_partitions)]


def _file_field(f: Field) -> pa.Field:
    number = f.metadata.get(FIELD_ID)
    metadata = None if number is None else {_PARQUET_ID: str(number).encode()}
    # Files say of no column that it cannot be null, as Spark's own do.
    return pa.field(f.name, _file_type(f.type), True, metadata)


def _file_type(data_type: DataType) -> pa.DataType:
    if isinstance(data_type, Struct):
        return pa.struct([_file_field(f) for f in data_type.fields])
    if isinstance(data_type, Array):
        return pa.list_(pa.field("element", _file_type(data_type.element)))
    if isinstance(data_type, Map):
        return pa.map_(_file_type(data_type.key), pa.field("value", _file_type(data_type.value)))
    return to_arrow(data_type)
