"""Optimistic concurrency: look who committed since the base and rebase, assemble, publish if nobody did, else again.

Between the look and the put nobody waits: whoever pauses there is overtaken as often as others commit in a pause, and
beside tight writers never comes to an end.

The loop knows no format. A `CommitPort` supplies the five verbs; the loop owns their order, the retries
and the one hard question: whose entry is it, when the store's answer is lost or says "exists"?
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from alluvium.commit.afterwards import told
from alluvium.errors import (
    AlluviumError,
    CommitConflict,
    CommitUnknown,
    Conflict,
    CorruptTable,
    InvalidRequest,
    NotFound,
    UnsupportedFeature,
)
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.storage.store import PutOutcome

DraftT = TypeVar("DraftT", contravariant=True)
BaseT = TypeVar("BaseT")
WinnerT = TypeVar("WinnerT")

#: Publications of one and the same entry before an unanswering store is given up on.
_MAX_UNKNOWN = 3
#: Errors of a commit after which it is certain that nothing of ours stands, so that what was written for it may go:
#: they are raised before the put, or by a store that says clearly that it put nothing, or after the race was lost.
NOTHING_STANDS = (CommitConflict, InvalidRequest, UnsupportedFeature, CorruptTable, NotFound)
_EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Entry:
    """A log entry ready to publish.

    Attributes:
        version: The version that it would create.
        path: Where it goes, relative to the table.
        data: Its bytes; unique to this writer, so that reading them back proves who wrote them.
        parts: Objects that it names, paths and bytes, which must stand before it does; their names are nobody else's.
    """

    version: int
    path: str
    data: bytes
    parts: tuple[tuple[str, bytes], ...] = ()


class CommitPort(Protocol[DraftT, BaseT, WinnerT]):
    """What a format tells the loop. `assemble` and `conflicts` are pure; the others touch storage."""

    @property
    def url(self) -> str: ...

    def assemble(self, draft: DraftT, base: BaseT) -> Entry:
        """The entry that carries the draft onto the base. Called anew for every base: that is the rebase."""

    def publish(self, entry: Entry) -> PutOutcome:
        """Puts the entry if its place is free."""

    def landed(self, entry: Entry) -> bool | None:
        """Reads the place back: True it is ours, False it is somebody else's, None nothing is there or it cannot be
        read.
        """

    def refresh(self, base: BaseT) -> tuple[BaseT, tuple[WinnerT, ...]]:
        """The newest base, and all who committed since the old one: the base itself where there is nobody.

        Called before the first attempt, and after each that was lost. What was opened before a long job may have been
        overtaken, and the commits that overtook it may have expired: then its next place is free again, and whoever
        takes it vanishes behind newer versions.

        Raises:
            CommitConflict: It cannot be told who committed since.
            NotFound: The table is gone.
        """

    def conflicts(self, draft: DraftT, base: BaseT, winner: WinnerT) -> tuple[Conflict, ...]:
        """Why the draft may not follow the winner; () if it may."""


@dataclass(frozen=True, slots=True)
class Published(Generic[BaseT]):
    """A commit that stands: its entry, the base it was assembled on, and how many attempts it took."""

    entry: Entry
    base: BaseT
    attempts: int


def commit(
    port: CommitPort[DraftT, BaseT, WinnerT],
    draft: DraftT,
    base: BaseT,
    policy: RetryPolicy = DEFAULT_RETRY,
    sleep: Callable[[float], None] = time.sleep,
    is_current: bool = False,
) -> Published[BaseT]:
    """Commits a draft, rebasing it over winners that it does not conflict with.

    Args:
        port: The format's verbs.
        draft: What is to be committed, independent of any base.
        base: The version that the draft was made on.
        policy: How often to try.
        sleep: Waits between attempts (seconds).
        is_current: Whether the caller has made the base this moment, so that nobody need be looked for.

    Raises:
        CommitConflict: A winner's commit forbids ours, or attempts are exhausted. Nothing of ours stands.
        CommitUnknown: The store would not say. Our entry may or may not stand.
    """
    delays = policy.delays_s()
    attempts = 1
    if not is_current:
        base = _rebase(port, draft, base, attempts)
    while True:
        entry = port.assemble(draft, base)
        try:
            is_published = _publish(port, entry)
        except (KeyboardInterrupt, SystemExit) as interrupt:
            told(interrupt, f"interrupted while version {entry.version} of {port.url} was committed: it may stand")
            raise
        if is_published:
            return Published(entry, base, attempts)
        delay = next(delays, None)
        if delay is not None:
            sleep(delay)
        # Before giving up, too: who won, and with what, says more than that all attempts were lost.
        base = _rebase(port, draft, base, attempts)
        if delay is None:
            raise CommitConflict(
                f"gave up after {attempts} attempts: other writers were faster each time",
                conflicts=[Conflict("attempts-exhausted", entry.version, None, "lost every race")],
                attempts=attempts,
                code="attempts-exhausted",
                url=port.url,
                version=entry.version,
                hint="retry later, or allow more attempts with retry=RetryPolicy(max_attempts=...)",
            )
        attempts += 1


def _publish(port: CommitPort[DraftT, BaseT, WinnerT], entry: Entry) -> bool:
    """True: the entry stands and is ours. False: its place is taken by another."""
    for attempt in range(_MAX_UNKNOWN):
        try:
            outcome = port.publish(entry)
        except AlluviumError as error:
            if attempt == 0:
                raise
            # This put is refused, but one before it may have taken effect: its answer was lost.
            raise _unknown_outcome(port.url, entry) from error
        if outcome is PutOutcome.DONE:
            return True
        # EXISTS does not prove that we lost: a store's client may have retried a put whose first
        # answer was lost. Only the bytes tell.
        landed = port.landed(entry)
        if landed is not None:
            return landed
    raise _unknown_outcome(port.url, entry)


def _unknown_outcome(url: str, entry: Entry) -> CommitUnknown:
    return CommitUnknown(
        f"the store does not say whether version {entry.version} was committed",
        url=url,
        version=entry.version,
        path=entry.path,
        hint="open the table and look at its history before writing again; the data files were kept",
    )


def _rebase(port: CommitPort[DraftT, BaseT, WinnerT], draft: DraftT, base: BaseT, attempts: int) -> BaseT:
    newer, winners = port.refresh(base)
    found = [c for winner in winners for c in port.conflicts(draft, base, winner)]
    if found:
        raise refused(found, attempts, port.url)
    return newer


def refused(conflicts: Sequence[Conflict], attempts: int, url: str) -> CommitConflict:
    """The error for a draft that may not follow winners."""
    first = conflicts[0]
    more = f" (and {len(conflicts) - 1} more)" if len(conflicts) > 1 else ""
    return CommitConflict(
        f"version {first.version}{_winner(first)} was committed first: {first.message}{_shown(first)}{more}",
        conflicts=conflicts,
        attempts=attempts,
        code=first.rule,
        url=url,
        version=first.version,
        hint="read the table again and repeat the operation",
    )


def _winner(conflict: Conflict) -> str:
    """Who won, as far as the commit says: operation, engine, time."""
    by = f" by {conflict.operation}" if conflict.operation else ""
    engine = f" of {conflict.engine}" if conflict.engine else ""
    if conflict.timestamp_ms is None:
        return by + engine
    # The winner's word: a time that no calendar has says nothing.
    try:
        moment = _EPOCH + datetime.timedelta(milliseconds=conflict.timestamp_ms)
    except OverflowError:
        return by + engine
    return f"{by}{engine} at {moment.isoformat(sep=' ', timespec='milliseconds')}Z"


def _shown(conflict: Conflict) -> str:
    return f" ({', '.join(conflict.paths)})" if conflict.paths else ""
