"""Which files roots need, and which of those of some roots no other root needs.

A state needs its manifest lists, their manifests, the index manifest with its index files, its statistics, the files
that are live in it, and those of its changelog. A changelog that outlives its snapshot needs its changelog list, or, of
tables without a producer, the files that its delta added; the lists of its state stay with it then, as Java has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import NotFound
from alluvium.paimon.files.manifest import live_entries, read_manifest_list, scan_index_manifest, scan_manifest
from alluvium.paimon.terms.spec import INDEX_ENTRIES, MANIFESTS, SCANNED_ENTRIES
from alluvium.paimon.upkeep.removal.roots import Kind, Root
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import Store

#: What tells a data file from others, and says where it lies.
COLUMNS = ("kind", "partition", "bucket", "level", "file_name", "extra_files", "external_path", "schema_id")
#: The same of an index file.
INDEX_COLUMNS = ("partition", "bucket", "file_name", "external_path")


@dataclass(frozen=True, slots=True)
class Needs:
    """What some roots need.

    Attributes:
        files: Of metadata, by their paths: lists, manifests, index manifests, statistics.
        index: Index files (`INDEX_COLUMNS`).
        data: Data and changelog files (`COLUMNS`).
    """

    files: frozenset[str]
    index: pa.Table
    data: pa.Table

    def beyond(self, others: Needs) -> Needs:
        """What is needed here and not there; files are known by their names, which are never used again."""
        known = others.data["file_name"].combine_chunks()
        data = self.data.filter(pc.invert(pc.is_in(self.data["file_name"], value_set=known)))
        indexed = others.index["file_name"].combine_chunks()
        index = self.index.filter(pc.invert(pc.is_in(self.index["file_name"], value_set=indexed)))
        return Needs(self.files - others.files, index, data)


@dataclass(slots=True)
class Reader:
    """Reads what documents name, each file once.

    Attributes:
        store: The table's objects.
        only: Names of the data files that matter, None: all. Of the others nothing is kept in memory.
        is_lenient: Whether what is gone is taken to name nothing: only where it is about to be deleted anyway. Lists of
            the states of changelogs may be gone in any case.
    """

    store: Store
    only: pa.Array | None = None
    is_lenient: bool = False
    _dangling: set[str] = field(default_factory=set)
    _lists: dict[str, pa.Table] = field(default_factory=dict)
    _entries: dict[str, pa.Table] = field(default_factory=dict)
    _index: dict[str, pa.Table] = field(default_factory=dict)

    def load(self, roots: Sequence[Root]) -> None:
        """Reads ahead, many files at once."""
        lists = {name for root in roots for name in _lists_of(root)} - self._lists.keys()
        held = {name for root in roots if not _is_state_of_changelog(root) for name in _lists_of(root)}
        self._dangling |= lists - held
        self._lists.update(self._all(sorted(lists), read_manifest_list, MANIFESTS.empty_table()))
        manifests = {n for root in roots for name in _scanned_of(root) for n in self.manifests(name)}
        self._entries.update(self._all(sorted(manifests - self._entries.keys()), self._scanned, _none()))
        index = {root.document.index_manifest for root in roots if _has_index(root)} - self._index.keys()
        names = sorted(name for name in index if name is not None)
        self._index.update(self._all(names, _index_files, _no_index()))

    def manifests(self, name: str) -> list[str]:
        """The names of the manifests of a list."""
        found: list[str] = self._lists[name]["file_name"].to_pylist()
        return found

    def entries(self, lists: Iterable[str]) -> pa.Table:
        """What manifests of lists say (`COLUMNS`), in order."""
        return pa.concat_tables([_none(), *(self._entries[n] for name in lists for n in self.manifests(name))])

    def index(self, name: str) -> pa.Table:
        """The index files of an index manifest."""
        return self._index[name]

    def names(self) -> pa.Array:
        """The names of all files that were read of, be they live or not, and of those that tell of them."""
        own = {*self._lists, *self._index, *self._entries}
        tables = pa.concat_tables([_none(), *self._entries.values()])
        index = pa.concat_tables([_no_index(), *self._index.values()])
        extra = pc.list_flatten(tables["extra_files"].combine_chunks())
        columns = [table["file_name"].combine_chunks() for table in (tables, index)]
        return pa.concat_arrays([pa.array(sorted(own), pa.string()), *columns, extra])

    def _all(
        self, names: Sequence[str], read: Callable[[Store, str], pa.Table], nothing: pa.Table
    ) -> dict[str, pa.Table]:
        def one(name: str) -> pa.Table:
            try:
                return read(self.store, name)
            except NotFound:
                if not self.is_lenient and name not in self._dangling:
                    raise
                return nothing

        return dict(zip(names, map_parallel(one, names), strict=True))

    def _scanned(self, store: Store, name: str) -> pa.Table:
        entries = scan_manifest(store, name).select(COLUMNS)
        if self.only is None:
            return entries
        return entries.filter(pc.is_in(entries["file_name"], value_set=self.only))


def needs_of(store: Store, roots: Sequence[Root], only: pa.Array | None = None, is_lenient: bool = False) -> Needs:
    """What roots need together.

    Args:
        store: The table's objects.
        roots: Whose needs.
        only: Data files that matter, by name; None: all.
        is_lenient: As of `Reader`.

    Raises:
        NotFound: A root names a manifest that is gone, and that matters.
    """
    reader = Reader(store, only, is_lenient)
    reader.load(roots)
    files: set[str] = set()
    data, index = [_none()], [_no_index()]
    for root in roots:
        files |= _metadata(root, reader)
        data.append(_data(root, reader))
        if _has_index(root) and root.document.index_manifest is not None:
            index.append(reader.index(root.document.index_manifest))
    return Needs(frozenset(files), _unique(pa.concat_tables(index)), _unique(pa.concat_tables(data)))


def dead_files(store: Store, dying: Sequence[Root], kept: Sequence[Root]) -> Needs:
    """What only dying roots need: the one answer by which files of a table are deleted.

    Raises:
        NotFound: What a kept root names is gone: then nobody knows what it needs, and nothing may be deleted.
    """
    candidates = needs_of(store, dying, is_lenient=True)
    needed = needs_of(store, kept, only=candidates.data["file_name"].combine_chunks())
    return candidates.beyond(needed)


def _is_own_changelog(root: Root) -> bool:
    """Whether the root is a changelog whose rows are in files of their own."""
    return root.kind is Kind.CHANGELOG and root.document.changelog_manifest_list is not None


def _is_state_of_changelog(root: Root) -> bool:
    """Whether it is a changelog that names the lists of its expired state alone.

    Where a table has a producer Java deletes these with the snapshot, and leaves the document of a snapshot that made
    no changelog: nobody reads anything by it.
    """
    return root.kind is Kind.CHANGELOG and root.document.changelog_manifest_list is None


def _has_index(root: Root) -> bool:
    return root.kind is not Kind.CHANGELOG and root.document.index_manifest is not None


def _lists_of(root: Root) -> list[str]:
    """The manifest lists that a root keeps."""
    document = root.document
    changelog = [] if document.changelog_manifest_list is None else [document.changelog_manifest_list]
    if _is_own_changelog(root):
        return changelog
    return [name for name in (document.base_manifest_list, document.delta_manifest_list, *changelog) if name]


def _scanned_of(root: Root) -> list[str]:
    """Those of them whose entries say which data files the root needs."""
    if _is_state_of_changelog(root):
        return [root.document.delta_manifest_list]
    return _lists_of(root)


def _metadata(root: Root, reader: Reader) -> set[str]:
    document = root.document
    lists = _lists_of(root)
    names = {*lists, *(name for one in lists for name in reader.manifests(one))}
    if _has_index(root) and document.index_manifest is not None:
        names.add(document.index_manifest)
    files = {f"manifest/{name}" for name in names}
    if root.kind is not Kind.CHANGELOG and document.statistics is not None:
        files.add(f"statistics/{document.statistics}")
    return files


def _data(root: Root, reader: Reader) -> pa.Table:
    document = root.document
    if _is_own_changelog(root):
        return _added(reader.entries(_lists_of(root)))
    if _is_state_of_changelog(root):
        return _added(reader.entries([document.delta_manifest_list]))
    live = live_entries(reader.entries([document.base_manifest_list, document.delta_manifest_list]))
    changelog = [] if document.changelog_manifest_list is None else [document.changelog_manifest_list]
    # Whoever streams reads what a snapshot has added, be it gone in the same one.
    return pa.concat_tables([live, _added(reader.entries(changelog))])


def _added(entries: pa.Table) -> pa.Table:
    return entries.filter(pc.equal(entries["kind"], 0))


def _none() -> pa.Table:
    return SCANNED_ENTRIES.empty_table().select(COLUMNS)


def _no_index() -> pa.Table:
    return INDEX_ENTRIES.empty_table().select(INDEX_COLUMNS)


def _index_files(store: Store, name: str) -> pa.Table:
    """Without what later versions of the format say: nothing is written anew."""
    return scan_index_manifest(store, name).select(INDEX_COLUMNS)


def _unique(rows: pa.Table) -> pa.Table:
    """One row a file: a file moves from level to level under its name."""
    names = rows["file_name"].combine_chunks().dictionary_encode()
    place = pa.array(np.arange(rows.num_rows))
    firsts = pa.table({"name": names.indices, "place": place}).group_by("name").aggregate([("place", "min")])
    return rows.take(firsts["place_min"])
