"""Databases and tables of a warehouse, by their folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from paimon_rows import append, make, open_target

from alluvium.errors import InvalidRequest
from alluvium.paimon.log import warehouse
from alluvium.storage.open import open_store


def test_what_lies_in_a_warehouse(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    assert warehouse.list_warehouse(store) == {"default": []}
    warehouse.create_database(store, "a")
    table = make(str(tmp_path / "b.db" / "t"), "day")
    append(open_target(table), [{"k": 1, "day": "d"}])
    (tmp_path / "b.db" / "no_table").mkdir()
    (tmp_path / "other" / "t" / "schema").mkdir(parents=True)
    (tmp_path / "other" / "t" / "schema" / "schema-0").write_text("")
    assert warehouse.list_warehouse(store) == {"a": [], "b": ["t"], "default": []}
    warehouse.drop_table(store, "b", "t")
    warehouse.drop_database(store, "a")
    assert warehouse.list_warehouse(store) == {"b": [], "default": []}


@pytest.mark.parametrize("name", ["", "..", "a/b", "a.b", "t$x"])
def test_names_that_lead_elsewhere(name: str) -> None:
    with pytest.raises(InvalidRequest):
        warehouse.table_folder("db", name)
