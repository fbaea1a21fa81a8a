"""Alluvium without Spark, on Paimon tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arrow_queries import COLUMNS, scan_answer

import alluvium
from alluvium.paimon.schema import TableSchema
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


if __name__ == "__main__":
    serve({"scan": scan, "rows": rows, "files": files, "schemas": schemas}, lambda: {"alluvium": alluvium.__version__})
