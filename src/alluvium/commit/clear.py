"""Removing what a commit does not need, whatever it came to."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from alluvium.errors import AlluviumError
from alluvium.storage.store import Store

log = logging.getLogger("alluvium")


def clear(store: Store, *directories: str, files: Sequence[str] = ()) -> None:
    """Removes directories and files that no version names; what is left of them is litter.

    What came of the commit is what the caller is to be told, whether this succeeds or not.
    """
    for remove, paths in ((store.delete_tree, directories), (store.delete, files)):
        for path in paths:
            try:
                remove(path)
            except AlluviumError as error:
                log.warning("what a job has left could not be removed: %s", error)
