"""What is one value a file, on a relation that knows of its rows no more than file and position.

Few files, or few values: a relation for each, with literals. Some more: they are looked up in a map that stands in the
plan, so that a query that asks for none of them pays nothing. Else a small table is broadcast and joined. The key is
the size of the file, a number, which costs a row a tenth of what its address costs; where two files are as large it is
the address. Deleted rows are bits in an array of the same table: a look-up in it copies nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import DataType, Field, Struct
from alluvium.spark.naming.names import quote, unused_name
from alluvium.spark.naming.text_lengths import padded_char
from alluvium.spark.naming.types import to_spark
from alluvium.spark.scan.rows import FileGroups
from alluvium.storage.paths import encode_uri_paths, split_url

#: Relations that a part is read as at most; one more scan costs less than the join up to about here.
MAX_RELATIONS = 8
#: Files that are looked up in a map at most: Spark goes through its keys one by one.
_MAX_LOOKED_UP = 128
_WORD_BITS = 64
#: Addresses with doubled slashes and dots, which Hadoop drops when it makes a path of a text.
UNTIDY = r"[^:/]//|:////|/\."
#: The constants of a file.
_Texts: TypeAlias = "list[str | None]"
#: What a row raises whose file has another size than the log says. `connect_failures` makes our error of it.
_WRONG_SIZE = "\nalluvium.errors.CorruptTable: a data file has another size than the log says\n"
_WRONG_ADDRESS = "\nalluvium.errors.CorruptTable: Spark read a data file under another address than the log's\n"


def is_few(groups: FileGroups, constants: Struct) -> bool:
    """Whether groups of equal constants may be read as a relation each."""
    if len(groups) > MAX_RELATIONS or len(pc.unique(groups.files["path"])) < groups.files.num_rows:
        # A relation would read a file once that a group names twice.
        return False
    return all(_is_literal(groups.constants[f.name]) for f in constants.fields)


def is_looked_up(addresses: pa.Array, files: pa.Table, constants: Struct) -> bool:
    """Whether constants may be looked up in a map: each file is named once, in whatever spelling, and they are not too
    many.
    """
    return (
        files.num_rows <= _MAX_LOOKED_UP
        and len(pc.unique(_as_listed(addresses))) == files.num_rows
        and all(_is_literal(pc.struct_field(files["constants"], f.name)) for f in constants.fields)
    )


def with_looked_up_constants(
    relation: DataFrame, data: Struct, addresses: pa.Array, files: pa.Table, constants: Struct
) -> DataFrame:
    """A relation of some files, each with its own constants.

    Args:
        relation: The files.
        data: Its columns.
        addresses: The files' addresses, not escaped, one a row of `files`.
        files: The plan's files.
        constants: Which constants become columns.
    """
    values = [pc.struct_field(files["constants"], f.name).to_pylist() for f in constants.fields]
    rows = [[None if value is None else _text(value) for value in row] for row in zip(*values, strict=True)]
    sizes, metadata = files["size"].to_pylist(), relation.metadataColumn("_metadata")
    often = Counter(sizes)
    by_size = {size: row for size, row in zip(sizes, rows, strict=True) if often[size] == 1}
    # Files that are equally large go by their addresses.
    table = pa.table({"key": _as_listed(addresses), "place": range(files.num_rows)})
    spellings = _both_spellings(table.filter(pa.array([often[size] > 1 for size in sizes], pa.bool_())), "key")
    by_path = {key: rows[place] for key, place in zip(*spellings.to_pydict().values(), strict=True)}
    found = [
        *([_looked_up(by_size, "bigint", metadata["file_size"].cast("long"))] if by_size else []),
        *([_looked_up(by_path, "string", metadata["file_path"])] if by_path else []),
    ]
    row = sf.coalesce(*found, sf.raise_error(sf.lit(_WRONG_SIZE)).cast("array<string>"))
    shown = (named(padded_char(_of_text(sf.get(row, sf.lit(n)), f.type), f), f) for n, f in enumerate(constants.fields))
    # True for all. Of `_metadata` Spark reads the members that a plan names, and all of them where it names none.
    sized = relation.where(metadata["file_size"] >= 0)
    return sized.select(*(quote(name) for name in data.names), *shown)


def _looked_up(rows: Mapping[int, _Texts] | Mapping[str, _Texts], key_type: str, key: Column) -> Column:
    """The texts that stand in a map, which is one literal of the plan: the server folds it when it plans the query, and
    to analyse an expression for each value took it longer than to read a hundred small files.
    """
    text = json.dumps({"k": list(rows), "v": list(rows.values())})
    told = sf.from_json(sf.lit(text), f"k array<{key_type}>, v array<array<string>>")
    return sf.element_at(sf.map_from_arrays(told.getField("k"), told.getField("v")), key)


def _is_literal(values: pa.ChunkedArray) -> bool:
    try:
        values.to_pylist()
    except (ValueError, OverflowError):
        # Dates and times before year 1 or after 9999, which Spark knows and Python does not.
        return False
    return not pa.types.is_nested(values.type)


def with_literal_constants(relation: DataFrame, row: pa.Table, constants: Struct) -> DataFrame:
    """A relation whose rows all have the same constants.

    Args:
        relation: The files.
        row: Their constants, one row.
        constants: Which of them become columns.
    """
    if not constants.fields:
        return relation
    return relation.select(
        "*", *(named(padded_char(_literal(row[f.name][0].as_py(), f.type), f), f) for f in constants.fields)
    )


def _literal(value: object, data_type: DataType) -> Column:
    # Never equal to null, so the value itself; but nullable, as a file's column is, until the optimizer folds it.
    text = sf.lit(None if value is None else _text(value))
    return sf.nullif(_of_text(text, data_type), sf.lit(None).cast(to_spark(data_type)))


def _text(value: object) -> str:
    """A value as Spark casts it from; bytes as hexadecimal digits."""
    if isinstance(value, bytes):
        return value.hex()
    # Aware times have their offset in the text, so that the session's zone has no say.
    return str(value).lower() if isinstance(value, bool) else str(value)


def _of_text(text: Column, data_type: DataType) -> Column:
    return sf.unhex(text) if data_type == t.BINARY else text.cast(to_spark(data_type))


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
    taken = (*data.names, *constants.names, *(() if deleted_rows is None else (deleted_rows,)))
    file, row, key = (unused_name(name, taken) for name in ("__file", "__row", "__key"))
    metadata = relation.metadataColumn("_metadata")
    by_size = len(pc.unique(files["size"])) == files.num_rows
    keys = files["size"] if by_size else _as_listed(addresses)
    identity = metadata["file_size" if by_size else "file_path"]
    # Not all readers number the rows.
    numbered = () if deleted_rows is None else (metadata["row_index"].alias(row),)
    keyed = relation.select("*", identity.alias(file), *numbered)
    table = _constant_table(keys, files, constants, key, deleted_rows)
    small = sf.broadcast(relation.sparkSession.createDataFrame(table if by_size else _both_spellings(table, key)))
    joined = keyed.join(small, keyed[file] == small[key], "left").where(_is_found(key, by_size))
    if deleted_rows is not None:
        deleted = _is_deleted(sf.col(quote(deleted_rows)), sf.col(quote(row)))
        joined = joined.where(deleted if keeps_deleted else ~deleted)
    shown = (named(padded_char(sf.col(quote(f.name)), f), f) for f in constants.fields)
    return joined.select(*(quote(name) for name in data.names), *shown)


def _is_found(key: str, by_size: bool) -> Column:
    """Raises for a row of a file that no file of the plan is: an inner join would lose it without a word."""
    # A condition that is nondeterministic keeps Spark from making the left join an inner one.
    problem = sf.lit(_WRONG_SIZE if by_size else _WRONG_ADDRESS)
    raises = (sf.spark_partition_id() >= sf.lit(0)) & sf.raise_error(problem).cast("boolean")
    return sf.col(quote(key)).isNotNull() | raises


def _is_deleted(words: Column, row_index: Column) -> Column:
    """Whether a row is among the deleted ones: never null. Behind the end of the words, or without any, none is."""
    word = sf.get(words, sf.shiftright(row_index, 6).cast("int"))
    bit = sf.bit_get(word, row_index.bitwiseAND(sf.lit(_WORD_BITS - 1)).cast("int"))
    return sf.coalesce(bit.cast("boolean"), sf.lit(False))


def named(column: Column, f: Field) -> Column:
    """A column as the field, with what it says beside its type."""
    return column.alias(f.name, metadata=dict(f.metadata)) if f.metadata else column.alias(f.name)


def _constant_table(keys: pa.Array, files: pa.Table, constants: Struct, key: str, deleted_rows: str | None) -> pa.Table:
    table = pa.table({key: keys})
    for f in schema_to_arrow(Struct(tuple(Field(f.name, f.type) for f in constants.fields))):
        table = table.append_column(f, pc.struct_field(files["constants"], f.name).cast(f.type))
    if deleted_rows is not None:
        table = table.append_column(deleted_rows, _words(pc.struct_field(files["constants"], deleted_rows)))
    return table


def _as_listed(addresses: pa.Array) -> pa.Array:
    """Addresses as `_metadata.file_path` has them: escaped, and without the doubled slashes and dots that Hadoop drops
    when it makes a path of a text.
    """
    plain = addresses.cast(pa.string())
    untidy = pc.match_substring_regex(plain, UNTIDY)
    if pc.any(untidy).as_py():
        tidied = pa.array([str(split_url(text)) for text in plain.filter(untidy).to_pylist()], pa.string())
        tidied = pc.replace_substring_regex(tidied, "^file:/+", "file:///")
        plain = pc.replace_with_mask(plain, untidy, tidied)
    return encode_uri_paths(plain)


def _both_spellings(table: pa.Table, key: str) -> pa.Table:
    """With addresses as `_metadata.file_path` has them: local ones with one slash or with three, which has changed
    between versions of Spark.
    """
    local = pc.starts_with(table[key], "file:///")
    shorter = pc.replace_substring_regex(table[key], "^file:/+", "file:/")
    return pa.concat_tables([table, table.set_column(0, key, shorter).filter(local)])


def _words(bits: pa.ChunkedArray) -> pa.Array:
    """Bits in whole words (`codecs.bitmaps.roaring.bits_of`) as arrays of bigint, one a file."""
    whole = bits.combine_chunks() if isinstance(bits, pa.ChunkedArray) else bits
    lengths = pc.divide(pc.binary_length(whole), _WORD_BITS // 8).to_pylist()
    data = b"".join(whole.to_pylist())
    words = pa.Array.from_buffers(pa.int64(), len(data) * 8 // _WORD_BITS, [None, pa.py_buffer(data)])
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), words)
