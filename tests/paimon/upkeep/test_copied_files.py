"""Which files a copy has, under which names, and which tables it may be of: option by option."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pyarrow as pa
import pytest
from faulty_store import FaultyStore
from paimon_rows import append, ks, make, open_target

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.commit.draft import Draft, Replaced
from alluvium.paimon.log.schema_log import list_schema_ids
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.upkeep.copy_table import Copied, copy_table
from alluvium.paimon.write.target import publish
from alluvium.plan.retry import DEFAULT_RETRY
from alluvium.storage.open import open_store
from alluvium.storage.store import Store
from alluvium.storage.stores.memory import MemoryStore


def source(**options: str) -> Store:
    store = make(f"memory://{uuid.uuid4().hex}/t", "day", **options)
    for day, k in (("a", 1), ("b", 2)):
        append(open_target(store), [{"k": k, "day": day}])
    return store


def place() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "copy")


def state(store: Store) -> Snapshot:
    return load_snapshot(store, At())


def files(store: Store) -> dict[str, int]:
    return {info.path: info.size for info in store.list_tree("") if "bucket-" in info.path}


def test_files_keep_their_names_and_how_many_came_is_told() -> None:
    store, target = source(), place()
    known = files(store)
    assert copy_table(state(store), target) == Copied(1, 2, sum(known.values()))
    assert files(target) == known
    assert copy_table(state(store), target) == Copied(1, 0, 0)
    append(open_target(store), [{"k": 3, "day": "a"}])
    (new,) = set(files(store)) - set(known)
    assert copy_table(state(store), target) == Copied(2, 1, files(store)[new])
    document = state(target).document
    assert document is not None
    assert (document.commit_kind, document.total_record_count, document.delta_record_count) == ("OVERWRITE", 3, 1)


def test_a_file_of_another_size_is_none_of_the_source() -> None:
    """An earlier copy has died midway: what has the name, and the size, is the file."""
    store, target = source(), place()
    cut, whole = sorted(files(store))
    target.put(cut, b"half")
    target.put(whole, store.get(whole))
    done = copy_table(state(store), target)
    assert (done.version, done.files, done.size_bytes) == (1, 1, files(store)[cut])
    assert files(target) == files(store) and ks(target) == [1, 2]


def test_what_lies_beside_a_file_or_elsewhere_comes_into_the_table() -> None:
    store, target, far = source(), place(), MemoryStore(uuid.uuid4().hex, "far")
    base = state(store)
    entry = base.entries.slice(0, 1).to_pylist()[0]
    whole = {**dict.fromkeys(ENTRIES.names), **entry, "key_stats_min": bytes(12), "key_stats_max": bytes(12)}
    (path,) = [path for path in files(store) if path.endswith(entry["file_name"])]
    folder = path.rpartition("/")[0]
    far.put("moved.parquet", store.get(path))
    far.put("moved.index", b"of elsewhere")
    store.put(f"{folder}/beside.parquet", store.get(path))
    store.put(f"{folder}/beside.index", b"beside")
    rows = [
        {**whole, "file_name": "beside.parquet", "extra_files": ["beside.index"]},
        {**whole, "file_name": "moved.parquet", "extra_files": ["moved.index"], "external_path": f"{far.url}/moved.parquet"},
    ]  # fmt: skip
    draft = Draft(base.schema, pa.Table.from_pylist(rows, schema=ENTRIES), Replaced(), reads=True)
    publish(store, draft, base, DEFAULT_RETRY)
    assert copy_table(state(store), target).files == 4
    names = ("beside.index", "beside.parquet", "moved.index", "moved.parquet")
    assert sorted(files(target)) == [f"{folder}/{name}" for name in names]
    assert target.get(f"{folder}/moved.index") == b"of elsewhere" and ks(target) == [1, 1]
    assert state(target).entries["external_path"].null_count == 2
    assert copy_table(state(store), target).files == 0


def test_schemas_say_nothing_of_where_the_source_is() -> None:
    store, target = source(), place()
    said = json.loads(store.get("schema/schema-0"))
    said["options"] |= {"path": "x", "branch": "main", "snapshot.num-retained.max": "77"}
    store.put("schema/schema-0", json.dumps(said).encode())
    PaimonTable.forPath(store.url).alter([SchemaChange.add_column("note", "STRING")])
    counting = FaultyStore(target)
    copy_table(state(store), counting)
    options = json.loads(target.get("schema/schema-0"))["options"]
    assert options == {key: value for key, value in said["options"].items() if key not in ("path", "branch")}
    # The newest schema last: until then it is not the table that the source is.
    put = [path for verb, path in counting.requests if verb == "put_if_absent" and path.startswith("schema/")]
    assert put == ["schema/schema-0", "schema/schema-1"] and list_schema_ids(target) == [0, 1]
    append(open_target(target), [{"k": 9, "day": "c"}])
    assert ks(target) == [1, 2, 9]


def with_options(store: Store, number: int = 0, **options: str | None) -> None:
    """Has a schema say something else of the table's options."""
    said = json.loads(store.get(f"schema/schema-{number}"))
    changed = {**said["options"], **options}
    said["options"] = {key: value for key, value in changed.items() if value is not None}
    store.put(f"schema/schema-{number}", json.dumps(said).encode())


@pytest.mark.parametrize(
    ("option", "value", "matters"),
    [
        ("deletion-vectors.enabled", "true", True),
        ("deletion-vectors.merge-on-read", "true", True),
        ("sequence.field", "k", True),
        ("sequence.field.sort-order", "descending", True),
        ("ignore-delete", "true", True),
        ("ignore-update-before", "true", True),
        ("partition.default-name", "none", True),
        ("merge-engine", "first-row", True),
        ("force-lookup", "true", True),
        ("fields.s.aggregate-function", "max", True),
        ("fields.default-aggregate-function", "max", True),
        ("fieldsx", "y", False),
        ("snapshot.time-retained", "9 h", False),
        ("file.format", "orc", False),
        ("target-file-size", "1 mb", False),
    ],
)
def test_a_copy_has_the_options_by_which_rows_are_read(option: str, value: str, matters: bool) -> None:
    store, target = source(), place()
    copy_table(state(store), target)
    before = state(store)
    with_options(target, **{option: value})
    if not matters:
        assert copy_table(before, target).files == 0
        return
    with pytest.raises(InvalidRequest) as caught:
        copy_table(before, target)
    assert (caught.value.code, caught.value.url) == ("incompatible-target", target.url)
    assert caught.value.message == f"the table there has {option} = {value}, and the source None"


@pytest.mark.parametrize("change", ["fields", "partitionKeys", "number", "buckets"])
def test_a_copy_has_the_columns_of_the_source(change: str) -> None:
    store, target = source(), place()
    copy_table(state(store), target)
    said: dict[str, Any] = json.loads(target.get("schema/schema-0"))
    if change == "fields":
        said["fields"][0]["name"] = "other"
    elif change == "partitionKeys":
        said["partitionKeys"] = ["s"]
    elif change == "buckets":
        said["options"] |= {"bucket": "2", "bucket-key": "k"}
    else:
        target.put("schema/schema-1", json.dumps({**said, "id": 1}).encode())
    target.put("schema/schema-0", json.dumps(said).encode())
    with pytest.raises(InvalidRequest) as caught:
        copy_table(state(store), target)
    assert caught.value.code == "incompatible-target"
    assert ("schema 1, and the source has none" in caught.value.message) is (change == "number")


@pytest.mark.parametrize("where", ["", "/inside", "/in/side"])
def test_a_table_is_not_copied_into_itself(where: str) -> None:
    store = source()
    within = open_store(f"{store.url}{where}")
    with pytest.raises(InvalidRequest) as caught:
        copy_table(state(store), within)
    assert caught.value.code == "incompatible-target"
    # Beside it, under a name that begins alike, there is room.
    assert copy_table(state(store), open_store(f"{store.url}2")).version == 1


@pytest.mark.parametrize("option", ["scan.fallback-branch", "scan.primary-branch"])
def test_a_table_that_shows_a_branch_is_not_copied(option: str) -> None:
    store, target = source(), place()
    PaimonTable.forPath(store.url).create_branch("b")
    with_options(store, **{option: "b"})
    with pytest.raises(UnsupportedFeature) as caught:
        copy_table(state(store), target)
    assert (caught.value.code, caught.value.features) == ("unsupported-copy", (option,))
    assert not list(target.list_tree(""))
