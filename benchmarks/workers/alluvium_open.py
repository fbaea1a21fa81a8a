"""Alluvium without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc

import alluvium

# Loaded with the first predicate; the peer has its parser at hand, too.
import alluvium.expr.sql.sql_reader
from alluvium.api.delta.maintenance import write_checkpoint
from protocol import serve

# `import alluvium` loads lazily; a worker is measured with its modules loaded, as the peer is.
open_table = alluvium.open


def count(request: Mapping[str, Any]) -> object:
    return pc.sum(open_table(request["path"]).files().column("num_rows")).as_py()


def load(request: Mapping[str, Any]) -> object:
    return open_table(request["path"]).files().num_rows


def plan(request: Mapping[str, Any]) -> object:
    return open_table(request["path"]).files(f"id = {request['id']}").num_rows


def changes(request: Mapping[str, Any]) -> object:
    found = open_table(request["path"]).changes(0).select(["_change_type", "quantity"])
    groups = found.group_by("_change_type").aggregate([("quantity", "count"), ("quantity", "sum")])
    return sorted(list(row.values()) for row in groups.to_pylist())


def checkpoint(request: Mapping[str, Any]) -> object:
    return write_checkpoint(request["path"])


if __name__ == "__main__":
    serve(
        {"count": count, "load": load, "plan": plan, "checkpoint": checkpoint, "changes": changes},
        lambda: {"alluvium": alluvium.__version__},
    )
