"""Live files that were written before a column's type was widened."""

from __future__ import annotations

import pyarrow as pa

from alluvium.delta.features.types.type_widening import TYPE_CHANGES
from alluvium.delta.terms.spec import FILES
from alluvium.delta.upkeep.stored_schema import read_stored_schema
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import Snapshot
from alluvium.schema.arrow import to_arrow
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
    fields = zip(config.schema.fields, config.physical_schema.fields, strict=True)
    expected = {
        physical.name: to_arrow(physical.type)
        for f, physical in fields
        if f.name in names and f.name not in config.partition_columns
    }
    files = snapshot.files.select(FILES.names)
    if not expected or not files.num_rows:
        return files.slice(0, 0)
    paths = data_paths(files).to_pylist()
    advance = counting("footers read", len(paths))
    older = map_parallel(lambda path: _is_older(snapshot, path, expected), paths, advance=advance)
    return files.filter(pa.array(older, pa.bool_()))


def _is_older(snapshot: Snapshot, path: str, expected: dict[str, pa.DataType]) -> bool:
    found = read_stored_schema(snapshot, path)
    # A column that the file lacks is null in it, of any type.
    types = {f.name: f.type for f in found}
    return any(name in types and types[name] != wanted for name, wanted in expected.items())
