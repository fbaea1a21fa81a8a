"""What readers of all formats of data files share: finding columns by name, and saying that a file is damaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import pyarrow as pa

from alluvium.errors import CorruptTable


def own_names(names: Sequence[str], wanted: Sequence[str], path: str) -> dict[str, str]:
    """The file's own name of each column wanted that it has: exact, else without regard to case.

    Raises:
        CorruptTable: Several differ from the one wanted in case alone (`"damaged-file"`): Spark takes none, either.
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(name.lower(), []).append(name)
    exact, found = set(names), {}
    for name in wanted:
        own = [name] if name in exact else alike.get(name.lower(), [])
        if len(set(own)) > 1:
            raise damaged(path, f"the column {name!r} may be {own[0]!r} or {own[1]!r} of it")
        if own:
            found[name] = own[0]
    return found


def own_member(names: Sequence[str], wanted: str, column: str) -> str | None:
    """The same of a member of a struct.

    Args:
        names: Of the struct's members in the file.
        wanted: The member's name in the table.
        column: What the struct is called, for errors.

    Raises:
        CorruptTable: Several may be meant (`"damaged-file"`).
    """
    exact = [name for name in names if name == wanted]
    own = exact or [name for name in names if name.lower() == wanted.lower()]
    if len(own) > 1:
        raise CorruptTable(
            f"the member {wanted!r} may be {own[0]!r} or {own[1]!r} of the data file",
            code="damaged-file",
            column=column,
            hint="no engine reads such a file; write it anew with names that differ",
        )
    return own[0] if own else None


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
