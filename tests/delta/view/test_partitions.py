"""Partitions of files, as predicates."""

from __future__ import annotations

import pyarrow as pa

from alluvium.delta.description.create import new_config
from alluvium.delta.view.partitions import partitions_predicate
from alluvium.schema.types import DATE, LONG, Field, Struct


def test_years_that_python_has_not() -> None:
    """What a dynamic overwrite has read is then the whole table."""
    config = new_config(Struct((Field("id", LONG), Field("p", DATE))), ["p"], {})
    for text, told in (("2024-01-01", True), ("+10000-01-01", False), ("-0001-01-01", False)):
        files = pa.table({"partitionValues": pa.array([[("p", text)]], pa.map_(pa.string(), pa.string()))})
        assert (partitions_predicate(files, config, "UTC") is not None) == told, text
