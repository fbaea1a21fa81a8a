"""The live files of a version, for those who need only some of them: all of them may be more than memory holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

#: Picks some of the files (`FILES`) that it is given.
Pick: TypeAlias = "Callable[[pa.Table], pa.Table]"
#: What a `Pick` picks out of a version's live files, which it may be given piece by piece.
PickFiles: TypeAlias = "Callable[[Pick], pa.Table]"


def picking_from(files: pa.Table) -> PickFiles:
    """Picks out of files that are in memory."""
    return lambda pick: pick(files)
