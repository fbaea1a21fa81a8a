"""What rows keep when they are written anew: their ids, and the commit that made them."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as sf

from alluvium.delta.features.rows.row_ids import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from alluvium.delta.rows.candidates import Candidates
from alluvium.plan.changes import ChangeKind
from alluvium.plan.write import WritePlan
from alluvium.schema.types import LONG, Field, Struct
from alluvium.spark.positions import KIND


def with_ids(plan: WritePlan, candidates: Candidates) -> WritePlan:
    """The plan for rows that bring all columns, with those that keep rows' identities.

    Specification: "Row IDs [...] of a row must not change [...] when the row is copied or updated".
    """
    names = _materialized(candidates)
    more = tuple(Field(name, LONG) for name in names)
    return replace(
        plan,
        schema=Struct((*plan.schema.fields, *more)),
        stored=None if plan.stored is None else Struct((*plan.stored.fields, *more)),
        numbered=(),
    )


def _materialized(candidates: Candidates) -> tuple[str, ...]:
    if candidates.columns.row_id is None:
        return ()
    configuration = candidates.snapshot.config.metadata.configuration
    return (configuration[MATERIALIZED_ROW_ID], configuration[MATERIALIZED_ROW_COMMIT_VERSION])


def id_columns(candidates: Candidates) -> list[Column]:
    """The columns that `with_ids` adds, of rows that know what becomes of them (`KIND`)."""
    names, columns = _materialized(candidates), candidates.columns
    if not names or columns.row_id is None or columns.row_version is None:
        return []
    copied = sf.col(KIND) == sf.lit(int(ChangeKind.COPY))
    # "the last commit version in which the row was either inserted or updated": null, so that the file's own counts.
    return [sf.col(columns.row_id).alias(names[0]), sf.when(copied, sf.col(columns.row_version)).alias(names[1])]
