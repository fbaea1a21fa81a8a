"""The table that a statement is about, as it is known among the scans of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from alluvium.storage.places import same_place


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A table at its place.

    Attributes:
        url: Its root.
        id: What its description says of itself, wherever it lies; empty: nothing.
    """

    url: str
    id: str = ""

    def is_read_by(self, identity: tuple[str, ...]) -> bool | None:
        """Whether a scan reads it; None: a table of the same id, and nobody can tell whether it is a copy elsewhere.

        Args:
            identity: Of the scan's source.
        """
        known = same_place(identity[0], self.url)
        return None if known is None and self.id and self.id in identity[1:] else bool(known)
