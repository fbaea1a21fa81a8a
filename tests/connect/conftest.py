"""Tables for the lane of Spark Connect, written without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

WriteTable = Callable[..., str]


def address(name: str) -> str:
    """A path as the log has it: a URI."""
    return quote(name, safe="/=+&,'()*!$:@;~-._")


@pytest.fixture
def write_table(tmp_path: Path) -> WriteTable:
    """Writes one Parquet file a name, and the log that lists them; gives the table's path."""

    def write(
        names: Sequence[str],
        tables: Sequence[pa.Table],
        partitions: Sequence[dict[str, str | None]] | None = None,
        root: Path = tmp_path / "table",
    ) -> str:
        (root / "_delta_log").mkdir(parents=True)
        values = partitions or [{}] * len(names)
        fields = [
            {"name": f.name, "type": {"int64": "long"}.get(str(f.type), str(f.type)), "nullable": True, "metadata": {}}
            for f in tables[0].schema
        ]
        fields += [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in values[0]]
        lines: list[dict[str, object]] = [
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            {
                "metaData": {
                    "id": "connect",
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": json.dumps({"type": "struct", "fields": fields}),
                    "partitionColumns": list(values[0]),
                    "configuration": {},
                }
            },
        ]
        for name, table, partition in zip(names, tables, values, strict=True):
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, file)
            column = table.column("x")
            statistics = {
                "numRecords": table.num_rows,
                "minValues": {"x": min(column.to_pylist())},
                "maxValues": {"x": max(column.to_pylist())},
                "nullCount": {"x": 0},
            }
            lines.append(
                {
                    "add": {
                        "path": address(name),
                        "partitionValues": partition,
                        "size": file.stat().st_size,
                        "modificationTime": 0,
                        "dataChange": True,
                        "stats": json.dumps(statistics),
                    }
                }
            )
        log = "".join(json.dumps(line) + "\n" for line in lines)
        (root / "_delta_log" / f"{0:020}.json").write_text(log, encoding="utf-8")
        return str(root)

    return write
