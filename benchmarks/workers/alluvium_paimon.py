"""Alluvium without Spark, on Paimon tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from arrow_queries import COLUMNS, SMALL, scan_answer

import alluvium
from alluvium.codecs.footers.parquet_footer import read_footer
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import TableSchema
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import Append, NewFiles, Operation, ReadScope
from alluvium.plan.write import WRITTEN_FILES
from alluvium.storage.open import open_store
from protocol import serve


def scan(request: Mapping[str, Any]) -> object:
    return scan_answer(alluvium.open(request["path"]).to_arrow(columns=list(COLUMNS)))


def rows(request: Mapping[str, Any]) -> object:
    return alluvium.open(request["path"]).to_arrow().num_rows


def files(request: Mapping[str, Any]) -> object:
    return alluvium.open(request["path"]).files().num_rows


def schemas(request: Mapping[str, Any]) -> object:
    data = Path(request["path"]).read_bytes()
    return sum(len(TableSchema.parse(data).fields) for _ in range(request["times"]))


def commits(request: Mapping[str, Any]) -> object:
    """What `alluvium.write` does once Spark has written the file: here pyarrow writes it."""
    url = request["path"]
    if not Path(url).exists():
        PaimonTable.create(url, SMALL.schema)
    store = open_store(url)
    for _ in range(request["times"]):
        snapshot = load_snapshot(store)
        target = PaimonTarget(store, snapshot.schema, snapshot)
        plan = target.plan_write(None, ())
        path = f"{plan.directory}/0.parquet"
        Path(url, plan.directory).mkdir(parents=True)
        pq.write_table(SMALL, Path(url, path))
        found, footer = store.head(path), read_footer(store.open_input(path), plan.stats_columns)
        row = {"path": path, "size": found.size, "modification_time_ms": found.modified_ms,
               "num_rows": footer.num_rows, "partition": []}  # fmt: skip
        written = pa.Table.from_pylist([row], schema=WRITTEN_FILES)
        done = target.commit(Append(NewFiles(written, (footer,)), Operation("WRITE"), ReadScope.nothing()))
        store.delete_tree(plan.directory)
    return done.version


if __name__ == "__main__":
    verbs = {"scan": scan, "rows": rows, "files": files, "schemas": schemas, "commits": commits}
    serve(verbs, lambda: {"alluvium": alluvium.__version__})
