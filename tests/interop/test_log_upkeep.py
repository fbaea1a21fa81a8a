"""delta-spark reads the checkpoints, checksums and compactions that we write, and continues the tables."""

from __future__ import annotations

from pathlib import Path

import msgspec
from plain_writer import SCHEMA, commit_rows, open_target
from reference_engine import NEEDS_REFERENCE, judge

import alluvium
from alluvium.delta.description.create import new_config
from alluvium.delta.log.checkpoint import CheckpointOptions, write_checkpoint
from alluvium.delta.log_upkeep.log_compaction import compact_log
from alluvium.delta.terms.config import parse_config
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

pytestmark = NEEDS_REFERENCE

LEGACY = Protocol(min_reader_version=1, min_writer_version=3)
V2 = Protocol(
    min_reader_version=3, min_writer_version=7,
    reader_features=("v2Checkpoint",), writer_features=("v2Checkpoint", "appendOnly", "invariants"),
)  # fmt: skip
STRUCT = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
RARE = {"delta.checkpointInterval": "100"}


def make_table(root: Path, protocol: Protocol, partitioned: bool = False, **properties: str) -> Store:
    """Twelve versions, each of which adds a file of two rows."""
    store = open_store(str(root))
    plain = new_config(SCHEMA, ["p"] if partitioned else [], {})
    config = parse_config(protocol, msgspec.structs.replace(plain.metadata, configuration=properties))
    commit_rows(DeltaTarget(store, config, None), [0, 1])
    for n in range(1, 12):
        commit_rows(open_target(store), [2 * n, 2 * n + 1], p=f"p{n % 3}")
    return store


def test_every_form_of_log(tmp_path: Path) -> None:
    make_table(tmp_path / "classic", LEGACY)
    make_table(tmp_path / "struct", LEGACY, True, **STRUCT)
    make_table(tmp_path / "v2", V2, **{"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "5"})
    parts = make_table(tmp_path / "parts", LEGACY, **RARE)
    assert write_checkpoint(parts, load_snapshot(parts).state, CheckpointOptions(0, 0, max_actions=4)).parts == 3
    compact_log(make_table(tmp_path / "compacted", LEGACY, **RARE), 2, 9)
    expected = {"classic": 10, "struct": 10, "v2": 10, "parts": 11, "compacted": -1}
    append = "select id, cast(id as string) p from range(100, 103)"
    jobs = []
    for name in expected:
        table = str(tmp_path / name)
        jobs += [
            {"do": "log", "table": table},
            {"do": "read", "table": table, "out": str(tmp_path / "out" / name), "where": "id between 3 and 8"},
            {"do": "write", "table": table, "sql": append, "mode": "append"},
        ]
    results = judge(tmp_path, jobs)
    assert [result["error"] for result in results] == [None] * len(jobs)
    for index, (name, checkpoint) in enumerate(expected.items()):
        found = results[3 * index]["result"]
        assert found == {"version": 11, "checkpoint": checkpoint, "files": 12, "checksum_agrees": True}, name
        again = alluvium.open(str(tmp_path / name))
        assert (again.version, again.to_arrow().num_rows) == (12, 27)
