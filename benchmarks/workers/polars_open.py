"""Polars, in the environment of ../shared/reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from protocol import serve


def lookup(request: Mapping[str, Any]) -> object:
    found = pl.scan_delta(request["path"]).filter(pl.col("id") == request["id"]).collect()
    return found.select("id", "customer").to_dicts()


def total(request: Mapping[str, Any]) -> object:
    kept = pl.scan_delta(request["path"]).filter((pl.col("quantity") >= 20) & pl.col("paid"))
    return kept.select(pl.col("customer").sum()).collect().item()


def groups(request: Mapping[str, Any]) -> object:
    found = pl.scan_delta(request["path"]).group_by("country").agg(pl.col("quantity").cast(pl.Int64).sum()).collect()
    return sorted([row["country"], row["quantity"]] for row in found.to_dicts())


if __name__ == "__main__":
    serve({"lookup": lookup, "total": total, "groups": groups}, lambda: {"polars": pl.__version__})
