"""Objects in memory: what two stores of one bucket see of each other, and what a prefix is."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from alluvium.errors import NotFound
from alluvium.storage.store import LISTED, PutOutcome
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def name() -> str:
    return uuid.uuid4().hex


def paths(store: MemoryStore, directory: str = "") -> list[str]:
    return sorted(info.path for info in store.list_tree(directory))


@pytest.mark.parametrize("root", ["", "t", "a b/t"])
def test_a_directory_is_no_prefix_of_names(name: str, root: str) -> None:
    store, bucket = MemoryStore(name, root), MemoryStore(name, "")
    for path in ("a/x", "a/b/y", "ab/z", "a", "top"):
        store.put(path, path.encode())
    bucket.put("t2/beside", b"")
    assert paths(store, "a") == ["a/b/y", "a/x"] and paths(store, "a/") == ["a/b/y", "a/x"]
    assert [path for path in paths(store) if path != "t2/beside"] == ["a", "a/b/y", "a/x", "ab/z", "top"]
    assert ("t2/beside" in paths(store)) == (root == "")
    prefix = f"{root}/" if root else ""
    assert set(paths(bucket)) == {f"{prefix}{path}" for path in ("a", "a/b/y", "a/x", "ab/z", "top")} | {"t2/beside"}
    assert store.list_names("a") == ["x"] and store.list_names("") == ["a", "top"]
    assert [info.path for info in store.list_from("a", "x")] == ["a/x"] and store.list_from("a", "xa") == []
    store.delete_tree("a")
    assert [path for path in paths(store) if path != "t2/beside"] == ["a", "ab/z", "top"]
    store.delete_tree("")
    assert paths(bucket) == ([] if root == "" else ["t2/beside"])


def test_each_object_is_another(name: str) -> None:
    store = MemoryStore(name, "t")
    store.put("x", b"1")
    first = store.head("x")
    store.put("x", b"1")
    second = store.head("x")
    assert first.identity != second.identity and first.identity and (first.path, first.size) == ("x", 1)
    # A move makes none, a copy does.
    store.move("x", "d/y")
    moved = store.head("d/y")
    assert (moved.identity, moved.modified_ms, moved.path) == (second.identity, second.modified_ms, "d/y")
    assert store.copy_from(store, "d/y", "z") == 1 and store.head("z").identity != moved.identity
    assert paths(store) == ["d/y", "z"]
    for act in (store.head, store.get, store.open_input, lambda path: store.move(path, "w")):
        with pytest.raises(NotFound) as caught:
            act("x")
        assert (caught.value.path, caught.value.url) == ("x", f"memory://{name}/t")
    assert paths(store) == ["d/y", "z"]


def test_what_is_there_stays(name: str) -> None:
    one, other = MemoryStore(name, "t"), MemoryStore(name, "t/d")
    assert one.put_if_absent("d/x", b"one") is PutOutcome.DONE
    assert other.put_if_absent("x", b"other") is PutOutcome.EXISTS
    assert other.put_behind([("y", b"2")], "x", b"3") is PutOutcome.EXISTS
    assert (one.get("d/x"), one.get("d/y")) == (b"one", b"2")
    data = bytearray(b"abc")
    one.put("kept", data)
    data[0] = 0
    assert one.get("kept") == b"abc"
    assert one.access is other.access is None and not one.remove_directory("nowhere")


def test_folders_are_skipped_below_the_one_that_is_listed(name: str) -> None:
    store = MemoryStore(name, "t")
    for path in ("_x/a/1", "_x/_x/2", "_x/3", "b/_x/4", "b/5"):
        store.put(path, b"12")

    def listed(directory: str) -> list[str]:
        found = pa.Table.from_batches(store.list_columns(directory, lambda folder: folder == "_x"), LISTED)
        assert set(found["size"].to_pylist()) <= {2} and not any(found["is_directory"].to_pylist())
        return sorted(found["path"].to_pylist())

    assert listed("_x") == listed("_x/") == ["_x/3", "_x/a/1"]
    assert listed("") == listed("b") == ["b/5"]
    assert listed("none") == []


def test_an_address_says_bucket_and_folder() -> None:
    assert [MemoryStore("name", root).url for root in ("t", "/a/b/")] == ["memory://name/t", "memory://name/a/b"]
