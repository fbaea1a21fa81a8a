"""A table with a column of which Spark says what rows have that were there before it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

import alluvium


def with_past(path: Path, mapping: str = "none") -> Path:
    """A table, its columns mapped so or not, whose first file has no column `x`, of which its metadata says what such rows have (as delta-spark writes
    it down that appends rows of a catalog's table with `mergeSchema`).
    """
    mapped = {} if mapping == "none" else {"delta.columnMapping.mode": mapping}
    alluvium.write(pa.table({"id": [0, 1]}), path, **mapped)
    alluvium.write(
        pa.table({"id": [2, 3], "x": pa.array([7, None], pa.int64())}), path, mode="append", mergeSchema="true"
    )
    log = path / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][1]["metadata"] |= {"EXISTS_DEFAULT": "7"}
            action["metaData"]["schemaString"] = json.dumps(schema)
    log.write_text("\n".join(map(json.dumps, actions)))
    for crc in log.parent.glob("*.crc"):
        crc.unlink()
    return path


#: Its rows, `id` and `x`.
WITH_PAST = [(0, 7), (1, 7), (2, 7), (3, None)]
