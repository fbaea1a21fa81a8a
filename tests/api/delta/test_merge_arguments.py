"""What clauses of a MERGE without Spark take: a clause that says nothing is no clause that does nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from sessionless import refused, table_of

import alluvium

NEW: dict[str, Callable[[Any], Any]] = {
    "values for the condition": lambda m: m.whenMatchedUpdate({"v": "s.v"}).whenNotMatchedInsertAll(),
    "an update of nothing": lambda m: m.whenMatchedUpdate("s.v > 0").whenNotMatchedInsertAll(),
    "rows without a match, of nothing": lambda m: m.whenNotMatchedBySourceUpdate({"v": "0"}).whenMatchedDelete(),
    "an insert of nothing": lambda m: m.whenNotMatchedInsert("s.v > 0"),
    "an insert without arguments": lambda m: m.whenNotMatchedInsert(),
    "an insert with values for the condition": lambda m: m.whenNotMatchedInsert({"k": "s.k"}),
    "two lots of values": lambda m: m.whenMatchedUpdate({"v": "s.v"}, {"v": "s.v"}),
    "a condition that is none": lambda m: m.whenMatchedDelete(True),
    "a list": lambda m: m.whenMatchedUpdate(set=[("v", "s.v")]),
    "a number": lambda m: m.whenMatchedUpdate(set={"v": 5}),
}


@pytest.mark.parametrize("given", NEW)
def test_what_says_nothing_is_refused(given: str) -> None:
    url = f"memory://{uuid.uuid4().hex}/table"
    alluvium.write(pa.table({"k": [1, 2], "v": [1, 2]}), url)
    source = pa.table({"k": [1, 9], "v": [10, 90]})
    assert refused(lambda: NEW[given](table_of(url).merge(source, "t.k = s.k")).execute()).code == "wrong-type"
    assert alluvium.open(url).version == 0
