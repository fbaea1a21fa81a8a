"""What a stream is told: delta-spark's options, understood and checked before anything is read."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from alluvium.errors import InvalidRequest

#: What is read at once where nobody says how much.
DEFAULT_FILES = 1000

FLAGS = (
    "ignoreDeletes", "ignoreChanges", "ignoreFileDeletion", "skipChangeCommits", "readChangeFeed", "readChangeData",
    "withEventTimeOrder", "failOnDataLoss",
)  # fmt: skip
VALUES = (
    "startingVersion", "startingTimestamp", "maxFilesPerTrigger", "maxBytesPerTrigger", "excludeRegex", "skipVersions",
)  # fmt: skip

_SIZE = re.compile(r"(\d+)\s*([a-z]*)", re.ASCII)
_UNITS = {
    unit: 1 << (10 * power)
    for power, units in enumerate((("", "b"), ("k", "kb"), ("m", "mb"), ("g", "gb"), ("t", "tb"), ("p", "pb")))
    for unit in units
}
_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a table is streamed.

    Attributes:
        starting_version: The first version whose changes are read; `"latest"`: those that come; None: all rows first.
        starting_ms: The same by time, milliseconds since 1970 UTC.
        max_files: How many files a batch has; None: any number.
        max_bytes: How large its files are; a batch has one at least, however large.
        ignore_deletes: Commits that only remove files may pass.
        ignore_changes: So may commits that rewrite files: their new files are read, copied rows included.
        skip_changes: Commits that remove or rewrite files are left out, the files that they add, too.
        skip_versions: Versions that are left out whatever they did, as ranges with both ends.
        changes: The change feed is read, not rows.
        exclude: Files whose path this is found in are not read.
        fails_on_loss: A log that has lost what was not read yet stops the stream.
        in_event_order: The first rows come in one batch, so that none of them is late.
        may_begin_late: The start that is named may lie behind the newest version: it is waited for.
        allows_new_partitions: A table that is partitioned by other columns than it was does not stop the stream.
    """

    starting_version: int | Literal["latest"] | None = None
    starting_ms: int | None = None
    max_files: int | None = DEFAULT_FILES
    max_bytes: int | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_changes: bool = False
    skip_versions: tuple[tuple[int, int], ...] = ()
    changes: bool = False
    exclude: re.Pattern[str] | None = None
    fails_on_loss: bool = True
    in_event_order: bool = False
    may_begin_late: bool = False
    allows_new_partitions: bool = False

    @property
    def names_start(self) -> bool:
        """Whether it is said where the stream begins."""
        return self.starting_version is not None or self.starting_ms is not None

    @property
    def text(self) -> str:
        """What tells these options from others."""
        # A pattern prints with its beginning only.
        pattern = None if self.exclude is None else (self.exclude.pattern, self.exclude.flags)
        return f"{replace(self, exclude=None)} {pattern}"

    def skips(self, version: int) -> bool:
        """Whether a version is left out because its number is named."""
        return any(first <= version <= last for first, last in self.skip_versions)


def parse_stream_options(given: Mapping[str, str], starting_ms: int | None) -> StreamOptions:
    """Understands options under their canonical names (`FLAGS`, `VALUES`).

    Args:
        given: The options.
        starting_ms: What `startingTimestamp` says.

    Raises:
        InvalidRequest: A value that means nothing, or two that exclude each other.
    """
    if "startingVersion" in given and "startingTimestamp" in given:
        raise InvalidRequest(
            "give startingVersion or startingTimestamp, not both", code="version-and-timestamp", hint="leave one out"
        )
    flags = {name: _flag(name, given[name]) for name in FLAGS if name in given}
    max_bytes = _bytes(given["maxBytesPerTrigger"]) if "maxBytesPerTrigger" in given else None
    max_files = None if max_bytes is not None else DEFAULT_FILES
    if "maxFilesPerTrigger" in given:
        max_files = _positive("maxFilesPerTrigger", given["maxFilesPerTrigger"])
    ignores_all = flags.get("ignoreFileDeletion", False)
    return StreamOptions(
        starting_version=_starting_version(given.get("startingVersion")),
        starting_ms=starting_ms,
        max_files=max_files,
        max_bytes=max_bytes,
        ignore_deletes=flags.get("ignoreDeletes", False) or ignores_all,
        ignore_changes=flags.get("ignoreChanges", False) or ignores_all,
        skip_changes=flags.get("skipChangeCommits", False),
        skip_versions=_versions(given.get("skipVersions")),
        changes=flags.get("readChangeFeed", False) or flags.get("readChangeData", False),
        exclude=_pattern(given.get("excludeRegex")),
        fails_on_loss=flags.get("failOnDataLoss", True),
        in_event_order=flags.get("withEventTimeOrder", False),
    )


def _invalid(name: str, text: str, wanted: str) -> InvalidRequest:
    return InvalidRequest(f"the option {name!r} must be {wanted}, not {text!r}", code="invalid-option")


def _flag(name: str, text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise _invalid(name, text, "true or false")
    return text.strip().lower() == "true"


def _positive(name: str, text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit()) or int(text) == 0:
        raise _invalid(name, text, "a positive whole number")
    return int(text)


def _bytes(text: str) -> int:
    """A size as Spark's settings spell it: `1g`, `512kb`, or a number of bytes."""
    match = _SIZE.fullmatch(text.strip().lower())
    size = int(match[1]) * _UNITS[match[2]] if match is not None and match[2] in _UNITS else 0
    if size == 0:
        raise _invalid("maxBytesPerTrigger", text, 'a positive size, as "1g"')
    return size


def _starting_version(text: str | None) -> int | Literal["latest"] | None:
    if text is None:
        return None
    if text.strip().lower() == "latest":
        return "latest"
    if not (text.strip().isascii() and text.strip().isdigit()):
        raise _invalid("startingVersion", text, 'a version, or "latest"')
    return int(text)


def _versions(text: str | None) -> tuple[tuple[int, int], ...]:
    """Versions by number, `3, 7-9`."""
    if text is None:
        return ()
    found = []
    for piece in text.split(","):
        match = _RANGE.fullmatch(piece.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise _invalid("skipVersions", text, 'versions, as "3, 7-9"')
        found.append((int(match[1]), int(match[2] or match[1])))
    return tuple(found)


def _pattern(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        with warnings.catch_warnings():
            # "[a&&b]" is a set of other letters in Java, whose patterns the option has.
            warnings.simplefilter("error", FutureWarning)
            return re.compile(text, re.ASCII)
    except (re.error, FutureWarning) as error:
        raise _invalid("excludeRegex", text, f"a regular expression ({error})") from None
