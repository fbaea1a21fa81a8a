"""deltalake (delta-rs), in the environment of ../shared/reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import deltalake

from protocol import serve


def count(request: Mapping[str, Any]) -> object:
    return deltalake.DeltaTable(request["path"]).count()


def load(request: Mapping[str, Any]) -> object:
    # the cheapest list of files that it has
    return len(deltalake.DeltaTable(request["path"]).file_uris())


def plan(request: Mapping[str, Any]) -> object:
    table = deltalake.DeltaTable(request["path"])
    return len(table.file_uris(file_pruning_predicate=f"id = {request['id']}"))


if __name__ == "__main__":
    serve({"count": count, "load": load, "plan": plan}, lambda: {"deltalake": deltalake.__version__})
