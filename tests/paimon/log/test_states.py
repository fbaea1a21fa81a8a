"""Which state is read, by which schema and options: what is asked for, what the table pins, and what is refused."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon.log.snapshot import is_table, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.spec import SCANNED_ENTRIES, SnapshotDocument, format_snapshot
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore


def put_schema(store: MemoryStore, number: int, *names: str, branch: str = "main", **options: str) -> None:
    fields = tuple(DataField(n, name, parse_type("INT")) for n, name in enumerate(names))
    folder = "" if branch == "main" else f"branch/branch-{branch}/"
    store.put(f"{folder}schema/schema-{number}", TableSchema(number, fields, 9, options=options).format())


def put_snapshot(store: MemoryStore, number: int, schema_id: int, path: str | None = None, **said: Any) -> None:
    document = SnapshotDocument(number, schema_id, "base", "delta", "user", 1, "APPEND", 1000 * number, **said)
    store.put(path or f"snapshot/snapshot-{number}", format_snapshot(document))


@pytest.fixture
def store() -> MemoryStore:
    """Snapshots 1 and 2 of schema 0, and 3 of schema 1; schema 2 is the newest. A tag of 1, and a branch."""
    made = MemoryStore(uuid.uuid4().hex, "t")
    put_schema(made, 0, "a", **{"x": "0", "file.format": "orc"})
    put_schema(made, 1, "a", "b", x="1")
    put_schema(made, 2, "a", "b", "c", x="2")
    put_schema(made, 0, "z", branch="side", x="side")
    for number, schema_id in ((1, 0), (2, 0), (3, 1)):
        put_snapshot(made, number, schema_id)
    put_snapshot(made, 1, 0, "tag/tag-one")
    put_snapshot(made, 7, 0, "branch/branch-side/snapshot/snapshot-7")
    return made


@pytest.mark.parametrize(
    ("at", "options", "version", "columns"),
    [
        # The newest state by the newest schema, others by their own.
        (None, {}, 3, "abc"),
        (At(), {}, 3, "abc"),
        (At(snapshot_id=3), {}, 3, "ab"),
        (At(snapshot_id=2), {}, 2, "a"),
        (At(tag="one"), {}, 1, "a"),
        (At(version="one"), {}, 1, "a"),
        (At(timestamp_ms=2500), {}, 2, "a"),
        (None, {"scan.snapshot-id": "2"}, 2, "a"),
        (At(), {"scan.tag-name": "one"}, 1, "a"),
        (None, {"branch": "side"}, 7, "z"),
    ],
)
def test_the_schema_of_a_state(
    store: MemoryStore, at: At | None, options: dict[str, str], version: int, columns: str
) -> None:
    found = load_snapshot(store, at, options=options)
    assert (found.version, "".join(found.schema.names)) == (version, columns)
    assert found.branch == options.get("branch", "main") and "branch" not in found.asked
    assert found.open_store is open_store and found.time_zone == "UTC"


@pytest.mark.parametrize(("schema_id", "columns"), [(0, "a"), (1, "ab"), (2, "abc"), (None, "abc")])
def test_rows_by_another_schema(store: MemoryStore, schema_id: int | None, columns: str) -> None:
    found = load_snapshot(store, schema_id=schema_id)
    assert (found.version, "".join(found.schema.names)) == (3, columns)
    assert "".join(load_snapshot(store, At(snapshot_id=1), schema_id=schema_id).schema.names) == (
        "a" if schema_id is None else columns
    )


def test_options_of_a_call_are_on_top(store: MemoryStore) -> None:
    newest = load_snapshot(store, options={"x": "call", "y": "new"})
    assert (newest.schema.options["x"], newest.schema.options["y"]) == ("call", "new")
    assert newest.asked == {"x": "call", "y": "new"} and newest.at == At()
    assert load_snapshot(store).schema.options == {"x": "2"}
    # Of a state of before the options are those of today, but for what its files depend on.
    old = load_snapshot(store, At(snapshot_id=1), options={"y": "new"})
    assert (old.schema.options["x"], old.schema.options["y"], old.schema.id) == ("2", "new", 0)
    assert load_snapshot(store, options={"branch": "side"}).schema.options == {"x": "side"}


@pytest.mark.parametrize(
    ("at", "tag"),
    [
        (At(tag="one"), "one"),
        (At(version="one"), "one"),
        (At(version="2"), None),
        (At(snapshot_id=2), None),
        (None, None),
    ],
)
def test_a_tag_is_what_names_its_state(store: MemoryStore, at: At | None, tag: str | None) -> None:
    """It outlives its snapshot: whoever opens the state once more, on another machine, asks for the tag."""
    found = load_snapshot(store, at, options={"y": "new"})
    assert found.asked == {"y": "new"} | ({} if tag is None else {"scan.tag-name": tag})
    assert found.at == (at or At())


def test_a_table_may_pin_its_readers(store: MemoryStore) -> None:
    put_schema(store, 3, "a", **{"scan.snapshot-id": "2"})
    assert load_snapshot(store).version == 2 and load_snapshot(store).at == At(snapshot_id=2)
    assert load_snapshot(store, At()).version == 3
    assert load_snapshot(store, options={"scan.tag-name": "one"}).version == 1
    assert load_snapshot(store, options={"y": "z"}).version == 2
    put_schema(store, 4, "a", **{"scan.timestamp": "1970-01-01 01:00:02"})
    assert load_snapshot(store, time_zone="Europe/Berlin").version == 2
    with pytest.raises(NotFound):
        load_snapshot(store, time_zone="Asia/Tokyo")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"scan.mode": "compacted-full"}, "unsupported-scan"),
        ({"scan.mode": "from-file-creation-time"}, "unsupported-scan"),
        ({"scan.mode": "from-creation-timestamp"}, "unsupported-scan"),
        ({"scan.mode": "incremental"}, "unsupported-scan"),
        ({"incremental-between": "1,2"}, "changes-as-of"),
        ({"incremental-between-timestamp": "1,2"}, "changes-as-of"),
        ({"scan.mode": "latest"}, None),
        ({"scan.mode": "latest-full"}, None),
        ({"xincremental-between": "1,2"}, None),
    ],
)
def test_what_asks_for_other_rows_than_those_of_a_state(
    store: MemoryStore, options: dict[str, str], code: str | None
) -> None:
    if code is None:
        assert load_snapshot(store, options=options).version == 3
        return
    with pytest.raises((UnsupportedFeature, InvalidRequest)) as caught:
        load_snapshot(store, options=options)
    assert caught.value.code == code and next(iter(options.values() if code == "unsupported-scan" else options)) in (
        caught.value.message
    )


def test_what_is_no_table_and_no_branch(store: MemoryStore) -> None:
    empty = MemoryStore(uuid.uuid4().hex, "t")
    assert is_table(store) and not is_table(empty)
    for branch in ("main", "side"):
        with pytest.raises(NotFound) as caught:
            load_snapshot(empty, branch=branch)
        assert caught.value.code == "not-a-table"
    with pytest.raises(NotFound) as caught:
        load_snapshot(store, branch="other")
    assert (caught.value.code, caught.value.hint) == ("branch-not-found", "branches: side")
    for n in range(15):
        put_schema(store, 0, "z", branch=f"b{n:02}")
    with pytest.raises(NotFound) as caught:
        load_snapshot(store, options={"branch": "other"})
    assert caught.value.hint == f"branches: {', '.join(f'b{n:02}' for n in range(12))}"
    plain = MemoryStore(uuid.uuid4().hex, "t")
    put_schema(plain, 0, "a")
    with pytest.raises(NotFound) as caught:
        load_snapshot(plain, branch="other")
    assert caught.value.hint == "the table has no branches"


def test_errors_name_the_snapshot_that_was_asked_for(store: MemoryStore) -> None:
    for at, version in ((At(snapshot_id=9), 9), (At(tag="none"), None)):
        with pytest.raises(NotFound) as caught:
            load_snapshot(store, at)
        assert (caught.value.version, caught.value.url) == (version, store.url)


def test_other_states_beside_one(store: MemoryStore) -> None:
    newest = load_snapshot(store, At(), options={"x": "call"}, time_zone="Europe/Berlin")
    first = newest.state(1)
    assert (first.version, first.schema.names, first.time_zone, first.asked) == (1, ("a",), "Europe/Berlin", {})
    assert newest.state(1) is first
    nothing = newest.state(0)
    assert (nothing.version, nothing.schema, nothing.entries.num_rows) == (None, newest.schema, 0)
    assert nothing.entries.schema == SCANNED_ENTRIES
    # One that has expired is that of its tag.
    store.delete("snapshot/snapshot-1")
    again = load_snapshot(store, At()).state(1)
    assert (again.version, again.at, again.asked) == (1, At(tag="one"), {"scan.tag-name": "one"})
    assert newest.state(2).at == At(snapshot_id=2)
    with pytest.raises(NotFound):
        newest.state(9)


def test_schemas_of_files_are_read_once(store: MemoryStore) -> None:
    found = load_snapshot(store, At())
    assert found.schema_of(2) is found.schema
    first = found.schema_of(0)
    store.put("schema/schema-0", json.dumps({}).encode())
    assert found.schema_of(0) is first and first.names == ("a",)
    side = load_snapshot(store, branch="side")
    assert side.schema_of(0).names == ("z",)
