"""Values with members without Spark: what is not made of them."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from sessionless import refused

import alluvium
from alluvium import DeltaTable


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"a": 1}, pa.struct([("a", pa.int32())])),
        ([1], pa.list_(pa.int32())),
        ([("k", 1)], pa.map_(pa.string(), pa.int32())),
    ],
    ids=["struct", "list", "map"],
)
def test_values_with_members_are_no_text_here(value: object, kind: pa.DataType) -> None:
    """Spark writes them out as such."""
    url = f"memory://{uuid.uuid4().hex}/table"
    alluvium.write(pa.table({"id": [1, 2], "s": ["a", None], "n": pa.array([value, None], kind)}), url)
    view = alluvium.open(url)
    assert refused(lambda: view.to_arrow(where="cast(n as string) = 'x'")).code == "unsupported-expression"
    assert refused(lambda: DeltaTable.forPath(url).update("id = 1", {"s": "n"})).code == "needs-spark"
