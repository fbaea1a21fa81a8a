"""Rows of an Arrow table as text, for comparison between environments; needs no package but Arrow's tables."""

from __future__ import annotations

import datetime as dt
from typing import Any


def row_texts(table: Any) -> list[str]:
    return sorted(repr([_plain(value) for value in row.values()]) for row in table.to_pylist())


def _plain(value: object) -> object:
    """UTC goes by many names."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.timezone.utc)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value
