"""Where a stream of a Paimon table begins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_tables import HandWritten

from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.streams.begin import begin_of, ensure_overwrites, ensure_start, read_consumer, write_consumer
from alluvium.paimon.streams.offset import Offset
from alluvium.storage.open import open_store

FIRST_MS = 1_700_000_060_000
KEYED = pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.string())])


@pytest.fixture(scope="module")
def now(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Snapshots 2 to 4, a minute apart; the first has expired."""
    path = tmp_path_factory.mktemp("begin") / "t"
    table = HandWritten(path, pa.schema([("a", pa.int64())]))
    for n in range(4):
        table.commit([{"a": n}])
    table.expire(1)
    return load_snapshot(open_store(str(path)))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, Offset(4, is_whole=True)),
        ({"scan.mode": "latest-full"}, Offset(4, is_whole=True)),
        ({"scan.mode": "latest"}, Offset(5)),
        ({"scan.snapshot-id": "3"}, Offset(3)),
        ({"scan.mode": "from-snapshot", "scan.snapshot-id": "2"}, Offset(2)),
        ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "3"}, Offset(3, is_whole=True)),
        ({"scan.timestamp-millis": str(FIRST_MS + 60_000)}, Offset(2)),
        ({"scan.timestamp-millis": str(FIRST_MS + 60_001)}, Offset(3)),
        ({"scan.mode": "from-timestamp", "scan.timestamp": "2023-11-14 22:17:00"}, Offset(4)),
        ({"scan.timestamp-millis": "0"}, Offset(2)),
    ],
)
def test_scan_modes(now: Snapshot, said: Mapping[str, str], expected: Offset) -> None:
    ensure_start(said)
    assert begin_of(now, said) == expected


def test_a_table_without_snapshots(tmp_path: Path) -> None:
    HandWritten(tmp_path / "t", pa.schema([("a", pa.int64())]))
    empty = load_snapshot(open_store(str(tmp_path / "t")))
    for said in ({}, {"scan.mode": "latest"}, {"scan.timestamp-millis": "0"}):
        assert begin_of(empty, said) == Offset(1)


@pytest.mark.parametrize(
    ("said", "kind", "code"),
    [
        ({"scan.mode": "incremental"}, UnsupportedFeature, "unsupported-scan"),
        ({"scan.mode": "compacted-full"}, UnsupportedFeature, "unsupported-scan"),
        ({"scan.mode": "from-snapshot"}, InvalidRequest, "invalid-option"),
        ({"scan.mode": "latest", "scan.snapshot-id": "1"}, InvalidRequest, "invalid-option"),
        ({"scan.snapshot-id": "1", "scan.timestamp-millis": "1"}, InvalidRequest, "invalid-option"),
        ({"scan.mode": "from-timestamp", "scan.snapshot-id": "1"}, InvalidRequest, "invalid-option"),
    ],
)
def test_what_says_no_start(said: Mapping[str, str], kind: type[AlluviumError], code: str) -> None:
    with pytest.raises(kind) as caught:
        ensure_start(said)
    assert caught.value.code == code


def test_a_start_that_has_expired(now: Snapshot) -> None:
    with pytest.raises(NotFound) as caught:
        begin_of(now, {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "1"})
    assert caught.value.code == "snapshot-expired"


def test_consumers_go_on_where_they_were(now: Snapshot) -> None:
    said = {"consumer-id": "mine", "scan.mode": "latest"}
    assert begin_of(now, said) == Offset(5)
    write_consumer(now, "mine", 3)
    assert read_consumer(now, "mine") == 3
    assert begin_of(now, said) == Offset(3)
    # As Java's `Consumer`.
    assert now.store.get("consumer/consumer-mine") == b'{"nextSnapshot":3}'
    now.store.put("consumer/consumer-mine", b"{}")
    with pytest.raises(CorruptTable) as caught:
        begin_of(now, said)
    assert caught.value.code == "damaged-consumer"
    with pytest.raises(InvalidRequest):
        read_consumer(now, "../snapshot/snapshot-1")


@pytest.mark.parametrize(
    ("keys", "options", "code"),
    [
        (["k"], {}, None),
        (["k"], {"changelog-producer": "input"}, None),
        (["k"], {"changelog-producer": "lookup"}, "invalid-table-option"),
        (["k"], {"changelog-producer": "full-compaction"}, "invalid-table-option"),
        (["k"], {"bucket": "-2"}, "unsupported-stream"),
        ([], {}, "invalid-table-option"),
    ],
)
def test_readers_may_ask_for_overwrites_of_tables_that_could_be_created_so(
    tmp_path: Path, keys: list[str], options: dict[str, str], code: str | None
) -> None:
    table = HandWritten(tmp_path / "t", KEYED, keys, **options)
    store = open_store(str(table.path))
    ensure_overwrites(load_snapshot(store).schema)
    asked = load_snapshot(store, options={"streaming-read-overwrite": "true"}).schema
    if code is None:
        ensure_overwrites(asked)
        return
    with pytest.raises((InvalidRequest, UnsupportedFeature)) as caught:
        ensure_overwrites(asked)
    assert caught.value.code == code
