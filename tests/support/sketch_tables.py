"""A Paimon table whose columns are merged as sketches and bitmaps."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_tables import HandWritten


def library() -> Any:
    """What the extra `sketches` brings, where it has a wheel for this Python; elsewhere the test is skipped."""
    return pytest.importorskip("datasketches", reason="the extra `sketches` is not there for this Python")


def hll_sketch(values: Iterable[int], lg_k: int = 12) -> bytes:
    """What counts the values, with 2^lg_k registers."""
    sketch = library().hll_sketch(lg_k)
    for value in values:
        sketch.update(value)
    return bytes(sketch.serialize_compact())


def theta_sketch(values: Iterable[int]) -> bytes:
    """What counts the values, and can be intersected."""
    sketch = library().update_theta_sketch()
    for value in values:
        sketch.update(value)
    return bytes(sketch.compact().serialize())


def write_visits(path: Path | str) -> None:
    """Visitors of pages, two commits: 1, 2, 3 and then 3, 4 saw the page `home`, 1 alone the page `help`."""
    schema = pa.schema([pa.field("page", pa.string(), False), ("visitors", pa.binary()), ("users", pa.binary())])
    options = {
        "merge-engine": "aggregation",
        "fields.visitors.aggregate-function": "hll_sketch",
        "fields.users.aggregate-function": "theta_sketch",
    }
    table = HandWritten(path, schema, ["page"], **options)
    for pages in ({"help": [1], "home": [1, 2, 3]}, {"home": [3, 4]}):
        table.commit([{"page": p, "visitors": hll_sketch(v), "users": theta_sketch(v)} for p, v in pages.items()])
