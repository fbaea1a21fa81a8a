"""The log of a stream's columns: what is written, what goes back, who else writes there, and what is damaged."""

from __future__ import annotations

import json
import uuid

import msgspec
import pytest
from delta_values import make_config
from faulty_store import Fault, FaultyStore, When

from alluvium.delta.streams.tracking_log import Entry, TrackingLog, config_of, directory_of, entry_of, load_tracking_log
from alluvium.delta.terms.spec import Protocol
from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest
from alluvium.schema.types import LONG, STRING, Field, Struct
from alluvium.storage.stores.memory import MemoryStore

SCHEMA = Struct((Field("id", LONG, False), Field("p", STRING), Field("q", LONG)))
CONFIG = make_config(SCHEMA, ("q", "p"), {"delta.appendOnly": "true"})
ID = CONFIG.metadata.id


def store() -> MemoryStore:
    return MemoryStore(uuid.uuid4().hex, "/c")


def entry(version: int) -> Entry:
    return entry_of(version, CONFIG, "/c/sources/0")


def test_entries_have_delta_sparks_form() -> None:
    log = TrackingLog(store()).appended(entry(3))
    form, text = log.store.get("0").split(b"\n")
    assert form == b"v1"
    said = json.loads(text)
    assert said == {
        "tableId": ID, "deltaCommitVersion": 3, "dataSchemaJson": CONFIG.metadata.schema_string,
        "partitionSchemaJson": said["partitionSchemaJson"], "sourceMetadataPath": "/c/sources/0",
        "tableConfigurations": {"delta.appendOnly": "true"}, "protocolJson": '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}',
    }  # fmt: skip
    assert [f["name"] for f in json.loads(said["partitionSchemaJson"])["fields"]] == ["q", "p"]


def test_a_table_comes_back() -> None:
    now = make_config(
        Struct((Field("other", LONG),)), (), {"a": "b"}, Protocol(min_reader_version=2, min_writer_version=5)
    )
    found = config_of(entry(3), now)
    assert (found.schema, found.partition_columns, found.protocol) == (SCHEMA, ("q", "p"), CONFIG.protocol)
    assert found.metadata.configuration == {"delta.appendOnly": "true"}
    # What old entries do not say is as it is now.
    old = msgspec.structs.replace(entry(3), table_configurations=None, protocol_json=None)
    found = config_of(old, now)
    assert (found.protocol, found.metadata.configuration, found.schema) == (now.protocol, {"a": "b"}, SCHEMA)
    empty = msgspec.structs.replace(entry(3), table_configurations={})
    assert config_of(empty, now).metadata.configuration == {}


@pytest.mark.parametrize(
    "broken",
    [
        {"data_schema_json": "no JSON"}, {"data_schema_json": '"long"'}, {"partition_schema_json": "{}"}, {"partition_schema_json": "["},
        {"protocol_json": "{}"}, {"protocol_json": "?"}, {"data_schema_json": '{"type":"struct","fields":[]}'},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_damaged_within(broken: dict[str, str]) -> None:
    with pytest.raises(CorruptTable) as caught:
        config_of(msgspec.structs.replace(entry(3), **broken), CONFIG)
    assert caught.value.code == "tracking-log-damaged"


def told(log: TrackingLog) -> tuple[int, int | None, int | None]:
    return (
        log.number,
        log.newest and log.newest.delta_commit_version,
        log.previous and log.previous.delta_commit_version,
    )


def test_entries_one_after_the_other() -> None:
    log = load_tracking_log(store(), ID)
    assert told(log) == (-1, None, None)
    for number, version in enumerate((3, 5, 9)):
        log = log.appended(entry(version))
        assert told(log) == told(load_tracking_log(log.store, ID)) == (number, version, (None, 3, 5)[number])
    # The same again is nothing new.
    assert log.appended(entry(9)) is log


def test_an_entry_takes_the_place_of_another() -> None:
    """The one before is then the one before that, however often it happens."""
    log = TrackingLog(store()).appended(entry(3)).appended(entry(5)).appended(entry(6), replaces=True)
    assert told(log) == told(load_tracking_log(log.store, ID)) == (2, 6, 3)
    assert log.newest is not None and log.newest.previous_metadata_seq_num == 0
    again = log.appended(entry(7), replaces=True)
    assert told(again) == told(load_tracking_log(log.store, ID)) == (3, 7, 3)
    after = again.appended(entry(8))
    assert told(after) == told(load_tracking_log(log.store, ID)) == (4, 8, 7)
    first = TrackingLog(store()).appended(entry(3), replaces=True)
    assert told(first) == (0, 3, None) and first.newest is not None and first.newest.previous_metadata_seq_num is None


def test_an_entry_that_is_gone_has_no_predecessor() -> None:
    log = TrackingLog(store()).appended(entry(3)).appended(entry(5))
    log.store.delete("0")
    assert told(load_tracking_log(log.store, ID)) == (1, 5, None)


def test_other_objects_are_none_of_its() -> None:
    log = TrackingLog(store()).appended(entry(3))
    for name in ("x", "1.tmp", "٣", "-1"):
        log.store.put(name, b"?")
    assert told(load_tracking_log(log.store, ID)) == (0, 3, None)


def test_two_queries_in_one_place() -> None:
    log = TrackingLog(store()).appended(entry(3))
    log.appended(entry(5))
    with pytest.raises(InvalidRequest) as caught:
        log.appended(entry(6))
    assert caught.value.code == "tracking-location-conflict"
    # Two that come to the same, as two that are loaded at a time do, are not in each other's way.
    assert told(log.appended(entry(5))) == told(load_tracking_log(log.store, ID)) == (1, 5, 3)


@pytest.mark.parametrize("when", When)
def test_an_answer_that_is_lost(when: When) -> None:
    inner = store()
    faulty = FaultyStore(inner, Fault(1, when, "put_if_absent"))
    if when is When.AFTER:
        log = TrackingLog(faulty).appended(entry(3))
        assert told(log) == told(load_tracking_log(inner, ID)) == (0, 3, None)
        return
    with pytest.raises(AlluviumError):
        TrackingLog(faulty).appended(entry(3))
    assert told(load_tracking_log(inner, ID)) == (-1, None, None)


@pytest.mark.parametrize("data", [b"", b"v2\n{}", b"v1", b"v1\n", b"v1\n{}", b"v1\nnothing", b"{}"])
def test_what_is_damaged(data: bytes) -> None:
    own = store()
    own.put("0", data)
    with pytest.raises(CorruptTable) as caught:
        load_tracking_log(own, ID)
    assert caught.value.code == "tracking-log-damaged"


def test_blanks_behind_the_form() -> None:
    own = TrackingLog(store()).appended(entry(3)).store
    own.put("0", own.get("0").replace(b"v1\n", b"v1 \n"))
    assert told(load_tracking_log(own, ID)) == (0, 3, None)


def test_the_log_of_another_table() -> None:
    log = TrackingLog(store()).appended(entry(3))
    with pytest.raises(InvalidRequest) as caught:
        load_tracking_log(log.store, "other")
    assert caught.value.code == "tracking-log-of-other-table"


def test_where_it_lies() -> None:
    assert directory_of("/c/", "t", None) == directory_of("/c", "t", None) == "/c/_schema_log_t"
    assert directory_of("/c", "t", "a") == "/c/_schema_log_t_a"
