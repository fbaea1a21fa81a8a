"""A state that expires while a verb reads it: the files that it alone names are gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from alluvium.errors import CommitConflict, Conflict, NotFound
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.storage.places import same_place


@contextmanager
def expiry_as_conflict(base: Snapshot) -> Iterator[None]:
    """Of what is read and committed within on a state: a file that is missing because the state has expired is a
    conflict, after which everything may be done on the newest one.

    Args:
        base: The state.

    Raises:
        CommitConflict: `"base-expired"`.
        NotFound: A file is missing that the newest state has, too, or one of another table, which rows come from.
    """
    try:
        yield
    except NotFound as error:
        if error.url is not None and same_place(error.url, base.store.url) is False:
            raise
        newest = load_snapshot(base.store, At(), base.branch, time_zone=base.time_zone)
        if (newest.version or 0) <= (base.version or 0):
            raise
        found = Conflict("base-expired", newest.version or 0, None, error.message)
        raise CommitConflict(
            f"snapshot {base.version} expired while it was read: {error.message}",
            conflicts=[found],
            code="base-expired",
            url=base.store.url,
            version=newest.version,
            path=error.path,
            hint="repeat it on the newest snapshot",
        ) from error
