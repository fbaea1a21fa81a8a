"""Alluvium without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc

import alluvium
from protocol import serve


def count(request: Mapping[str, Any]) -> object:
    return pc.sum(alluvium.open(request["path"]).files().column("num_rows")).as_py()


def load(request: Mapping[str, Any]) -> object:
    return alluvium.open(request["path"]).files().num_rows


if __name__ == "__main__":
    serve({"count": count, "load": load}, lambda: {"alluvium": alluvium.__version__})
