"""Files that a table names by address: which store they are in, and which are not looked for at all."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, NotFound
from alluvium.storage.elsewhere import Mounts, ensure_all_same_side, ensure_same_side, locate
from alluvium.storage.locating import locating
from alluvium.storage.open import open_store
from alluvium.storage.store import Store
from alluvium.storage.stores.memory import MemoryStore

NEAR = ["/data/t", "file:///data/t", "memory://m/t"]
FAR = ["s3://bucket/t", "abfss://c@account.dfs.core.windows.net/t", "hdfs://host/t"]
KNOWN = ["s3", "s3a", "s3n", "gs", "gcs", "az", "azure", "abfs", "abfss", "wasb", "wasbs", "hdfs", "viewfs"]
UNKNOWN = ["http", "https", "ftp", "webhdfs", "jdbc"]


def refusal(root: str, address: str) -> str | None:
    try:
        ensure_same_side(root, address)
    except AlluviumError as error:
        assert error.path == address
        return error.code
    return None


@pytest.mark.parametrize("root", [*NEAR, *FAR, "http://host/t"])
def test_which_addresses_are_followed(root: str) -> None:
    is_near = root.startswith(("/", "file:", "memory:"))
    own = root.partition(":")[0]
    for path in ("a.parquet", "d e/a%20b", "12:30.parquet", ""):
        assert refusal(root, path) is None
    for address in ("/etc/passwd", "file:///etc/passwd", "file:/etc/passwd"):
        assert refusal(root, address) == (None if is_near else "path-escapes-root")
    for scheme in KNOWN:
        assert refusal(root, f"{scheme}://x/f") is None
    for scheme in UNKNOWN:
        # Unless the table itself lies there.
        assert refusal(root, f"{scheme}://x/f") == (None if scheme == own else "unreachable-file")


@pytest.mark.parametrize("root", ["/data/t", "s3://bucket/t"])
def test_many_addresses_at_once(root: str) -> None:
    """As one by one: a store that is refused is found wherever it stands."""
    good = ["a.parquet", "s3://b/x", "s3://b/y", "gs://c/z", "12:30.parquet"]
    ensure_all_same_side(root, pa.chunked_array([good, good]))
    ensure_all_same_side(root, pa.chunked_array([], pa.string()))
    for bad, place in itertools.product(["http://h/f", "webhdfs://h/f"], range(len(good) + 1)):
        with pytest.raises(AlluviumError) as caught:
            ensure_all_same_side(root, pa.chunked_array([[*good[:place], bad, *good[place:]]]))
        assert (caught.value.code, caught.value.path) == ("unreachable-file", bad)
    tampered = pa.chunked_array([[*good, "file:/etc/passwd"]])
    if root.startswith("s3"):
        with pytest.raises(CorruptTable) as damaged:
            ensure_all_same_side(root, tampered)
        assert damaged.value.code == "path-escapes-root"
    else:
        ensure_all_same_side(root, tampered)


def test_where_a_file_is() -> None:
    table = MemoryStore("lake", "tables/t")
    asked: list[str] = []

    def opened(url: str) -> Store:
        asked.append(url)
        return open_store(url)

    assert locate(table, opened, "memory://lake/tables/t/d/f") == (table, "d/f")
    assert asked == []
    store, name = locate(table, opened, "memory://lake/tables/other/d e/f")
    assert (store.url, name, asked) == ("memory://lake/tables/other/d e", "f", ["memory://lake/tables/other/d e"])
    with pytest.raises(AlluviumError) as caught:
        locate(table, opened, "hdfs://host/d/f")
    assert (caught.value.code, caught.value.path) == ("unreachable-file", "hdfs://host/d/f")
    assert caught.value.hint


def test_errors_learn_which_table_they_are_about() -> None:
    store = MemoryStore("lake", "t")
    for given, wanted in (((None, None), (store.url, 7)), (("u", 0), ("u", 0)), ((None, 0), (store.url, 0))):
        with pytest.raises(NotFound) as caught, locating(store, 7):
            raise NotFound("x", code="y", url=given[0], version=given[1])
        assert (caught.value.url, caught.value.version) == wanted
    with pytest.raises(InvalidRequest) as nameless, locating(store, None):
        raise InvalidRequest("x", code="y")
    assert (nameless.value.url, nameless.value.version) == (store.url, None)
    with pytest.raises(ValueError), locating(store, 7):
        raise ValueError
    with locating(store, 7):
        pass


@pytest.mark.parametrize(
    ("lies", "asked", "found"),
    [
        # The file's folder, and two above it, are looked into.
        ("a/b/c/x", "a/b/c/f", True), ("a/b/x", "a/b/c/f", True), ("a/x", "a/b/c/f", True), ("x", "a/b/c/f", False),
        ("a/b/c/d/x", "a/b/c/f", True), ("z/x", "a/b/c/f", False), (None, "a/b/c/f", False), ("x", "a/f", True),
    ],
)  # fmt: skip
def test_a_place_is_there_where_something_lies_near(lies: str | None, asked: str, found: bool) -> None:
    name = f"mounts-{lies}-{asked}".replace("/", "-")
    if lies is not None:
        MemoryStore(name, "").put(f"disk/{lies}", b"1")
    opened: list[str] = []

    def opening(url: str) -> Store:
        opened.append(url)
        return open_store(url)

    mounts = Mounts(opening)
    assert mounts.has(f"memory://{name}/disk/{asked}") is found
    count = len(opened)
    assert 0 < count <= 3
    # What was looked into is known.
    assert mounts.has(f"memory://{name}/disk/{asked}2") is found
    assert len(opened) == count


@pytest.mark.parametrize("address", ["file:/f", "s3://bucket/f", "memory://empty-mount/f"])
def test_nothing_lies_above_a_root(address: str) -> None:
    opened: list[str] = []

    def opening(url: str) -> Store:
        opened.append(url)
        raise InvalidRequest("no such place", code="invalid-url")

    assert not Mounts(opening).has(address)
    assert len(opened) == 1


def test_what_cannot_be_asked_is_not_there() -> None:
    def opening(url: str) -> Store:
        raise NotFound("nothing", code="missing-file")

    assert not Mounts(opening).has("/mnt/a/b/c/f")


def test_a_store_that_nobody_opens_is_said() -> None:
    def opening(url: str) -> Store:
        raise InvalidRequest("no key", code="invalid-option", hint="give one")

    store = MemoryStore("elsewhere", "t")
    with pytest.raises(AlluviumError) as caught:
        locate(store, opening, "s3://bucket/x/f")
    assert (caught.value.code, caught.value.path, caught.value.hint) == (
        "unreachable-file",
        "s3://bucket/x/f",
        "give one",
    )
    with pytest.raises(CorruptTable) as damaged:
        locate(store, opening, "s3://bucket/x/")
    assert (damaged.value.code, damaged.value.path) == ("malformed-path", "s3://bucket/x/")
