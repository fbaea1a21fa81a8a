"""Streams of Paimon tables tell what Java's tell: when they begin, of overwrites, and of rows that wait for a bucket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reference_engine import NEEDS_PAIMON, paimon

from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.streams.offset import Offset
from alluvium.paimon.streams.stream import Stream
from alluvium.paimon.view.changes import KINDS
from alluvium.paimon.view.merge import KIND
from alluvium.portable.reader import read_batches
from alluvium.storage.open import open_store

pytestmark = NEEDS_PAIMON

OVERWRITES = {"streaming-read-overwrite": "true"}
VECTORS = {"deletion-vectors.enabled": "true"}
FIRST = {"merge-engine": "first-row"}
PARTIAL = {"merge-engine": "partial-update"}
LISTS = {"merge-engine": "aggregation", "fields.v.aggregate-function": "listagg"}
LOOKUP, FULL = ({"changelog-producer": producer} for producer in ("lookup", "full-compaction"))
INPUT = {"changelog-producer": "input"}
#: Options of tables whose compactions are called for, by name.
TABLES: dict[str, dict[str, str]] = {
    "none": OVERWRITES,
    "forced": {"force-lookup": "true", **OVERWRITES},
    "vectors": {**VECTORS, **OVERWRITES},
    "first-row": {**FIRST, **OVERWRITES},
    "partial": {**PARTIAL, **OVERWRITES},
    "lists": {**LISTS, **OVERWRITES},
    "input": {**INPUT, **OVERWRITES},
    "silent": {},
    "lookup": LOOKUP,
    "lookup-vectors": {**LOOKUP, **VECTORS},
    "lookup-first-row": {**LOOKUP, **FIRST},
    "lookup-partial": {**LOOKUP, **PARTIAL},
    "lookup-lists": {**LOOKUP, **LISTS},
    "full": FULL,
    "full-of-4-levels": {**FULL, "num-levels": "4"},
    "waiting": {"bucket": "-2"},
    "waiting-lookup": {"bucket": "-2", **LOOKUP},
    "appended": {"bucket": "-1"},
    "appended-overwrites": {"bucket": "-1", "streaming-read-append-overwrite": "true"},
}


def steps(name: str, root: Path) -> list[dict[str, Any]]:
    options = {"bucket": "1", "write-only": "true", **TABLES[name]}
    keyed = options["bucket"] != "-1"
    fields = [{"name": "k", "type": "BIGINT NOT NULL" if keyed else "BIGINT"}, {"name": "v", "type": "STRING"}]
    compact = [{"compact": {"full": True}}] if options["bucket"] == "1" else []
    may_delete = keyed and "merge-engine" not in options
    deletes = [{"write": {"rows": [[2, "c"]], "kinds": ["-D"]}}] if may_delete else []
    return [
        {"create": {"fields": fields, "primaryKeys": ["k"] if keyed else [], "options": options}},
        {"write": {"rows": [[1, "a"], [2, "b"]]}},
        *compact,
        {"write": {"rows": [[2, "c"], [3, "d"]]}},
        {"follow": {"out": f"{root}/{name}-begin", "options": {}}},
        *deletes,
        *compact,
        {"write": {"rows": [[4, "e"], [1, "f"]]}},
        {"write": {"rows": [[9, "o"], [10, "p"]], "overwrite": {}}},
        {"write": {"rows": [[5, "g"]]}},
        {"write": {"rows": [[6, "h"]], "overwrite": {}}},
        {"follow": {"out": f"{root}/{name}-all", "options": {"scan.snapshot-id": "1"}}},
    ]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("streams")
    paimon(root, *({"table": f"{root}/db.db/{name}", "steps": steps(name, root)} for name in TABLES))
    return root


def told(stream: Stream, start: Offset, end: Offset) -> list[list[Any]]:
    rows = []
    for source in stream.batch(start, end):
        plan = source.plan_scan()
        for batch in read_batches(plan, stream.snapshot.store, open_store, plan.schema.names):
            rows += [[KINDS[row.get(KIND, 0)], row["k"], row["v"]] for row in batch.to_pylist()]
    return sorted(rows)


@pytest.mark.parametrize("name", TABLES)
def test_streams_tell_what_those_of_java_tell(root: Path, name: str) -> None:
    stream = Stream(load_snapshot(open_store(f"{root}/db.db/{name}")), {})
    begun, whole = (json.loads((root / f"{name}-{part}").read_text()) for part in ("begin", "all"))
    start = Offset(begun["newest"], is_whole=True)
    assert told(stream, start, Offset(begun["newest"] + 1)) == sorted(begun["rows"])
    assert told(stream, Offset(1), Offset(whole["newest"] + 1)) == sorted(whole["rows"])
    assert whole["rows"] or TABLES[name].get("bucket") == "-2"
