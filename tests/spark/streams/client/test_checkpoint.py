"""A checkpoint in Spark's form, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest
from alluvium.spark.streams.client.checkpoint import Checkpoint, open_checkpoint
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path))


def test_batches_are_begun_and_done(store: Store) -> None:
    made = open_checkpoint(store)
    assert (made.last(), made.offset(-1)) == ((-1, False), None)
    made.begin(0, '{"a":1}')
    assert (made.last(), made.offset(0)) == ((0, False), '{"a":1}')
    made.done(0)
    made.begin(1, '{"a":2}')
    again = open_checkpoint(store)
    assert (again.query, again.last(), again.offset(1)) == (made.query, (1, False), '{"a":2}')


def test_it_forgets_batches_of_long_ago(store: Store) -> None:
    made = open_checkpoint(store)
    for number in range(103):
        made.begin(number, str(number))
        made.done(number)
    assert sorted(map(int, store.list_names("offsets", ""))) == list(range(3, 103))
    assert sorted(map(int, store.list_names("commits", ""))) == list(range(3, 103))
    assert open_checkpoint(store).last() == (102, True)


def test_what_spark_wrote_is_gone_on_with(store: Store) -> None:
    store.put("metadata", b'{"id":"0d7ca5fc-5a7f-4d3c-9d1f-0a4b1f0e3c11"}')
    head = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{"spark.sql.shuffle.partitions":"2"}}'
    for number in range(11):
        store.put(f"offsets/{number}", f'v1\n{head}\n{{"n":{number}}}'.encode())
    for name in ("commits/9", "commits/10", "offsets/.10.crc", "commits/.9.crc"):
        store.put(name, b'v1\n{"nextBatchWatermarkMs":0}')
    found = open_checkpoint(store)
    assert (found.query, found.last()) == ("0d7ca5fc-5a7f-4d3c-9d1f-0a4b1f0e3c11", (10, True))
    assert found.offset(10) == '{"n":10}'


def test_two_queries_of_one_checkpoint(store: Store) -> None:
    open_checkpoint(store).begin(0, "x")
    with pytest.raises(InvalidRequest) as caught:
        open_checkpoint(store).begin(0, "x")
    assert caught.value.code == "checkpoint-taken"


@pytest.mark.parametrize(
    ("path", "data", "code"),
    [
        ("metadata", b"{", "damaged-checkpoint"),
        ("offsets/0", b"v1\n{}\na\nb", "damaged-checkpoint"),
        ("offsets/0", b"v7\n{}\na", "damaged-checkpoint"),
        ("offsets/0", b"v1\n{}", "damaged-checkpoint"),
        ("state/0/0/1.delta", b"", "stateful-stream"),
    ],
)
def test_what_cannot_be_gone_on_with(store: Store, path: str, data: bytes, code: str) -> None:
    if path != "metadata":
        store.put("metadata", b'{"id":"q"}')
    store.put(path, data)
    with pytest.raises(AlluviumError) as caught:
        open_checkpoint(store).offset(0)
    assert caught.value.code == code


def test_an_offset_that_is_missing(store: Store) -> None:
    with pytest.raises(CorruptTable):
        Checkpoint(store, "q").offset(3)
