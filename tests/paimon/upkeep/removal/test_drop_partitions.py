"""Partitions that are dropped: one commit takes all files of them, whoever writes meanwhile."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pyarrow as pa
import pytest
from paimon_rows import append, ks, make, open_target

from alluvium.errors import CommitConflict, InvalidRequest
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.upkeep.removal.drop_partitions import drop_partitions
from alluvium.plan.retry import RetryPolicy
from alluvium.storage.store import Store


def table_of(*days: str | None, **options: str) -> Store:
    """A table with a row a day, numbered in their order."""
    store = make(f"memory://{uuid.uuid4()}/t", "day", **options)
    append(open_target(store), [{"k": n, "s": f"s{n}", "day": day} for n, day in enumerate(days)])
    return store


def state(store: Store) -> Snapshot:
    return load_snapshot(store, At())


def of(*days: str | None) -> Callable[[pa.Table], list[int]]:
    return lambda values: [at for at, day in enumerate(values["day"].to_pylist()) if day in days]


def test_they_go_by_one_overwrite() -> None:
    store = table_of("a", "b", None, "")
    done = drop_partitions(state(store), of("a", None))
    after = state(store)
    assert (done.version, done.attempts, after.version) == (2, 1, 2)
    assert after.document is not None and after.document.commit_kind == "OVERWRITE"
    # Null and empty text share a directory, and are two partitions.
    assert ks(store) == [1, 3]
    assert after.document.total_record_count == 2


def test_of_none_nothing_is_committed() -> None:
    store = table_of("a")
    assert drop_partitions(state(store), of("z")).attempts == 0
    assert state(store).version == 1


def test_a_table_without_partitions() -> None:
    store = make(f"memory://{uuid.uuid4()}/t")
    with pytest.raises(InvalidRequest) as caught:
        drop_partitions(state(store), of("a"))
    assert caught.value.code == "no-partitions"


def test_what_comes_to_them_meanwhile_goes_too() -> None:
    store = table_of("a", "b")
    before = state(store)
    append(open_target(store), [{"k": 7, "s": "s", "day": "a"}, {"k": 8, "s": "s", "day": "b"}])
    assert drop_partitions(before, of("a")).version == 3
    assert ks(store) == [1, 8]


def test_whoever_always_loses_says_so() -> None:
    store = table_of("a")
    asked = []

    def choose(values: pa.Table) -> list[int]:
        asked.append(values.num_rows)
        append(open_target(store), [{"k": 9, "s": "s", "day": "a"}])
        return [0]

    with pytest.raises(CommitConflict):
        drop_partitions(state(store), choose, RetryPolicy(max_repeats=2))
    assert len(asked) == 3
