"""Partition values that Spark reads from the files' folders by itself, `a=1/b=x`.

Of a folder that is just the one Spark would have written for the values in the log, it makes these values again: they
are partition columns to it, which cost a row nothing, whatever the query asks for. All other tables' values are
looked up or joined (`connect_constants`).
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from alluvium.codecs.partition_path import format_partition_path, parse_partition_path
from alluvium.errors import InvalidRequest
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Struct
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.text_lengths import padded_char
from alluvium.spark.scan.connect_lane.connect_constants import UNTIDY, named

#: Of these a value has one spelling, be the session's zone and settings what they are; which values it has.
_SPELLINGS: Mapping[DataType, str] = {t.STRING: "", t.INTEGER: "", t.LONG: "", t.DATE: r"^\d{4}-"}


def folders_above(addresses: pa.Array, files: pa.Table, constants: Struct) -> pa.Array | None:
    """In which folder the partition folders of each file begin; None if not just these tell all of its constants.

    A folder without `=` may stand between them and the file, as those of buckets do.

    Args:
        addresses: The files' addresses, not escaped, one a row of `files`.
        files: The plan's files.
        constants: Which constants become columns.
    """
    if not constants.fields or any(f.type not in _SPELLINGS for f in constants.fields):
        return None
    addresses = addresses.cast(pa.string())
    if len(pc.unique(addresses)) < files.num_rows or pc.any(pc.match_substring_regex(addresses, UNTIDY)).as_py():
        # Each file stands once, and lies where its address says: nothing leads out of a folder again.
        return None
    pattern = rf"(?s)^(?P<above>.+)/(?P<folders>(?:[^/]+=[^/]*/){{{len(constants.fields)}}})(?:[^/=_][^/=]*/)?[^/]+$"
    places = pc.extract_regex(addresses, pattern)
    if places.null_count:
        return None
    folders = pc.struct_field(places, "folders").dictionary_encode()
    parsed = [_parse(folder.rstrip("/")) for folder in folders.dictionary.to_pylist()]
    names = parsed[0][0]
    if sorted(names) != sorted(constants.names) or any(others != names for others, _ in parsed):
        return None
    for f in constants.fields:
        told = pa.array([values[names.index(f.name)] for _, values in parsed], pa.string())
        is_spelled = pc.match_substring_regex(told, _SPELLINGS[f.type])
        wanted = _texts(pc.struct_field(files["constants"], f.name))
        if pc.any(pc.invert(is_spelled)).as_py() or not told.take(folders.indices).equals(wanted):
            return None
    return pc.struct_field(places, "above")


def _parse(folder: str) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    """Names and values of a folder; none where it is not spelled as Spark spells them."""
    try:
        names, values = parse_partition_path(folder)
    except InvalidRequest:
        return (), ()
    return (names, values) if format_partition_path(names, values) == folder else ((), ())


def _texts(values: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays([pa.array([], pa.string()), *values.cast(pa.string()).chunks])


def with_folder_constants(relation: DataFrame, data: Struct, constants: Struct) -> DataFrame:
    """A relation's columns in order.

    Args:
        relation: Files whose partition columns are the constants.
        data: Its other columns.
        constants: Which constants become columns.
    """
    shown = (named(padded_char(sf.col(quote(f.name)), f), f) for f in constants.fields)
    return relation.select(*(quote(name) for name in data.names), *shown)
