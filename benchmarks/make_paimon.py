"""Paimon tables of the bench, written by pypaimon; runs in the environment of ../shared/reference.

make_paimon.py append|merge|keys|runs|files WAREHOUSE COUNT
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
from pypaimon import CatalogFactory, Schema

import data

FILES = 8
RUNS = 5
#: Of the rows of the first run, how many each later run writes again.
UPDATED = 1 / 16


def appended(count: int) -> Iterator[pa.Table]:
    """Rows in as many commits as files."""
    for i in range(FILES):
        yield data.rows(count // FILES, i * (count // FILES), seed=i)


def upserted(count: int) -> Iterator[pa.Table]:
    """Rows with ids from 0 on, then runs of new values for ids drawn at random, so that all runs overlap."""
    yield data.rows(count, 0, seed=1)
    random = np.random.default_rng(3)
    again = max(1, int(count * UPDATED))
    for run in range(1, RUNS):
        ids = np.sort(random.choice(count, again, replace=False))
        yield data.rows(again, 0, seed=100 + run).set_column(0, "id", pa.array(ids))


def overlapping(count: int) -> Iterator[pa.Table]:
    """Runs of as many rows, each of which has every second one of twice as many ids, drawn at random."""
    random = np.random.default_rng(5)
    for run in range(RUNS):
        ids = np.sort(random.choice(2 * count, count, replace=False))
        yield data.rows(count, 0, seed=200 + run).set_column(0, "id", pa.array(ids))


def write(warehouse: str, tables: Iterator[pa.Table], keys: Sequence[str], options: Mapping[str, str]) -> None:
    """The table `db.t` of a warehouse, a commit a table of rows."""
    catalog = CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database("db", True)
    fields = [f.with_nullable(f.name not in keys) for f in data.rows(1, 0, 0).schema]
    schema = pa.schema(fields)
    catalog.create_table("db.t", Schema.from_pyarrow_schema(schema, primary_keys=list(keys), options=options), False)
    table = catalog.get_table("db.t")
    for rows in tables:
        builder = table.new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        writer.write_arrow(rows.cast(schema))
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()


def list_files(warehouse: str, count: int) -> None:
    """Makes the only manifest of the table list so many files, which do not exist."""
    table = Path(warehouse) / "db.db" / "t"
    (manifest,) = (path for path in (table / "manifest").glob("manifest-*") if "-list-" not in path.name)
    schema, (entry,) = read_avro(manifest)
    entries = (
        {
            **entry,
            "_FILE": {**entry["_FILE"], "_FILE_NAME": f"data-{uuid.UUID(int=i)}-0.parquet", "_FILE_SIZE": 10_000 + i},
        }
        for i in range(count)
    )
    write_avro(manifest, schema, entries)
    for place in (table / "manifest").glob("manifest-list-*"):
        schema, lists = read_avro(place)
        for one in lists:
            one.update({"_FILE_SIZE": manifest.stat().st_size, "_NUM_ADDED_FILES": count})
        write_avro(place, schema, lists)
    snapshot = table / "snapshot" / "snapshot-1"
    document = json.loads(snapshot.read_text(encoding="utf-8"))
    for key in ("baseManifestList", "deltaManifestList"):
        document[f"{key}Size"] = (table / "manifest" / document[key]).stat().st_size
    snapshot.write_text(json.dumps(document), encoding="utf-8")


def read_avro(path: Path) -> tuple[Any, list[dict[str, Any]]]:
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        return reader.writer_schema, list(reader)


def write_avro(path: Path, schema: Any, records: Iterable[dict[str, Any]]) -> None:
    with path.open("wb") as file:
        fastavro.writer(file, schema, records, codec="deflate", sync_interval=64_000)


if __name__ == "__main__":
    what, folder, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "append":
        write(folder, appended(size), (), {"bucket": "-1", "file.format": "parquet"})
    elif what == "files":
        write(folder, iter([data.rows(1000, 0, seed=0)]), (), {"bucket": "-1", "file.format": "parquet"})
        list_files(folder, size)
    elif what in ("keys", "runs"):
        made = iter([data.rows(size, 0, seed=7)]) if what == "keys" else overlapping(size)
        write(folder, made, ("id",), {"bucket": "4", "file.format": "parquet"})
    else:
        write(folder, upserted(size), ("id",), {"bucket": "4", "file.format": "parquet"})
