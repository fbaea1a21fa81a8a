"""What the footers of the files to convert say: one schema, and the statistics of each. Read side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa

from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter, FooterColumn, read_described
from alluvium.codecs.footers.spark_schema import stored_schema
from alluvium.delta.statistics.stats import format_stats
from alluvium.delta.upkeep.convert.schemas import INT32, merge_schemas
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.schema.types import DataType, Struct
from alluvium.storage.parallel import map_parallel
from alluvium.storage.progress import counting
from alluvium.storage.store import Store

#: Footers that are held at once.
_TOGETHER = 5_000


@dataclass(frozen=True, slots=True)
class Footers:
    """What the footers say.

    Attributes:
        schema: The columns of all files.
        columns: Those that `stats` tells of.
        stats: Of each file, as the log has them.
        everywhere: Names in lower case of the columns that every file has.
    """

    schema: Struct
    columns: tuple[FooterColumn, ...]
    stats: pa.ChunkedArray
    everywhere: frozenset[str]


def read_footers(
    store: Store,
    files: pa.Table,
    columns_of: Callable[[Struct], tuple[FooterColumn, ...]],
    tight_bounds: bool | None,
    alike: tuple[DataType, ...] = INT32,
) -> Footers:
    """Reads the footers of all files, once where the first tells what all are like, else twice.

    Args:
        store: The folder.
        files: `path` and `size` of each; not none.
        columns_of: From a schema to the columns to take statistics of.
        tight_bounds: As of `format_stats`.
        alike: As of `merge_schemas`.

    Raises:
        InvalidRequest: A file is no Parquet file (`not-parquet`), or of another size (`file-changed`), or files do not
            go together (`schemas-differ`).
        UnsupportedFeature: A type that Spark does not read.
    """
    first = _read(store, (files["path"][0].as_py(), files["size"][0].as_py()), ())[0]
    columns = columns_of(first)
    schema, stats, everywhere = _read_all(store, files, columns, tight_bounds, first, alike)
    if (wanted := columns_of(schema)) != columns:
        columns = wanted
        schema, stats, everywhere = _read_all(store, files, columns, tight_bounds, schema, alike)
    return Footers(schema, columns, stats, everywhere)


def _read_all(
    store: Store,
    files: pa.Table,
    columns: Sequence[FooterColumn],
    tight_bounds: bool | None,
    schema: Struct,
    alike: tuple[DataType, ...],
) -> tuple[Struct, pa.ChunkedArray, frozenset[str]]:
    stats, advance = [], counting("footers read", files.num_rows)
    everywhere = frozenset(name.lower() for name in schema.names)
    for start in range(0, files.num_rows, _TOGETHER):
        names, sizes = (files[name].slice(start, _TOGETHER).to_pylist() for name in ("path", "size"))
        these = zip(names, sizes, strict=True)
        found = map_parallel(lambda one: _read(store, one, columns), these, advance=advance)
        schemas = zip((one for one, _ in found), names, strict=True)
        for one in {one.names for one, _ in found}:
            everywhere &= {name.lower() for name in one}
        schema = reduce(lambda merged, one: merge_schemas(merged, one[0], one[1], alike), schemas, schema)
        stats.append(format_stats([footer for _, footer in found], tight_bounds))
    return schema, pa.chunked_array(stats, pa.string()), everywhere


def _read(store: Store, one: tuple[str, int], columns: Sequence[FooterColumn]) -> tuple[Struct, FileFooter]:
    path, size = one
    opened = store.open_input(path)
    if (found := opened.size()) != size:
        opened.close()
        # By the size that the log says readers look for the footer.
        raise InvalidRequest(
            f"a file has {found} bytes, and {size} were expected: somebody still writes it, or wrote it anew",
            code="file-changed",
            url=store.url,
            path=path,
            hint="convert it when nobody writes there; nothing was written",
        )
    try:
        metadata, footer = read_described(opened, columns, path)
    except CorruptTable as error:
        raise InvalidRequest(
            f"a file in the folder is no Parquet file: {error.message}",
            code="not-parquet",
            url=store.url,
            path=path,
            hint="remove it, or give it a name that begins with _ or .: such files do not count",
        ) from None
    schema = stored_schema(metadata, path)
    return schema, _with_missing(footer, schema, columns)


def _with_missing(footer: FileFooter, schema: Struct, columns: Sequence[FooterColumn]) -> FileFooter:
    """Of a column that a file does not have all values are null."""
    has = {tuple(part.lower() for part in path) for path, _ in schema.leaves()}
    missing = {
        column.path: ColumnStats(column.type, None, None, footer.num_rows)
        for column in columns
        if column.path not in footer.columns and tuple(part.lower() for part in column.path) not in has
    }
    return replace(footer, columns={**footer.columns, **missing}) if missing else footer
