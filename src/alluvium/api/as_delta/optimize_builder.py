"""The place of DeltaOptimizeBuilder, whose verb is not implemented yet."""

from __future__ import annotations

from typing import NoReturn

from alluvium.errors import UnsupportedFeature


class DeltaOptimizeBuilder:
    """What `DeltaTable.optimize()` will return; until then there is nothing that makes one."""

    def where(self, partitionFilter: str) -> NoReturn:
        """Not implemented yet."""
        raise _later("where")

    def executeCompaction(self) -> NoReturn:
        """Not implemented yet."""
        raise _later("executeCompaction")

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> NoReturn:
        """Not implemented yet."""
        raise _later("executeZOrderBy")


def _later(verb: str) -> UnsupportedFeature:
    return UnsupportedFeature(f"DeltaOptimizeBuilder.{verb} is not implemented yet", features=("optimize",))
