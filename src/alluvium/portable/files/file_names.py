"""What readers of all formats of data files share: finding columns by name, and saying that a file is damaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import pyarrow as pa

from alluvium.errors import CorruptTable


def own_names(names: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """The file's own name of each column wanted that it has: exact, else without regard to case."""
    exact = set(names)
    by_folded = {name.lower(): name for name in reversed(names)}
    found = {name: name if name in exact else by_folded.get(name.lower()) for name in wanted}
    return {name: own for name, own in found.items() if own is not None}


def ensure_told_apart(names: Sequence[str], own: Collection[str], path: str) -> None:
    """Refuses to read a column of whose name the file has another: whoever asks by name gets any of them, or none.

    Args:
        names: Of all columns of the file.
        own: Of those to be read.
        path: Of the file.

    Raises:
        CorruptTable: There are two (`"damaged-file"`).
    """
    count = Counter(names)
    twice = sorted(name for name in own if count[name] > 1)
    if twice:
        raise damaged(path, f"two columns are called {twice[0]!r}")


def look_at_names(schema: pa.Schema) -> None:
    """Reads the names of fields at any depth; `UnicodeDecodeError`, which comes only then: one is no text."""
    todo = list(schema)
    while todo:
        one = todo.pop()
        one.name  # noqa: B018
        todo += [one.type.field(number) for number in range(one.type.num_fields)]


def damaged(path: str, error: object) -> CorruptTable:
    text = str(error).splitlines()
    return CorruptTable(
        f"the data file cannot be read: {text[0] if text else type(error).__name__}",
        code="damaged-file",
        path=path,
        hint="the file was cut or overwritten; restore it, or remove its rows from the table",
    )
