"""What rows keep when they are written anew: their ids, and the commit that made them."""

from __future__ import annotations

from alluvium.plan.changes import ChangeKind
from alluvium.plan.ports import RowPlaces
from alluvium.spark.naming.names import quote
from alluvium.spark.positions import KIND


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
