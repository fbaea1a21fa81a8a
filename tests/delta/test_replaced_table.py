"""The commit loop on the Delta log: a draft lands on the table that it was made for, or nowhere."""

from __future__ import annotations

import pytest
from plain_writer import commit_rows, open_target

from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CommitConflict
from alluvium.storage.stores.memory import MemoryStore


@pytest.mark.parametrize("versions", [2, 3])
def test_a_table_that_was_made_anew_gets_no_rows_of_the_old_one(request: pytest.FixtureRequest, versions: int) -> None:
    store = MemoryStore(request.node.name, "table")
    commit_rows(open_target(store), [1])
    late = open_target(store)
    store.delete_tree("")
    for number in range(versions):
        commit_rows(open_target(store), [10 + number])
    with pytest.raises(CommitConflict) as caught:
        commit_rows(late, [2])
    assert caught.value.code == "table-replaced"
    assert load_snapshot(store).version == versions - 1
