"""Live files that hold what the table does not show: deleted rows, dropped columns, values of narrower types."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.rows.deletion_vectors import has_vector, vectors_of
from alluvium.delta.features.rows.row_ids import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from alluvium.delta.upkeep.older_types import files_of_older_types
from alluvium.delta.upkeep.stored_schema import read_stored_schema
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import Snapshot
from alluvium.schema.types import Array, DataType, Map, Struct
from alluvium.storage.parallel import map_parallel
from alluvium.storage.progress import counting


def purgeable(snapshot: Snapshot, files: pa.Table) -> pa.Table:
    """Those of some live files (`FILES`) that are to be written anew so that what they hide goes.

    Files are opened only where columns may have been dropped (column mapping) or widened.

    Raises:
        CorruptTable: A file cannot be read (`damaged-file`).
    """
    masked = has_vector(vectors_of(files))
    older = pc.is_in(files["path"].combine_chunks(), value_set=files_of_older_types(snapshot)["path"].combine_chunks())
    found = pc.or_(masked, older)
    config = snapshot.config
    if config.mapping_mode != "none":
        said = config.metadata.configuration
        own = {said[key] for key in (MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION) if key in said}
        paths = data_paths(files).to_pylist()

        def has_dropped(path: str) -> bool:
            stored = [f for f in read_stored_schema(snapshot, path) if f.name not in own]
            return _has_more(pa.struct(stored), config.physical_schema)

        found = pc.or_(
            found, pa.array(map_parallel(has_dropped, paths, advance=counting("footers read", len(paths))), pa.bool_())
        )
    return files.filter(found)


def _has_more(stored: pa.DataType, known: DataType) -> bool:
    """Whether a struct within a stored type has members that the table's type has not."""
    if isinstance(known, Struct) and pa.types.is_struct(stored):
        types = {f.name: f.type for f in known.fields}
        members = (stored.field(n) for n in range(stored.num_fields))
        return any(f.name not in types or _has_more(f.type, types[f.name]) for f in members)
    if isinstance(known, Array) and pa.types.is_list(stored):
        return _has_more(stored.value_type, known.element)
    if isinstance(known, Map) and pa.types.is_map(stored):
        return _has_more(stored.key_type, known.key) or _has_more(stored.item_type, known.value)
    return False
