"""The table of the README's tour, written without Spark: the same versions, rows and provenance."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
from changes import changes_of

from alluvium.codecs.footers.parquet_footer import read_footer
from alluvium.delta.description.create import new_config
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import NewFiles, Operation, Replace
from alluvium.plan.write import WRITTEN_FILES
from alluvium.schema.types import INTEGER, STRING, Field, Struct
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SCHEMA = Struct((Field("carrier", STRING), Field("month", INTEGER), Field("delay", INTEGER)))


def write_flights(path: str) -> None:
    """Version 0: January, three rows; 1: February, two more; 2: February replaced by one row."""
    store = open_store(path)
    _write(store, {"carrier": ["UA", "B6", "DL"], "delay": [11, -5, 70]}, 1, "ErrorIfExists", None)
    _write(store, {"carrier": ["UA", "B6"], "delay": [25, 90]}, 2, "Append", None)
    sql = "month = 2"
    _write(store, {"carrier": ["UA"], "delay": [25]}, 2, "Overwrite", Replace(parse_predicate(sql, SCHEMA), sql))


def _write(store: Store, rows: dict[str, list[object]], month: int, mode: str, replace: Replace | None) -> None:
    snapshot = load_snapshot(store) if mode != "ErrorIfExists" else None
    config = snapshot.config if snapshot else new_config(SCHEMA, ["month"], {})
    target = DeltaTarget(store, config, snapshot)
    plan = target.plan_write(replace, ())
    sink = io.BytesIO()
    pq.write_table(pa.table(rows, pa.schema([("carrier", pa.string()), ("delay", pa.int32())])), sink)
    path = f"{plan.directory}/month={month}/part-00000.parquet"
    store.put(path, sink.getvalue())
    info = store.head(path)
    written = pa.table(
        {
            "path": [path],
            "size": [info.size],
            "modification_time_ms": [info.modified_ms],
            "num_rows": [len(rows["carrier"])],
            "partition": [[str(month)]],
            "bucket": [None],
        },
        schema=WRITTEN_FILES,
    )
    parameters = {"mode": mode, "partitionBy": '["month"]' if snapshot is None else "[]"}
    if replace is not None and replace.sql is not None:
        parameters["predicate"] = replace.sql
    operation = Operation("WRITE", parameters, engine="Alluvium/0.1.0")
    footer = read_footer(store.open_input(path), plan.stats_columns)
    target.commit(changes_of(NewFiles(written, (footer,)), operation, replace))
