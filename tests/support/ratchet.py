"""What once was right stays right: the names of expectations that a corpus met, kept in a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

#: Whether this run writes the file anew instead of holding the verdicts against it.
UPDATING = os.environ.get("ALLUVIUM_RATCHET") == "update"
_SHOWN = 600


class Judged(Protocol):
    """How one expectation went."""

    @property
    def lane(self) -> str: ...
    @property
    def case(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def note(self) -> str: ...
    @property
    def name(self) -> str: ...


class Ratchet:
    """The names in a file, and the verdicts of this run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._once_right = set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()

    def complaints(self, verdicts: Sequence[Judged]) -> list[str]:
        """What is wrong, and what was right and is not any more."""
        bad = [f"{v.name}: {v.note[:_SHOWN]}" for v in verdicts if v.outcome == "wrong"]
        if UPDATING:
            return bad
        lost = [v for v in verdicts if v.name in self._once_right and v.outcome not in ("right", "wrong")]
        return bad + [f"{v.name}: was right, is {v.outcome}: {v.note[:_SHOWN]}" for v in lost]

    def finish(self, verdicts: Sequence[Judged]) -> None:
        """With `ALLUVIUM_RATCHET=update`: writes the file anew for the cases that ran, keeps the others."""
        if not UPDATING or not verdicts:
            return
        ran = {(v.lane, v.case) for v in verdicts}
        kept = {name for name in self._once_right if tuple(name.split(" ")[:2]) not in ran}
        right = kept | {v.name for v in verdicts if v.outcome == "right"}
        self._path.write_text("".join(f"{name}\n" for name in sorted(right)), encoding="utf-8")
