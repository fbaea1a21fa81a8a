"""Manifest lists that were read or written a moment ago: a writer of many small commits reads those that it wrote.

They are known by their bytes, not by their names, so that what is remembered cannot be of another file.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import pyarrow as pa

#: Lists that are kept, and how large one may be.
_MOST_LISTS, _MOST_BYTES = 32, 64 << 10


class _Recent:
    """Lists by their bytes, the latest last."""

    lists: OrderedDict[bytes, pa.Table] = OrderedDict()  # noqa: RUF012 - of the process
    lock = threading.Lock()


def recall(data: bytes) -> pa.Table | None:
    """The manifests (`MANIFESTS`) of a list, if it is remembered."""
    with _Recent.lock:
        found = _Recent.lists.get(data)
        if found is not None:
            _Recent.lists.move_to_end(data)
        return found


def remember(data: bytes, manifests: pa.Table) -> None:
    """Keeps what the bytes of a list mean."""
    if len(data) > _MOST_BYTES:
        return
    with _Recent.lock:
        _Recent.lists[data] = manifests
        _Recent.lists.move_to_end(data)
        while len(_Recent.lists) > _MOST_LISTS:
            _Recent.lists.popitem(last=False)
