"""Feeds of random histories against the difference of what is alive before and after each version."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from change_table import VECTORS, ChangeTable, changed, metadata, vector
from hypothesis import given, settings
from hypothesis import strategies as st

import alluvium
from alluvium.delta.log.read_changes import parse_changes
from alluvium.errors import CorruptTable

_ROWS = 6

#: What becomes of one file in one version: the rows that it has no more afterwards, or it is gone.
_FATES = st.none() | st.sets(st.integers(0, _ROWS - 1), max_size=_ROWS)
#: One version: the fate of some of three files; whether its changes are recorded in a `cdc` file.
_VERSIONS = st.tuples(st.dictionaries(st.integers(0, 2), _FATES, max_size=3), st.booleans())


@dataclass
class History:
    """A table and what its feed must say."""

    table: ChangeTable
    deleted: dict[int, set[int]] = field(default_factory=dict)
    expected: list[tuple[int, str, str, int]] = field(default_factory=list)

    def commit(self, fates: dict[int, set[int] | None], recorded: bool) -> None:
        actions: list[dict[str, Any]] = []
        changes: list[tuple[int, str, str]] = []
        for number, fate in fates.items():
            before = self.alive(number)
            actions += self.become(number, fate)
            after = self.alive(number)
            changes += [(n, f"v{n}", "delete") for n in sorted(before - after)]
            changes += [(n, f"v{n}", "insert") for n in sorted(after - before)]
        if recorded and changes:
            actions.append(self.table.cdc(f"{self.table.version}.parquet", changes))
        version = self.table.commit({"commitInfo": {"operation": "WRITE"}}, *actions)
        self.expected += [(*change, version) for change in changes]

    def alive(self, number: int) -> set[int]:
        deleted = self.deleted.get(number)
        return set() if deleted is None else {10 * number + n for n in set(range(_ROWS)) - deleted}

    def become(self, number: int, fate: set[int] | None) -> list[dict[str, Any]]:
        path = f"{number}.parquet"

        def described(deleted: set[int]) -> dict[str, Any]:
            return {"deletionVector": vector(deleted)} if deleted else {}

        actions = []
        if number in self.deleted:
            actions.append(self.table.remove(path, **described(self.deleted.pop(number))))
        if fate is not None:
            self.deleted[number] = fate
            ids = range(10 * number, 10 * number + _ROWS)
            actions.append(self.table.add(path, ids, **described(fate)))
        return actions


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(st.lists(_VERSIONS, min_size=1, max_size=5), st.data())
def test_a_feed_is_the_sum_of_its_versions(versions: list[tuple[dict[int, set[int] | None], bool]], data: Any) -> None:
    with tempfile.TemporaryDirectory() as root:
        history = History(ChangeTable(Path(root)))
        history.table.commit(VECTORS, metadata())
        for fates, recorded in versions:
            history.commit(fates, recorded)
        t = alluvium.open(root)
        assert changed(t.changes(0)) == sorted(history.expected)
        first = data.draw(st.integers(0, t.version))
        last = data.draw(st.integers(first, t.version))
        assert changed(t.changes(first, last)) == sorted(c for c in history.expected if first <= c[3] <= last)
        number = data.draw(st.integers(0, 2))
        low, high = 10 * number, 10 * number + 3
        where = f"id between {low} and {high} and _commit_version <> {first} and _change_type = 'delete'"
        kept = [c for c in history.expected if low <= c[0] <= high and c[3] != first and c[2] == "delete"]
        assert changed(t.changes(0, where=where)) == sorted(kept)


_COMMIT = (
    b'{"commitInfo":{"operation":"MERGE","operationMetrics":{"numTargetRowsInserted":"0"},"inCommitTimestamp":5}}\n'
    b'{"add":{"path":"a","partitionValues":{"p":null},"size":1,"modificationTime":2,"dataChange":true,"stats":"{}"}}\n'
    b'{"remove":{"path":"b","dataChange":true,"deletionVector":{"storageType":"i","pathOrInlineDv":"x",'
    b'"sizeInBytes":1,"cardinality":1}}}\n{"cdc":{"path":"c","partitionValues":{},"size":1,"dataChange":false}}\n'
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(_COMMIT) - 1), st.integers(0, 255)), max_size=4), st.integers(0, 400))
def test_damaged_commits_are_read_or_refused(flips: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(_COMMIT)
    for position, byte in flips:
        data[position] = byte
    try:
        parse_changes(bytes(data[cut:]), "p", 0)
    except CorruptTable as error:
        assert error.version == 0


def test_each_byte_of_a_commit_counts_or_not() -> None:
    """Each byte in turn is a brace: most commits are refused then, some are read, and none ends in another error."""
    outcomes = []
    for position in range(len(_COMMIT)):
        data = bytearray(_COMMIT)
        data[position] = ord("{")
        try:
            parse_changes(bytes(data), "p", 0)
            outcomes.append(True)
        except CorruptTable as error:
            assert error.version == 0
            outcomes.append(False)
    assert outcomes.count(False) > 100
    assert outcomes.count(True) > 100
    assert parse_changes(_COMMIT, "p", 0) is not None
