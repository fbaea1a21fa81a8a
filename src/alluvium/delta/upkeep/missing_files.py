"""Files of a version that are gone: without its data files, or without a vector of one, it could not be read."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.rows.deletion_vectors import (
    INLINE,
    has_vector,
    parse_descriptors,
    vector_address,
    vectors_of,
)
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import AlluviumError, NotFound
from alluvium.storage.elsewhere import locate
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import relative_to
from alluvium.storage.store import LISTED, Store

#: Missing files named in an error.
_SHOWN = 5
#: Files that are looked up one by one; for more, one listing is cheaper.
_FEW = 500
_ELSEWHERE = r"^([A-Za-z][A-Za-z0-9+.-]*:)?/"


def missing_of(snapshot: Snapshot, files: pa.Table) -> tuple[str, ...]:
    """Which of some files of a version (`FILES`), and of the files of their vectors, are gone.

    Returns:
        Paths relative to the table, or addresses: data files first.
    """
    vectors = pa.chunked_array([pa.array(_vector_files(snapshot, files), pa.string())])
    missing: list[str] = []
    for paths in (data_paths(files), vectors):
        outside = pc.match_substring_regex(paths, _ELSEWHERE)
        missing += _missing_inside(snapshot.store, paths.filter(pc.invert(outside)))
        missing += _missing_outside(snapshot, paths.filter(outside))
    return tuple(missing)


def refuse_missing(snapshot: Snapshot, missing: tuple[str, ...]) -> None:
    """Refuses to go on without files of a version.

    Raises:
        NotFound: There are such (`missing-file`).
    """
    if missing:
        raise NotFound(
            f"{len(missing)} data files, or files of deletion vectors, of version {snapshot.version} are gone: "
            f"{', '.join(missing[:_SHOWN])}",
            code="missing-file",
            url=snapshot.store.url,
            path=missing[0],
            version=snapshot.version,
            hint="take a younger version: these files were removed from storage, and no table can be made of them",
        )


def ensure_still_there(snapshot: Snapshot, files: pa.Table, standing: str, hint: str) -> None:
    """Looks for files once more, behind a commit that names them: VACUUM, which keeps what its newest look at the log
    names, may have looked just before.

    Args:
        snapshot: The version that the files are of.
        files: They (`FILES`).
        standing: What names them now, and stands.
        hint: What is to be done then.

    Raises:
        NotFound: Some are gone (`missing-file`).
    """
    try:
        missing = missing_of(snapshot, files)
    except AlluviumError:
        # The commit stands, and nothing speaks against it.
        return
    if missing:
        raise NotFound(
            f"{standing} stands, and {len(missing)} of its files were removed while it was committed: {missing[0]}",
            code="missing-file",
            url=snapshot.store.url,
            path=missing[0],
            version=snapshot.version,
            hint=hint,
        )


def _vector_files(snapshot: Snapshot, files: pa.Table) -> list[str]:
    """The files that the vectors of some files lie in, as `data_paths` names files; each once."""
    vectors = vectors_of(files)
    descriptors = parse_descriptors(vectors.filter(has_vector(vectors)))
    root = snapshot.store.url
    addresses = [
        vector_address(vector, root)
        for vector in descriptors
        if vector.storage_type != INLINE and vector.cardinality != 0
    ]
    below = ((address, relative_to(root, address)) for address in addresses)
    return list(dict.fromkeys(address if inside is None else inside for address, inside in below))


def _missing_inside(store: Store, paths: pa.ChunkedArray) -> list[str]:
    if len(paths) > _FEW:
        listed = pa.Table.from_batches(store.list_columns("", _nothing), LISTED).column("path")
        # It follows no links: what it lacks is asked for.
        paths = paths.filter(pc.invert(pc.is_in(paths, value_set=listed)))
    names = paths.to_pylist()
    found = map_parallel(lambda path: _is_there(store, path), names)
    return [path for path, there in zip(names, found, strict=True) if not there]


def _missing_outside(snapshot: Snapshot, paths: pa.ChunkedArray) -> list[str]:
    """Folders of which many files are wanted are listed."""
    if not len(paths):
        return []
    folders = pc.replace_substring_regex(paths, r"[^/]*$", "")
    counts = pc.value_counts(folders)
    missing: list[str] = []
    few = pa.array([c["values"].as_py() for c in counts if c["counts"].as_py() <= _FEW], pa.string())
    for count in counts:
        folder = count["values"].as_py()
        if count["counts"].as_py() > _FEW:
            missing += _missing_in_folder(snapshot, folder, paths.filter(pc.equal(folders, folder)))
    stores: dict[str, Store] = {}

    def is_there(address: str) -> bool:
        def opened(folder: str) -> Store:
            return stores.setdefault(folder, snapshot.open_store(folder))

        return _is_there(*locate(snapshot.store, opened, address))

    urls = paths.filter(pc.is_in(folders, value_set=few)).to_pylist()
    return missing + [url for url, there in zip(urls, map_parallel(is_there, urls), strict=True) if not there]


def _missing_in_folder(snapshot: Snapshot, folder: str, paths: pa.ChunkedArray) -> list[str]:
    first = paths[0].as_py()
    # By way of a file in it: where it may not be looked for at all is said there.
    holder, name = locate(snapshot.store, snapshot.open_store, first)
    listed = pa.Table.from_batches(holder.list_columns(name.rpartition("/")[0], _everything), LISTED).column("path")
    names = pc.replace_substring_regex(paths, r"^.*/", "")
    there = pc.replace_substring_regex(listed, r"^.*/", "")
    return list(paths.filter(pc.invert(pc.is_in(names, value_set=there))).to_pylist())


def _nothing(name: str) -> bool:
    return False


def _everything(name: str) -> bool:
    return True


def _is_there(store: Store, path: str) -> bool:
    try:
        store.head(path)
    except NotFound:
        return False
    return True
