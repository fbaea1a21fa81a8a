"""Copying the files of a deep clone, many at a time, and clearing them away where nothing came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from alluvium.commit.clear import clear
from alluvium.commit.loop import NOTHING_STANDS
from alluvium.delta.upkeep.clone.copies import Copies
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import CorruptTable, NotFound
from alluvium.storage.elsewhere import locate
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import is_absolute
from alluvium.storage.progress import counting
from alluvium.storage.store import Store


@contextmanager
def copied(source: Snapshot, copies: Copies, store: Store) -> Iterator[None]:
    """Copies what is to be copied; it goes again where it, or what is done then, fails and leaves nothing standing.

    Args:
        source: The table.
        copies: Its files.
        store: Of the clone.

    Raises:
        NotFound: A file is gone (`missing-file`).
        CorruptTable: A file has another size than the log says (`wrong-file-size`).
    """
    copier = _Copier(source, store)
    try:
        # Vectors first: a data file without its own would show deleted rows.
        advance = counting("copied files", copies.vectors.num_rows + copies.data.num_rows)
        for table in (copies.vectors, copies.data):
            columns = (table.column(name).to_pylist() for name in ("origin", "place", "size"))
            map_parallel(copier.copy, zip(*columns, strict=True), advance=advance)
    except BaseException:
        clear(store, copies.folder)
        raise
    try:
        yield
    except NOTHING_STANDS:
        clear(store, copies.folder)
        raise


@dataclass(frozen=True, slots=True)
class _Copier:
    """Copies files of a table, wherever they lie."""

    source: Snapshot
    store: Store
    stores: dict[str, Store] = field(default_factory=dict)

    def copy(self, wanted: tuple[str, str, int | None]) -> None:
        """Copies a file: where it lies, where it goes, how large it is."""
        origin, place, size = wanted
        holder, path = self._located(origin)
        try:
            found = self.store.copy_from(holder, path, place)
        except NotFound as error:
            raise NotFound(
                f"a file of version {self.source.version} is gone: {origin}",
                code="missing-file",
                url=self.source.store.url,
                path=origin,
                version=self.source.version,
                hint="VACUUM may have removed it: clone a newer version; nothing was cloned",
            ) from error
        if size is not None and found != size:
            raise CorruptTable(
                f"a file of version {self.source.version} has {found} bytes, and the log says {size}: {origin}",
                code="wrong-file-size",
                url=self.source.store.url,
                path=origin,
                version=self.source.version,
                hint="it was cut short, or another file was put in its place: ask `alluvium doctor` about the source",
            )

    def _located(self, origin: str) -> tuple[Store, str]:
        if not is_absolute(origin):
            return self.source.store, origin
        return locate(self.source.store, self._opened, origin)

    def _opened(self, directory: str) -> Store:
        if directory not in self.stores:
            self.stores[directory] = self.source.open_store(directory)
        return self.stores[directory]
