"""The errors of this room, so that each store words the same failure alike."""

from __future__ import annotations

from alluvium.errors import InvalidRequest, NotFound, StorageError

#: The storage option by which a caller accepts that two writers may overwrite each other's commits.
ALLOW_UNSAFE_PUT = "allow_unsafe_put"


def not_found(url: str, path: str) -> NotFound:
    """The object is not there."""
    return NotFound(f"{path!r} does not exist", code="file-not-found", url=url, path=path)


def storage_error(what: str, url: str, path: str, cause: object, hint: str | None = None) -> StorageError:
    """The store failed to do `what` (`"read"`, `"write"`, ...) with `path`, because of `cause`."""
    reason = str(cause).partition("\n")[0].strip() or type(cause).__name__
    return StorageError(f"could not {what} {path!r}: {reason}", code="storage", url=url, path=path, hint=hint)


def store_unreachable(what: str, url: str, path: str, cause: Exception) -> StorageError:
    """The store did not answer at all, or with nothing that could be understood."""
    reason = str(cause).partition("\n")[0].strip() or type(cause).__name__
    return StorageError(
        f"could not {what} {path!r}: the store gave no answer: {reason}",
        code="store-unreachable",
        url=url,
        path=path,
        hint="check the endpoint, region and network; storage_options (timeout, max_retries, retry_timeout_s) "
        "say how long is waited",
    )


def no_put_if_absent(url: str, path: str, reason: str) -> InvalidRequest:
    """The store cannot write conditionally, hence two writers at once could destroy a commit."""
    return InvalidRequest(
        f"this storage cannot write a file only if it is absent: {reason}",
        code="no-put-if-absent",
        url=url,
        path=path,
        hint=f"if no one else ever writes to this table, pass storage_options={{'{ALLOW_UNSAFE_PUT}': 'true'}}; "
        "with two writers at once that loses commits",
    )
