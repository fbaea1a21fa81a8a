"""Live files that were written before a column's type was widened."""

from __future__ import annotations

import pyarrow as pa

from alluvium.delta.features.types.type_widening import TYPE_CHANGES
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.upkeep.stored_schema import read_stored_schema
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import Snapshot
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Array, DataType, Map, Struct
from alluvium.schema.walk import fields_within
from alluvium.storage.parallel import map_parallel
from alluvium.storage.progress import counting


def files_of_older_types(snapshot: Snapshot) -> pa.Table:
    """The live files (`FILES`) in which a column whose type was changed has another type than today's.

    Raises:
        CorruptTable: A file cannot be read (`damaged-file`).
    """
    config = snapshot.config
    names = {path[0] for path, f in fields_within(config.schema) if TYPE_CHANGES in f.metadata}
    files = with_stats_text(snapshot.files)
    if not names.difference(config.partition_columns) or not files.num_rows:
        return files.slice(0, 0)
    paths = data_paths(files).to_pylist()

    def is_older(path: str) -> bool:
        return _is_older(pa.struct(list(read_stored_schema(snapshot, path))), config.schema, config.physical_schema)

    older = map_parallel(is_older, paths, advance=counting("footers read", len(paths)))
    return files.filter(pa.array(older, pa.bool_()))


def _is_older(stored: pa.DataType, wanted: DataType, physical: DataType, is_changed: bool = False) -> bool:
    """Whether a value whose type was changed is stored as another one. Whether values may be null says nothing of it,
    and what a file lacks is null in it, of any type.

    Args:
        stored: In the file.
        wanted: Today, with what was changed.
        physical: The same under the names of files.
        is_changed: Whether it is a value of a field of which changes are told.
    """
    if isinstance(wanted, Struct) and isinstance(physical, Struct) and pa.types.is_struct(stored):
        types = {f.name: f.type for f in (stored.field(n) for n in range(stored.num_fields))}
        pairs = (pair for pair in zip(wanted.fields, physical.fields, strict=True) if pair[1].name in types)
        return any(_is_older(types[p.name], f.type, p.type, TYPE_CHANGES in f.metadata) for f, p in pairs)
    if isinstance(wanted, Array) and isinstance(physical, Array) and pa.types.is_list(stored):
        return _is_older(stored.value_type, wanted.element, physical.element, is_changed)
    if isinstance(wanted, Map) and isinstance(physical, Map) and pa.types.is_map(stored):
        return _is_older(stored.key_type, wanted.key, physical.key, is_changed) or _is_older(
            stored.item_type, wanted.value, physical.value, is_changed
        )
    return is_changed and stored != to_arrow(wanted)
