"""How many rows of a Parquet file have null for an array or map: out of the footer's histograms of definition levels.

Arrow shows neither. The footer is a struct of Thrift's compact protocol, of which this reads what it must.
Specifications: parquet.thrift (`FileMetaData`, `SchemaElement`, `SizeStatistics`), thrift-compact-protocol.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from alluvium.codecs.footers.thrift_compact import DAMAGE, CompactReader, Value, fields_of, items_of, next_of
from alluvium.errors import CorruptTable

Path: TypeAlias = tuple[str, ...]

_OPTIONAL, _REPEATED = 1, 2


def null_collections(footer: bytes, paths: list[Path]) -> dict[Path, int]:
    """Rows in which the array or map at a path is null, or a struct around it; paths that nobody counted are left out.

    Args:
        footer: The file's metadata, without its length and the magic bytes.
        paths: Of the collections, by their names in the file.

    Raises:
        CorruptTable: The footer ends too early, or is no such struct (`damaged-file`).
    """
    try:
        return _null_collections(footer, paths)
    except DAMAGE as error:
        raise CorruptTable(f"the footer of a Parquet file is damaged: {error!r}", code="damaged-file") from None


def _null_collections(footer: bytes, paths: list[Path]) -> dict[Path, int]:
    document = CompactReader(footer).struct()
    levels = dict(_levels(map(fields_of, items_of(document[2])), (), 0, is_root=True))
    counts: dict[Path, int | None] = {path: 0 for path in paths if path in levels}
    for row_group in _optional_items(document.get(4)):
        histograms = dict(_histograms(fields_of(row_group)))
        for path, count in counts.items():
            found = next((h for leaf, h in histograms.items() if leaf[: len(path)] == path and h), None)
            # "definition_level_histogram: [...] the element at index i is the number of levels equal to i": a level
            # below that of the collection is that of a row without it.
            counts[path] = None if found is None or count is None else count + sum(found[: levels[path]])
    return {path: count for path, count in counts.items() if count is not None}


def _levels(
    elements: Iterator[dict[int, Value]], path: Path, level: int, is_root: bool = False
) -> Iterator[tuple[Path, int]]:
    """The definition level at which each node is there: "schema: [...] depth first traversal"."""
    element = next_of(elements)
    name, repetition, children = element[4], element.get(3), element.get(5) or 0
    assert isinstance(name, bytes) and isinstance(children, int)
    here = path if is_root else (*path, name.decode())
    level += 1 if repetition in (_OPTIONAL, _REPEATED) and not is_root else 0
    yield here, level
    for _ in range(children):
        yield from _levels(elements, here, level)


def _histograms(row_group: dict[int, Value]) -> Iterator[tuple[Path, list[int]]]:
    for chunk in items_of(row_group[1]):
        column = fields_of(fields_of(chunk)[3])
        path = tuple(part.decode() for part in items_of(column[3]) if isinstance(part, bytes))
        sizes = column.get(16)
        if isinstance(sizes, dict):
            yield path, [n for n in _optional_items(sizes.get(3)) if isinstance(n, int)]


def _optional_items(value: Value) -> list[Value]:
    return value if isinstance(value, list) else []
