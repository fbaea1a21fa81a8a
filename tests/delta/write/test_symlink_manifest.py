"""Manifests of symbolic links: what they list, when they follow a commit, and what has none."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.api.delta.alter import Alteration
from alluvium.delta.terms.spec import FILES
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.symlink_manifest import DIRECTORY, ensure_mode, write_manifests
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore

ENABLED = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}


@pytest.fixture
def store(request: pytest.FixtureRequest) -> MemoryStore:
    return MemoryStore(request.node.name, "table")


def manifests(store: MemoryStore) -> dict[str, list[str]]:
    found = [info.path for info in store.list_tree(DIRECTORY)]
    return {path.removeprefix(DIRECTORY + "/"): store.get(path).decode().splitlines() for path in sorted(found)}


def files(store: MemoryStore, p: str | None = None) -> list[str]:
    live = load_snapshot(store).files.to_pylist()
    wanted = [f for f in live if p is None or dict(f["partitionValues"]).get("p") == p]
    return sorted(store.uri(f["path"].replace("%20", " ")) for f in wanted)


def enable(store: MemoryStore) -> None:
    Alteration(lambda: load_snapshot(store), "tests").set_properties(ENABLED)


def test_a_table_without_partitions_has_one(store: MemoryStore):
    commit_rows(open_target(store), [1])
    commit_rows(open_target(store), [2])
    write_manifests(load_snapshot(store))
    assert manifests(store) == {"manifest": files(store)}
    assert len(files(store)) == 2
    assert load_snapshot(store).version == 1


def test_partitions_have_their_own_until_they_are_gone(store: MemoryStore):
    commit_rows(open_target(store, partitioned=True), [1], p="a b/c")
    commit_rows(open_target(store), [2], p="é")
    write_manifests(load_snapshot(store))
    assert manifests(store) == {"p=a b%2Fc/manifest": files(store, "a b/c"), "p=é/manifest": files(store, "é")}
    commit_rows(open_target(store), [3], p="z", replace=Replace())
    write_manifests(load_snapshot(store))
    assert list(manifests(store)) == ["p=z/manifest"]


def test_a_table_that_wants_it_has_them_kept_up_to_date(store: MemoryStore):
    commit_rows(open_target(store, partitioned=True), [1], p="a")
    enable(store)
    assert manifests(store) == {"p=a/manifest": files(store, "a")}
    commit_rows(open_target(store), [2], p="b")
    commit_rows(open_target(store), [3], p="a")
    assert manifests(store) == {f"p={p}/manifest": files(store, p) for p in "ab"}
    commit_rows(open_target(store), [4], p="a", replace=Replace())
    assert manifests(store) == {"p=a/manifest": files(store, "a")}


def test_only_touched_partitions_are_written_again(store: MemoryStore):
    commit_rows(open_target(store, partitioned=True), [1], p="a")
    enable(store)
    store.put(f"{DIRECTORY}/p=a/manifest", b"kept\n")
    commit_rows(open_target(store), [2], p="b")
    assert manifests(store)["p=a/manifest"] == ["kept"]


def test_partitions_of_several_columns_and_files_that_lie_elsewhere(store: MemoryStore):
    commit_rows(open_target(store, partitioned=True), [1], p="a")
    snapshot = load_snapshot(store)
    shown = [
        ("a%20b/x", {"p": "a", "q": None}),
        ("./a//y", {"p": None, "q": "a"}),
        ("s3a://far/z%20z", {"p": "a", "q": ""}),
        ("file:/near/z", {"p": "a=b/c", "q": "a"}),
    ]
    paths = pa.array([path for path, _ in shown])
    values = pa.array([list(pairs.items()) for _, pairs in shown], FILES.field("partitionValues").type)
    nothing = {f.name: pa.nulls(len(shown), f.type) for f in FILES}
    columns = {**nothing, "path": paths, "partitionValues": values}
    config = replace(snapshot.config, partition_columns=("p", "q"))
    files = pa.table(columns, schema=FILES)
    write_manifests(replace(snapshot, config=config, state=replace(snapshot.state, files=files)))
    assert manifests(store) == {
        "p=a/q=__HIVE_DEFAULT_PARTITION__/manifest": sorted([store.uri("a b/x"), "s3a://far/z z"]),
        "p=__HIVE_DEFAULT_PARTITION__/q=a/manifest": [store.uri("a/y")],
        "p=a%3Db%2Fc/q=a/manifest": ["file:/near/z"],
    }


def test_an_empty_table_has_a_manifest_without_lines(store: MemoryStore):
    commit_rows(open_target(store), [])
    snapshot = load_snapshot(store)
    write_manifests(replace(snapshot, state=replace(snapshot.state, files=snapshot.files.slice(0, 0))))
    assert manifests(store) == {"manifest": []}


def test_a_commit_stands_though_its_manifest_cannot_be_written(store: MemoryStore):
    commit_rows(open_target(store), [1])
    enable(store)
    alteration = Alteration(lambda: load_snapshot(store), "tests")
    with pytest.warns(UserWarning, match="its manifest of symbolic links is not: the columns are mapped"):
        done = alteration.set_properties({"delta.columnMapping.mode": "name"})
    assert done.version == load_snapshot(store).version == 2


def test_what_other_engines_would_misread_has_none(store: MemoryStore):
    commit_rows(open_target(store), [1])
    alteration = Alteration(lambda: load_snapshot(store), "tests")
    alteration.set_properties({"delta.columnMapping.mode": "name"})
    with pytest.raises(UnsupportedFeature) as caught:
        write_manifests(load_snapshot(store))
    assert caught.value.code == "manifest-with-mapping"
    with pytest.raises(InvalidRequest) as refused:
        alteration.set_properties({**ENABLED, "delta.enableDeletionVectors": "true"})
    assert refused.value.code == "contradicting-properties"


def test_there_is_one_mode():
    ensure_mode("SYMLINK_format_manifest")
    with pytest.raises(InvalidRequest) as caught:
        ensure_mode("foo")
    assert caught.value.code == "unknown-mode"


def test_rows_that_are_deleted_by_vectors_would_come_back(store: MemoryStore):
    url = "memory://vectors-beside-manifests/t"
    alluvium.write(pa.table({"id": [1, 2, 3]}), url, **{"delta.enableDeletionVectors": "true"})
    write_manifests(load_snapshot(open_store(url)))
    alluvium.DeltaTable.forPath(url).delete("id = 2")
    with pytest.raises(UnsupportedFeature) as caught:
        write_manifests(load_snapshot(open_store(url)))
    assert (caught.value.code, caught.value.version, caught.value.url) == ("manifest-with-vectors", 1, url)
    assert "1 files" in str(caught.value) and tuple(caught.value.features) == ("deletionVectors",)
