"""What commits say of themselves: each member with values of every kind, of which only the usual count."""

from __future__ import annotations

from typing import Any

import pytest

from alluvium.delta.terms.properties import is_known_property
from alluvium.delta.terms.spec import CommitInfo

VALUES: list[Any] = [None, True, False, 0, 7, -1, 1.5, "", "x", [], ["x"], {}, {"a": "b"}]
TEXTS = {"operation": "operation", "engineInfo": "engine_info", "isolationLevel": "isolation_level", "txnId": "txn_id",
         "userMetadata": "user_metadata"}  # fmt: skip
NUMBERS = {"timestamp": "timestamp", "readVersion": "read_version", "inCommitTimestamp": "in_commit_timestamp"}


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_members_have_their_usual_types_or_none(value: Any) -> None:
    for name, attribute in TEXTS.items():
        assert getattr(CommitInfo({name: value}), attribute) == (value if isinstance(value, str) else None)
    for name, attribute in NUMBERS.items():
        assert getattr(CommitInfo({name: value}), attribute) == (value if type(value) is int else None)
    assert CommitInfo({"isBlindAppend": value}).is_blind_append == (value if isinstance(value, bool) else None)
    assert CommitInfo({"operationParameters": value}).operation_parameters == (value if isinstance(value, dict) else {})


def test_nothing_said() -> None:
    info = CommitInfo({"Operation": "x", "other": 1})
    assert {getattr(info, name) for name in (*TEXTS.values(), *NUMBERS.values(), "is_blind_append")} == {None}


def test_times_that_no_calendar_has() -> None:
    first, last = -62_135_596_800_000, 253_402_300_799_999
    for value, known in ((first, True), (first - 1, False), (last, True), (last + 1, False), (2**63, False)):
        assert (CommitInfo({"inCommitTimestamp": value}).in_commit_timestamp is not None) == known, value
    assert CommitInfo({"timestamp": last + 1}).timestamp == last + 1


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("mine", True), ("my.delta.x", True), ("delta.appendOnly", True), ("DELTA.APPENDONLY", True), ("delta.nothing", False),
        ("delta.constraints.c", True), ("Delta.Constraints.C", True), ("delta.feature.x", True), ("delta.features.x", False), ("delta.", False),
    ],
)  # fmt: skip
def test_names_of_properties(name: str, known: bool) -> None:
    assert is_known_property(name) is known
