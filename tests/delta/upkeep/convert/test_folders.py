"""Files of a folder and what their folders say: every shape of folder, in a store in memory."""

from __future__ import annotations

import uuid

import pytest

from alluvium.delta.upkeep.convert.folders import list_folders
from alluvium.errors import AlluviumError
from alluvium.storage.stores.memory import MemoryStore


def store(*paths: str) -> MemoryStore:
    made = MemoryStore(uuid.uuid4().hex, "/t")
    for path in paths:
        made.put(path, b"12345")
    return made


@pytest.mark.parametrize(
    ("paths", "names", "found"),
    [
        (["b", "a"], None, {"a": (), "b": ()}), (["p=1/a", "p=2/a", "p=1/b"], None, {"p=1/a": ("1",), "p=1/b": ("1",), "p=2/a": ("2",)}),
        (["p=1/q=x/a"], None, {"p=1/q=x/a": ("1", "x")}), (["p=1/q=x/a"], ["P", "Q"], {"p=1/q=x/a": ("1", "x")}),
        # Folders above and below those that are named mean nothing, and neither do others further up.
        (["x/p=1/y/a"], None, {"x/p=1/y/a": ("1",)}), (["p=1/x/q=2/a"], None, {"p=1/x/q=2/a": ("2",)}),
        (["p=a%2Fb/a", "p=x=y/a", "p=__HIVE_DEFAULT_PARTITION__/a"], None,
         {"p=__HIVE_DEFAULT_PARTITION__/a": ("__HIVE_DEFAULT_PARTITION__",), "p=a%2Fb/a": ("a%2Fb",), "p=x=y/a": ("x=y",)}),
        # What is hidden.
        (["a", "_b", ".c", "_d/e", ".f/g", "_SUCCESS"], None, {"a": ()}), (["_p=1/a", ".p=1/b"], None, {"_p=1/a": ("1",)}),
        (["_p=1/a", "_q=1/a"], ["_p"], {"_p=1/a": ("1",)}), ([".p=1/a"], [".p"], {".p=1/a": ("1",)}),
        (["_a%3Ab=1/c"], ["_a:b"], {"_a%3Ab=1/c": ("1",)}), (["a", "_delta_log/x", "_delta_log/00.crc"], None, {"a": ()}),
    ],
    ids=str,
)  # fmt: skip
def test_what_folders_say(paths: list[str], names: list[str] | None, found: dict[str, tuple[str, ...]]) -> None:
    folders = list_folders(store(*paths), names)
    listed = folders.files["path"].to_pylist()
    said = [tuple(values[number] for values in folders.values) for number in folders.folder.to_pylist()]
    assert dict(zip(listed, said, strict=True)) == found and listed == sorted(listed)
    assert folders.files["size"].to_pylist() == [5] * len(listed)
    if names is not None:
        assert folders.names == tuple(names)


def test_columns_are_named_by_the_first_file() -> None:
    assert list_folders(store("a%3Ab=1/Q=2/x", "A:b=3/q=4/y"), None).names in (("a:b", "Q"), ("A:b", "q"))


@pytest.mark.parametrize(
    ("paths", "names", "code", "path"),
    [
        ([], None, "no-parquet-files", None), (["_a"], None, "no-parquet-files", None),
        (["p=1/a", "b"], None, "partition-folders", None), (["p=1/a", "q=1/b"], None, "partition-folders", "q=1/b"),
        (["a"], ["p"], "partition-folders", "a"), (["p=1/a"], [], "partition-folders", "p=1/a"), (["p=/a"], None, "partition-folders", "p=/a"),
        (["=1/a"], None, "partition-folders", "=1/a"), (["p=1/q=/a"], None, "partition-folders", "p=1/q=/a"),
        (["q=1/p=1/a"], ["p", "q"], "partition-folders", "q=1/p=1/a"),
        (["a", "x/_delta_log/00000000000000000000.json"], None, "table-inside", "x"),
        (["a", "_delta_log/x/_delta_log/00000000000000000000.json"], None, "table-inside", "_delta_log/x"),
        (["a", "_delta_log/00000000000000000009.checkpoint.parquet"], None, "table-inside", None),
        # Tables of other formats: not all of the files that lie there are their rows.
        (["p=1/a", ".hoodie/hoodie.properties"], ["p"], "not-convertible", None),
        (["data/a", "metadata/v1.metadata.json", "metadata/b.avro"], None, "not-convertible", None),
        (["bucket-0/a", "schema/schema-0", "snapshot/LATEST"], None, "not-convertible", None),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_refused(paths: list[str], names: list[str] | None, code: str, path: str | None) -> None:
    with pytest.raises(AlluviumError) as caught:
        list_folders(store(*paths), names)
    assert caught.value.code == code and (path is None or caught.value.path == path)


@pytest.mark.parametrize(
    ("within", "found"),
    [
        (["p=1"], ["p=1/a", "p=1/x/b"]), (["p=1", "p=12"], ["p=1/a", "p=1/x/b", "p=12/c"]), (["p=1/x"], ["p=1/x/b"]), (None, 4),
        (["p=1", "p=1/x"], ["p=1/a", "p=1/x/b"]),
    ],
)  # fmt: skip
def test_some_folders_alone(within: list[str] | None, found: object) -> None:
    listed = list_folders(store("p=1/a", "p=1/x/b", "p=12/c", "p=2/d"), ["p"], within).files["path"].to_pylist()
    assert listed == found or len(listed) == found


def test_no_file_within() -> None:
    with pytest.raises(AlluviumError) as caught:
        list_folders(store("p=1/a"), ["p"], ["p=9"])
    assert caught.value.code == "no-parquet-files"
