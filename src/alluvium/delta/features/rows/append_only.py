"""appendOnly: rows may be added, never changed or removed.

Specification: "Append-only Tables".
"""

from __future__ import annotations

import pyarrow.compute as pc

from alluvium.delta.features.feature import CommitContext, Feature
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.properties import parse_properties
from alluvium.errors import InvalidRequest


def is_used(config: TableConfig) -> bool:
    """ "The table property `delta.appendOnly` must be set to `true`." """
    return parse_properties(config.metadata.configuration).append_only


def ensure_appends(actions: Actions, context: CommitContext) -> Actions:
    """ "New log entries MUST NOT change or remove data from the table."

    "New log entries may rearrange data (i.e. `add` and `remove` actions where `dataChange=false`)."
    """
    # As the reference: what counts is the table that has the rows, not what the commit makes of it.
    if not is_used(context.before or context.config) or actions.removed.num_rows == 0:
        return actions
    if actions.restores:
        # The reference restores such tables: no row of an older version changes, and all are there to be read again.
        return actions
    if pc.any(actions.removed.column("dataChange")).as_py():
        raise _refused()
    return actions


def ensure_removable(config: TableConfig) -> None:
    """Refuses verbs that may remove rows before they look for any, as the reference does.

    Raises:
        InvalidRequest: `"append-only"`.
    """
    if is_used(config):
        raise _refused()


def _refused() -> InvalidRequest:
    return InvalidRequest(
        "the table is append-only: its rows cannot be changed or removed",
        code="append-only",
        hint="to allow it, set the table property delta.appendOnly to false",
    )


FEATURE = Feature(
    name="appendOnly",
    reader=False,
    spec="Append-only Tables",
    legacy_writer=2,
    is_used=is_used,
    on_commit=ensure_appends,
)
