"""Alluvium without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pyarrow.compute as pc
from first_answers import answer_of

import alluvium

# Loaded with the first predicate; the peer has its parser at hand, too.
import alluvium.expr.sql.sql_reader
from alluvium.api.delta.maintenance import write_checkpoint
from protocol import serve

# `import alluvium` loads lazily; a worker is measured with its modules loaded, as the peer is.
open_table = alluvium.open


def count(request: Mapping[str, Any]) -> object:
    return pc.sum(open_table(request["path"]).files().column("num_rows")).as_py()


def lookup(request: Mapping[str, Any]) -> object:
    return open_table(request["path"]).to_arrow(where=f"id = {request['id']}").select(["id", "customer"]).to_pylist()


def total(request: Mapping[str, Any]) -> object:
    kept = open_table(request["path"]).to_polars().filter((pl.col("quantity") >= 20) & pl.col("paid"))
    return kept.select(pl.col("customer").sum()).collect().item()


def groups(request: Mapping[str, Any]) -> object:
    rows = open_table(request["path"]).to_polars()
    found = rows.group_by("country").agg(pl.col("quantity").cast(pl.Int64).sum()).collect()
    return sorted([row["country"], row["quantity"]] for row in found.to_dicts())


def total_of_arrow(request: Mapping[str, Any]) -> object:
    return pc.sum(open_table(request["path"]).to_arrow(["customer"], "quantity >= 20 and paid").column(0)).as_py()


def groups_of_arrow(request: Mapping[str, Any]) -> object:
    found = open_table(request["path"]).to_arrow(["country", "quantity"])
    rows = found.group_by("country").aggregate([("quantity", "sum")]).to_pylist()
    return sorted([row["country"], row["quantity_sum"]] for row in rows)


def first(request: Mapping[str, Any]) -> object:
    return answer_of("import alluvium; print(alluvium.open({!r}).files().num_rows)", request["path"])


def show(request: Mapping[str, Any]) -> object:
    code = "import sys; sys.argv[1:] = ['show', {!r}]; from alluvium.cli.start import main; main()"
    return bool(answer_of(code, request["path"]))


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
    verbs = {"count": count, "load": load, "plan": plan, "checkpoint": checkpoint, "changes": changes}
    verbs |= {
        "lookup": lookup,
        "total": total,
        "groups": groups,
        "total-arrow": total_of_arrow,
        "groups-arrow": groups_of_arrow,
        "first": first,
        "show": show,
    }
    serve(verbs, lambda: {"alluvium": alluvium.__version__})
