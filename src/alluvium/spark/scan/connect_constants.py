"""What is one value a file, on a relation that knows of its rows no more than file and position.

Deleted rows travel as the bytes that `masks` makes. As a literal, one file's are read where they lie; in a joined table
each row would copy them, so that there they are cut into pieces of a few hundred bytes, one row of the table each.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import DataType, Field, Struct
from alluvium.spark.scan.letters import is_deleted
from alluvium.spark.scan.names import quote
from alluvium.spark.scan.rows import FileGroups
from alluvium.spark.types import to_spark
from alluvium.storage.paths import encode_uri_paths

#: Relations that a part is read as at most; one more scan costs less than the join up to about here.
_MAX_RELATIONS = 8
#: Bytes of deleted rows that may stand in a plan as literals, which travels with every task.
_MAX_LITERAL_BYTES = 4 << 20
_PIECE_BYTES = 256
#: As in `masks`: rows that a byte stands for, and the byte of rows that are all there.
_ROWS_A_BYTE = 6
_PIECE_ROWS = _PIECE_BYTES * _ROWS_A_BYTE
#: More pieces than the largest file has, so that file and piece are one number.
_MAX_PIECES = 1 << 22


def is_few(groups: FileGroups, constants: Struct, deleted_rows: str | None) -> bool:
    """Whether groups of equal constants may be read as a relation each."""
    if len(groups) > _MAX_RELATIONS or len(pc.unique(groups.files["path"])) < groups.files.num_rows:
        # A relation would read a file once that a group names twice.
        return False
    if deleted_rows is not None:
        bytes_in_all = pc.sum(pc.binary_length(groups.constants[deleted_rows])).as_py() or 0
        if bytes_in_all > _MAX_LITERAL_BYTES:
            return False
    return all(_is_literal(groups.constants[f.name]) for f in constants.fields)


def _is_literal(values: pa.ChunkedArray) -> bool:
    try:
        values.to_pylist()
    except (ValueError, OverflowError):
        # Dates and times before year 1 or after 9999, which Spark knows and Python does not.
        return False
    return not pa.types.is_nested(values.type)


def with_literal_constants(
    relation: DataFrame, row: pa.Table, constants: Struct, deleted_rows: str | None, keeps_deleted: bool
) -> DataFrame:
    """A relation whose rows all have the same constants.

    Args:
        relation: The files.
        row: Their constants, one row.
        constants: Which of them become columns.
        deleted_rows: Which of them says what rows are deleted.
        keeps_deleted: Keep these instead of the others.
    """
    if deleted_rows is not None and (bits := row[deleted_rows][0].as_py()):
        position = relation.metadataColumn("_metadata")["row_index"]
        relation = relation.where(_kept(is_deleted(sf.lit(bits), position), keeps_deleted))
    if not constants.fields:
        return relation
    return relation.select("*", *(_named(_literal(row[f.name][0].as_py(), f.type), f) for f in constants.fields))


def _kept(deleted: Column, keeps_deleted: bool) -> Column:
    return deleted if keeps_deleted else ~deleted


def _literal(value: object, data_type: DataType) -> Column:
    text = value
    if value is not None and not isinstance(value, bytes):
        # Aware times have their offset in the text, so that the session's zone has no say.
        text = str(value).lower() if isinstance(value, bool) else str(value)
    # Never equal to null, so the value itself; but nullable, as a file's column is, until the optimizer folds it.
    spark_type = to_spark(data_type)
    return sf.nullif(sf.lit(text).cast(spark_type), sf.lit(None).cast(spark_type))


def with_joined_constants(
    relation: DataFrame,
    data: Struct,
    addresses: pa.Array,
    files: pa.Table,
    constants: Struct,
    deleted_rows: str | None,
    keeps_deleted: bool,
) -> DataFrame:
    """A relation of many files, each with its own constants; a file that is listed twice gives its rows twice.

    Args:
        relation: The files.
        data: Its columns.
        addresses: The files' addresses, not escaped, one a row of `files`.
        files: The plan's files, deleted rows among their constants.
        constants: Which constants become columns.
        deleted_rows: Which of them says what rows are deleted.
        keeps_deleted: Keep these instead of the others.
    """
    taken = (*data.names, *constants.names)
    file, number, row, key = (_unused(name, taken) for name in ("__file", "__number", "__row", "__key"))
    spark = relation.sparkSession
    metadata = relation.metadataColumn("_metadata")
    keyed = relation.select("*", metadata["file_path"].alias(file), metadata["row_index"].alias(row))
    table = _constant_table(addresses, files, constants, key, number)
    small = sf.broadcast(spark.createDataFrame(table))
    joined = keyed.join(small, keyed[file] == small[key]).drop(key)
    if deleted_rows is not None:
        pieces = spark.createDataFrame(_pieces(pc.struct_field(files["constants"], deleted_rows), key, deleted_rows))
        piece = sf.call_function("div", joined[row], sf.lit(_PIECE_ROWS))
        found = joined[number] * sf.lit(_MAX_PIECES) + piece
        joined = joined.join(sf.broadcast(pieces), found == pieces[key], "inner" if keeps_deleted else "left")
        deleted = is_deleted(sf.col(quote(deleted_rows)), sf.col(quote(row)) % sf.lit(_PIECE_ROWS))
        joined = joined.where(_kept(deleted, keeps_deleted))
    shown = (_named(sf.col(quote(f.name)), f) for f in constants.fields)
    return joined.select(*(quote(name) for name in data.names), *shown)


def _named(column: Column, f: Field) -> Column:
    return column.alias(f.name, metadata=dict(f.metadata)) if f.metadata else column.alias(f.name)


def _unused(name: str, taken: Iterable[str]) -> str:
    folded = {other.casefold() for other in taken}
    while name in folded:
        name += "_"
    return name


def _constant_table(addresses: pa.Array, files: pa.Table, constants: Struct, key: str, number: str) -> pa.Table:
    """The constants by address as `_metadata.file_path` has it: escaped, local ones with one slash or with three,
    which has changed between versions of Spark.
    """
    count = files.num_rows
    keys = encode_uri_paths(addresses.cast(pa.string()))
    table = pa.table({key: keys, number: pa.array(range(count), pa.int64())})
    for f in schema_to_arrow(Struct(tuple(Field(f.name, f.type) for f in constants.fields))):
        table = table.append_column(f, pc.struct_field(files["constants"], f.name).cast(f.type))
    local = pc.starts_with(table[key], "file:///")
    shorter = pc.replace_substring_regex(table[key], "^file:/+", "file:/")
    return pa.concat_tables([table, table.set_column(0, key, shorter).filter(local)])


def _pieces(texts: pa.ChunkedArray, key: str, name: str) -> pa.Table:
    """Deleted rows of all files in pieces, by number of file and piece; those without a deleted row are left out."""
    keys: list[int] = []
    pieces: list[bytes] = []
    for file, text in enumerate(texts.to_pylist()):
        for number, start in enumerate(range(0, len(text), _PIECE_BYTES)):
            piece = text[start : start + _PIECE_BYTES]
            if piece.strip(b"@"):
                keys.append(file * _MAX_PIECES + number)
                pieces.append(piece)
    return pa.table({key: pa.array(keys, pa.int64()), name: pa.array(pieces, pa.binary())})
