"""Folders that a streaming query of Spark has written into: its own log says which files count."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from alluvium.delta.upkeep.convert.folders import list_folders
from alluvium.errors import AlluviumError
from alluvium.storage.open import open_store
from alluvium.storage.paths import encode_uri_path
from alluvium.storage.store import Store
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore(uuid.uuid4().hex, "/t %ü")
    for path in ("p=a%2Fb/1", "p=a%2Fb/2", "p=x/3", "p=x/4", "p=x/stray"):
        made.put(path, b"12345")
    return made


def say(store: Store, batch: str, *paths: str, root: str | None = None, action: str = "add") -> None:
    """A batch as Spark writes it."""
    lines = [
        {"path": encode_uri_path(f"{root or store.url}/{path}"), "size": 5, "isDir": False, "modificationTime": 1,
         "blockReplication": 1, "blockSize": 9, "action": action}
        for path in paths
    ]  # fmt: skip
    store.put(f"_spark_metadata/{batch}", "\n".join(["v1", *map(json.dumps, lines)]).encode())


def counted(store: Store, within: list[str] | None = None, by_sink_log: bool = True) -> list[str]:
    found: list[str] = list_folders(store, ["p"], within, by_sink_log).files["path"].to_pylist()
    return found


def test_what_no_batch_names_does_not_count(store: MemoryStore) -> None:
    say(store, "0", "p=a%2Fb/1")
    say(store, "1")
    say(store, "2", "p=x/3", "p=a%2Fb/2")
    store.put("_spark_metadata/.2.crc", b"x")
    store.put("_spark_metadata/.3.5f0e.tmp", b"v1")
    assert counted(store) == ["p=a%2Fb/1", "p=a%2Fb/2", "p=x/3"]
    assert counted(store, within=["p=x"]) == ["p=x/3"]
    assert len(counted(store, by_sink_log=False)) == 5


def test_a_compacted_batch_stands_for_those_before_it(store: MemoryStore) -> None:
    say(store, "8", "p=x/stray")
    say(store, "9.compact", "p=a%2Fb/1", "p=a%2Fb/2")
    say(store, "10", "p=x/3", "p=x/4")
    say(store, "11", "p=x/4", action="delete")
    assert counted(store) == ["p=a%2Fb/1", "p=a%2Fb/2", "p=x/3"]


def test_a_folder_is_found_under_its_other_names(tmp_path: Path) -> None:
    folder, link = tmp_path / "a %20ü", tmp_path / "link"
    (folder / "p=x").mkdir(parents=True)
    (folder / "p=x" / "1").write_bytes(b"12345")
    link.symlink_to(folder)
    for number, root in enumerate((f"file://{folder}", f"file:{link}", str(folder))):
        say(open_store(folder), str(number), "p=x/1", root=root)
    for place in (folder, link):
        assert counted(open_store(place)) == ["p=x/1"]


@pytest.mark.parametrize(
    ("batches", "code"),
    [
        ({"1": "v1"}, "damaged-sink-log"), ({"0": "v1", "2": "v1"}, "damaged-sink-log"), ({"0": "v2\n"}, "damaged-sink-log"),
        ({"0": ""}, "damaged-sink-log"), ({"0": "v1\n{"}, "damaged-sink-log"), ({"0": 'v1\n{"size":1}'}, "damaged-sink-log"),
        ({"0": 'v1\n{"path":"file:/elsewhere/p=x/3"}'}, "not-convertible"), ({"0": 'v1\n{"path":"gone:/x"}'}, "not-convertible"),
        ({"0": 'v1\n{"path":"%s/p=x/9"}'}, "missing-file"), ({"0": "v1"}, "no-parquet-files"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_refused(store: MemoryStore, batches: dict[str, str], code: str) -> None:
    for batch, text in batches.items():
        store.put(f"_spark_metadata/{batch}", text.replace("%s", encode_uri_path(store.url)).encode())
    with pytest.raises(AlluviumError) as caught:
        counted(store)
    assert caught.value.code == code
