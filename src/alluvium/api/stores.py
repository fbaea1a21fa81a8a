"""The store of a table's URL, as callers give their access to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike

from alluvium.storage.open import open_store, path_of
from alluvium.storage.paths import is_near
from alluvium.storage.store import Store
from alluvium.storage.stores.hadoop import HadoopAccess


def storage_for(
    url: str | PathLike[str], storage_options: Mapping[str, str] | None, hadoop: Callable[[], HadoopAccess] | None
) -> Store:
    """The store of a URL, over the session's Hadoop file systems where nothing else knows the scheme.

    Args:
        url: Of the table.
        storage_options: Credentials and settings.
        hadoop: Gives access to Hadoop; only called for a URL that may need it, since it costs 50 ms.
    """
    path = path_of(url)
    access = None if hadoop is None or is_near(path) else hadoop()
    return open_store(path, storage_options, access)
