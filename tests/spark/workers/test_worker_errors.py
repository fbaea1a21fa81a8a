"""Errors of ours through the text of a worker's traceback. Without a JVM."""

from __future__ import annotations

import traceback

import pytest

from alluvium.errors import AlluviumError, CommitConflict, Conflict, CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.spark.workers.worker_errors import WorkerError, carried_error, carrying_errors


def text_of(error: AlluviumError) -> str:
    try:
        with carrying_errors():
            raise error
    except WorkerError:
        return "An exception was thrown\n" + traceback.format_exc() + " SQLSTATE: 38000"


@pytest.mark.parametrize(
    "error",
    [
        UnsupportedFeature("no\nsuch {thing} ü", code="some-code", features=("a", "b"), path="x/y.orc", hint="do"),
        CorruptTable("it is cut off", path="f", column="c", version=3, url="/t"),
        InvalidRequest("not so"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_back(error: AlluviumError) -> None:
    found = carried_error(text_of(error))
    assert type(found) is type(error)
    assert vars(found) == vars(error)
    assert str(found) == str(error)


def test_other_texts_carry_nothing() -> None:
    assert carried_error("alluvium.errors.CorruptTable: it is cut off") is None
    assert carried_error("alluvium-worker-error {} end-of-error") is None
    assert carried_error('alluvium-worker-error {"kind": "open", "message": "", "where": {}} end-of-error') is None
    lost = CommitConflict("lost", conflicts=[Conflict("rule", 1, None, "lost")])
    assert carried_error(text_of(lost)) is None
