"""Files that are deleted, and where they are: data with sidecars, index files, what names them; and empty folders."""

from __future__ import annotations

import logging
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.errors import InvalidRequest, NotFound, StorageError
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.spec import INDEX_ENTRIES, SCANNED_ENTRIES
from alluvium.paimon.upkeep.removal.needs import COLUMNS, INDEX_COLUMNS, Needs
from alluvium.paimon.upkeep.removal.orphans import remove_orphan_files
from alluvium.paimon.upkeep.removal.remove import Removed, remove_dead, remove_files
from alluvium.schema import types as t
from alluvium.storage.open import open_store
from alluvium.storage.store import Store
from alluvium.storage.stores.memory import MemoryStore


def schema_of(*keys: str, **options: str) -> TableSchema:
    fields = [DataField(n, name, parse_type("STRING")) for n, name in enumerate(("k", "day", "hour"))]
    return TableSchema.create(fields, keys, options=options)


def row_of(*values: str) -> bytes:
    if not values:
        return bytes(12)
    row: bytes = encode_rows([pa.array([value]) for value in values], [(t.STRING, 0)] * len(values))[0].as_py()
    return row


def needs(
    data: list[dict[str, Any]], index: list[dict[str, Any]] | None = None, files: frozenset[str] = frozenset()
) -> Needs:
    """Rows say no more than they must: the rest is of a table without partitions, in bucket 0."""
    nothing: dict[str, Any] = {"kind": 0, "bucket": 0, "level": 0, "partition": bytes(12), "schema_id": 0, "extra_files": []}  # fmt: skip
    schema, index_schema = (
        pa.schema([every.field(name) for name in names])
        for every, names in ((SCANNED_ENTRIES, COLUMNS), (INDEX_ENTRIES, INDEX_COLUMNS))
    )
    rows = [{**dict.fromkeys(COLUMNS), **nothing, **row} for row in data]
    of_index = [{**dict.fromkeys(INDEX_COLUMNS), "partition": bytes(12), "bucket": 0, **row} for row in index or []]
    return Needs(files, pa.Table.from_pylist(of_index, schema=index_schema), pa.Table.from_pylist(rows, schema=schema))


def memory() -> MemoryStore:
    return MemoryStore(str(uuid.uuid4()), "t")


def there(store: Store) -> set[str]:
    return {info.path for info in store.list_tree("")}


def test_data_goes_before_what_names_it_and_lists_last() -> None:
    store = memory()
    dead = needs(
        [{"file_name": "a", "extra_files": ["a.index", "a.blob"]}, {"file_name": "b", "bucket": 7}],
        [{"file_name": "i"}, {"file_name": "far", "external_path": "s3://far/i"}],
        frozenset({"manifest/manifest-list-1", "manifest/manifest-2", "statistics/s", "manifest/index-manifest-3"}),
    )
    wanted = (
        "bucket-0/a", "bucket-7/b", "bucket-0/a.index", "bucket-0/a.blob", "index/i",
        "manifest/index-manifest-3", "manifest/manifest-2", "statistics/s", "manifest/manifest-list-1",
    )  # fmt: skip
    for path in (*wanted, "bucket-0/c", "index/far", "manifest/manifest-4"):
        store.put(path, b"x")
    assert remove_files(store, dead, schema_of()) == Removed(wanted)
    assert there(store) == {"bucket-0/c", "index/far", "manifest/manifest-4"}


def test_sidecars_lie_beside_their_file() -> None:
    store = memory()
    rows = [
        {"file_name": f"f{n}", "partition": row_of(day), "bucket": n, "extra_files": [f"f{n}.{i}" for i in range(n)]}
        for n, day in enumerate("abc")
    ]
    found = remove_files(store, needs(rows), schema_of("day")).paths
    sidecars = ("day=b/bucket-1/f1.0", "day=c/bucket-2/f2.0", "day=c/bucket-2/f2.1")
    assert found == ("day=a/bucket-0/f0", "day=b/bucket-1/f1", "day=c/bucket-2/f2", *sidecars)


def test_index_files_beside_data() -> None:
    index = [{"file_name": "i", "partition": row_of("x"), "bucket": 3}, {"file_name": "j", "partition": row_of("y")}]
    schema = schema_of("day", **{"index-file-in-data-file-dir": "true"})
    assert remove_files(memory(), needs([], index), schema).paths == ("day=x/bucket-3/i", "day=y/bucket-0/j")
    assert remove_files(memory(), needs([], index), schema_of("day")).paths == ("index/i", "index/j")


def test_files_outside_of_the_table_stay(caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"file_name": n, "external_path": f"s3://far/{n}", "extra_files": [f"{n}.x"]} for n in ("a", "b")]
    with caplog.at_level(logging.WARNING, "alluvium"):
        assert remove_files(memory(), needs([*rows, {"file_name": "c"}]), schema_of()).paths == ("bucket-0/c",)
    assert "4 files outside of the table" in caplog.text and "s3://far/a" in caplog.text


class Batches(MemoryStore):
    """Notes which files are deleted together; some deletions fail."""

    def __init__(self, failing: dict[int, Exception]) -> None:
        super().__init__(str(uuid.uuid4()), "t")
        self.batches: list[list[str]] = []
        self._failing = failing

    def delete_all(self, paths: Any) -> None:
        self.batches.append(list(paths))
        if len(self.batches) in self._failing:
            raise self._failing[len(self.batches)]


def test_many_files_go_in_parts_and_what_cannot_be_deleted_stays(caplog: pytest.LogCaptureFixture) -> None:
    store = Batches({1: StorageError("no", code="denied"), 2: NotFound("gone", code="missing")})
    dead = needs([{"file_name": f"f{n:04}"} for n in range(1201)])
    with caplog.at_level(logging.WARNING, "alluvium"):
        found = remove_files(store, dead, schema_of()).paths
    assert [path for batch in store.batches for path in batch] == list(found) and len(found) == 1201
    assert [len(batch) for batch in store.batches] == [500, 500, 201]
    # What was gone is no news.
    assert caplog.text.count("could not be deleted") == 1


@pytest.mark.parametrize("cleans", [True, False])
def test_empty_folders_go_up_to_those_that_hold_something(tmp_path: Path, cleans: bool) -> None:
    store = open_store(str(tmp_path / "t"))
    rows = [
        {"file_name": "f", "partition": row_of(day, hour), "bucket": bucket}
        for day, hour, bucket in (("a", "1", 0), ("a", "2", 0), ("b", "1", 0), ("b", "1", 1), ("c", "1", 0))
    ]
    for row, place in zip(rows, ("a/hour=1", "a/hour=2", "b/hour=1", "b/hour=1", "c/hour=1"), strict=True):
        store.put(f"day={place}/bucket-{row['bucket']}/f", b"x")
    store.put("day=b/hour=1/bucket-1/kept", b"x")
    store.put("day=c/kept", b"x")
    store.put("day=d/hour=1/bucket-0/kept", b"x")
    options = {"snapshot.clean-empty-directories": "true"} if cleans else {}
    remove_files(store, needs(rows), schema_of("day", "hour", **options))
    folders = {str(path.relative_to(tmp_path / "t")) for path in (tmp_path / "t").rglob("*") if path.is_dir()}
    left = {"day=b", "day=b/hour=1", "day=b/hour=1/bucket-1", "day=c", "day=d", "day=d/hour=1", "day=d/hour=1/bucket-0"}
    assert left <= folders and (folders == left) is cleans


def test_of_no_roots_nothing_goes() -> None:
    """Not even the schema is asked for."""
    assert remove_dead(memory(), []) == Removed(())


#: Beside the table's own files: what is called nearly as they are, or lies nearly there.
OURS = [
    "manifest/manifest-1", "manifest/x", "index/i", "statistics/s", "_staging/a/b/c", "snapshot/.snapshot-1.tmp",
    "snapshot/snapshot-", "snapshot/snapshot-1.bak", "changelog/x", "branch/branch-b/snapshot/x",
    "branch/branch-b/changelog/x", "data/day=1/hour=/bucket-0/f", "data/day=a b/hour=2/bucket-postpone/f",
]  # fmt: skip
OTHERS = [
    "x", "manifest/a/b", "index/a/b", "statistics/a/b", "_staging", "snapshot/a/b", "notes/x", "snapshot/snapshot-7",
    "snapshot/EARLIEST", "snapshot/LATEST", "changelog/changelog-12", "branch/branch-b/snapshot/LATEST",
    "branch/branch-b/changelog/changelog-3", "branch/branch-b/manifest/x", "branch/b/snapshot/x", "day=1/hour=2/bucket-0/f",
    "data/day=1/bucket-0/f", "data/hour=1/day=2/bucket-0/f", "data/day=1/hour=2/bucket-0/a/f", "data/day=1/hour=2/f",
    "data/day=1/hour=2/x/bucket-0/f", "data/bucket-0/f", "xmanifest/x", "manifestx/x", "data/day=1/hour=2/bucket-/f",
    "dataxday=1/hour=2/bucket-0/f", "tag/x", "schema/x", "consumer/x",
]  # fmt: skip


def orphaned(store: Store, schema: TableSchema, older_than_ms: int) -> list[str]:
    found = remove_orphan_files(store, schema, older_than_ms, older_than_ms + 1, dry_run=True)
    assert found.count == found.files.num_rows
    paths: list[str] = found.files["path"].to_pylist()
    return sorted(paths)


@pytest.fixture
def littered() -> tuple[MemoryStore, TableSchema, int]:
    store, schema = memory(), schema_of("day", "hour", **{"data-file.path-directory": "data"})
    for path in ("schema/schema-0", "branch/branch-b/schema/schema-0"):
        store.put(path, b"{}")
    for path in (*OURS, *(path for path in OTHERS if "-7" not in path and "-12" not in path and "-3" not in path)):
        store.put(path, b"four")
    newest = max(store.head(path).modified_ms for path in there(store))
    return store, schema, newest


def test_orphans_lie_where_a_table_has_its_own_files(littered: tuple[MemoryStore, TableSchema, int]) -> None:
    store, schema, newest = littered
    assert orphaned(store, schema, newest + 1) == sorted(OURS)
    # What is as old as the time is not older.
    oldest = min(store.head(path).modified_ms for path in OURS)
    assert orphaned(store, schema, oldest) == []
    every = there(store)
    done = remove_orphan_files(store, schema, newest + 1, newest + 2)
    assert (done.count, done.size_bytes) == (len(OURS), 4 * len(OURS))
    assert there(store) == every - set(OURS)
    assert remove_orphan_files(store, schema, newest + 1, newest + 2).size_bytes == 0


def test_files_of_a_table_without_a_folder_of_its_own_for_data(
    littered: tuple[MemoryStore, TableSchema, int],
) -> None:
    store, _, newest = littered
    plain = [path for path in OURS if not path.startswith("data/")]
    assert orphaned(store, schema_of("day", "hour"), newest + 1) == sorted([*plain, "day=1/hour=2/bucket-0/f"])
    assert orphaned(store, schema_of("hour"), newest + 1) == sorted(plain)
    for older, now in ((5, 5), (6, 5)):
        with pytest.raises(InvalidRequest) as caught:
            remove_orphan_files(store, schema_of(), older, now)
        assert caught.value.code == "invalid-retention"
