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
    assert warehouse.list_databases(store) == ["default"]
    warehouse.create_database(store, "a")
    table = make(str(tmp_path / "b.db" / "t"), "day")
    append(open_target(table), [{"k": 1, "day": "d"}])
    (tmp_path / "b.db" / "no_table").mkdir()
    (tmp_path / "other" / "t" / "schema").mkdir(parents=True)
    (tmp_path / "other" / "t" / "schema" / "schema-0").write_text("")
    assert warehouse.list_databases(store) == ["a", "b", "default"]
    assert [warehouse.list_tables(store, name) for name in "abc"] == [[], ["t"], []]
    warehouse.drop_table(store, "b", "t")
    warehouse.drop_database(store, "a")
    assert (warehouse.list_databases(store), warehouse.list_tables(store, "b")) == (["b", "default"], [])


@pytest.mark.parametrize("place", ["memory://warehouse", None])
def test_a_table_is_one_whatever_it_is_called(tmp_path: Path, place: str | None) -> None:
    """As folders within tables are: a database that seemed empty was dropped with what lay in it."""
    root = place or str(tmp_path)
    names = ["branch", "bucket-list", "index", "snapshot", "tag", "x=1"]
    for name in names:
        make(f"{root}/index.db/{name}", "day")
    store = open_store(root)
    assert warehouse.list_databases(store) == ["default", "index"]
    assert warehouse.list_tables(store, "index") == names
    assert not warehouse.is_empty(store, "index")


@pytest.mark.parametrize("place", ["memory://databases", None])
def test_a_database_is_empty_without_files(tmp_path: Path, place: str | None) -> None:
    """Where a store has no folders, too: a new database was not there, and no table could be made in it."""
    store = open_store(place or str(tmp_path))
    with pytest.raises(InvalidRequest) as refused:
        warehouse.ensure_database(store, "a")
    assert refused.value.code == "unknown-database"
    warehouse.create_database(store, "a")
    warehouse.ensure_database(store, "a")
    assert warehouse.list_databases(store) == ["a", "default"] and warehouse.is_empty(store, "a")
    store.put("a.db/of_delta/_delta_log/0.json", b"")
    assert (warehouse.list_tables(store, "a"), warehouse.is_empty(store, "a")) == ([], False)
    warehouse.drop_database(store, "a")
    assert warehouse.list_databases(store) == ["default"]


@pytest.mark.parametrize("name", ["", "..", "a/b", "a.b", "t$x"])
def test_names_that_lead_elsewhere(name: str) -> None:
    with pytest.raises(InvalidRequest):
        warehouse.table_folder("db", name)
