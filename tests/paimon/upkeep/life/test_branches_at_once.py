"""Two acts on branches at once: the main one is as if one came before the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, ks, open_target

from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.storage.open import open_store
from alluvium.storage.stores.local import LocalStore


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize(
    ("act", "left"),
    [
        (lambda table: table.delete_branch("b"), {(1, 2, 3, 50)}),
        (lambda table: table.rollback_to("old"), {(1, 2), (1, 2, 3, 50)}),
    ],
    ids=["deleted", "rolled back"],
)
def test_a_branch_is_gone_on_as_while_somebody_acts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[PaimonTable], object],
    left: set[tuple[int, ...]],
    place: int,
) -> None:
    table = PaimonTable.create(str(tmp_path / "t"), pa.schema([("k", pa.int32())]))
    store = open_store(str(tmp_path / "t"))
    for k in (1, 2):
        append(open_target(store), [{"k": k}])
    table.create_tag("old")
    append(open_target(store), [{"k": 3}])
    table.create_tag("start")
    table.create_branch("b", "start")
    append(replace(open_target(store), snapshot=load_snapshot(store, At(), "b")), [{"k": 50}])
    for k in (4, 5):
        append(open_target(store), [{"k": k}])
    puts, put = [0], LocalStore.put

    def acting(self: LocalStore, path: str, data: bytes, durable: bool = True) -> None:
        put(self, path, data, durable)
        puts[0] += 1
        if puts[0] == place + 1:
            act(PaimonTable.forPath(store.url))

    monkeypatch.setattr(LocalStore, "put", acting)
    table.fast_forward("b")
    assert puts[0] > place
    assert tuple(ks(store)) in left
    append(open_target(store), [{"k": 9}])
    assert 9 in ks(store)
