"""SYNC IDENTITY: the mark of an identity column, moved to what its rows hold. Pure: the caller has seen the rows."""

from __future__ import annotations

from alluvium.delta.description.evolve import Change, to_json
from alluvium.delta.description.shown_columns import shown_change
from alluvium.delta.features.columns.identity_columns import Identity, identities, mark_behind, with_moved_marks
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Operation
from alluvium.schema.edit import Path, find_path

_INT64 = range(-(1 << 63), 1 << 63)


def identity_at(config: TableConfig, path: Path) -> Identity:
    """The identity column at a path, in any case.

    Raises:
        InvalidRequest: There is no such column (`unknown-column`), or it is none (`not-an-identity-column`).
    """
    spelled, _, _ = find_path(config.schema, path)
    found = next((i for i in identities(config.schema) if (i.column,) == spelled), None)
    if found is None:
        known = ", ".join(i.column for i in identities(config.schema))
        raise InvalidRequest(
            f"{'.'.join(spelled)!r} is not an identity column",
            code="not-an-identity-column",
            column=".".join(spelled),
            hint=f"identity columns: {known}" if known else "the table has none",
        )
    return found


def sync_identity(config: TableConfig, path: Path, furthest: int | None) -> Change:
    """Lets an identity column go on behind the furthest number that its rows hold.

    Args:
        config: The table.
        path: Of the column.
        furthest: The largest number, where it counts upwards, else the smallest; None: there are no rows.

    Raises:
        InvalidRequest: As `identity_at`; no number is left behind it (`numbers-exhausted`).
    """
    identity = identity_at(config, path)
    _, _, found = find_path(config.schema, (identity.column,))
    assert found is not None, "an identity column is one of the top level"
    mark = None if furthest is None else mark_behind(identity, furthest)
    if mark is not None and mark not in _INT64:
        raise InvalidRequest(
            f"the identity column {identity.column!r} has used up its 64 bits",
            code="numbers-exhausted",
            column=identity.column,
        )
    moved = config if mark is None else with_moved_marks(config, {identity.column: mark})
    shown = to_json(shown_change(found, (identity.column,), found))
    return Change(moved, Operation("CHANGE COLUMN", {"column": shown}), reads=True)
