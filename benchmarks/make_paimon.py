"""Paimon tables of the bench, written by pypaimon; runs in the environment of ../shared/reference.

make_paimon.py append|merge WAREHOUSE ROWS
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

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


if __name__ == "__main__":
    what, folder, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "append":
        write(folder, appended(size), (), {"bucket": "-1", "file.format": "parquet"})
    else:
        write(folder, upserted(size), ("id",), {"bucket": "4", "file.format": "parquet"})
