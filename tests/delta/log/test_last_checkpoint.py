"""`_last_checkpoint`. Specification: "Last Checkpoint File", "JSON checksum"."""

from __future__ import annotations

import hashlib
import uuid

import msgspec
import pytest

from alluvium.delta.log.last_checkpoint import (
    canonical_json,
    format_last_checkpoint,
    json_checksum,
    publish_last_checkpoint,
    read_last_checkpoint,
)
from alluvium.delta.log.names import LAST_CHECKPOINT_PATH
from alluvium.delta.terms.spec import LastCheckpoint
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "table")


def test_the_sample_of_the_specification() -> None:
    """ "Given the following test sample JSON, a correct implementation of JSON canonicalization should produce the
    corresponding canonicalized form and checksum value" """
    sample = {
        "k0": "'v 0'", "checksum": "adsaskfljadfkjadfkj",
        "k1": {"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]},
    }  # fmt: skip
    assert json_checksum(sample) == "6a92d155a59bf2eecbd4b4ec7fd1f875"
    del sample["checksum"]
    assert canonical_json(sample) == (
        '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,'
        '"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"'
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": True, "a": None}, '"a"=null,"b"=true'),
        ({"a": 3.25}, '"a"=3.25'),
        ({"aZ9-._~": "aZ9-._~"}, '"aZ9-._~"="aZ9-._~"'),
        ({"a": "ü>/\n"}, '"a"="%C3%BC%3E%2F%0A"'),
        ({"b": {"y": None, "x": "https://delta.io"}, "a": 10}, '"a"=10,"b"+"x"="https%3A%2F%2Fdelta.io","b"+"y"=null'),
    ],
)
def test_canonical_forms(value: dict[str, object], expected: str) -> None:
    assert canonical_json(value) == expected


def test_what_is_written_is_read(store: MemoryStore) -> None:
    last = LastCheckpoint(version=3, size=9, parts=2, size_in_bytes=100, num_of_add_files=5)
    assert publish_last_checkpoint(store, last)
    read = read_last_checkpoint(store)
    assert read is not None
    assert msgspec.structs.replace(read, checksum=None) == last


def test_a_newer_pointer_is_left_alone(store: MemoryStore) -> None:
    publish_last_checkpoint(store, LastCheckpoint(version=3, size=9))
    assert not publish_last_checkpoint(store, LastCheckpoint(version=2, size=9))
    assert read_last_checkpoint(store).version == 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.replace(b'"size":9', b'"size":8'),
        lambda data: data.replace(b'"version":3', b'"version":4'),
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: b"[]",
    ],
)
def test_a_pointer_that_was_changed_is_no_hint(store: MemoryStore, damage) -> None:
    """ "Last checkpoint file readers are encouraged to validate the checksum, if present" """
    data = format_last_checkpoint(LastCheckpoint(version=3, size=9))
    store.put(LAST_CHECKPOINT_PATH, damage(data))
    assert read_last_checkpoint(store) is None


def test_without_a_checksum_and_with_unknown_fields_it_counts(store: MemoryStore) -> None:
    store.put(LAST_CHECKPOINT_PATH, b'{"version":3,"size":9,"v2Checkpoint":{"path":"x","sidecarFiles":[1.5]}}')
    assert read_last_checkpoint(store).version == 3


def test_a_pointer_is_moved_to_a_checkpoint_that_is_no_older(store: MemoryStore) -> None:
    for version, size, moves in ((3, 9, True), (3, 8, True), (2, 1, False), (4, 1, True)):
        last = LastCheckpoint(version=version, size=size)
        assert publish_last_checkpoint(store, last) is moves
        found = read_last_checkpoint(store)
        assert found is not None and ((found.version, found.size) == (version, size)) is moves


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (b'{"version":0,"size":1}', 0), (b'{"version":-1,"size":1}', None), (b'{"version":9223372036854775807,"size":1}', 2**63 - 1),
        (b'{"version":9223372036854775808,"size":1}', None), (b'{"version":"1","size":1}', None), (b'{"version":1}', None), (b"\xff", None),
        (b'{"version":1,"size":1,"checksum":"x"}', None), (b'{"version":1,"size":1,"checksum":null}', 1), (b"null", None),
    ],
)  # fmt: skip
def test_what_is_a_hint(store: MemoryStore, text: bytes, version: int | None) -> None:
    store.put(LAST_CHECKPOINT_PATH, text)
    found = read_last_checkpoint(store)
    assert (None if found is None else found.version) == version


def test_decimals_keep_their_digits_in_checksums(store: MemoryStore) -> None:
    """ "Numeric values (e.g. `42` or `3.14`) are their own canonical form" """
    for number in ("1.50", "1.5", "1e3", "12345678901234567890.5"):
        document = f'{{"version":3,"size":9,"x":{number}}}'
        text = f'"size"=9,"version"=3,"x"={"1E+3" if number == "1e3" else number}'
        checksum = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        store.put(LAST_CHECKPOINT_PATH, f'{document[:-1]},"checksum":"{checksum}"}}'.encode())
        assert read_last_checkpoint(store) is not None
        store.put(LAST_CHECKPOINT_PATH, f'{document[:-1]}1,"checksum":"{checksum}"}}'.encode())
        assert read_last_checkpoint(store) is None
