"""Values as messages show them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def shown(value: pa.Scalar) -> str | None:
    """A value as text, of whatever year; None: null."""
    if not value.is_valid:
        return None
    try:
        return str(value.as_py())
    except (ValueError, OverflowError):  # a time that Python does not know, or text that is none
        return _cast(value)


def _cast(value: pa.Scalar) -> str:
    try:
        return str(pc.cast(value, pa.string()).as_py())
    except (ValueError, pa.ArrowNotImplementedError):
        return "?"
