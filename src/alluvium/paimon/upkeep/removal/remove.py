"""Deletes files that were shown to be needed by nothing.

What cannot be deleted stays: it is in no state of the table, and `remove_orphan_files` takes it later.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import AlluviumError, NotFound
from alluvium.paimon.files.partitions import bucket_directories, data_paths, partitions_of
from alluvium.paimon.log.schema_log import load_latest_schema, not_a_table
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.life_options import CLEAN_EMPTY_DIRECTORIES
from alluvium.paimon.terms.options import INDEX_FILE_IN_DATA_FILE_DIR
from alluvium.paimon.upkeep.removal.needs import Needs, dead_files
from alluvium.paimon.upkeep.removal.roots import Root, list_roots
from alluvium.storage.paths import is_absolute
from alluvium.storage.progress import counting
from alluvium.storage.store import Store

log = logging.getLogger("alluvium")

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Removed:
    """What was deleted, or would be.

    Attributes:
        paths: From the table's root.
    """

    paths: tuple[str, ...] = ()


def remove_dead(store: Store, dying: Sequence[Root]) -> Removed:
    """Deletes what dying roots needed and no root that is there now needs.

    The documents of the dying roots are gone already: whoever still holds one gets a clear error, and whoever made a
    tag of one meanwhile is among the roots that are read here. What stands at the place of one is another root: a tag
    that was replaced, a snapshot that was put back.
    """
    if not dying:
        return Removed()
    schema = load_latest_schema(store)
    if schema is None:
        raise not_a_table(store)
    try:
        dead = dead_files(store, dying, list_roots(store))
    except AlluviumError as error:
        # The roots are gone, which is what was asked for; files that nobody names any more are orphans.
        log.warning("files of what was removed stay, as it is not known what the rest of the table needs: %s", error)
        return Removed()
    return remove_files(store, dead, schema)


def remove_files(store: Store, dead: Needs, schema: TableSchema) -> Removed:
    """Deletes data, index and changelog files, then what names them."""
    data, folders = _data_paths(dead.data, schema)
    index = _index_paths(dead.index, schema)
    paths = [*data, *index, *sorted(dead.files, key=_order)]
    _delete_quietly(store, paths)
    if CLEAN_EMPTY_DIRECTORIES.get(schema.options):
        _remove_empty(store, folders)
    return Removed(tuple(paths))


def _delete_quietly(store: Store, paths: Sequence[str]) -> None:
    """Deletes files, many at a time; those that cannot be deleted stay."""
    advance = counting("deleted files", len(paths))
    for start in range(0, len(paths), _BATCH):
        some = paths[start : start + _BATCH]
        try:
            store.delete_all(some)
        except NotFound:
            continue
        except AlluviumError as error:
            log.warning("files that nothing needs could not be deleted: %s", error)
        finally:
            advance(len(some))


def _order(path: str) -> tuple[int, str]:
    """Manifests before their lists."""
    return (1 if path.startswith("manifest/manifest-list-") else 0, path)


def _data_paths(entries: pa.Table, schema: TableSchema) -> tuple[list[str], set[str]]:
    """Paths of files with their sidecars, and the folders of buckets."""
    if not entries.num_rows:
        return [], set()
    partitions = partitions_of(entries, schema)
    paths = data_paths(entries, partitions, schema)
    folders = bucket_directories(entries, partitions, schema)
    owners = pc.list_parent_indices(entries["extra_files"].combine_chunks())
    extra = pc.list_flatten(entries["extra_files"].combine_chunks())
    own_folder = pc.replace_substring_regex(paths, r"[^/]*$", "").take(owners)
    sidecars = pc.binary_join_element_wise(own_folder, extra, "")
    every = [*paths.to_pylist(), *sidecars.to_pylist()]
    outside = [path for path in every if is_absolute(path)]
    if outside:
        log.warning("%d files outside of the table are not deleted: %s", len(outside), outside[0])
    return [path for path in every if not is_absolute(path)], set(folders.to_pylist())


def _index_paths(index: pa.Table, schema: TableSchema) -> list[str]:
    inside = index.filter(pc.is_null(index["external_path"]))
    if not inside.num_rows:
        return []
    if not INDEX_FILE_IN_DATA_FILE_DIR.get(schema.options):
        return [f"index/{name}" for name in inside["file_name"].to_pylist()]
    folders = bucket_directories(inside, partitions_of(inside, schema), schema).to_pylist()
    return [f"{folder}/{name}" for folder, name in zip(folders, inside["file_name"].to_pylist(), strict=True)]


def _remove_empty(store: Store, folders: Iterable[str]) -> None:
    """Removes empty folders, and then those around them that are empty, too."""
    current = set(folders)
    while current:
        above = set()
        for folder in sorted(current):
            try:
                if store.remove_directory(folder) and "/" in folder:
                    above.add(folder.rpartition("/")[0])
            except AlluviumError as error:
                log.warning("an empty folder stays: %s", error)
        current = above
