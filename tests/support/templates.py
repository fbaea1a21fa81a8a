"""Tables that many tests begin with: made once a process, and copied."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Hashable
from pathlib import Path

_made: dict[tuple[Hashable, str], Path] = {}


def copy_of(maker: Hashable, path: str | Path, make: Callable[[str], object]) -> None:
    """Puts a table where it is wanted.

    Copies have the same identity, file names and times, as those have that users make with `cp -a`; but for those whose
    folders are called otherwise: two tables of one test are two.

    Args:
        maker: What tells it from all others of the process, with its maker's module.
        path: Where nothing is yet.
        make: Makes it at a path; asked once.
    """
    key = (maker, Path(path).name)
    if key not in _made:
        folder = Path(tempfile.mkdtemp(prefix="alluvium-template-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        make(str(folder / "table"))
        _made[key] = folder / "table"
    shutil.copytree(_made[key], path)
