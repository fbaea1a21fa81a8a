"""Manifests of symbolic links: what they list, when they follow a commit, and what has none."""

from __future__ import annotations

import random
import warnings
from dataclasses import replace

import pyarrow as pa
import pytest
from plain_writer import SCHEMA, commit_rows, open_target

import alluvium
from alluvium.api.delta.alter import Alteration
from alluvium.delta.description.create import new_config
from alluvium.delta.terms.spec import FILES
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.delta.write.symlink_manifest import (
    DIRECTORY,
    ensure_mode,
    keeps_manifests,
    update_manifests,
    write_manifests,
)
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


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_table_that_is_created_with_it_has_them_at_once(store: MemoryStore, partitioned: bool) -> None:
    config = new_config(SCHEMA, ["p"] if partitioned else [], ENABLED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        commit_rows(replace(open_target(store), config=config), [1])
    name = "p=a/manifest" if partitioned else "manifest"
    assert manifests(store) == {name: files(store)}
    # What is no manifest is somebody else's.
    store.put(f"{DIRECTORY}/other", b"x")
    store.put(f"{DIRECTORY}/p=gone/manifest", b"x")
    write_manifests(load_snapshot(store))
    assert manifests(store) == {name: files(store), "other": ["x"]}


def test_a_commit_that_others_have_followed_leaves_those_of_the_newest_version(store: MemoryStore) -> None:
    commit_rows(open_target(store, partitioned=True), [1], p="a")
    enable(store)
    late = open_target(store)
    commit_rows(open_target(store), [2], p="b")
    commit_rows(late, [3], p="a")
    assert manifests(store) == {f"p={p}/manifest": files(store, p) for p in "ab"}


@pytest.mark.parametrize(
    ("value", "keeps"), [("true", True), (" TRUE ", True), ("false", False), ("1", False), (None, False)]
)
def test_which_tables_want_it(value: str | None, keeps: bool) -> None:
    config = new_config(SCHEMA, [], {})
    config.metadata.configuration.update({} if value is None else dict.fromkeys(ENABLED, value))
    assert keeps_manifests(config) is keeps


def of_files(snapshot: Snapshot, columns: tuple[str, ...], rows: list[tuple[str, tuple[str | None, ...]]]) -> Snapshot:
    """The version, as if it had these files: of each its path and the values of its partition."""
    values = [list(zip(columns, row, strict=True)) for _, row in rows]
    nothing = {f.name: pa.nulls(len(rows), f.type) for f in FILES}
    told = {
        "path": pa.array([path for path, _ in rows], pa.string()),
        "partitionValues": pa.array(values, FILES.field("partitionValues").type),
    }
    config = replace(snapshot.config, partition_columns=columns)
    made = pa.table({**nothing, **told}, schema=FILES)
    return replace(snapshot, config=config, state=replace(snapshot.state, files=made))


@pytest.mark.parametrize("seed", range(8))
def test_partitions_of_any_values(store: MemoryStore, seed: int) -> None:
    """Beside a loop over the files; then some files come and go."""
    commit_rows(open_target(store), [1])
    base, lot = load_snapshot(store), random.Random(seed)
    columns = tuple("pqr"[: lot.choice([1, 2, 3])])
    spelled = {
        "a": "a",
        "b c": "b c",
        "x=y/z": "x%3Dy%2Fz",
        None: "__HIVE_DEFAULT_PARTITION__",
        "": "__HIVE_DEFAULT_PARTITION__",
    }

    def expected(rows: list[tuple[str, tuple[str | None, ...]]]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path, row in rows:
            folder = "/".join(f"{name}={spelled[value]}" for name, value in zip(columns, row, strict=True))
            found.setdefault(f"{folder}/manifest", []).append(f"{store.url}/{path}")
        return {name: sorted(paths) for name, paths in found.items()}

    def drawn(start: int) -> list[tuple[str, tuple[str | None, ...]]]:
        pool = list(spelled)
        return [(f"f{start + n}", tuple(lot.choice(pool) for _ in columns)) for n in range(lot.choice([1, 6, 20]))]

    before = drawn(0)
    write_manifests(of_files(base, columns, before))
    assert manifests(store) == expected(before)
    gone = lot.sample(before, lot.randrange(len(before) + 1))
    came = drawn(100)
    after = [row for row in before if row not in gone] + came
    newest = of_files(base, columns, after)
    update_manifests(newest, [of_files(base, columns, rows).files for rows in (came, gone)])
    assert manifests(store) == expected(after)
