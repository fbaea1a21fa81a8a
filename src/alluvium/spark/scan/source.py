"""A Python data source: scan plans in Spark's Python workers, by the reader that needs no Spark.

The last choice: Spark's own reader is several times faster, and Spark tells a Python source neither the columns of a
query nor (by default) its filters, so that `columns` and `where` must be said when the table is read. It is for files
that the Python workers of a server can reach and its file systems cannot. This package must be installed there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from alluvium.expr.tree import Expression
from alluvium.plan.scan import KeyMerge, ScanPart, ScanPlan
from alluvium.schema.types import Struct
from alluvium.spark.naming.names import nullable_schema
from alluvium.spark.naming.types import to_spark
from alluvium.spark.scan.merge_tasks import TASK_BYTES, group_sizes
from alluvium.spark.workers.worker_errors import carrying_errors

#: PySpark 4.0 has no such argument: its timestamps are in UTC.
_IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


@dataclass(frozen=True, slots=True)
class OpenedScan:
    """A table version as options name it.

    Attributes:
        plan: Its files that may hold rows for which `where` is true.
        columns: Names of the result's columns, of the plan's schema.
        where: Rows to keep.
        time_zone: The session's.
    """

    plan: ScanPlan
    columns: tuple[str, ...]
    where: Expression | None
    time_zone: str


#: From the source's options (keys in any case) to what they name.
OpenScan: TypeAlias = Callable[[Mapping[str, str]], OpenedScan]


class FileGroup(InputPartition):
    """The files of one task, as a scan of their own."""

    def __init__(self, scan: OpenedScan) -> None:
        super().__init__(None)
        self.scan = scan


#: What this process has made, by the name behind `format`.
_OPENERS: dict[str, OpenScan] = {}

#: From options and a group to its rows.
ReadGroup: TypeAlias = Callable[[Mapping[str, str], OpenedScan], Iterator[pa.RecordBatch]]


class TableSource(DataSource):
    """What Spark makes an object of, on the server, for each read; `make_source` names it."""

    format_name: ClassVar[str]
    open_scan: ClassVar[OpenScan]
    read_group: ClassVar[ReadGroup]

    @classmethod
    def name(cls) -> str:
        """The name behind `format`."""
        return cls.format_name

    def schema(self) -> StructType:
        """The columns asked for, all nullable as for any file source."""
        return to_spark(result_schema(type(self).open_scan(self.options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        """The tasks."""
        return TableReader(dict(self.options), schema, type(self).open_scan, type(self).read_group)


def make_source(name: str, open_scan: OpenScan, read_group: ReadGroup) -> type[TableSource]:
    """A data source of this name; both functions must be importable where the server's Python runs."""
    members = {
        "format_name": name,
        "open_scan": staticmethod(open_scan),
        "read_group": staticmethod(read_group),
        "__module__": "__main__",  # so that it travels by value
    }
    _OPENERS[name] = open_scan
    return type("TableSource_" + name, (TableSource,), members)


def opener_of(name: str) -> OpenScan | None:
    """How a source of ours opens what options name; None: it is none of ours."""
    return _OPENERS.get(name)


def result_schema(scan: OpenedScan) -> Struct:
    """The columns of a scan, all nullable."""
    known = {f.name: f for f in nullable_schema(scan.plan.schema).fields}
    return Struct(tuple(known[name] for name in scan.columns))


class TableReader(DataSourceReader):
    """Groups of files, and the rows of a group."""

    def __init__(
        self, options: Mapping[str, str], schema: StructType, open_scan: OpenScan, read_group: ReadGroup
    ) -> None:
        self._options = options
        self._schema = schema
        self._open_scan = open_scan
        self._read_group = read_group

    def partitions(self) -> Sequence[InputPartition]:
        """Files in groups of 128 MiB, deleted rows loaded; one empty group where nothing is left to read."""
        return groups_of(self._open_scan(self._options))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a group as Spark's types in Arrow."""
        assert isinstance(partition, FileGroup)
        yield from spark_batches(self._read_group(self._options, partition.scan), self._schema)


def spark_batches(batches: Iterator[pa.RecordBatch], schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows that a worker reads as Spark's types in Arrow; errors of ours are carried to the driver."""
    wanted = to_arrow_schema(schema, **_IN_UTC)
    with carrying_errors():
        for batch in batches:
            yield from pa.Table.from_batches([batch]).cast(wanted, safe=False).to_batches()


def groups_of(scan: OpenedScan) -> list[FileGroup]:
    """The files of a scan in groups of 128 MiB, deleted rows loaded; one empty group where nothing is to be read."""
    apart = [part for part in scan.plan.parts if part.merge is None]
    groups = [_only(scan, (piece,)) for part in apart for piece in _split(part)]
    for merge in dict.fromkeys(part.merge for part in scan.plan.parts if part.merge is not None):
        parts = [part for part in scan.plan.parts if part.merge == merge]
        groups += [_only(scan, pieces) for pieces in _split_merged(parts, merge)]
    return groups or [_only(scan, ())]


def _only(scan: OpenedScan, parts: tuple[ScanPart, ...]) -> FileGroup:
    return FileGroup(replace(scan, plan=replace(scan.plan, parts=parts)))


def _split(part: ScanPart) -> Iterator[ScanPart]:
    # Only files that are read are asked for their deleted rows; tasks get these with the files.
    files = part.load_masks(part.files)
    start, size_bytes = 0, 0
    for row, size in enumerate(files["size"].to_pylist()):
        size_bytes += size
        if size_bytes >= TASK_BYTES or row == files.num_rows - 1:
            yield replace(part, files=files.slice(start, row + 1 - start).combine_chunks(), masks=None)
            start, size_bytes = row + 1, 0


def _split_merged(parts: Sequence[ScanPart], merge: KeyMerge) -> Iterator[tuple[ScanPart, ...]]:
    """Rows merge within a group of files, which one task reads whole."""
    loaded = [replace(part, files=part.load_masks(part.files), masks=None) for part in parts]
    members = [pc.struct_field(part.files["constants"].combine_chunks(), merge.group) for part in loaded]
    totals = group_sizes(loaded, merge)
    task: list[int] = []
    size_bytes = 0
    groups = list(zip(totals["group"].to_pylist(), totals["size_sum"].to_pylist(), strict=True))
    for number, (group, size) in enumerate(groups):
        task.append(group)
        size_bytes += size
        if size_bytes >= TASK_BYTES or number == len(groups) - 1:
            wanted = pa.array(task)
            pieces = [
                replace(part, files=part.files.filter(pc.is_in(member, value_set=wanted)).combine_chunks())
                for part, member in zip(loaded, members, strict=True)
            ]
            yield tuple(piece for piece in pieces if piece.files.num_rows)
            task, size_bytes = [], 0
