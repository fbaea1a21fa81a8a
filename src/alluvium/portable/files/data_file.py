"""Data files as streams of record batches; Parquet: only the columns asked, one row group at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from alluvium.codecs.footers.page_index import Integers
from alluvium.codecs.footers.parquet_footer import ensure_members
from alluvium.errors import AlluviumError, CorruptTable, NotFound, UnsupportedFeature
from alluvium.portable.files.avro_file import open_avro
from alluvium.portable.files.blob_file import open_blob
from alluvium.portable.files.conform import field_id
from alluvium.portable.files.file_names import damaged, ensure_told_apart, look_at_names, own_names
from alluvium.portable.files.legacy_calendar import LegacyCalendar, legacy_calendar, rebase
from alluvium.portable.files.local_instants import KnownInstants
from alluvium.portable.files.orc_file import open_orc
from alluvium.portable.files.page_rows import PageRows
from alluvium.portable.files.text_views import without_views
from alluvium.storage.elsewhere import locate
from alluvium.storage.paths import resolve
from alluvium.storage.store import Store

#: By how many microseconds a negative count of nanoseconds is later where it is read as unsigned.
_UNSIGNED = ((1 << 64) // 1000, (1 << 64) // 1000 + 1)
_ABSOLUTE = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.\-]*:)?/")


@dataclass(frozen=True, slots=True)
class Files:
    """Where data files are: below the table's root, or anywhere else.

    Attributes:
        store: The table's root.
        open_store: From a URL to its store, for absolute paths.
    """

    store: Store
    open_store: Callable[[str], Store]

    def uri(self, path: str) -> str:
        """The file's address."""
        return path if _ABSOLUTE.match(path) else self.store.uri(path)

    def open(self, path: str) -> pa.NativeFile:
        """Opens a file by the path in a scan plan.

        Raises:
            NotFound: The file is not there, code `missing-file`.
            CorruptTable: The path leads where the table cannot mean.
            UnsupportedFeature: No store here can reach it.
        """
        try:
            if not _ABSOLUTE.match(path):
                return self.store.open_input(path)
            elsewhere, name = locate(self.store, self.open_store, resolve(self.store.url, path))
            return elsewhere.open_input(name)
        except NotFound:
            raise NotFound(
                "a data file that the table lists does not exist",
                code="missing-file",
                url=self.store.url,
                path=path,
                hint="VACUUM may have removed it, or somebody deleted it by hand; read a newer version of the table",
            ) from None


class RowFile(Protocol):
    """An open data file of any format."""

    def close(self) -> None:
        """Closes the file."""

    def names(self, wanted: Sequence[str], ids: Mapping[str, int] | None = None) -> dict[str, str]:
        """The file's own name of each top-level column wanted that it has."""

    def batches(self, columns: dict[str, str], batch_size: int) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Rows in order: how many, and the columns under the names wanted; `columns` is from `names`."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """An open Parquet file; implements `RowFile`.

    Attributes:
        path: As the plan names it.
        reader: pyarrow's reader.
        calendar: Where its dates are in the hybrid calendar; else None.
        pages: Its pages.
        coarse: Where its INT96 timestamps are read as nanoseconds: the same file, read as microseconds. Nanoseconds
            have years 1677 to 2262, and pyarrow wraps what is outside.
    """

    path: str
    reader: pq.ParquetFile
    calendar: LegacyCalendar | None
    pages: PageRows
    coarse: pq.ParquetFile | None = None

    def close(self) -> None:
        """Closes the file."""
        self.reader.close(force=True)
        if self.coarse is not None:
            self.coarse.close(force=True)

    @property
    def num_rows(self) -> int:
        count: int = self.reader.metadata.num_rows
        return count

    def names(self, wanted: Sequence[str], ids: Mapping[str, int] | None = None) -> dict[str, str]:
        """The file's own name of each top-level column wanted that it has: exact, else without regard to case.

        Args:
            wanted: Names by which a plan calls the columns.
            ids: Parquet `field_id` of the columns that are to be found by it instead.

        Raises:
            CorruptTable: Columns are wanted by id, and the file has none (code `missing-field-ids`); it has two of a
                name.
        """
        found = self._names(self.reader.schema_arrow, wanted, ids)
        ensure_told_apart(self.reader.schema_arrow.names, found.values(), self.path)
        return found

    def _names(self, schema: pa.Schema, wanted: Sequence[str], ids: Mapping[str, int] | None) -> dict[str, str]:
        by_id = {field_id(f): f.name for f in schema} if ids else {}
        if ids and by_id.keys() == {None} and not ids.keys().isdisjoint(wanted):
            # "If a data file does not contain field ids, readers must refuse to read that file or return nulls for
            # each column." Refused: nulls could not be told from nulls that were written.
            raise CorruptTable(
                "the table finds columns by id, and the data file has no ids",
                code="missing-field-ids",
                path=self.path,
                hint="the file was written by a client that does not know column mapping; rewrite it",
            )
        if not ids:
            return own_names(schema.names, wanted, self.path)
        by_name = own_names(schema.names, [name for name in wanted if name not in ids], self.path)
        found = {name: by_id.get(ids[name]) if name in ids else by_name.get(name) for name in wanted}
        return {name: own for name, own in found.items() if own is not None}

    def batches(self, columns: dict[str, str], batch_size: int) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Rows in order: how many, and the columns under the names wanted.

        Args:
            columns: From `names`.
            batch_size: Rows at most.

        Raises:
            CorruptTable: The file is damaged.
        """
        if not columns:
            yield from _without_columns(self.num_rows, batch_size)
            return
        if self.coarse is not None and (fine := sorted(self._int96_columns().intersection(columns.values()))):
            self._ensure_in_nanoseconds(self.coarse, fine, batch_size)
        for row_group in range(self.reader.metadata.num_row_groups):
            # One row group a call: with pre_buffer on, pyarrow holds all that a call will read.
            yield from self.row_group_batches(row_group, columns, batch_size)

    def row_group_batches(
        self, row_group: int, columns: dict[str, str], batch_size: int
    ) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """As `batches`, of one row group."""
        if not columns:
            yield from _without_columns(self.reader.metadata.row_group(row_group).num_rows, batch_size)
            return
        for batch in self._decoded(self.reader, row_group, sorted(set(columns.values())), batch_size):
            arrays = {name: batch.column(batch.schema.get_field_index(mine)) for name, mine in columns.items()}
            yield batch.num_rows, self._rebased(arrays, columns)

    def rows(self, row_group: int, columns: dict[str, str], positions: Integers) -> dict[str, pa.Array] | None:
        """The columns in some rows of a row group, by the pages that hold them.

        Args:
            row_group: Number.
            columns: From `names`.
            positions: The rows, counted from the row group's first, in order.

        Returns:
            None: Reading the row group as a whole is no worse, or tells better what is wrong with it.
        """
        found = self.pages.rows(row_group, sorted(set(columns.values())), positions)
        if found is None:
            return None
        return self._rebased({name: found[own] for name, own in columns.items()}, columns)

    def _rebased(self, arrays: dict[str, pa.Array], columns: dict[str, str]) -> dict[str, pa.Array]:
        if self.calendar is None:
            return arrays
        int96 = self._int96_columns()
        return {name: rebase(values, self.calendar, columns[name] in int96, name) for name, values in arrays.items()}

    def _ensure_in_nanoseconds(self, coarse: pq.ParquetFile, names: list[str], batch_size: int) -> None:
        """Looks at all rows first: no row is given out before one is refused."""
        for row_group in range(self.reader.metadata.num_row_groups):
            readers = (self.reader, coarse)
            for batch, exact in zip(*(self._decoded(r, row_group, names, batch_size) for r in readers), strict=True):
                for name in names:
                    if _has_wrapped(batch.column(name), exact.column(name)):
                        raise UnsupportedFeature(
                            f"column {name!r} has a time before 1677 or after 2262, which nanoseconds do not hold",
                            code="unsupported-file-type",
                            path=self.path,
                            column=name,
                            features=("timestamp",),
                            hint="change the column's type to TIMESTAMP(6) with the writer of the table",
                        )

    def _decoded(
        self, reader: pq.ParquetFile, row_group: int, own: list[str], batch_size: int
    ) -> Iterator[pa.RecordBatch]:
        try:
            ensure_members(map(reader.schema_arrow.field, own))
            yield from map(without_views, reader.iter_batches(batch_size, row_groups=[row_group], columns=own))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise damaged(self.path, error) from None

    def _int96_columns(self) -> frozenset[str]:
        """Top-level columns with INT96 in them; a file never mixes both kinds of timestamps."""
        schema = self.reader.metadata.schema
        described = [schema.column(i) for i in range(len(schema))]
        paths = [column.path for column in described if column.physical_type == "INT96"]
        names = self.reader.schema_arrow.names
        return frozenset(name for name in names if any(path == name or path.startswith(f"{name}.") for path in paths))


def _without_columns(num_rows: int, batch_size: int) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    for start in range(0, num_rows, batch_size):
        yield min(batch_size, num_rows - start), {}


def _has_wrapped(nanos: pa.Array, micros: pa.Array) -> bool:
    """Whether timestamps, at any depth, are others as nanoseconds than as microseconds."""
    kind = nanos.type
    if pa.types.is_timestamp(kind):
        fine = np.asarray(pc.fill_null(nanos.cast(pa.int64()), 0).to_numpy(zero_copy_only=False))
        coarse = np.asarray(pc.fill_null(micros.cast(pa.int64()), 0).to_numpy(zero_copy_only=False))
        # Paimon's Java counts back from the next midnight before 1970. Arrow reads that count as unsigned, which only
        # nanoseconds wrap back from. Years 2262 to 2554 look the same, and cannot be told apart.
        apart = coarse - fine // 1000
        return not bool(((apart == 0) | ((fine < 0) & np.isin(apart, _UNSIGNED))).all())
    if pa.types.is_struct(kind):
        return any(_has_wrapped(*members) for members in zip(nanos.flatten(), micros.flatten(), strict=True))
    if pa.types.is_map(kind):
        pairs = ((nanos.keys, micros.keys), (nanos.items, micros.items))
        return any(_has_wrapped(*pair) for pair in pairs)
    return bool(pa.types.is_list(kind)) and _has_wrapped(nanos.flatten(), micros.flatten())


def open_data_file(
    files: Files,
    path: str,
    time_zone: str,
    file_format: str = "parquet",
    unit: str = "us",
    instants: KnownInstants | None = None,
) -> RowFile:
    """Opens a data file and reads its footer.

    Args:
        files: Where it lies.
        path: As the plan names it.
        time_zone: The session's.
        file_format: One of `FORMATS`.
        unit: Of INT96 timestamps in Parquet: `"us"`, or `"ns"` for columns that are finer.
        instants: Of ORC (see `OrcFile`).

    Raises:
        NotFound: The file is not there.
        CorruptTable: It is no file of that format.
        UnsupportedFeature: pyarrow cannot read one of its types.
    """
    if file_format == "orc":
        return open_orc(path, files.open(path), instants)
    if file_format != "parquet":
        return _OTHERS[file_format](path, files.open(path))
    try:
        # INT96 years such as 1677 overflow nanoseconds, pyarrow's default unit for them.
        source = files.open(path)
        reader = pq.ParquetFile(source, coerce_int96_timestamp_unit=unit, pre_buffer=True)
        # Types and names are looked at here, so that failing is failing to open.
        look_at_names(reader.schema_arrow)
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedFeature(
            f"the data file has a type that pyarrow {pa.__version__} cannot read: {error}",
            code="unsupported-file-type",
            path=path,
            hint="upgrade pyarrow, or read the table through Spark",
        ) from None
    except AlluviumError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(path, error) from None
    calendar = legacy_calendar(reader.metadata.metadata, time_zone)
    coarse = None
    if unit == "ns" and _holds_int96(reader.metadata):
        coarse = pq.ParquetFile(files.open(path), coerce_int96_timestamp_unit="us", pre_buffer=True)
    return DataFile(path, reader, calendar, PageRows(source, reader.metadata, unit), coarse)


def _holds_int96(metadata: pq.FileMetaData) -> bool:
    return any(metadata.schema.column(i).physical_type == "INT96" for i in range(len(metadata.schema)))


_OTHERS: dict[str, Callable[[str, pa.NativeFile], RowFile]] = {
    "avro": open_avro,
    "blob": open_blob,
}
#: What a `ScanPart.file_format` may be here.
FORMATS = frozenset({"parquet", "orc", *_OTHERS})
