"""Runs in the readers' environment: deltalake and DuckDB go on with tables of columns `id` and `p`.

    write_openly.py TABLE ...

deltalake appends 200 and 201 and deletes 201, DuckDB appends 300. What goes wrong is an error of this script.
"""

import os
import sys

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from read_openly import connect

if __name__ == "__main__":
    engine = connect()
    for path in sys.argv[1:]:
        rows = pa.table({"id": pa.array([200, 201]), "p": pa.array(["deltalake", "deltalake"])})
        write_deltalake(path, rows, mode="append")
        DeltaTable(path).delete("id = 201")
        engine.execute(f"ATTACH '{path}' AS written (TYPE delta)")
        engine.execute("insert into written values (300, 'duckdb')")
        engine.execute("DETACH written")
    # As in read_openly.py. What was printed would be lost.
    sys.stdout.flush()
    os._exit(0)
