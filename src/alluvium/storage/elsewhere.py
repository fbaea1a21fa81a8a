"""Files that a table names outside of its own directory: what a log says of where to read is never simply obeyed."""

from __future__ import annotations

from collections.abc import Callable

from alluvium.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.storage import paths
from alluvium.storage.store import Store


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
    """
    if paths.is_absolute(address) and not paths.is_near(root) and paths.is_near(address):
        raise CorruptTable(
            f"a table that is not on this machine names a file of this machine: {address!r}",
            code="path-escapes-root",
            path=address,
            hint="the log was tampered with, or the table was copied from a local disk by a shallow clone",
        )
