"""Paimon tables: scans, merges while reading, schemas."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from workloads.bench import Bench, Request, Workload

_MAKER = Path(__file__).resolve().parents[1] / "make_paimon.py"
_APPENDED, _MERGED = 8_000_000, 4_000_000
_SCHEMAS = 300
_FILES = 100_000


def make_table(what: str, rows: int, warehouse: Path) -> None:
    """Has pypaimon write the table `db.t` of a warehouse."""
    folder = Path(os.environ.get("REFERENCE_DIR", Path.home() / ".cache" / "alluvium-reference"))
    command = [folder / "venv" / "bin" / "python", _MAKER, what, warehouse, str(rows)]
    subprocess.run([str(part) for part in command], check=True, env={**os.environ, "PYTHONPATH": str(_MAKER.parent)})


def append_table(bench: Bench) -> Path:
    """8 M rows in 8 files of a table without a key."""
    rows = bench.scaled(_APPENDED)
    return bench.table("paimon-append", lambda root: make_table("append", rows, root)) / "db.db" / "t"


def merge_table(bench: Bench) -> Path:
    """4 M keys in 4 buckets, in five runs that overlap: all keys, then a sixteenth of them four times again."""
    rows = bench.scaled(_MERGED)
    return bench.table("paimon-merge", lambda root: make_table("merge", rows, root)) / "db.db" / "t"


def files_table(bench: Bench) -> Path:
    """A table whose manifest lists many files."""
    count = bench.scaled(_FILES)
    return bench.table("paimon-files", lambda root: make_table("files", count, root)) / "db.db" / "t"


def _scan(bench: Bench, engine: str, turn: int) -> Request:
    path = append_table(bench)
    return {"do": "scan", "path": str(path / "bucket-0" if engine == "raw" else path)}


def _merge(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "scan", "path": str(merge_table(bench))}


def _rows(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "rows", "path": str(merge_table(bench))}


def _files(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "files", "path": str(files_table(bench))}


def _schemas(bench: Bench, engine: str, turn: int) -> Request:
    return {"do": "schemas", "path": str(append_table(bench) / "schema" / "schema-0"), "times": _SCHEMAS}


WORKLOADS = (
    Workload(
        "paimon-scan",
        "scan, filter, group-by of a Paimon table: 8 M rows",
        ("raw", "alluvium", "pypaimon"),
        "alluvium",
        1.05,
        _scan,
    ),
    Workload(
        "paimon-merge",
        "the same of 4 M keys in 5 overlapping runs",
        ("pypaimon", "alluvium", "alluvium-paimon"),
        "alluvium",
        1.0,
        _merge,
        rounds=3,
        quick_rounds=1,
    ),
    Workload(
        "paimon-merge-rows",
        "all their rows as Arrow, without Spark",
        ("pypaimon", "alluvium-paimon"),
        "alluvium-paimon",
        1.0,
        _rows,
        rounds=3,
        quick_rounds=1,
    ),
    Workload(
        "paimon-files",
        "open a table of 100,000 files, list them",
        ("pypaimon", "alluvium-paimon"),
        "alluvium-paimon",
        1.0,
        _files,
        rounds=5,
    ),
    Workload(
        "paimon-schemas",
        f"parse {_SCHEMAS} schema files",
        ("pypaimon", "alluvium-paimon"),
        "alluvium-paimon",
        1.0,
        _schemas,
    ),
)
