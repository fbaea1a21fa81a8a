"""The error tree, grouped by what the caller can do about it.

    AlluviumError
    |- UnsupportedFeature   upgrade alluvium, or use an engine that knows the feature
    |- InvalidRequest       fix the call: arguments, options, schema of the data, violated constraints
    |- CorruptTable         fix the table: the path and version say where it breaks the specification
    |- CommitConflict       somebody else won: look at `.conflicts`, then retry
    |- CommitUnknown        the outcome could not be learnt: inspect the table before retrying
    |- NotFound             the table, version, tag or file does not exist
    `- StorageError         the store failed, or could not be reached: check it, then retry

Every error has a stable `.code` (for programs), typed attributes that say where, and a message for
people: what happened, where, and `hint:` how to mend it. Nothing else leaves the library.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import msgspec

#: What the decoder of JSON raises at bytes that are none of its: undecodable text is a UnicodeDecodeError, too deep
#: nesting a RecursionError.
DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class AlluviumError(Exception):
    """Root of the tree.

    Args:
        message: What happened, one sentence without a full stop at the end.
        code: Stable identifier of the case, e.g. `"unknown-column"`; the class's own when absent.
        url: The table.
        version: The table version (or snapshot id) concerned.
        path: The file concerned.
        column: The column concerned, dotted when nested.
        hint: What the caller can do.
    """

    default_code: ClassVar[str] = "error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        url: str | None = None,
        version: int | None = None,
        path: str | None = None,
        column: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.url = url
        self.version = version
        self.path = path
        self.column = column
        self.hint = hint

    def __str__(self) -> str:
        places = [
            f"{name}: {value}"
            for name, value in (
                ("table", self.url),
                ("version", self.version),
                ("file", self.path),
                ("column", self.column),
            )
            if value is not None and str(value) not in self.message
        ]
        text = self.message + (f" ({', '.join(places)})" if places else "")
        return text + (f"\nhint: {self.hint}" if self.hint else "")


class UnsupportedFeature(AlluviumError):
    """The table, or the request, needs something that this version of Alluvium does not implement.

    Attributes:
        features: Names of the missing features as the format's specification spells them.
    """

    default_code = "unsupported-feature"

    def __init__(self, message: str, *, features: Iterable[str] = (), **where: object) -> None:
        super().__init__(message, **where)  # type: ignore[arg-type]
        self.features = tuple(features)


class InvalidRequest(AlluviumError):
    """The call cannot be carried out as it stands; nothing was written."""

    default_code = "invalid-request"


class WrongType(InvalidRequest, TypeError):
    """An argument is of another type than the method takes; a TypeError, too, as in delta-spark."""

    default_code = "wrong-type"


class CorruptTable(AlluviumError):
    """What is stored breaks the format's specification."""

    default_code = "corrupt-table"


@dataclass(frozen=True, slots=True)
class Conflict:
    """One reason why a commit lost against a winner.

    Attributes:
        rule: The rule of the specification, e.g. `"metadata-changed"`.
        version: The winning version.
        operation: What the winner did, as its commit says (`"WRITE"`, `"MERGE"`, ...), if it says.
        message: The overlap in words.
        paths: Files that both touched (at most a few, for the message).
        engine: The winner's engine, if it says.
        timestamp_ms: When the winner committed, milliseconds since 1970 UTC.
    """

    rule: str
    version: int
    operation: str | None
    message: str
    paths: tuple[str, ...] = ()
    engine: str | None = None
    timestamp_ms: int | None = None


class CommitConflict(AlluviumError):
    """A concurrent commit won, and ours may not be applied on top of it.

    Attributes:
        conflicts: One `Conflict` a rule that was broken; never empty.
        attempts: Commits tried.
    """

    default_code = "commit-conflict"

    def __init__(self, message: str, *, conflicts: Iterable[Conflict], attempts: int = 1, **where: object) -> None:
        super().__init__(message, **where)  # type: ignore[arg-type]
        self.conflicts = tuple(conflicts)
        self.attempts = attempts


class CommitUnknown(AlluviumError):
    """The store neither confirmed nor denied the commit, and it could not be read back."""

    default_code = "commit-unknown"


class NotFound(AlluviumError):
    """The table, version, tag, branch or file asked for does not exist."""

    default_code = "not-found"


class StorageError(AlluviumError):
    """The store failed (code `"storage"`) or could not be reached (`"store-unreachable"`)."""

    default_code = "storage"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to `name` (case ignored), or None when none is close."""
    by_folded = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def suggest(name: str, known: Iterable[str]) -> str:
    """A hint: the nearest known name, or the first names there are."""
    names = list(known)
    close = nearest(name, names)
    if close is not None:
        return f"did you mean {close!r}?"
    shown = ", ".join(sorted(names)[:12])
    return f"known: {shown}{', ...' if len(names) > 12 else ''}" if names else "there are none"
