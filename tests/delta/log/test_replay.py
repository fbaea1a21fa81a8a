from __future__ import annotations

import uuid
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alluvium.delta.log.names import commit_path
from alluvium.delta.log.read import ORDER
from alluvium.delta.log.replay import reconcile
from alluvium.delta.log.segment import list_segment
from alluvium.delta.log.state import advance, load_state
from alluvium.delta.terms.canonical_paths import canonical_paths
from alluvium.delta.terms.spec import FILES, Add, CommitInfo
from alluvium.storage.stores.memory import MemoryStore

Key = tuple[str, str | None, int | None]

PATHS = st.sampled_from(["a", "b", "dir/c", "ü/д", "s p"])
VECTORS = st.sampled_from([(None, None), ("v", None), ("v", 1), ("v", 10), ("w", 1)])
# (is an add, path, vector, offset, size): of one commit a key may stand once as add and once as remove.
ACTIONS = st.tuples(st.booleans(), PATHS, VECTORS, st.integers(0, 2**62))
COMMITS = st.lists(st.lists(ACTIONS, max_size=6, unique_by=lambda a: (a[0], a[1], a[2])), min_size=1, max_size=8)


def replayed(commits: list) -> tuple[dict[Key, int], set[Key]]:
    """ "scan all file actions and keep only the newest reference for each logical file" """
    newest: dict[Key, tuple[bool, int]] = {}
    for commit in commits:
        for is_add, path, (vector, offset), size in commit:
            newest[(path, vector, offset)] = (is_add, size)
    return (
        {key: size for key, (is_add, size) in newest.items() if is_add},
        {key for key, (is_add, _) in newest.items() if not is_add},
    )


def keys(table: pa.Table) -> list[Key]:
    found = []
    for row in table.to_pylist():
        vector = row["deletionVector"]
        found.append((row["path"], vector and vector["pathOrInlineDv"], vector and vector["offset"]))
    return found


@pytest.mark.long
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commits=COMMITS, data=st.data())
def test_replay_equals_the_model_however_the_log_is_split(log, commits: list, data) -> None:
    log = replace(log, store=MemoryStore(uuid.uuid4().hex, "t"))
    for version, commit in enumerate(commits):
        actions = [
            log.add(path, vector, offset) if is_add else log.remove(path, vector, offset)
            for is_add, path, (vector, offset), size in commit
        ]
        sized = [
            Add(**{**{f: getattr(a, f) for f in a.__struct_fields__}, "size": raw[3]}) if isinstance(a, Add) else a
            for a, raw in zip(actions, commit, strict=True)
        ]
        log.commit(version, [CommitInfo({}), *(log.head() if version == 0 else []), *sized])
    last = len(commits) - 1
    checkpoint = data.draw(st.none() | st.integers(0, last), label="checkpoint")
    loaded = data.draw(st.integers(checkpoint or 0, last), label="loaded, then advanced")
    if checkpoint is not None:
        log.checkpoint(checkpoint)
        for version in range(data.draw(st.integers(0, checkpoint), label="cleaned")):
            log.store.delete(commit_path(version))

    state = load_state(log.store, list_segment(log.store, loaded), lambda protocol: None)
    assert state.segment.checkpoint_version == checkpoint
    if loaded < last:
        _, state = advance(log.store, state.segment, state, lambda protocol: None)

    live, removed = replayed(commits)
    assert sorted(keys(state.files), key=repr) == sorted(live, key=repr)
    assert dict(zip(keys(state.files), state.files.column("size").to_pylist(), strict=True)) == live
    assert sorted(keys(state.tombstones), key=repr) == sorted(removed, key=repr)


def test_the_same_file_with_another_vector_is_another_logical_file(log) -> None:
    """ "it is **legal** for the same `path` to occur in an `add` action and a `remove` action, but with two
    different `dvId`s" """
    log.commit(0, [*log.head(), log.add("a")])
    log.commit(1, [log.remove("a"), log.add("a", "v", 1)])
    assert keys(log.load().files) == [("a", "v", 1)]
    assert keys(log.load().tombstones) == [("a", None, None)]
    log.commit(2, [log.add("a", "v", 5), log.remove("a", "v", 1)])
    assert keys(log.load().files) == [("a", "v", 5)]


def test_an_add_again_replaces_statistics(log) -> None:
    """ "statistics and other information from the latest version should replace that from any previous version" """
    log.commit(0, [*log.head(), log.add("a", stats='{"numRecords":1}')])
    log.commit(1, [log.add("a", stats='{"numRecords":2}')])
    assert log.load().files.column("stats").to_pylist() == ['{"numRecords":2}']


def test_a_file_added_again_is_no_tombstone(log) -> None:
    """ "a logical file cannot exist in both the `remove` and `add` collections at the same time" """
    log.commit(0, [*log.head(), log.add("a")])
    log.commit(1, [log.remove("a")])
    log.commit(2, [log.add("a")])
    assert (log.load().files.num_rows, log.load().tombstones.num_rows) == (1, 0)
    assert log.load(1).tombstones.num_rows == 1


@pytest.mark.parametrize(
    ("added", "removed"),
    [
        ("/some/path", "file:///some/path"),
        ("/some/path", "file:/some/path"),
        ("p%20q/a", "p q/a"),
        ("p=a%2525b/x", "p=a%25%32%35b/x"),
        ("p=%C3%BC/x", "p=ü/x"),
        ("f%20g", "f g"),
    ],
)
def test_two_spellings_of_one_file(log, added: str, removed: str) -> None:
    """ "The path is a URI [...] which needs to be decoded to get the data file path." """
    log.commit(0, [*log.head(), log.add(added), log.add("other")])
    log.commit(1, [log.remove(removed)])
    assert log.paths() == {"other"}


def test_paths_that_only_look_alike_stay_apart() -> None:
    paths = pa.array(["a b", "a+b", "a%2520b", "a%20c", "s3://b/x", "/b/x", "b/x", "x%FF", "x%FE"])
    assert len(set(canonical_paths(paths).to_pylist())) == len(paths)


def test_values_that_are_rare_in_logs(log) -> None:
    log.commit(
        0,
        [
            *log.head(),
            log.add("a", tags={"ü": None, "k": ""}, base_row_id=7),
            log.add("b"),
            log.add("c", "v", 3, tags={}, clustering_provider="liquid"),
        ],
    )
    state = log.load()
    state.files.validate(full=True)
    rows = {row["path"]: row for row in state.files.to_pylist()}
    assert rows["a"]["tags"] == [("ü", None), ("k", "")]
    assert (rows["a"]["baseRowId"], rows["b"]["baseRowId"]) == (7, None)
    assert (rows["b"]["tags"], rows["c"]["tags"]) == (None, [])
    assert rows["a"]["deletionVector"] is None
    assert rows["c"]["deletionVector"] == {
        "storageType": "u", "pathOrInlineDv": "v", "offset": 3, "sizeInBytes": 8, "cardinality": 1,
    }  # fmt: skip


@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_part_of_a_batch(start: int) -> None:
    """Keys of one length are told apart by their bytes, where these lie in the buffer of a longer array."""
    rows = [
        {"path": path, "partitionValues": [], "size": size, "modificationTime": 1, "dataChange": True}
        for size, path in enumerate(("f0", "f1", "f2", "f2"))
    ]
    files = pa.RecordBatch.from_pylist(rows, schema=FILES)
    whole = pa.RecordBatch.from_arrays([*files.columns, pa.array(range(4))], schema=FILES.append(ORDER))
    found, _ = reconcile([], [], [whole.slice(start)], [])
    expected = [("f0", 0), ("f1", 1), ("f2", 3)][start:]
    assert list(zip(*(found.column(name).to_pylist() for name in ("path", "size")), strict=True)) == expected
