"""Partitions marked done: where the mark lies, and what times it keeps."""

from __future__ import annotations

import itertools
import json
import time

import pytest

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.upkeep.life.marks import mark_partition_done, parse_partition
from alluvium.storage.stores.memory import MemoryStore


def schema_of(*keys: str, **options: str) -> TableSchema:
    fields = [DataField(n, name, parse_type("STRING NOT NULL")) for n, name in enumerate(("day", "hour", "k"))]
    return TableSchema.create(fields, keys, options=options)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("day=1,hour=2", {"day": "1", "hour": "2"}),
        (" day = 1 , hour=2 ", {"day": "1", "hour": "2"}),
        ("hour=2,day=1", {"day": "1", "hour": "2"}),
        ("day=1", {"day": "1"}),
        ("day=1,", {"day": "1"}),
        ("day=a=b", {"day": "a=b"}),
        ("day=", {"day": ""}),
        ("hour=1", None),
        ("day=1,day=2", None),
        ("day=1,x=2", None),
        ("day", None),
        ("day=1,hour", None),
        ("", None),
        ("day=1,hour=2,k=3", None),
    ],
)
def test_partitions_as_procedures_take_them(text: str, wanted: dict[str, str] | None) -> None:
    schema = schema_of("day", "hour")
    if wanted is not None:
        assert parse_partition(text, schema) == wanted
        return
    with pytest.raises(InvalidRequest) as raised:
        parse_partition(text, schema)
    assert raised.value.code == "invalid-partition"


def test_a_mark_keeps_the_time_of_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    store, schema = MemoryStore("marks", "t"), schema_of("day", "hour")
    clock = itertools.count(1_000.5)
    monkeypatch.setattr(time, "time", lambda: next(clock))
    path = mark_partition_done(store, schema, {"hour": "a/b", "day": "x=1"})
    assert path == "day=x%3D1/hour=a%2Fb/_SUCCESS"
    made = json.loads(store.get(path))
    assert made == {"creationTime": made["creationTime"], "modificationTime": made["creationTime"]}
    assert made["creationTime"] % 1000 == 500
    mark_partition_done(store, schema, {"hour": "a/b", "day": "x=1"})
    again = json.loads(store.get(path))
    assert again["creationTime"] == made["creationTime"] < again["modificationTime"]
    assert mark_partition_done(store, schema, {"day": "x"}) == "day=x/_SUCCESS"


@pytest.mark.parametrize("data", [b"", b"{}", b"no json", b"[1]", b'{"creationTime": null}', b'{"creationTime": "x"}'])
def test_a_mark_of_others_without_times_is_made_anew(data: bytes) -> None:
    store, schema = MemoryStore("other-marks", f"t{len(data)}"), schema_of("day")
    store.put("day=1/_SUCCESS", data)
    times = json.loads(store.get(mark_partition_done(store, schema, {"day": "1"})))
    assert times["creationTime"] == times["modificationTime"] > 1_000_000_000_000


@pytest.mark.parametrize("actions", ["done-partition", "success-file,http-report"])
def test_other_ways_to_mark(actions: str) -> None:
    schema = schema_of("day", **{"partition.mark-done-action": actions})
    with pytest.raises(UnsupportedFeature) as raised:
        mark_partition_done(MemoryStore("no-marks", "t"), schema, {"day": "1"})
    assert raised.value.code == "unsupported-option"
