"""What rows keep when they are written anew: their ids, and the commit that made them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from alluvium.plan.changes import ChangeKind
from alluvium.plan.ports import RowPlaces
from alluvium.plan.write import WritePlan
from alluvium.schema.types import Field, Struct
from alluvium.spark.naming.names import quote
from alluvium.spark.positions import KIND


def with_ids(plan: WritePlan, candidates: RowPlaces) -> WritePlan:
    """The plan for rows that bring all columns, with those that keep rows' identities.

    Specification: "Row IDs [...] of a row must not change [...] when the row is copied or updated".
    """
    ids = candidates.stored_ids
    if ids is None:
        return replace(plan, numbered=())
    return replace(
        plan,
        schema=Struct((*plan.schema.fields, *(Field(f.name, f.type) for f in ids.fields))),
        stored=None if plan.stored is None else Struct((*plan.stored.fields, *ids.fields)),
        files=None if plan.files is None else pa.schema([*plan.files, *ids.files]),
        stats_columns=(*plan.stats_columns, *ids.stats),
        numbered=(),
    )


def copied_ids(candidates: RowPlaces) -> list[str]:
    """The columns that `with_ids` adds, of rows that stay what they are, as SQL text."""
    ids, columns = candidates.stored_ids, candidates.columns
    if ids is None or columns.row_id is None or columns.row_version is None:
        return []
    kept = zip((columns.row_id, columns.row_version), ids.fields, strict=True)
    return [f"{quote(column)} as {quote(f.name)}" for column, f in kept]


def id_columns(candidates: RowPlaces) -> list[str]:
    """The columns that `with_ids` adds, of rows that know what becomes of them (`KIND`): SQL, each under its name."""
    ids, columns = candidates.stored_ids, candidates.columns
    if ids is None or columns.row_id is None or columns.row_version is None:
        return []
    row_id, row_version = (quote(f.name) for f in ids.fields)
    # "the last commit version in which the row was either inserted or updated": null, so that the file's own counts.
    version = f"case when {KIND} = {int(ChangeKind.COPY)} then {quote(columns.row_version)} end"
    return [f"{quote(columns.row_id)} as {row_id}", f"{version} as {row_version}"]
