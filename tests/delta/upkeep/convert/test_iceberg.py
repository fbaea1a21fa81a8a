"""Iceberg tables that are to become Delta tables: which of their states is the newest."""

from __future__ import annotations

import uuid

import pytest

from alluvium.delta.upkeep.convert.iceberg import _newest, iceberg_plan, split_metadata
from alluvium.errors import InvalidRequest
from alluvium.storage.stores.memory import MemoryStore


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/data/t", ("/data/t", None)),
        ("/data/t/metadata/v3.metadata.json", ("/data/t", "v3.metadata.json")),
        ("s3://b/t/metadata/00001-x.metadata.json", ("s3://b/t", "00001-x.metadata.json")),
        ("/a/metadata/x.metadata.json/metadata/y.metadata.json", ("/a/metadata/x.metadata.json", "y.metadata.json")),
        ("/data/t/metadata/v3.json", ("/data/t/metadata/v3.json", None)),
        ("/data/t/v3.metadata.json", ("/data/t/v3.metadata.json", None)),
        ("/data/t/metadata/a/v3.metadata.json", ("/data/t/metadata/a/v3.metadata.json", None)),
    ],
)
def test_a_path_may_name_the_state(path: str, wanted: tuple[str, str | None]) -> None:
    assert split_metadata(path) == wanted


@pytest.mark.parametrize(
    ("names", "hint", "wanted"),
    [
        (["v1", "v2", "v10"], "10", "v10"),
        (["v1", "v2", "v3", "v5"], "1", "v3"),
        (["v1", "v2.gz"], " 1\n", "v2.gz"),
        (["v1"], "7", "v7"),
        (["v1", "00001-x"], "00001-x", "00001-x"),
        (["v1", "00001-x"], "00001-x.metadata.json", "00001-x"),
        (["00001-x"], None, "00001-x"),
        (["00001-x", "00002-y"], None, None),
        (["v1", "00002-y"], "1", None),
        (["v1", "v٣"], "1", None),
    ],
)
def test_the_newest_state(names: list[str], hint: str | None, wanted: str | None) -> None:
    store = MemoryStore(str(uuid.uuid4()), "t")
    files = [f"{name}.metadata.json" for name in names]
    store.put("metadata/other.avro", b"")
    if hint is not None:
        store.put("metadata/version-hint.text", hint.encode())
    if wanted is not None:
        assert _newest(store, files) == f"{wanted}.metadata.json"
        return
    with pytest.raises(InvalidRequest) as caught:
        _newest(store, files)
    assert caught.value.code == "ambiguous-state" and files[-1] in (caught.value.hint or "")


def test_no_such_table() -> None:
    store = MemoryStore(str(uuid.uuid4()), "t")
    assert iceberg_plan(store) is None
    store.put("metadata/snap-1.avro", b"")
    store.put("metadata/v1.metadata.json.crc", b"")
    assert iceberg_plan(store) is None
