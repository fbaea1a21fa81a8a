"""What snapshots, tags and changelogs need, of random histories beside plain sets; and which files go with some of them."""

from __future__ import annotations

import random
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from alluvium.errors import NotFound
from alluvium.paimon.files.manifest_write import EMPTY_ROW, format_index_manifest, format_manifest, format_manifest_list
from alluvium.paimon.terms.spec import ENTRIES, INDEX_ENTRIES, MANIFESTS, SnapshotDocument
from alluvium.paimon.upkeep.removal.needs import Needs, Reader, dead_files, needs_of
from alluvium.paimon.upkeep.removal.roots import Kind, Root
from alluvium.storage.stores.memory import MemoryStore

ADDED, DELETED = 0, 1


@dataclass
class Needed:
    """Paths of metadata, names of data files, and of index files."""

    files: set[str] = field(default_factory=set)
    data: set[str] = field(default_factory=set)
    index: set[str] = field(default_factory=set)

    def add(self, other: Needed) -> None:
        self.files |= other.files
        self.data |= other.data
        self.index |= other.index

    def beyond(self, other: Needed) -> Needed:
        return Needed(self.files - other.files, self.data - other.data, self.index - other.index)


def found(needs: Needs) -> Needed:
    data, index = (rows["file_name"].to_pylist() for rows in (needs.data, needs.index))
    assert len(set(data)) == len(data) and len(set(index)) == len(index), "one row a file"
    return Needed(set(needs.files), set(data), set(index))


class History:
    """Commits one after the other: each adds and deletes files, some tell how rows changed, or have an index."""

    def __init__(self, lot: random.Random, commits: int) -> None:
        self.lot, self.store = lot, MemoryStore(str(uuid.uuid4()), "t")
        self.documents: list[SnapshotDocument] = []
        self.needs: dict[tuple[int, Kind], Needed] = {}
        self.entries: dict[str, list[tuple[int, str]]] = {}
        live: set[str] = set()
        before: list[str] = []
        for number in range(1, commits + 1):
            new = [f"data-{number}-{n}" for n in range(lot.randint(1, 3))]
            gone = lot.sample(sorted(live), lot.randint(0, len(live)))
            live = (live - set(gone)) | set(new)
            own = self.manifest([(DELETED, name) for name in gone] + [(ADDED, name) for name in new])
            self.commit(number, live, before, own, new)
            before = [*before, own]

    def commit(self, number: int, live: Collection[str], before: Sequence[str], own: str, new: Collection[str]) -> None:
        base, delta = self.list_of(before), self.list_of([own])
        state = Needed({f"manifest/{name}" for name in (base, delta, own, *before)}, set(live))
        told = Needed({f"manifest/{name}" for name in (base, delta, own, *before)}, set(new))
        said: dict[str, Any] = {}
        if self.lot.random() < 0.5:
            names = [f"changelog-{number}-{n}" for n in range(2)]
            manifest = self.manifest([(ADDED, names[0]), (DELETED, names[1])])
            said["changelog_manifest_list"] = of_changes = self.list_of([manifest])
            told = Needed({f"manifest/{of_changes}", f"manifest/{manifest}"}, {names[0]})
            state.add(told)
        if self.lot.random() < 0.5:
            index = [f"index-{number}-{n}" for n in range(2)]
            said["index_manifest"] = name = f"index-manifest-{number}"
            rows = [{"kind": 0, "partition": EMPTY_ROW, "bucket": 0, "index_type": "HASH", "file_name": one,
                     "file_size": 4, "row_count": 1} for one in index]  # fmt: skip
            table = pa.Table.from_pylist(rows, schema=INDEX_ENTRIES)
            self.store.put(f"manifest/{name}", format_index_manifest(table, "null"))
            state.add(Needed({f"manifest/{name}"}, set(), set(index)))
        if self.lot.random() < 0.5:
            said["statistics"] = f"stat-{number}"
            state.add(Needed({f"statistics/stat-{number}"}))
        self.documents.append(SnapshotDocument(number, 0, base, delta, "user", number, "APPEND", 0, **said))
        self.needs |= {(number, Kind.SNAPSHOT): state, (number, Kind.TAG): state, (number, Kind.CHANGELOG): told}

    def manifest(self, entries: Sequence[tuple[int, str]]) -> str:
        name = f"manifest-{len(self.entries)}"
        self.entries[name] = list(entries)
        rows = [
            {**dict.fromkeys(ENTRIES.names), "kind": kind, "partition": EMPTY_ROW, "bucket": 0, "total_buckets": 1,
             "file_name": file, "file_size": 1, "row_count": 1, "min_key": EMPTY_ROW, "max_key": EMPTY_ROW,
             "stats_min": EMPTY_ROW, "stats_max": EMPTY_ROW, "key_stats_min": EMPTY_ROW, "key_stats_max": EMPTY_ROW,
             "min_sequence_number": 0, "max_sequence_number": 0, "schema_id": 0, "level": 0,
             "extra_files": [f"{file}.index"]}
            for kind, file in entries
        ]  # fmt: skip
        self.store.put(f"manifest/{name}", format_manifest(pa.Table.from_pylist(rows, schema=ENTRIES), "null"))
        return name

    def list_of(self, manifests: Sequence[str]) -> str:
        name = f"manifest-list-{uuid.uuid4()}"
        rows = [
            {**dict.fromkeys(MANIFESTS.names), "file_name": one, "file_size": self.store.head(f"manifest/{one}").size,
             "num_added_files": 1, "num_deleted_files": 0, "schema_id": 0, "partition_min": EMPTY_ROW,
             "partition_max": EMPTY_ROW, "partition_nulls": []}
            for one in manifests
        ]  # fmt: skip
        self.store.put(f"manifest/{name}", format_manifest_list(pa.Table.from_pylist(rows, schema=MANIFESTS), "null"))
        return name

    def root(self, kind: Kind, number: int) -> Root:
        return Root(kind, "main", f"{kind.value}/{kind.value}-{number}", self.documents[number - 1])

    def some_roots(self) -> list[tuple[Kind, int]]:
        every = [(kind, document.id) for kind in Kind for document in self.documents]
        return self.lot.sample(every, self.lot.randint(0, 5))

    def expected(self, roots: Sequence[tuple[Kind, int]]) -> Needed:
        needed = Needed()
        for kind, number in roots:
            needed.add(self.needs[number, kind])
        return needed


@pytest.mark.parametrize("seed", range(4))
def test_random_histories(seed: int) -> None:
    history = History(random.Random(seed), 5)
    for _ in range(8):
        some, others = history.some_roots(), history.some_roots()
        roots, kept = ([history.root(*one) for one in ones] for ones in (some, others))
        assert found(needs_of(history.store, roots)) == history.expected(some)
        dead = dead_files(history.store, roots, kept)
        assert found(dead) == history.expected(some).beyond(history.expected(others))
        # With all that says where a file and its sidecars lie.
        for row in dead.data.select(["file_name", "extra_files", "bucket"]).to_pylist():
            assert row == {"file_name": row["file_name"], "extra_files": [f"{row['file_name']}.index"], "bucket": 0}


def test_of_data_files_those_alone_are_kept_in_memory_that_matter() -> None:
    history = History(random.Random(1), 3)
    live = sorted(history.expected([(Kind.SNAPSHOT, 3)]).data)
    roots = [history.root(Kind.SNAPSHOT, 3)]
    assert found(needs_of(history.store, roots, pa.array([live[0], "other"]))).data == {live[0]}
    assert found(needs_of(history.store, roots, pa.array([], pa.string()))).data == set()


def test_what_is_gone_names_nothing_where_it_is_about_to_be_deleted() -> None:
    history = History(random.Random(2), 4)
    document = history.documents[3]
    roots = [history.root(Kind.SNAPSHOT, 4)]
    history.store.delete(f"manifest/{document.delta_manifest_list}")
    with pytest.raises(NotFound):
        needs_of(history.store, roots)
    left = found(needs_of(history.store, roots, is_lenient=True))
    assert f"manifest/{document.base_manifest_list}" in left.files
    assert not any(name.startswith("data-4") for name in left.data)


@pytest.mark.parametrize("kind", [Kind.CHANGELOG, Kind.SNAPSHOT])
def test_lists_of_the_states_of_changelogs_alone_may_be_gone(kind: Kind) -> None:
    history = History(random.Random(3), 6)
    number = next(one.id for one in history.documents if one.changelog_manifest_list is None and one.id > 1)
    history.store.delete(f"manifest/{history.documents[number - 1].base_manifest_list}")
    roots = [history.root(kind, number)]
    if kind is Kind.CHANGELOG:
        assert found(needs_of(history.store, roots)).data == history.expected([(kind, number)]).data
        # Another root needs the same list.
        roots.append(history.root(Kind.TAG, number))
    with pytest.raises(NotFound):
        needs_of(history.store, roots)


def test_all_names_that_were_read_of() -> None:
    history = History(random.Random(5), 5)
    document = history.documents[4]
    reader = Reader(history.store)
    reader.load([history.root(Kind.SNAPSHOT, 5)])
    lists = [document.base_manifest_list, document.delta_manifest_list, document.changelog_manifest_list]
    manifests = {name for one in lists if one is not None for name in reader.manifests(one)}
    # Those of files that are deleted as well: whoever deletes looks no closer.
    data = {name for manifest in manifests for _, name in history.entries[manifest]}
    wanted = {*(one for one in lists if one is not None), *manifests, *data, *(f"{name}.index" for name in data)}
    if document.index_manifest is not None:
        wanted |= {document.index_manifest, "index-5-0", "index-5-1"}
    assert set(reader.names().to_pylist()) == wanted
