"""What rows keep when they are written anew: their ids, and the commit that made them."""

from __future__ import annotations

from dataclasses import replace

from alluvium.plan.changes import ChangeKind
from alluvium.plan.ports import RowPlaces
from alluvium.plan.write import WritePlan
from alluvium.schema.types import LONG, Field, Struct
from alluvium.spark.naming.names import quote
from alluvium.spark.positions import KIND


def with_ids(plan: WritePlan, candidates: RowPlaces) -> WritePlan:
    """The plan for rows that bring all columns, with those that keep rows' identities.

    Specification: "Row IDs [...] of a row must not change [...] when the row is copied or updated".
    """
    names = candidates.stored_ids
    more = tuple(Field(name, LONG) for name in names)
    return replace(
        plan,
        schema=Struct((*plan.schema.fields, *more)),
        stored=None if plan.stored is None else Struct((*plan.stored.fields, *more)),
        numbered=(),
    )


def copied_ids(candidates: RowPlaces) -> list[str]:
    """The columns that `with_ids` adds, of rows that stay what they are, as SQL text."""
    names, columns = candidates.stored_ids, candidates.columns
    if not names or columns.row_id is None or columns.row_version is None:
        return []
    kept = zip((columns.row_id, columns.row_version), names, strict=True)
    return [f"{quote(column)} as {quote(name)}" for column, name in kept]


def id_columns(candidates: RowPlaces) -> list[str]:
    """The columns that `with_ids` adds, of rows that know what becomes of them (`KIND`): SQL, each under its name."""
    names, columns = candidates.stored_ids, candidates.columns
    if not names or columns.row_id is None or columns.row_version is None:
        return []
    # "the last commit version in which the row was either inserted or updated": null, so that the file's own counts.
    version = f"case when {KIND} = {int(ChangeKind.COPY)} then {quote(columns.row_version)} end"
    return [f"{quote(columns.row_id)} as {quote(names[0])}", f"{version} as {quote(names[1])}"]
