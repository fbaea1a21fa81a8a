"""Live files that were written before a column's type was widened."""

from __future__ import annotations

import pyarrow as pa

from alluvium.delta.features.types.type_widening import TYPE_CHANGES
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.terms.mapping import COLUMN_ID
from alluvium.delta.upkeep.stored_schema import read_stored_schema
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import Snapshot
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Array, DataType, Map, Struct
from alluvium.schema.walk import fields_within
from alluvium.storage.parallel import map_parallel
from alluvium.storage.progress import counting

_FIELD_ID = b"PARQUET:field_id"


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
        stored = pa.struct(list(read_stored_schema(snapshot, path)))
        return _is_older(stored, config.schema, config.physical_schema, config.mapping_mode == "id")

    older = map_parallel(is_older, paths, advance=counting("footers read", len(paths)))
    return files.filter(pa.array(older, pa.bool_()))


def _is_older(stored: pa.DataType, wanted: DataType, physical: DataType, by_id: bool, is_changed: bool = False) -> bool:
    """Whether a value whose type was changed is stored as another one. Whether values may be null says nothing of it,
    and what a file lacks is null in it, of any type.

    Args:
        stored: In the file.
        wanted: Today, with what was changed.
        physical: The same under the names of files.
        by_id: Whether columns of files are found by their ids, whatever they are called.
        is_changed: Whether it is a value of a field of which changes are told.
    """
    if isinstance(wanted, Struct) and isinstance(physical, Struct) and pa.types.is_struct(stored):
        types: dict[str | bytes | None, list[pa.DataType]] = {}
        for own in (stored.field(n) for n in range(stored.num_fields)):
            key = (own.metadata or {}).get(_FIELD_ID) if by_id else own.name.lower()
            types.setdefault(key, []).append(own.type)
        return any(
            _is_older(one, f.type, p.type, by_id, TYPE_CHANGES in f.metadata)
            for f, p in zip(wanted.fields, physical.fields, strict=True)
            for one in types.get(str(f.metadata.get(COLUMN_ID)).encode() if by_id else p.name.lower(), ())
        )
    if isinstance(wanted, Array) and isinstance(physical, Array) and pa.types.is_list(stored):
        return _is_older(stored.value_type, wanted.element, physical.element, by_id, is_changed)
    if isinstance(wanted, Map) and isinstance(physical, Map) and pa.types.is_map(stored):
        return _is_older(stored.key_type, wanted.key, physical.key, by_id, is_changed) or _is_older(
            stored.item_type, wanted.value, physical.value, by_id, is_changed
        )
    return is_changed and stored != to_arrow(wanted)
