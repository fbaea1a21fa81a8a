"""Two schemas side by side, for messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from alluvium.schema.types import Struct


def schema_diff(table: Struct, data: Struct) -> str:
    """Where two schemas differ, as lines with `-` (table) and `+` (data); order and case of names do not count."""
    left, right = list(_lines(table)), list(_lines(data))
    changed = [
        line
        for line in difflib.unified_diff(left, right, n=0, lineterm="")
        if line[:1] in "+-" and line[:3] not in ("---", "+++")
    ]
    return "\n".join(["--- table", "+++ data", *changed])


def _lines(schema: Struct) -> Iterator[str]:
    for path, f in sorted(schema.leaves(), key=lambda leaf: [name.lower() for name in leaf[0]]):
        yield f"{'.'.join(path).lower()}: {f.type}"
