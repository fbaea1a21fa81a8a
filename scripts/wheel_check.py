"""Run by wheel_check.sh inside the clean environment: the installed package does its work without pyspark."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import alluvium


def write_table(root: Path) -> None:
    """The smallest Delta table there is, by hand: one file, one commit."""
    (root / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64())}), root / "part-0.parquet")
    schema = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    metadata = {
        "id": "5d2b6b1e-0d6b-4f5e-9a53-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }
    add = {
        "path": "part-0.parquet",
        "partitionValues": {},
        "size": (root / "part-0.parquet").stat().st_size,
        "modificationTime": 0,
        "dataChange": True,
    }
    actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}, {"add": add}]
    log = "\n".join(json.dumps(action) for action in actions)
    (root / "_delta_log" / f"{0:020}.json").write_text(log, encoding="utf-8")


def main() -> None:
    if importlib.util.find_spec("pyspark") is not None:
        raise SystemExit("the environment is not clean: pyspark can be imported")
    package = Path(alluvium.__file__).parent
    if not package.is_relative_to(sys.prefix):
        raise SystemExit(f"alluvium comes from {package}, not from the wheel")
    if not (package / "py.typed").exists():
        raise SystemExit("the wheel lacks py.typed")
    root = Path(sys.argv[1]) / "table"
    write_table(root)
    rows = alluvium.open(str(root)).to_arrow()
    if rows.to_pydict() != {"id": [1, 2, 3]}:
        raise SystemExit(f"the table read as {rows.to_pydict()}")


if __name__ == "__main__":
    main()
