"""appendOnly: rows may be added, never changed or removed.

Specification: "Append-only Tables".
"""

from __future__ import annotations

import pyarrow.compute as pc

from alluvium.delta.actions import Actions
from alluvium.delta.config import TableConfig
from alluvium.delta.features.feature import CommitContext, Feature
from alluvium.delta.properties import parse_properties
from alluvium.errors import InvalidRequest


def is_used(config: TableConfig) -> bool:
    """ "The table property `delta.appendOnly` must be set to `true`." """
    return parse_properties(config.metadata.configuration).append_only


def ensure_appends(actions: Actions, context: CommitContext) -> Actions:
    """ "New log entries MUST NOT change or remove data from the table."

    "New log entries may rearrange data (i.e. `add` and `remove` actions where `dataChange=false`)."
    """
    if not is_used(context.config) or actions.removed.num_rows == 0:
        return actions
    if pc.any(actions.removed.column("dataChange")).as_py():
        raise InvalidRequest(
            "the table is append-only: its rows cannot be changed or removed",
            code="append-only",
            hint="to allow it, set the table property delta.appendOnly to false",
        )
    return actions


FEATURE = Feature(
    name="appendOnly",
    reader=False,
    spec="Append-only Tables",
    legacy_writer=2,
    is_used=is_used,
    on_commit=ensure_appends,
)
