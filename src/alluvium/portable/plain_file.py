"""Data files that need nobody who knows the table: what any reader of Parquet finds in them is what the plan means.

Engines with a faster reader than Arrow's read them themselves; of the others they get batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from alluvium.plan.scan import FileConstant, OutputColumn, Physical
from alluvium.portable.files.data_file import DataFile, RowFile
from alluvium.portable.files.file_rows import FileRows, RowMaker
from alluvium.portable.request import Request
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType, Decimal
from alluvium.storage.places import local_path

#: Types of which a Parquet file has one form that all readers agree on, if Arrow reads them as just the same type.
_SIMPLE = frozenset(
    {t.BOOLEAN, t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.FLOAT, t.DOUBLE, t.STRING, t.BINARY, t.DATE, t.TIMESTAMP}
    | {t.TIMESTAMP_NTZ}
)
#: In which all readers take values of a fixed number of bytes: `PLAIN`, `PLAIN_DICTIONARY`, `RLE`, `BIT_PACKED` and
#: `RLE_DICTIONARY`.
_COMMON_ENCODINGS = frozenset({0, 2, 3, 4, 8})


@dataclass(frozen=True, slots=True)
class PlainFile:
    """A Parquet file all of whose rows are the table's.

    Attributes:
        path: On this machine's disk.
        schema: The file's own columns.
        own: Of the columns needed, the file's name of each that it holds; there is one.
        constants: The value of each of the others.
        batches: Opens the file anew and reads it, as it is read for those who cannot do so.
    """

    path: str
    schema: pa.Schema
    own: Mapping[str, str]
    constants: Mapping[str, pa.Scalar]
    batches: Callable[[], Iterator[pa.RecordBatch]]


def plain_file(
    rows: FileRows, data: RowFile, request: Request, uri: str, batches: Callable[[], Iterator[pa.RecordBatch]]
) -> PlainFile | None:
    """The file, if it is such a one for a request.

    Args:
        rows: The file, as the plan has it.
        data: The file, open.
        request: What is asked of it.
        uri: Its address.
        batches: As of `PlainFile`.
    """
    path = local_path(uri)
    if path is None or rows.mask is not None or rows.part.keeps_masked or request.padded:
        return None
    if not isinstance(data, DataFile) or data.calendar is not None or data.coarse is not None:
        return None
    maker = RowMaker(rows, request.needed, uri, request.time_zone)
    outputs = {c.name: c for c in maker.outputs}
    names = data.reader.schema_arrow.names
    if outputs.keys() != set(request.needed) or len(set(names)) < len(names):
        return None
    if not all(_is_known(f.type) for f in data.reader.schema_arrow):
        return None  # who opens the file meets all of its columns
    found = maker.own_names(data)
    simple = {name: label for name, c in outputs.items() if (label := _simple(c)) is not None}
    own = {name: found.get(label) for name, label in simple.items()}
    # Engines take the constants 0.0 and -0.0 for one.
    same = [c for c in outputs.values() if isinstance(c.value, FileConstant) and c.type not in t.FLOATING]
    constants = {c.name: _constant(rows, c) for c in same}
    if not own or len(own) + len(constants) < len(outputs):
        return None
    held = {name: mine for name, mine in own.items() if mine is not None and _holds(data, mine, outputs[name].type)}
    return PlainFile(path, data.reader.schema_arrow, held, constants, batches) if len(held) == len(own) else None


def _simple(column: OutputColumn) -> str | None:
    """The plan's name of the column of the file that it is; None: it is made of more, or of a type of many forms."""
    value = column.value
    if not isinstance(value, Physical) or len(value.path) > 1 or value.type != column.type:
        return None
    return value.path[0] if column.type in _SIMPLE or isinstance(column.type, Decimal) else None


def _constant(rows: FileRows, column: OutputColumn) -> pa.Scalar:
    assert isinstance(column.value, FileConstant)
    found = rows.constants.get(column.value.name)
    return pa.scalar(None, to_arrow(column.type)) if found is None else found


def _is_known(kind: pa.DataType) -> bool:
    """Whether all who know Arrow's types know this one, of a column that may be asked for or not."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind):
        return all(_is_known(kind.field(n).type) for n in range(kind.num_fields))
    if pa.types.is_timestamp(kind):
        return kind.tz in (None, "UTC")
    return any(
        is_one(kind)
        for is_one in (pa.types.is_boolean, pa.types.is_integer, pa.types.is_float32, pa.types.is_float64,
                       pa.types.is_date32, pa.types.is_decimal128, pa.types.is_string, pa.types.is_large_string,
                       pa.types.is_string_view, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    )  # fmt: skip


def _holds(data: DataFile, own: str, wanted: DataType) -> bool:
    """Whether the file's column is of just this type."""
    kind = data.reader.schema_arrow.field(own).type
    if wanted == t.STRING:
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
    if wanted == t.BINARY:
        return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))
    return bool(kind == to_arrow(wanted)) and not (isinstance(wanted, Decimal) and _has_rare_digits(data, own))


def _has_rare_digits(data: DataFile, own: str) -> bool:
    """Whether decimals are written as not every reader takes them: of any length, or encoded as texts are."""
    metadata = data.reader.metadata
    number = next(n for n in range(len(metadata.schema)) if metadata.schema.column(n).path == own)
    kind = metadata.schema.column(number).physical_type
    if kind != "FIXED_LEN_BYTE_ARRAY":
        return bool(kind == "BYTE_ARRAY")
    return not _COMMON_ENCODINGS.issuperset(data.pages.encodings(number))
