"""Errors on their way out learn which table they are about."""

from __future__ import annotations

from alluvium.errors import AlluviumError
from alluvium.storage.store import Store


class locating:
    """Adds the table, and the version or snapshot where known, to errors that pass."""

    def __init__(self, store: Store, version: int | None) -> None:
        self._url = store.url
        self._version = version

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, AlluviumError):
            error.url = error.url or self._url
            error.version = self._version if error.version is None else error.version
