"""Schema files in a store: listed, read, published by put-if-absent."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from faulty_store import Fault, FaultyStore, When

from alluvium.errors import AlluviumError, CommitConflict, CorruptTable, InvalidRequest, NotFound
from alluvium.paimon.log.schema_log import (
    list_schema_ids,
    load_latest_schema,
    load_schema,
    publish_first_schema,
    publish_next_schema,
)
from alluvium.paimon.schema import DataField, SchemaChange, TableSchema, number_fields, parse_type
from alluvium.plan.retry import RetryPolicy
from alluvium.storage.store import Store
from alluvium.storage.stores.memory import MemoryStore


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Store:
    return MemoryStore("schemas", request.node.name)


def columns(*names: str) -> tuple[DataField, ...]:
    return number_fields(DataField(0, name, parse_type("INT")) for name in names)


def adding(name: str) -> Callable[[TableSchema], TableSchema]:
    return lambda newest: newest.apply([SchemaChange.add_column(name, "INT")])


def test_the_highest_number_is_the_latest(store: Store) -> None:
    """ "The schema file with the highest numerical value is usually the latest schema file." """
    publish_first_schema(store, TableSchema.create(columns("a")))
    for n in range(10):
        publish_next_schema(store, adding(f"c{n}"))
    store.put("schema/schema-x", b"not one")
    store.put("schema/.schema-99.crc", b"not one")
    assert list_schema_ids(store) == list(range(11))
    assert load_latest_schema(store).id == 10
    assert load_schema(store, 3).names == ("a", "c0", "c1", "c2")


def test_no_table(store: Store) -> None:
    assert load_latest_schema(store) is None
    with pytest.raises(NotFound) as error:
        publish_next_schema(store, adding("b"))
    assert error.value.code == "not-a-table"


def test_a_schema_that_is_not_there(store: Store) -> None:
    publish_first_schema(store, TableSchema.create(columns("a")))
    with pytest.raises(NotFound) as error:
        load_schema(store, 4)
    assert error.value.code == "missing-schema"
    assert "there are 0" in error.value.message


def test_a_damaged_file_is_named(store: Store) -> None:
    store.put("schema/schema-0", TableSchema.create(columns("a")).format()[:40])
    with pytest.raises(CorruptTable) as error:
        load_latest_schema(store)
    assert error.value.path == "schema/schema-0"
    store.put("schema/schema-1", TableSchema.create(columns("a")).format())
    with pytest.raises(CorruptTable) as error:
        load_schema(store, 1)
    assert "schema 0" in error.value.message


def test_a_table_is_created_once(store: Store) -> None:
    publish_first_schema(store, TableSchema.create(columns("a")))
    with pytest.raises(InvalidRequest) as error:
        publish_first_schema(store, TableSchema.create(columns("b")))
    assert error.value.code == "table-exists"
    assert load_latest_schema(store).names == ("a",)


def racing(store: Store, other: Callable[[TableSchema], TableSchema]) -> FaultyStore:
    """A store where somebody else publishes just before our first put; the put then finds its place taken."""
    fault = Fault(1, When.BEFORE, "put_if_absent", meanwhile=lambda: publish_next_schema(store, other))
    return FaultyStore(store, fault)


def test_of_two_alterations_at_once_both_stand_one_after_the_other(store: Store) -> None:
    publish_first_schema(store, TableSchema.create(columns("a")))
    ours = publish_next_schema(racing(store, adding("theirs")), adding("ours"))
    assert (ours.id, ours.names, [f.id for f in ours.fields]) == (2, ("a", "theirs", "ours"), [0, 1, 2])


def test_what_the_winner_forbids_is_refused(store: Store) -> None:
    publish_first_schema(store, TableSchema.create(columns("a")))
    with pytest.raises(InvalidRequest) as error:
        publish_next_schema(racing(store, adding("c")), adding("c"))
    assert error.value.code == "column-exists"
    assert list_schema_ids(store) == [0, 1]


def test_losing_every_race_is_a_conflict(store: Store) -> None:
    publish_first_schema(store, TableSchema.create(columns("a")))
    with pytest.raises(CommitConflict) as error:
        publish_next_schema(racing(store, adding("c")), adding("d"), retry=RetryPolicy(max_attempts=1))
    assert error.value.code == "attempts-exhausted"


def test_a_lost_answer_does_not_publish_twice(store: Store) -> None:
    publish_first_schema(store, TableSchema.create(columns("a")))
    publish_next_schema(FaultyStore(store, Fault(1, When.AFTER, "put_if_absent")), adding("b"))
    assert list_schema_ids(store) == [0, 1]


def test_branches_that_options_name_must_exist(store: Store) -> None:
    publish_first_schema(store, TableSchema.create(columns("a")))
    with pytest.raises(InvalidRequest):
        publish_next_schema(store, lambda s: s.apply([SchemaChange.set_option("scan.fallback-branch", "b")]))
    store.put("branch/branch-b/schema/schema-0", load_schema(store, 0).format())
    publish_next_schema(store, lambda s: s.apply([SchemaChange.set_option("scan.fallback-branch", "b")]))
    assert publish_next_schema(store, adding("c"), branch="b").names == ("a", "c")
    both = [SchemaChange.set_option("scan.primary-branch", "b")]
    with pytest.raises(AlluviumError):
        publish_next_schema(store, lambda s: s.apply(both))


def test_the_same_change_in_the_same_millisecond_wins_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alluvium.paimon.schema.table_schema.time.time", lambda: 1_700_000_000.0)
    publish_first_schema(store, TableSchema.create(columns("a")))
    with pytest.raises(InvalidRequest) as error:
        publish_next_schema(racing(store, adding("c")), adding("c"))
    assert error.value.code == "column-exists"
    with pytest.raises(InvalidRequest) as error:
        publish_first_schema(store, TableSchema.create(columns("a")))
    assert error.value.code == "table-exists"
