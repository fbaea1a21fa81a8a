"""What is said where a store fails: the same of every store."""

from __future__ import annotations

import pytest

from alluvium.errors import InvalidRequest, NotFound, StorageError
from alluvium.storage.failures import no_put_if_absent, not_found, storage_error, store_unreachable

URL = "s3a://bucket/t"


def test_what_is_not_there() -> None:
    error = not_found(URL, "d/x")
    assert isinstance(error, NotFound)
    assert (error.code, error.url, error.path) == ("file-not-found", URL, "d/x") and "'d/x'" in str(error)


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("No space left", "No space left"),
        (OSError("first line\nsecond line"), "first line"),
        (ValueError("  padded \n"), "padded"),
        (ValueError(""), "ValueError"),
        (ValueError("\nonly a second line"), "ValueError"),
    ],
    ids=repr,
)
def test_reasons_are_a_line_or_the_kind_of_failure(cause: object, said: str) -> None:
    errors = [storage_error("write", URL, "d/x", cause), storage_error("write", URL, "d/x", cause, "try again")]
    assert [error.hint for error in errors] == [None, "try again"]
    for error in errors:
        assert isinstance(error, StorageError)
        assert (error.code, error.url, error.path) == ("storage", URL, "d/x")
        assert error.message == f"could not write 'd/x': {said}"
    if isinstance(cause, Exception):
        unreachable = store_unreachable("read", URL, "d/x", cause)
        assert (unreachable.code, unreachable.url, unreachable.path) == ("store-unreachable", URL, "d/x")
        assert unreachable.message.startswith("could not read 'd/x'") and unreachable.message.endswith(f": {said}")
        assert all(name in (unreachable.hint or "") for name in ("timeout", "max_retries", "retry_timeout_s"))


def test_who_accepts_lost_commits_may_write_all_the_same() -> None:
    error = no_put_if_absent(URL, "log/0.json", "it has no links")
    assert isinstance(error, InvalidRequest)
    assert (error.code, error.url, error.path) == ("no-put-if-absent", URL, "log/0.json")
    assert "it has no links" in error.message and "'allow_unsafe_put': 'true'" in (error.hint or "")
