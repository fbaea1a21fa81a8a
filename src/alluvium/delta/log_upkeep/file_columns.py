"""The columns of live files in a checkpoint: statistics as text and as columns, typed partition values.

Specification: "Checkpoints", "Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.statistics.stats import stats_columns, struct_member
from alluvium.delta.statistics.stats_json import Path, decode_stats
from alluvium.delta.statistics.stats_text import stats_texts
from alluvium.delta.statistics.stats_values import bound_column, count_column
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.properties import TableProperties
from alluvium.delta.view.partitions import partition_constants
from alluvium.schema import types as t
from alluvium.schema.types import DataType
from alluvium.schema.types import Decimal as DecimalType

_HAS_BOUNDS = (*t.INTEGRAL, t.FLOAT, t.DOUBLE, t.STRING, t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ)


def checkpoint_files(
    files: pa.Table, config: TableConfig, properties: TableProperties, time_zone: str = "UTC"
) -> pa.Table:
    """Live files with the columns that the table's properties ask of its checkpoints.

    Statistics that exist in one form only are turned into the other, so that a change of the properties loses none.

    Args:
        files: Schema `FILES`, perhaps with `stats_parsed`.
        config: The table.
        properties: Its properties.
        time_zone: In which partition values and bounds without a zone are read.
    """
    found = files.column("stats_parsed").combine_chunks() if "stats_parsed" in files.column_names else None
    if found is None and properties.write_stats_as_json and not properties.write_stats_as_struct:
        # As they are: half of what a log holds is statistics, of which this would make a copy.
        return files
    texts = files.column("stats").combine_chunks()
    made = files.drop_columns(["stats", *(["stats_parsed"] if found is not None else [])])
    if properties.write_stats_as_json:
        # "This field needs to be written when statistics are available and the table property [...] is set to `true`"
        stats = texts if found is None else stats_texts(texts, found)
        made = made.append_column(pa.field("stats", pa.string()), stats)
    if not properties.write_stats_as_struct:
        return made
    made = _append(made, "stats_parsed", parse_stats(texts, found, config, properties, time_zone))
    if config.partition_columns:
        # "This is a required field when the table is partitioned and the table property
        # `delta.checkpoint.writeStatsAsStruct` is set to `true`."
        made = _append(made, "partitionValues_parsed", _partition_values(files, config, time_zone))
    return made


def parse_stats(
    texts: pa.Array, found: pa.StructArray | None, config: TableConfig, properties: TableProperties, time_zone: str
) -> pa.StructArray:
    """Statistics "in their original format", under physical names.

    Args:
        texts: As JSON, null where there are none.
        found: Those that exist as columns already, used where there is no text.
        config: The table.
        properties: Which leaves have statistics.
        time_zone: Of bounds that name none.
    """
    chosen = stats_columns(
        config.schema, config.partition_columns, properties.num_indexed_cols, properties.stats_columns
    )
    leaves = {config.physical_paths.get(leaf.path, leaf.path): leaf.type for leaf in chosen}
    decoded = decode_stats(texts, leaves)
    in_text = texts.is_valid()

    def merged(path: Path, values: pa.Array) -> pa.Array:
        return values if found is None else pc.if_else(in_text, values, struct_member(found, path, values.type))

    columns: dict[Path, pa.Array] = {("numRecords",): merged(("numRecords",), count_column(decoded.num_records))}
    tight = pa.array([value if isinstance(value, bool) else None for value in decoded.tight_bounds], pa.bool_())
    tight = merged(("tightBounds",), tight)
    if tight.null_count < len(tight):
        columns[("tightBounds",)] = tight
    for kind, part in (("minValues", "low"), ("maxValues", "high")):
        for path, data_type in leaves.items():
            if _has_bounds(data_type):
                values = bound_column(getattr(decoded.leaves[path], part), data_type, time_zone)
                place = (kind, *path)
                columns[place] = merged(place, values)
    for path, texts_of_leaf in decoded.leaves.items():
        place = ("nullCount", *path)
        columns[place] = merged(place, count_column(texts_of_leaf.null_count))
    known = in_text if found is None else pc.or_(in_text, found.is_valid())
    return _nested(columns, mask=pc.invert(known))


def _has_bounds(data_type: DataType) -> bool:
    return data_type in _HAS_BOUNDS or isinstance(data_type, DecimalType)


def _append(files: pa.Table, name: str, values: pa.StructArray) -> pa.Table:
    return files.append_column(pa.field(name, values.type), values)


def _partition_values(files: pa.Table, config: TableConfig, time_zone: str) -> pa.StructArray:
    """ "the column names correspond to the partition columns", physical ones where columns are mapped."""
    typed = partition_constants(files, config, time_zone)
    names = [config.physical_names[f.name] for f in typed.type]
    return pa.StructArray.from_arrays(typed.flatten(), names=names)


def _nested(columns: Mapping[Path, pa.Array], mask: pa.Array | None = None) -> pa.StructArray:
    """Columns by their paths as one struct of structs."""
    below: dict[str, dict[Path, pa.Array]] = {}
    for path, values in columns.items():
        below.setdefault(path[0], {})[path[1:]] = values
    members = [inner[()] if () in inner else _nested(inner) for inner in below.values()]
    return pa.StructArray.from_arrays(members, names=list(below), mask=mask)
