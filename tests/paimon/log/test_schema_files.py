"""Schema files by their names, what errors say of those there are, and branches that options name."""

from __future__ import annotations

import json
import uuid

import pytest
from faulty_store import FaultyStore

from alluvium.errors import CorruptTable, InvalidRequest, NotFound
from alluvium.paimon.log import warehouse
from alluvium.paimon.log.schema_log import (
    list_schema_ids,
    load_latest_schema,
    load_schema,
    not_a_table,
    publish_first_schema,
    publish_next_schema,
    schema_path,
)
from alluvium.paimon.schema import DataField, SchemaChange, TableSchema, number_fields, parse_type
from alluvium.storage.stores.memory import MemoryStore

FIRST = TableSchema.create(number_fields([DataField(0, "a", parse_type("INT"))]))


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "t")


def put(store: MemoryStore, number: int, branch: str = "main", **said: object) -> None:
    document = {**json.loads(FIRST.format()), "id": number, **said}
    store.put(schema_path(number, branch), json.dumps(document).encode())


@pytest.mark.parametrize(("branch", "folder"), [("main", "schema"), ("b", "branch/branch-b/schema")])
def test_schemas_are_files_with_numbers(store: MemoryStore, branch: str, folder: str) -> None:
    for name in (
        "schema-2",
        "schema-10",
        "schema-",
        "schema-x",
        "schema-1.tmp",
        "schema-\u0663",
        "xschema-5",
        "schema--1",
    ):
        store.put(f"{folder}/{name}", FIRST.format())
    assert list_schema_ids(store, branch) == [2, 10]
    assert list_schema_ids(store, "b" if branch == "main" else "main") == []
    assert schema_path(2, branch) == f"{folder}/schema-2"


@pytest.mark.parametrize("branch", ["main", "b"])
def test_a_schema_that_is_missing_is_said_beside_those_there_are(store: MemoryStore, branch: str) -> None:
    with pytest.raises(NotFound) as caught:
        load_schema(store, 3, branch)
    assert (caught.value.code, caught.value.path, caught.value.url) == (
        "missing-schema",
        schema_path(3, branch),
        store.url,
    )
    assert caught.value.message == "the table has no schema 3: there are none"
    for number in range(25):
        put(store, number, branch)
    with pytest.raises(NotFound) as caught:
        load_schema(store, 99, branch)
    assert caught.value.message == f"the table has no schema 99: there are {', '.join(map(str, range(20)))}"
    latest = load_latest_schema(store, branch)
    assert latest is not None and latest.id == 24


def test_a_file_that_says_two_things_is_damaged(store: MemoryStore) -> None:
    put(store, 1, id=2)
    with pytest.raises(CorruptTable) as caught:
        load_schema(store, 1)
    assert (caught.value.code, caught.value.path) == ("invalid-schema", "schema/schema-1")
    put(store, 1, fields=[{"id": 0, "name": "a", "type": "INT"}, {"id": 0, "name": "b", "type": "INT"}])
    with pytest.raises(CorruptTable) as caught:
        load_schema(store, 1)
    assert (caught.value.code, caught.value.path) == ("invalid-schema", "schema/schema-1")


def test_each_file_is_another_though_it_says_the_same(store: MemoryStore) -> None:
    """Blanks behind the document tell it from another writer's."""
    other = MemoryStore(uuid.uuid4().hex, "t")
    for one in (store, other):
        publish_first_schema(one, FIRST)
    first, second = (one.get("schema/schema-0") for one in (store, other))
    document = FIRST.format()
    assert first != second
    for data in (first, second):
        assert data.startswith(document) and len(data) == len(document) + 64
        assert set(data[len(document) :]) == set(b" \t")


def test_the_next_schema_of_a_branch_is_its_own(store: MemoryStore) -> None:
    put(store, 0)
    put(store, 4, "b")
    seen: list[int] = []

    def evolve(newest: TableSchema) -> TableSchema:
        seen.append(newest.id)
        return newest.apply([SchemaChange.add_column("n", "INT")])

    assert publish_next_schema(store, evolve, "b").id == 5
    assert (seen, list_schema_ids(store), list_schema_ids(store, "b")) == ([4], [0], [4, 5])
    for branch in ("c", " "):
        with pytest.raises(NotFound) as caught:
            publish_next_schema(store, evolve, branch)
        assert caught.value.code == "not-a-table"
    assert (not_a_table(store).url, not_a_table(store).code) == (store.url, "not-a-table")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"scan.fallback-branch": "b"}, None),
        ({"scan.primary-branch": "b"}, None),
        ({"scan.fallback-branch": " "}, None),
        ({"scan.fallback-branch": "b", "scan.primary-branch": ""}, None),
        ({"scan.fallback-branch": "c"}, "scan.fallback-branch names the branch 'c'"),
        ({"scan.primary-branch": "c"}, "scan.primary-branch names the branch 'c'"),
        ({"scan.fallback-branch": "b", "scan.primary-branch": "b"}, "exclude each other"),
    ],
)
def test_branches_that_options_name(store: MemoryStore, options: dict[str, str], problem: str | None) -> None:
    put(store, 0, "b")
    schema = TableSchema.create(FIRST.fields)
    made = TableSchema(0, schema.fields, schema.highest_field_id, options=options)
    if problem is None:
        publish_first_schema(store, made)
        assert list_schema_ids(store) == [0]
        return
    with pytest.raises(InvalidRequest) as caught:
        publish_first_schema(store, made)
    assert caught.value.code == "invalid-table-option" and problem in caught.value.message
    assert list_schema_ids(store) == []


# --- warehouses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "good"),
    [("a", True), ("a-b_c 1", True), ("\u00e9", True), ("", False), (".", False), ("a.b", False), ("a/b", False), ("a\\b", False),
     ("a$b", False), ("a@b", False), ("a\0b", False)],
)  # fmt: skip
def test_names_of_databases_and_tables(store: MemoryStore, name: str, good: bool) -> None:
    assert warehouse.may_be_table(name, "t") is warehouse.may_be_table("d", name) is good
    if good:
        assert warehouse.table_folder(name, name) == f"{name}.db/{name}"
        return
    for act, what in (
        (lambda: warehouse.table_folder("d", name), "table"), (lambda: warehouse.table_folder(name, "t"), "database"),
        (lambda: warehouse.list_tables(store, name), "database"), (lambda: warehouse.drop_database(store, name), "database"),
    ):  # fmt: skip
        with pytest.raises(InvalidRequest) as caught:
            act()
        assert caught.value.code == "invalid-name" and caught.value.message.endswith(f"is no name of a {what}")


def test_folders_that_no_name_leads_to_are_no_databases(store: MemoryStore) -> None:
    for folder in ("b.db", "a.b.db", ".db", "c", "d.dbx", "$.db"):
        store.put(f"{folder}/t/schema/schema-0", b"")
    assert warehouse.list_databases(store) == ["b", "default"]
    with pytest.raises(InvalidRequest) as caught:
        warehouse.ensure_database(store, "defualt")
    assert (caught.value.code, caught.value.url) == ("unknown-database", store.url)
    assert "default" in (caught.value.hint or "")


def test_a_table_is_dropped_schemas_first(store: MemoryStore) -> None:
    """Without a schema there is no table: nobody reads one of which half is gone."""
    for path in ("schema/schema-0", "schema/schema-1", "snapshot/snapshot-1", "x"):
        for table in ("t", "other"):
            store.put(f"d.db/{table}/{path}", b"")
    counting = FaultyStore(store)
    warehouse.drop_table(counting, "d", "t")
    gone = [path for verb, path in counting.requests if verb.startswith("delete")]
    assert gone[:2] == ["d.db/t/schema/schema-0", "d.db/t/schema/schema-1"] and "d.db/t" in gone[2:]
    assert warehouse.list_tables(store, "d") == ["other"]
    assert all(info.path.startswith("d.db/other/") for info in store.list_tree(""))


def test_a_new_database_is_empty_until_something_lies_in_it(store: MemoryStore) -> None:
    warehouse.create_database(store, "a")
    assert warehouse.list_databases(store) == ["a", "default"] and warehouse.is_empty(store, "a")
    assert warehouse.is_empty(store, "never")
    store.put("a.db/t", b"")
    assert not warehouse.is_empty(store, "a") and warehouse.list_tables(store, "a") == []
