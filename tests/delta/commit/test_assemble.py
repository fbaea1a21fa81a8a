"""The entry that becomes of a draft: where it stands, and what it says of how it came."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from delta_values import make_config, make_draft, make_files, removal_of

from alluvium.delta.commit.assemble import assemble
from alluvium.delta.commit.draft import Draft
from alluvium.delta.features.feature import CommitContext
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import Author, Operation, ReadScope

FILE = make_files({"path": "a"})


def context(config: TableConfig | None = None, version: int = 5) -> CommitContext:
    config = config or make_config()
    return CommitContext(config=config, before=config, version=version, now_ms=123)


def info(draft: Draft, found: CommitContext | None = None) -> dict[str, Any]:
    first = json.loads(assemble(draft, found or context()).data.splitlines()[0])
    told: dict[str, Any] = first["commitInfo"]
    return told


def test_all_that_is_said_in_its_order() -> None:
    operation = Operation("MERGE", {"predicate": "[]"}, {"n": "7"}, Author("tests", "a note"))
    draft = replace(make_draft(Actions(added=FILE), read_version=4), operation=operation)
    found = info(draft)
    assert list(found.items()) == [
        ("timestamp", 123), ("operation", "MERGE"), ("operationParameters", {"predicate": "[]"}), ("readVersion", 4),
        ("isolationLevel", "Serializable"), ("isBlindAppend", True), ("operationMetrics", {"n": "7"}),
        ("userMetadata", "a note"), ("engineInfo", "tests"), ("txnId", draft.txn_id),
    ]  # fmt: skip
    assert info(replace(draft, operation=replace(operation, user_metadata="mine")))["userMetadata"] == "mine"
    assert "userMetadata" not in info(replace(draft, operation=replace(operation, engine="plain")))
    assert make_draft(Actions()).txn_id != make_draft(Actions()).txn_id


@pytest.mark.parametrize("version", [0, 5, 10**12])
def test_an_entry_has_the_name_of_its_version(version: int) -> None:
    entry = assemble(make_draft(Actions(added=FILE)), context(version=version))
    assert (entry.version, entry.path) == (version, f"_delta_log/{version:020d}.json")
    assert [next(iter(json.loads(line))) for line in entry.data.splitlines()] == ["commitInfo", "add"]


@pytest.mark.parametrize(
    ("name", "read", "said"),
    [("WRITE", 0, 0), ("WRITE", 7, 7), ("WRITE", -1, None), ("CONVERT", -1, -1), ("CONVERT", 3, 3)],
)
def test_which_version_a_commit_has_read(name: str, read: int, said: int | None) -> None:
    draft = replace(make_draft(Actions(), read_version=read), operation=Operation(name))
    assert info(draft).get("readVersion") == said


@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
@pytest.mark.parametrize(
    "name",
    ["Empty Commit", "COMPUTE STATS", "REORG", "OPTIMIZE", "Deletion Vector Tombstones", "ROW TRACKING BACKFILL",
     "ROW TRACKING UNBACKFILL", "VACUUM START", "VACUUM END", "WRITE", "DELETE", "optimize"],
)  # fmt: skip
def test_what_changes_no_rows_says_a_weaker_isolation(name: str, level: str) -> None:
    config = make_config(properties={"delta.isolationLevel": level})
    found = info(replace(make_draft(Actions()), operation=Operation(name)), context(config))
    assert found["isolationLevel"] == (level if name in ("WRITE", "DELETE", "optimize") else "SnapshotIsolation")


@pytest.mark.parametrize(
    ("read", "removes", "blind"),
    [
        (ReadScope.nothing(), False, True),
        (ReadScope.nothing(), True, False),
        (ReadScope.table(), False, False),
        (ReadScope.rows(parse_predicate("id = 1", make_config().schema)), False, False),
    ],
)
def test_what_is_a_blind_append(read: ReadScope, removes: bool, blind: bool) -> None:
    actions = Actions(added=FILE, removed=removal_of(FILE) if removes else Actions().removed)
    assert info(make_draft(actions, read))["isBlindAppend"] is blind


def test_features_have_their_say() -> None:
    """What a table of appends alone forbids is not written; what features say of a commit stands in its entry."""
    config = make_config(properties={"delta.appendOnly": "true"})
    with pytest.raises(InvalidRequest):
        assemble(make_draft(Actions(removed=removal_of(FILE))), context(config))
    told = info(make_draft(Actions(added=FILE, info={"tags": {"k": "v"}, "timestamp": 9})))
    assert (told["tags"], told["timestamp"]) == ({"k": "v"}, 123)
