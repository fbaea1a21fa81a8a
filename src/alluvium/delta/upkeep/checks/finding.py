"""What a check-up finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning"]

#: Findings of one kind that are shown one by one; the rest is summed up.
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a table.

    Attributes:
        level: `"error"`: rows or versions are lost, or cannot be read; `"warning"`: it can be read all the same.
        check: Which check found it: `"log"`, `"checkpoint"`, `"compaction"`, `"checksum"`, `"files"`,
            `"deletion-vectors"`, `"statistics"`, `"change-data"` or `"temporary"`.
        message: What is wrong.
        path: The object concerned, if it is one.
    """

    level: Level
    check: str
    message: str
    path: str | None = None


def summed_up(check: str, findings: Sequence[Finding]) -> Iterator[Finding]:
    """The first findings of a kind, and how many more there are."""
    yield from findings[:_SHOWN]
    if len(findings) > _SHOWN:
        yield Finding(findings[0].level, check, f"and {len(findings) - _SHOWN} more files like these")
