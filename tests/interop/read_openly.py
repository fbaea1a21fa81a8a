"""Runs in the readers' environment: what deltalake and DuckDB read of tables, in every version.

    read_openly.py JOBS.json OUT

A job is {"name", "path", "where": [[column, operator, value], ...], "feed": first version or null, "app": id or null,
"sql": for DuckDB or null}. OUT gets `told.json`, by name, reader and version how many rows there are or why it does not
read, and the rows as Arrow files.

    dataset   deltalake's dataset, scanned by pyarrow
    query     deltalake's own engine (DataFusion)
    duckdb    DuckDB's extension
"""

import datetime as dt
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

#: From a table's path, its version, and conditions that hold together, to the rows.
Read = Callable[[str, int, list], pa.Table]


def by_dataset(path: str, version: int, where: list) -> pa.Table:
    filters = [(column, operator, _value(value)) for column, operator, value in where]
    return DeltaTable(path, version=version).to_pyarrow_table(filters=filters or None)


def by_query(path: str, version: int, where: list) -> pa.Table:
    builder = QueryBuilder().register("t", DeltaTable(path, version=version))
    return pa.table(builder.execute(f"select * from t{_condition(where)}").read_all())


def by_duckdb(engine: duckdb.DuckDBPyConnection, path: str, version: int, where: list) -> pa.Table:
    scan = f"select * from delta_scan(?, version => ?::ubigint){_condition(where)}"
    return engine.execute(scan, [path, version]).to_arrow_table()


def by_sql(engine: duckdb.DuckDBPyConnection, sql: str, path: str) -> pa.Table:
    return engine.execute(sql, [path]).to_arrow_table()


def connect() -> duckdb.DuckDBPyConnection:
    """DuckDB with the extension, straight from its package: nothing is written outside this environment."""
    folder = Path(importlib.util.find_spec("duckdb_extension_delta").origin).parent
    engine = duckdb.connect()
    engine.execute(f"LOAD '{folder}/extensions/v{duckdb.__version__}/delta.duckdb_extension'")
    engine.execute("SET TimeZone = 'UTC'")
    return engine


def _value(value: object) -> object:
    """Dates and instants travel as `{"date": ISO text}` and `{"timestamp": ISO text with its zone}`."""
    if not isinstance(value, dict):
        return value
    return (
        dt.datetime.fromisoformat(value["timestamp"]) if "timestamp" in value else dt.date.fromisoformat(value["date"])
    )


def _condition(where: list) -> str:
    def literal(value: object) -> str:
        if isinstance(value, dict):
            ((kind, text),) = value.items()
            return f"cast('{text}' as {'timestamptz' if kind == 'timestamp' else kind})"
        return f"'{value}'" if isinstance(value, str) else str(value)

    terms = [f'"{column}" {operator} {literal(value)}' for column, operator, value in where]
    return " where " + " and ".join(terms) if terms else ""


def versions(path: str) -> list[int]:
    return sorted(int(p.stem) for p in Path(path, "_delta_log").glob("*.json") if p.stem.isdigit())


def attempt(read: Callable[[], pa.Table], file: Path) -> dict:
    """The number of rows, which stand in the file then, or the error's words."""
    try:
        found = read()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the reader's verdict is data here; a panic of Rust is no Exception
        return {"refused": f"{type(error).__name__}: {error}"[:600]}
    file.parent.mkdir(parents=True, exist_ok=True)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, found.schema) as writer:
        writer.write_table(found)
    return {"rows": found.num_rows}


def scans(job: dict, readers: dict[str, Read]) -> Iterator[tuple[str, str, Callable[[], pa.Table]]]:
    """Reader, what it reads (a version, `where`, `feed`, `sql`), and how."""
    path, newest = job["path"], versions(job["path"])[-1]
    for name, read in readers.items():
        for version in versions(path):
            yield name, str(version), partial(read, path, version, [])
        if job["where"]:
            yield name, "where", partial(read, path, newest, job["where"])
    if job["feed"] is not None:
        yield "query", "feed", lambda: pa.table(DeltaTable(path).load_cdf(starting_version=job["feed"]).read_all())


def look(job: dict, engine: duckdb.DuckDBPyConnection, out: Path) -> dict:
    told: dict = {}
    readers = {"dataset": by_dataset, "query": by_query, "duckdb": partial(by_duckdb, engine)}
    for reader, what, read in scans(job, readers):
        told.setdefault(reader, {})[what] = attempt(read, out / reader / f"{what}.arrow")
    if job["sql"] is not None:
        read = partial(by_sql, engine, job["sql"], job["path"])
        told["duckdb"]["sql"] = attempt(read, out / "duckdb" / "sql.arrow")
    if job["app"] is not None:
        told["said"] = described(job["path"], job["app"], engine)
    return told


def described(path: str, app: str, engine: duckdb.DuckDBPyConnection) -> dict:
    """How far an application has come, and the domains of other writers."""
    table = DeltaTable(path)
    engine.execute(f"ATTACH '{path}' AS attached (TYPE delta)")
    (version,) = engine.execute("select version from delta_get_transaction_version('attached', ?)", [app]).fetchone()
    engine.execute("DETACH attached")
    domains = engine.execute("select * from delta_domain_metadata(?)", [path]).fetchall()
    return {"deltalake": table.transaction_version(app), "duckdb": version, "domains": dict(domains)}


if __name__ == "__main__":
    jobs, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    engine, told = connect(), {}
    for job in jobs:
        print(job["name"], flush=True)
        told[job["name"]] = look(job, engine, out / job["name"])
    (out / "told.json").write_text(json.dumps(told))
    # Threads of these libraries may outlive the interpreter, which then aborts.
    os._exit(0)
