"""Tables that rows are only added to: "the log must not contain `remove` actions with `dataChange` true"."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from sessionless import refused, table_of

import alluvium

SOURCE = pa.table({"id": [1, 9], "v": [10, 90]})


@pytest.fixture
def url() -> str:
    url = f"memory://{uuid.uuid4().hex}/table"
    alluvium.write(pa.table({"id": [1, 2], "v": [1, 2]}), url, **{"delta.appendOnly": "true"})
    return url


def merge(table: Any) -> Any:
    return table.merge(SOURCE, "t.id = s.id")


REFUSED: dict[str, Callable[[Any], object]] = {
    "delete": lambda table: table.delete("id = 1"),
    "delete all": lambda table: table.delete(),
    "update": lambda table: table.update("id = 1", {"v": "0"}),
    "merge": lambda table: merge(table).whenMatchedUpdateAll().execute(),
    "merge, also inserting": lambda table: merge(table).whenMatchedDelete().whenNotMatchedInsertAll().execute(),
    "merge of what has no match": lambda table: merge(table).whenNotMatchedBySourceDelete().execute(),
}


@pytest.mark.parametrize("verb", REFUSED)
def test_no_row_goes_or_changes(url: str, verb: str) -> None:
    error = refused(lambda: REFUSED[verb](table_of(url)))
    assert error.code == "append-only" and "appendOnly" in str(error)
    assert alluvium.open(url).version == 0


def test_rows_come(url: str) -> None:
    merge(table_of(url)).whenNotMatchedInsertAll().execute()
    assert sorted(alluvium.open(url).to_arrow()["id"].to_pylist()) == [1, 2, 9]
