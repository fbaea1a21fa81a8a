"""Rows of keys are numbered before they are committed: who comes later may have the lower numbers, and would be older."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, compacted, full, open_target, stage

import alluvium
from alluvium.errors import CommitConflict
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import Append, Committed, Overwrite, ReadScope, Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SCHEMA = pa.schema([("k", pa.int32()), ("s", pa.string()), ("p", pa.string())])
OLD = {1: "old", 2: "old"}


def make(path: Path, **options: str) -> Store:
    store = open_store(str(path / "t"))
    PaimonTable.create(store.url, SCHEMA, ["p"], ["p", "k"], options={"bucket": "1", **options})
    append(open_target(store), some(OLD))
    return store


def some(values: Mapping[int, str], p: str = "a") -> list[dict[str, Any]]:
    return [{"k": k, "s": s, "p": p} for k, s in values.items()]


def rows(store: Store, p: str = "a") -> dict[int, str]:
    found = alluvium.open(store.url).to_arrow().to_pylist()
    return {row["k"]: row["s"] for row in found if row["p"] == p}


def reading(target: PaimonTarget, values: Mapping[int, str], p: str = "a") -> Committed:
    """UPDATE, MERGE: rows made of those that are there."""
    staged = stage(target, some(values, p))
    assert isinstance(staged, Append)
    return target.commit(replace(staged, read=ReadScope.table()))


def overwriting(target: PaimonTarget, values: Mapping[int, str], reads: bool = False) -> Committed:
    staged = stage(target, some(values), Replace(dynamic=True))
    assert isinstance(staged, Overwrite)
    return target.commit(replace(staged, read=ReadScope.table()) if reads else staged)


def foreign(store: Store, **said: Any) -> None:
    """The newest snapshot as others would have left it."""
    version = load_snapshot(store).version
    known = json.loads(store.get(f"snapshot/snapshot-{version}"))
    del known["properties"]
    store.put(f"snapshot/snapshot-{version}", json.dumps({**known, **said}).encode())


def late_append(store: Store, target: PaimonTarget, values: Mapping[int, str]) -> str | None:
    """Which rule was broken."""
    before = rows(store)
    try:
        append(target, some(values))
    except CommitConflict as error:
        assert rows(store) == before
        return error.code
    return None


def test_a_row_is_not_older_than_an_update_that_did_not_see_it(tmp_path: Path) -> None:
    store = make(tmp_path)
    late = open_target(store)
    reading(open_target(store), {1: "updated", 2: "updated"})
    assert late_append(store, late, {2: "late"}) == "concurrent-numbers"
    append(open_target(store), some({2: "late"}))
    assert rows(store) == {1: "updated", 2: "late"}


def test_what_has_lower_numbers_is_no_matter(tmp_path: Path) -> None:
    store = make(tmp_path)
    late = open_target(store)
    reading(open_target(store), {1: "elsewhere"}, p="b")
    # Of a bucket that is compacted all rows have numbers that it had before.
    compacted(open_target(store), full(load_snapshot(store)), [])
    assert late_append(store, late, {1: "late"}) is None
    assert rows(store) == {1: "late", 2: "old"}


@pytest.mark.parametrize("reads", [False, True], ids=["blind", "of its own rows"])
def test_a_row_is_not_older_than_an_overwrite(tmp_path: Path, reads: bool) -> None:
    """What comes in the place of all rows is numbered from 0."""
    store = make(tmp_path)
    late = open_target(store)
    overwriting(open_target(store), dict.fromkeys(range(5), "overwritten"), reads)
    assert late_append(store, late, {4: "late"}) == "concurrent-numbers"


def test_few_rows_of_an_overwrite_are_older_anyway(tmp_path: Path) -> None:
    store = make(tmp_path)
    late = open_target(store)
    overwriting(open_target(store), {1: "overwritten", 3: "overwritten"})
    assert late_append(store, late, {1: "late"}) is None
    assert rows(store) == {1: "late", 3: "overwritten"}


def test_two_that_have_read_nothing(tmp_path: Path) -> None:
    store = make(tmp_path)
    late = open_target(store)
    append(open_target(store), some({1: "first"}))
    assert late_append(store, late, {1: "late", 2: "late"}) is None
    assert rows(store) == {1: "late", 2: "late"}


@pytest.mark.parametrize(
    ("said", "rule"),
    [({}, "concurrent-numbers"), ({"commitIdentifier": 7}, None), ({"commitKind": "COMPACT"}, None)],
    ids=["batch", "stream", "compaction"],
)
def test_others_do_not_say_what_they_read(tmp_path: Path, said: dict[str, Any], rule: str | None) -> None:
    store = make(tmp_path)
    late = open_target(store)
    append(open_target(store), some({1: "first"}))
    foreign(store, **said)
    assert late_append(store, late, {1: "late"}) == rule


@pytest.mark.parametrize("values", [{1: "first"}, {}], ids=["higher numbers", "nothing"])
def test_commits_that_have_expired(tmp_path: Path, values: dict[int, str]) -> None:
    store = make(tmp_path)
    late = open_target(store)
    append(open_target(store), some(values) + some({1: "elsewhere"}, p="b"))
    append(open_target(store), some({2: "elsewhere"}, p="b"))
    for number in (1, 2):
        store.delete(f"snapshot/snapshot-{number}")
    store.put("snapshot/EARLIEST", b"3")
    assert late_append(store, late, {1: "late"}) == ("concurrent-numbers" if values else None)


def test_tables_without_keys_number_when_they_commit(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "t"))
    PaimonTable.create(store.url, SCHEMA, ["p"], options={"bucket": "1", "bucket-key": "k"})
    append(open_target(store), some(OLD))
    late = open_target(store)
    reading(open_target(store), {1: "more"})
    assert late_append(store, late, {3: "late"}) is None
    assert "properties" not in json.loads(store.get(f"snapshot/snapshot-{load_snapshot(store).version}"))
