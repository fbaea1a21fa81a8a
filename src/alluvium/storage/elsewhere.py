"""Files that a table names outside of its own directory: what a log says of where to read is never simply obeyed."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.storage import paths
from alluvium.storage.store import Store

#: Schemes of stores that hold tables. Hadoop knows more of them, `http` among them: whoever follows one there makes a
#: request in the reader's name, to wherever the table's log says.
_STORES = frozenset(
    {
        "",
        "file",
        "memory",
        "s3",
        "s3a",
        "s3n",
        "gs",
        "gcs",
        "az",
        "azure",
        "abfs",
        "abfss",
        "wasb",
        "wasbs",
        "hdfs",
        "viewfs",
    }
)

#: Folders above that of a file elsewhere, one of which must hold something for the file to be gone.
_ABOVE = 3


def locate(store: Store, open_store: Callable[[str], Store], address: str) -> tuple[Store, str]:
    """The store of a file, and the file's path in it.

    Args:
        store: The table's objects.
        open_store: From a URL to its store.
        address: The file's address, with a scheme.

    Raises:
        CorruptTable: The address names no file, or a file of this machine though the table lies elsewhere
            (`path-escapes-root`).
        UnsupportedFeature: No store here can reach it (`unreachable-file`).
    """
    inside = paths.relative_to(store.url, address)
    if inside is not None:
        return store, inside
    ensure_same_side(store.url, address)
    try:
        directory, name = paths.split_file(address)
    except InvalidRequest as error:
        raise CorruptTable(error.message, code="malformed-path", path=address) from None
    try:
        return open_store(directory), name
    except InvalidRequest as error:
        raise UnsupportedFeature(
            f"the table names a file that cannot be reached from here: {error.message}",
            code="unreachable-file",
            path=address,
            hint=error.hint,
        ) from None


def ensure_same_side(root: str, address: str) -> None:
    """A table in an object store cannot mean this machine's disk: whoever reads it would be made to open own files.

    Raises:
        CorruptTable: `path-escapes-root`.
        UnsupportedFeature: The address is of a kind of store that is neither the table's own nor one that holds tables
            (`unreachable-file`).
    """
    if not paths.is_absolute(address):
        return
    if not paths.is_near(root) and paths.is_near(address):
        raise CorruptTable(
            f"a table that is not on this machine names a file of this machine: {address!r}",
            code="path-escapes-root",
            path=address,
            hint="the log was tampered with, or the table was copied from a local disk by a shallow clone",
        )
    scheme = paths.split_url(address).scheme
    if scheme not in _STORES and scheme != paths.split_url(root).scheme:
        raise UnsupportedFeature(
            f"the table names a file at {scheme}:, where no table's files are looked for: {address!r}",
            code="unreachable-file",
            path=address,
            hint="the log was tampered with, or the file was registered by a tool of its own: copy it into the table",
        )


def ensure_all_same_side(root: str, addresses: pa.ChunkedArray) -> None:
    """`ensure_same_side` of many files: each kind of store that they name is looked at once.

    Args:
        root: Of the table.
        addresses: Of its files; relative ones, and those of the table's own file system, name no store.

    Raises:
        CorruptTable: `path-escapes-root`.
        UnsupportedFeature: `unreachable-file`.
    """
    schemes = pc.struct_field(pc.extract_regex(addresses, r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):/"), "scheme")
    for scheme in pc.unique(schemes).drop_null().to_pylist():
        first = pc.index(schemes, scheme).as_py()
        ensure_same_side(root, addresses[first].as_py())


class Mounts:
    """Which places of files elsewhere are there at all: a disk that is not mounted has no files either.

    Args:
        open_store: From a URL to its store.
    """

    def __init__(self, open_store: Callable[[str], Store]) -> None:
        self._open_store = open_store
        self._holds: dict[str, bool] = {}

    def has(self, address: str) -> bool:
        """Whether anything is found near a file."""
        directory = paths.split_file(address)[0]
        for _ in range(_ABOVE):
            if directory not in self._holds:
                self._holds[directory] = self._holds_something(directory)
            if self._holds[directory]:
                return True
            above, slash, _name = directory.rstrip("/").rpartition("/")
            if not slash or above.endswith((":", "/")) or not above:
                return False
            directory = above
        return False

    def _holds_something(self, directory: str) -> bool:
        try:
            return next(iter(self._open_store(directory).list_tree("")), None) is not None
        except AlluviumError:
            return False
