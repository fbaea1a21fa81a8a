from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vacuumed_tables import mask_first_file, overwritten

from alluvium.delta.log.names import commit_path
from alluvium.delta.log.segment import list_log
from alluvium.delta.terms.spec import DELETION_VECTOR
from alluvium.delta.upkeep.vacuum.versions import (
    ADDED,
    EVENTS,
    RECORDED,
    REMOVED,
    FileHistory,
    named_by,
    read_events,
    read_file_history,
)
from alluvium.errors import CorruptTable


def history(events: list[tuple[int, int, str]], count: int, starts: tuple[int, ...] = ()) -> FileHistory:
    rows = [{"version": v, "kind": k, "path": p, "size": 1, "deletionVector": None} for v, k, p in events]
    known = pa.array([True] * count).to_numpy(zero_copy_only=False)
    return FileHistory("file:/t", 0, known, starts, pa.Table.from_pylist(rows, schema=EVENTS))


_EVENTS = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from([ADDED, REMOVED, RECORDED]), st.sampled_from(["a", "b", "c"])),
    max_size=25,
)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(_EVENTS, st.sets(st.sampled_from(["a", "b", "c", "d"])), st.sets(st.integers(1, 7)))
def test_versions_need_the_files_that_are_live_in_them(
    events: list[tuple[int, int, str]], gone: set[str], starts: set[int]
) -> None:
    """Beside the plainest way: version by version, a set of live files."""
    live: set[str] = set()
    expected = []
    for version in range(8):
        if version in starts:
            live = set()
        for kind in (REMOVED, ADDED):
            paths = {p for v, k, p in events if v == version and k == kind}
            live = live - paths if kind == REMOVED else live | paths
        expected.append(bool(live & gone))
    found = history(events, 8, tuple(sorted(starts))).without(pa.array(sorted(gone), pa.string()))
    assert found.tolist() == expected


def test_events_are_read_with_sizes_and_vectors(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 0)
    vector = mask_first_file(store)
    store.put(
        commit_path(2), b'{"cdc":{"path":"_change_data/x%20y","partitionValues":{},"size":3,"dataChange":false}}\n'
    )
    events = read_events(store, list(list_log(store).commits.values()))
    assert events["version"].to_pylist() == [0, 1, 1, 2]
    assert sorted(events["kind"].to_pylist()) == [REMOVED, ADDED, ADDED, RECORDED]
    assert events["size"].to_pylist()[3] == 3
    names = named_by(events, store.url).to_pylist()
    assert {vector, "_change_data/x y"} < set(names)
    assert len(names) == 3
    assert read_events(store, []).num_rows == 0
    assert EVENTS.field("deletionVector").type == DELETION_VECTOR


def test_a_damaged_commit_is_told_with_its_line(tmp_path: Path) -> None:
    store = overwritten(tmp_path, 1)
    store.put(commit_path(1), b'{"add":{"path":1}}\n')
    with pytest.raises(CorruptTable, match="line 1"):
        read_file_history(store, list_log(store), 1)
