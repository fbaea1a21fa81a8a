"""deltalake (delta-rs), in the environment of ../shared/reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import deltalake
import pyarrow as pa

from protocol import serve


def count(request: Mapping[str, Any]) -> object:
    return deltalake.DeltaTable(request["path"]).count()


def load(request: Mapping[str, Any]) -> object:
    # the cheapest list of files that it has
    return len(deltalake.DeltaTable(request["path"]).file_uris())


def plan(request: Mapping[str, Any]) -> object:
    table = deltalake.DeltaTable(request["path"])
    return len(table.file_uris(file_pruning_predicate=f"id = {request['id']}"))


def checkpoint(request: Mapping[str, Any]) -> object:
    return deltalake.DeltaTable(request["path"]).create_checkpoint()


def appends(request: Mapping[str, Any]) -> object:
    rows = pa.table({"id": range(100), "text": [str(n) for n in range(100)]})
    for _ in range(request["times"]):
        deltalake.write_deltalake(request["path"], rows, mode="append")
    return None


if __name__ == "__main__":
    verbs = {"count": count, "load": load, "plan": plan, "checkpoint": checkpoint, "appends": appends}
    serve(verbs, lambda: {"deltalake": deltalake.__version__})
