"""What every store must do, whatever is behind it."""

from __future__ import annotations

import io
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from alluvium.errors import AlluviumError, InvalidRequest, NotFound
from alluvium.storage.open import open_store
from alluvium.storage.store import LISTED, PutOutcome, Store
from alluvium.storage.stores.hadoop import HadoopStore
from alluvium.storage.stores.local import LocalStore

NAMES = [
    "part 0.parquet", "a%20b", "é", "e\u0301", "😀", "a#b", "a?b", "a:b", "a\\b", "a*b", "a'\"b", "a{[]}^`b", "a|<>b",
    "~a", "a+b&c;d=e@f", "x=%2F%3A", "..a", "日本",
]  # fmt: skip


def test_what_is_put_is_got(store: Store) -> None:
    store.put("d/x", b"one")
    assert store.get("d/x") == b"one"
    store.put("d/x", b"")
    assert store.get("d/x") == b""
    store.put("d/x", bytes(range(256)) * 5000)
    assert store.get("d/x") == bytes(range(256)) * 5000
    assert isinstance(store.get("d/x"), bytes)


def test_parts_that_nobody_knows_yet(store: Store) -> None:
    store.put_new([])
    store.put_new([("d/a", b"one"), ("e/f/b", b""), ("d/c", bytes(range(256)) * 5000)])
    assert (store.get("d/a"), store.get("e/f/b"), store.get("d/c")) == (b"one", b"", bytes(range(256)) * 5000)
    assert (store.list_names("d"), store.list_names("d", "b"), store.list_names("e"), store.list_names("no")) == (
        ["a", "c"], ["c"], [], [],
    )  # fmt: skip


def test_what_names_others_comes_behind_them(store: Store) -> None:
    assert store.put_behind([("m/a", b"one"), ("m/b", b"two")], "s/1", b"names a and b") is PutOutcome.DONE
    assert (store.get("m/a"), store.get("m/b"), store.get("s/1")) == (b"one", b"two", b"names a and b")
    # Where the name is taken the others stay: whoever tries the next name need not write them again.
    assert store.put_behind([("m/c", b"three")], "s/1", b"names c") is PutOutcome.EXISTS
    assert (store.get("s/1"), store.get("m/c"), store.list_names("s")) == (b"names a and b", b"three", ["1"])


def test_small_objects_that_change_often(store: Store) -> None:
    for text in (b"8", b"9", b"10", b"11", b"11", b"9", b"", b"0", b"x" * 100, b"x" * 99 + b"y"):
        store.put("hint", text, durable=False)
        assert store.get("hint") == text
    assert store.list_names("") == ["hint"]


@pytest.mark.parametrize("name", NAMES)
def test_every_character_of_a_path_is_kept(store: Store, name: str) -> None:
    if isinstance(store, HadoopStore) and name == "a:b":
        pytest.skip("Hadoop's checksums on file: refuse names with a colon, and HDFS refuses colons altogether")
    path = f"k={name}/{name}"
    assert store.put_if_absent(path, name.encode()) is PutOutcome.DONE
    assert store.put_if_absent(path, b"") is PutOutcome.EXISTS
    assert store.get(path) == name.encode()
    assert store.head(path).path == path
    assert [info.path for info in store.list_from(f"k={name}")] == [path]
    assert [info.path for info in store.list_from(f"k={name}", name)] == [path]
    assert [info.path for info in store.list_tree("")] == [path]
    assert store.uri(path) == f"{store.url}/{path}"
    store.delete(path)
    assert list(store.list_tree("")) == []


@pytest.mark.parametrize("size", [0, 5, (8 << 20) + 3], ids=["nothing", "little", "parts"])
def test_copies(store: Store, tmp_path: Path, size: int) -> None:
    """Within a store, and from a store of another kind."""
    if size > (8 << 20) and store.url.startswith("s3a:"):
        pytest.skip("the server of the tests takes no object in parts")
    content = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    other = open_store(tmp_path / "other")
    other.put("a b", content)
    assert store.copy_from(other, "a b", "k=ü/y%") == size
    assert store.copy_from(store, "k=ü/y%", "z/again") == size
    assert store.get("z/again") == store.get("k=ü/y%") == content
    assert sorted(info.path for info in store.list_tree("")) == ["k=ü/y%", "z/again"]
    for origin in (store, other):
        with pytest.raises(NotFound):
            store.copy_from(origin, "missing", "never")
    assert len(list(store.list_tree(""))) == 2


def test_move(store: Store) -> None:
    store.put("a/b c/x", b"one")
    store.move("a/b c/x", "k=ü/bucket-0/y%")
    assert store.get("k=ü/bucket-0/y%") == b"one"
    with pytest.raises(NotFound):
        store.get("a/b c/x")
    with pytest.raises(AlluviumError):
        store.move("a/b c/x", "k=ü/z")
    assert [info.path for info in store.list_tree("k=ü")] == ["k=ü/bucket-0/y%"]


def test_ranges(store: Store) -> None:
    store.put("x", b"0123456789")
    assert store.get_range("x", 2, 3) == b"234"
    assert store.get_range("x", 0, 10) == b"0123456789"
    assert store.get_range("x", 8, 100) == b"89"
    assert store.get_range("x", 10, 5) == b""
    assert store.get_range("x", 99, 5) == b""
    assert store.get_range("x", 3, 0) == b""


def test_head(store: Store) -> None:
    store.put("d/x", b"12345")
    info = store.head("d/x")
    assert (info.path, info.size) == ("d/x", 5)
    assert abs(info.modified_ms / 1000 - time.time()) < 60 or store.url.startswith("s3a:")  # that server's clock stands
    assert store.list_from("d") == [info]


@pytest.mark.parametrize("path", ["x", "d/x"])
def test_a_missing_object_is_not_found(store: Store, path: str) -> None:
    for read in (
        lambda: store.get(path),
        lambda: store.get_range(path, 0, 1),
        lambda: store.head(path),
        lambda: store.open_input(path).read(),
    ):
        with pytest.raises(NotFound) as caught:
            read()
        assert caught.value.path == path
        assert caught.value.url == store.url


def test_a_directory_is_no_object(store: Store) -> None:
    store.put("d/x", b"")
    for read in (store.get, lambda path: store.open_input(path).read()):
        with pytest.raises(AlluviumError):
            read("d")


def test_a_conditional_put_never_replaces(store: Store) -> None:
    assert store.put_if_absent("_log/0.json", b"first") is PutOutcome.DONE
    assert store.put_if_absent("_log/0.json", b"second") is PutOutcome.EXISTS
    assert store.get("_log/0.json") == b"first"
    assert [info.path for info in store.list_tree("")] == ["_log/0.json"]


def test_a_directory_is_not_made_anew_where_that_is_not_wanted(store: Store) -> None:
    assert store.put_if_absent("_log/0.json", b"0", makes_directory=True) is PutOutcome.DONE
    assert store.put_if_absent("_log/1.json", b"1", makes_directory=False) is PutOutcome.DONE
    assert store.get("_log/1.json") == b"1"
    store.delete_tree("_log")
    if isinstance(store, (LocalStore, HadoopStore)):
        with pytest.raises(NotFound) as caught:
            store.put_if_absent("_log/2.json", b"2", makes_directory=False)
        assert caught.value.path == "_log/2.json"
        assert list(store.list_tree("")) == []
    else:
        assert store.put_if_absent("_log/2.json", b"2", makes_directory=False) is PutOutcome.DONE


def test_of_many_conditional_puts_at_once_one_is_done(store: Store) -> None:
    if isinstance(store, HadoopStore):
        pytest.skip("no atomic rename on file:, hence allow_unsafe_put")
    for version in range(5):
        with ThreadPoolExecutor(16) as pool:
            outcomes = list(pool.map(lambda n: store.put_if_absent(f"{version}", b"%d" % n), range(16)))  # noqa: B023
        assert sorted(outcome.value for outcome in outcomes) == ["done"] + ["exists"] * 15
        assert store.get(f"{version}") == b"%d" % outcomes.index(PutOutcome.DONE)


def test_listing_a_directory(store: Store) -> None:
    for path in ("l/b", "l/a", "l/c", "l/ab", "l/sub/x", "l/B", "l2/x", "l/a.é", "top"):
        store.put(path, b"1")
    assert [info.path for info in store.list_from("l")] == ["l/B", "l/a", "l/a.é", "l/ab", "l/b", "l/c"]
    assert [info.path for info in store.list_from("l/", "ab")] == ["l/ab", "l/b", "l/c"]
    assert [info.path for info in store.list_from("l", "b")] == ["l/b", "l/c"]
    assert [info.path for info in store.list_from("l", "bb")] == ["l/c"]
    assert store.list_from("l", "d") == []
    assert [info.path for info in store.list_from("")] == ["top"]
    assert store.list_from("nowhere") == []
    assert store.list_from("l/a") == []


def test_listing_from_a_log_name(store: Store) -> None:
    names = [f"{version:020}.json" for version in (8, 9, 10, 11, 99, 100)]
    for name in [*names, f"{10:020}.checkpoint.parquet", "_last_checkpoint", ".tmp", "_sidecars/x.parquet"]:
        store.put(f"_delta_log/{name}", b"{}")
    found = [info.path.removeprefix("_delta_log/") for info in store.list_from("_delta_log", f"{10:020}")]
    assert found == [f"{10:020}.checkpoint.parquet", *names[2:], "_last_checkpoint"]


def test_listing_a_tree(store: Store) -> None:
    paths = {"a/b/c/x", "a/b/y", "a/z", "w", ".hidden/v"}
    for path in paths:
        store.put(path, b"12")
    assert {info.path for info in store.list_tree("")} == paths
    assert {info.path for info in store.list_tree("a/b")} == {"a/b/c/x", "a/b/y"}
    assert {info.size for info in store.list_tree("")} == {2}
    assert list(store.list_tree("nowhere")) == []


def test_deleting(store: Store) -> None:
    for path in ("a/b/x", "a/y", "ab/z"):
        store.put(path, b"")
    store.delete("a/y")
    store.delete("a/y")
    store.delete("no/such")
    assert {info.path for info in store.list_tree("")} == {"a/b/x", "ab/z"}
    store.delete_tree("a")
    store.delete_tree("a")
    assert [info.path for info in store.list_tree("")] == ["ab/z"]


def test_parquet_is_read_through_open_input(store: Store) -> None:
    table = pa.table({"a": range(100_000), "b": [str(n) for n in range(100_000)]})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=10_000)
    store.put("x.parquet", buffer.getvalue())
    with store.open_input("x.parquet") as file:
        assert file.size() == len(buffer.getvalue())
        parquet = pq.ParquetFile(file)
        assert parquet.read_row_group(7, ["b"]).column("b").to_pylist() == table["b"].to_pylist()[70_000:80_000]
        assert parquet.read().equals(table)


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/x", "a\0b"])
def test_paths_stay_below_the_root(store: Store, path: str) -> None:
    for act in (
        store.get,
        store.head,
        store.open_input,
        store.delete,
        store.delete_tree,
        store.list_from,
        lambda path: list(store.list_tree(path)),
        lambda path: store.put(path, b""),
        lambda path: store.put_if_absent(path, b""),
        lambda path: store.get_range(path, 0, 1),
    ):
        with pytest.raises(InvalidRequest):
            act(path)


def test_a_tree_is_listed_as_columns_without_what_is_skipped(store: Store) -> None:
    for path in ("top", "_top", "a b/c%20d/é", "a b/_x/gone", "_x/gone", "only/_x/gone", "k=ü/1", "k=ü/2"):
        store.put(path, path.encode())
    found = pa.Table.from_batches(store.list_columns("", lambda name: name == "_x"), LISTED)
    files = found.filter(pc.invert(found["is_directory"]))
    kept = {"top", "_top", "a b/c%20d/é", "k=ü/1", "k=ü/2"}
    assert set(files["path"].to_pylist()) == kept
    assert dict(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True))["a b/c%20d/é"] == 12
    times = {info.path: info.modified_ms for info in store.list_tree("")}
    assert all(
        times[path] == ms for path, ms in zip(*(files[n].to_pylist() for n in ("path", "modified_ms")), strict=True)
    )
    directories = set(found.filter(found["is_directory"])["path"].to_pylist())
    assert directories in (set(), {"a b", "a b/c%20d", "only", "k=ü"})
    below = pa.Table.from_batches(store.list_columns("a b", lambda name: False), LISTED)
    assert {p for p in below["path"].to_pylist() if p.count("/") == 2} == {"a b/c%20d/é", "a b/_x/gone"}
    assert pa.Table.from_batches(store.list_columns("none", lambda name: False), LISTED).num_rows == 0


def test_what_lies_beside_a_single_directory_is_listed_as_columns(store: Store) -> None:
    for path in ("top", "a/x", "a/b/y"):
        store.put(path, b"")
    found = pa.Table.from_batches(store.list_columns("", lambda name: False), LISTED)
    assert set(found.filter(pc.invert(found["is_directory"]))["path"].to_pylist()) == {"top", "a/x", "a/b/y"}


def test_many_are_deleted_together(store: Store) -> None:
    for n in range(30):
        store.put(f"d e/x{n}%", b"")
    store.delete_all([f"d e/x{n}%" for n in range(29)] + ["d e/never", "none/never"])
    store.delete_all([])
    assert [info.path for info in store.list_tree("")] == ["d e/x29%"]


def test_only_an_empty_directory_is_removed(store: Store) -> None:
    store.put("d/e/x", b"")
    assert not store.remove_directory("d/e")
    assert not store.remove_directory("none")
    assert store.get("d/e/x") == b""
    store.delete("d/e/x")
    has_directories = pa.Table.from_batches(store.list_columns("", lambda name: False), LISTED).num_rows > 0
    assert store.remove_directory("d/e") is has_directories
    assert store.remove_directory("d") is has_directories
