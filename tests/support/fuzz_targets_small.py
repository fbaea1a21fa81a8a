"""Targets of the fuzzer: small documents in JSON that lie in or beside a table; the first byte of an input says which."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import msgspec
from fuzz_paimon import append_table
from fuzz_tables import commits_only

from alluvium.delta.features.columns.identity_columns import identities
from alluvium.delta.features.columns.invariants import invariants
from alluvium.delta.features.rows import clustering, row_ids
from alluvium.delta.terms.config import parse_config
from alluvium.delta.terms.spec import DomainMetadata
from alluvium.delta.upkeep.convert.sink_log import counted_files
from alluvium.delta.upkeep.vacuum.past import read_last_vacuum
from alluvium.delta.view.snapshot import load_snapshot as load_delta
from alluvium.paimon.commit.caller_files import caller_path, read_caller
from alluvium.paimon.log.consumers import list_consumers
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.streams.begin import read_consumer
from alluvium.paimon.view.system.system_tables import read_system_table
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.streams.client.checkpoint import open_checkpoint
from alluvium.storage.stores.memory import MemoryStore

Made = tuple[Sequence[bytes], Callable[[bytes], str]]
_Read = Callable[[bytes], object]


def _chosen(kinds: Sequence[tuple[bytes, _Read]]) -> Made:
    """One of several documents: a seed of each, and what reads it."""

    def act(data: bytes) -> str:
        kinds[(data[0] if data else 0) % len(kinds)][1](data[1:])
        return "ok"

    return [bytes([number]) + seed for number, (seed, _) in enumerate(kinds)], act


def _of_delta() -> Made:
    store, vacuumed = commits_only().store(), MemoryStore("fuzz-small-delta", "t")
    config = load_delta(store).config
    config = parse_config(config.protocol, config.metadata)

    def domain(name: str, text: bytes) -> Mapping[str, DomainMetadata]:
        told = text.decode(errors="replace")
        return {name: DomainMetadata(domain=name, configuration=told, removed=False)}

    def sink_log(data: bytes) -> None:
        vacuumed.put("_spark_metadata/0", data)
        found = counted_files(vacuumed)
        assert found is not None
        found.validate(full=True)

    def last_vacuum(data: bytes) -> None:
        vacuumed.put("_delta_log/_last_vacuum_info", data)
        read_last_vacuum(vacuumed)

    def checkpoint(data: bytes) -> None:
        vacuumed.put("metadata", data)
        open_checkpoint(vacuumed)

    def column(data: bytes) -> Struct:
        try:
            told = msgspec.json.decode(data, type=dict[str, object])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return Struct(())
        return Struct((Field("a", t.LONG, True, told),))

    url = vacuumed.url
    entry = json.dumps({"path": f"{url}/p=1/x.parquet", "action": "add", "size": 1})
    return _chosen(
        [
            (b'{"clusteringColumns":[["id"],["n","x"]]}', lambda data: clustering.clustering_columns(domain("delta.clustering", data), config)),
            (b'{"rowIdHighWaterMark":7}', lambda data: row_ids.high_water_mark(domain("delta.rowTracking", data))),
            (f"v1\n{entry}\n{entry}".encode(), sink_log),
            (b'{"latestCommitVersionOutsideOfRetentionWindow":3}', last_vacuum),
            (b'{"id":"x"}', checkpoint),
            (json.dumps({"delta.invariants": '{"expression":{"expression":"a > 1"}}'}).encode(), lambda data: invariants(column(data))),
            (b'{"delta.identity.start":1,"delta.identity.step":1,"delta.identity.allowExplicitInsert":true}', lambda data: identities(column(data))),
        ]
    )  # fmt: skip


def _of_paimon() -> Made:
    table = append_table("parquet")
    newest = f"snapshot/snapshot-{table.newest}"
    told = json.dumps({**json.loads(table.files[newest]), "statistics": "stat-x"}).encode()

    def put(path: str, read: Callable[[Snapshot], object]) -> _Read:
        store = table.store()
        store.put(newest, told)
        now = load_snapshot(store)

        def one(data: bytes) -> None:
            store.put(path, data)
            read(now)

        return one

    caller = {"user": "u", "identifier": 1, "snapshot": 1}
    said = json.dumps({
        "snapshotId": 1, "schemaId": 0, "mergedRecordCount": 3, "mergedRecordSize": 9,
        "colStats": {"id": {"colId": 0, "distinctCount": 3, "min": "1", "max": "3", "nullCount": 0}},
    }).encode()  # fmt: skip
    return _chosen(
        [
            (b'{"nextSnapshot":3}', put("consumer/consumer-x", lambda now: list_consumers(now.store))),
            (b'{"nextSnapshot":3}', put("consumer/consumer-x", lambda now: read_consumer(now, "x"))),
            (b'{"nextSnapshot":3}', put("consumer/consumer-x", lambda now: read_system_table(now, "consumers"))),
            (said, put("statistics/stat-x", lambda now: read_system_table(now, "statistics"))),
            (msgspec.json.encode(caller), put(caller_path("main", "u"), lambda now: read_caller(now.store, "main", "u"))),
            (table.files["schema/schema-0"], put("schema/schema-0", lambda now: read_system_table(now, "schemas"))),
            (b"3", put("snapshot/LATEST", lambda now: load_snapshot(now.store))),
            (b"1", put("snapshot/EARLIEST", lambda now: load_snapshot(now.store))),
        ]
    )  # fmt: skip


MAKERS: Mapping[str, Callable[[], Made]] = {"delta-small-files": _of_delta, "paimon-small-files": _of_paimon}
