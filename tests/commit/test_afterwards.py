"""After a commit stands, nothing looks like a failed commit."""

from __future__ import annotations

import logging
import sys
import warnings

import pyarrow as pa
import pytest

from alluvium.commit.afterwards import afterwards
from alluvium.commit.clear import clear
from alluvium.errors import AlluviumError
from alluvium.storage.stores.memory import MemoryStore

ERRORS = [
    AlluviumError("no", code="storage"),
    pa.ArrowInvalid("no"),
    MemoryError("no"),
    RecursionError("no"),
    KeyError("no"),
]


def fail(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_an_error_of_any_kind_is_a_warning(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.warns(UserWarning, match="version 3 of x is committed, its checkpoint is not"):
        afterwards("version 3 of x", "checkpoint", lambda: fail(error))
    assert "its checkpoint is not" in caplog.text


def test_warnings_that_are_errors_are_none_here(caplog: pytest.LogCaptureFixture) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        afterwards("version 3 of x", "checkpoint", lambda: fail(ValueError("why")))
    assert "version 3 of x is committed, its checkpoint is not: why" in caplog.text


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), SystemExit(1)])
def test_who_interrupts_is_obeyed_and_told(interrupt: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(type(interrupt)) as caught:
        afterwards("version 3 of x", "checkpoint", lambda: fail(interrupt))
    assert "version 3 of x is committed, its checkpoint was interrupted" in caplog.text
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == ["version 3 of x is committed, its checkpoint was interrupted"]


def test_what_cannot_be_removed_is_litter_and_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore("clear", "t")
    for path in ("a/x", "b/x", "c"):
        store.put(path, b"")
    delete_tree = MemoryStore.delete_tree

    def refuse(self: MemoryStore, directory: str) -> None:
        if directory == "a":
            raise AlluviumError("no", code="storage")
        delete_tree(self, directory)

    monkeypatch.setattr(MemoryStore, "delete_tree", refuse)
    clear(store, "a", "b", files=["c"])
    assert [info.path for info in store.list_tree("")] == ["a/x"]
    assert "could not be removed" in caplog.text
