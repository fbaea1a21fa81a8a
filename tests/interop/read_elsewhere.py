"""Runs in the reference's Python: what deltalake and DuckDB read of tables, in every version.

    read_elsewhere.py FOLDER OUT.json

DuckDB scans deltalake's dataset, and by its own extension where that is installed.
"""

import json
import os
import sys
from pathlib import Path

import duckdb
from deltalake import DeltaTable
from row_texts import row_texts


def extension():
    connection = duckdb.connect()
    try:
        connection.execute("LOAD delta")
    except duckdb.Error:
        return None
    return connection


def look(path: Path, connection) -> dict:
    """By version: the rows of each reader, or why it does not read."""
    told = {}
    for version in range(len([p for p in (path / "_delta_log").glob("*.json") if p.stem.isdigit()])):
        found = told[version] = {}
        try:
            table = DeltaTable(str(path), version=version)
            found["deltalake"] = row_texts(table.to_pyarrow_table())
            dataset = table.to_pyarrow_dataset()  # noqa: F841  # DuckDB finds it by its name
            found["duckdb"] = row_texts(duckdb.sql("select * from dataset").to_arrow_table())
        except Exception as error:  # the reader's verdict is data here
            found["refused"] = f"{type(error).__name__}: {error}"[:400]
    if connection is not None:
        try:
            scan = connection.sql(f"select * from delta_scan('{path}')")
            told[max(told)]["extension"] = row_texts(scan.to_arrow_table())
        except duckdb.Error as error:
            told[max(told)]["refused by the extension"] = str(error)[:400]
    return told


if __name__ == "__main__":
    folder, out = map(Path, sys.argv[1:])
    loaded = extension()
    Path(out).write_text(json.dumps({path.name: look(path, loaded) for path in sorted(folder.iterdir())}))
    # Threads of these libraries may outlive the interpreter, which then aborts.
    os._exit(0)
