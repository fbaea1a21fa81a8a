from __future__ import annotations

import pytest
from faulty_store import Crash, Fault, FaultyStore, When

from alluvium.errors import AlluviumError
from alluvium.storage.store import PutOutcome
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def inner(request: pytest.FixtureRequest) -> MemoryStore:
    return MemoryStore("faults", request.node.nodeid)


def test_without_faults_it_is_the_store(inner: MemoryStore) -> None:
    store = FaultyStore(inner)
    assert store.put_if_absent("a/x", b"1") is PutOutcome.DONE
    assert store.put_if_absent("a/x", b"2") is PutOutcome.EXISTS
    assert store.get("a/x") == b"1"
    assert [info.path for info in store.list_from("a")] == ["a/x"]
    assert store.count("put_if_absent") == 2
    assert store.failed == 0


def test_a_request_lost_before_it_took_effect(inner: MemoryStore) -> None:
    store = FaultyStore(inner, Fault(2, verb="put_if_absent"))
    assert store.put_if_absent("x", b"") is PutOutcome.DONE
    assert store.put_if_absent("y", b"") is PutOutcome.UNKNOWN
    assert [info.path for info in inner.list_from("")] == ["x"]
    assert store.put_if_absent("y", b"") is PutOutcome.DONE
    assert store.failed == 1


def test_a_response_lost_after_it_took_effect(inner: MemoryStore) -> None:
    store = FaultyStore(inner, Fault(1, When.AFTER, verb="put_if_absent"), Fault(1, When.AFTER, "put", path="y"))
    assert store.put_if_absent("x", b"1") is PutOutcome.UNKNOWN
    assert inner.get("x") == b"1"
    store.put("z", b"")
    with pytest.raises(AlluviumError) as caught:
        store.put("y", b"2")
    assert caught.value.code == "storage"
    assert inner.get("y") == b"2"


def test_somebody_else_acts_at_the_moment_of_the_failure(inner: MemoryStore) -> None:
    store = FaultyStore(inner, Fault(1, verb="get", meanwhile=lambda: inner.put("x", b"theirs")))
    with pytest.raises(AlluviumError):
        store.get("x")
    assert store.get("x") == b"theirs"


def test_a_crash_is_no_exception_that_code_may_catch(inner: MemoryStore) -> None:
    store = FaultyStore(inner, Fault(3, crash=True))
    store.put("x", b"")
    store.head("x")
    with pytest.raises(Crash):
        store.delete("x")
    assert not issubclass(Crash, Exception)
    assert inner.head("x").size == 0
