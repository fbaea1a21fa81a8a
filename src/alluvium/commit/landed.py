"""Whose entry it is that stands under a name, after an answer was lost."""

from __future__ import annotations

from alluvium.errors import NotFound, StorageError
from alluvium.storage.store import Store


def landed(store: Store, path: str, data: bytes) -> bool | None:
    """Whether the entry of a log is there with these bytes: true if ours landed, false if another's stands there.

    Args:
        path: Of the entry, relative to the table.
        data: What was to be put; no other writer would put the same bytes.

    Returns:
        None if nothing is there, or the store does not say: the outcome is as open as before, and the loop counts how
        often it asks.
    """
    try:
        return store.get(path) == data
    except NotFound:
        return None
    except StorageError:
        return None
