"""The query of the Spark workers over Arrow, for engines that read without Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

#: What small commits append.
SMALL = pa.table({"id": pa.array(range(100), pa.int64()), "name": pa.array([f"name {n}" for n in range(100)])})
COLUMNS = ("country", "quantity", "paid", "amount", "name")


def scan_answer(table: pa.Table) -> object:
    """What `scan` of the Spark workers answers, from the columns that it needs."""
    kept = table.filter((pc.field("quantity") >= 20) & pc.field("paid") & (pc.field("country") != "AT"))
    groups = kept.group_by("country").aggregate(
        [([], "count_all"), ("quantity", "sum"), ("amount", "mean"), ("name", "max")]
    )
    return sorted([row["country"], row["count_all"], row["quantity_sum"]] for row in groups.to_pylist())
