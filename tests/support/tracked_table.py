"""A table with row tracking: some values materialised, the others by default."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from delta_values import make_metadata

from alluvium.delta.terms.spec import Action, Add, Protocol, format_actions
from alluvium.schema.types import LONG, STRING, Field, Struct

SCHEMA = Struct((Field("id", LONG), Field("p", STRING)))
PROTOCOL = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("rowTracking", "domainMetadata"))
ON = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}
EXPECTED = [(1, "x", 10, 3), (2, "x", 11, 3), (3, "x", 12, 3), (4, "y", 7, 5), (5, "y", 21, 1), (6, "y", 22, 5)]


def make_table(root: Path, properties: dict[str, str] = ON, schema: Struct = SCHEMA, base: int | None = 10) -> str:
    """Two files; the second one has some materialised values."""
    later = {"id": [4, 5, 6], "_row-id-col-1": [7, None, None], "_row-commit-version-col-1": [None, 1, None]}
    actions: list[Action] = [PROTOCOL, make_metadata(schema, ["p"], properties)]
    for name, columns, base_row_id, version in (("x", {"id": [1, 2, 3]}, base, 3), ("y", later, 20, 5)):
        path = root / f"{name}.parquet"
        pq.write_table(pa.table({n: pa.array(values, pa.int64()) for n, values in columns.items()}), path)
        actions.append(
            Add(
                path=path.name,
                partition_values={"p": name},
                modification_time=1,
                data_change=True,
                size=path.stat().st_size,
                base_row_id=base_row_id,
                default_row_commit_version=version,
            )
        )
    (root / "_delta_log").mkdir()
    (root / "_delta_log" / f"{0:020d}.json").write_bytes(format_actions(actions))
    return str(root)
