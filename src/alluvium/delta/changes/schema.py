"""Which columns a change feed has, and whether the versions of its range can be shown with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from alluvium.delta.features.registry import is_supported
from alluvium.delta.features.rows import change_data_feed
from alluvium.delta.features.types import type_widening
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Field, Map, Struct

#: The version whose columns the feed of a table with column mapping has: the last of the range, or the latest.
SchemaMode: TypeAlias = Literal["endVersion", "latest"]

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = change_data_feed.CHANGE_COLUMNS
#: "The following extra columns should also be generated"
EXTRA_COLUMNS = Struct(
    (Field(CHANGE_TYPE, t.STRING), Field(COMMIT_VERSION, t.LONG), Field(COMMIT_TIMESTAMP, t.TIMESTAMP))
)

#: A version that sets protocol or metadata (or the first of the range), and the table from there on.
Change: TypeAlias = tuple[int, TableConfig]


def choose_config(latest: TableConfig, configs: Sequence[Change], mode: SchemaMode) -> TableConfig:
    """The table whose columns the feed shows.

    As delta-spark: with the latest columns, unless columns are mapped at the start, at the end or now; then with those
    of the last version of the range.

    Args:
        latest: The newest version that counts.
        configs: Of the first version of the range, and of those that change it, ascending.
        mode: For tables with column mapping.

    Raises:
        InvalidRequest: A column has the name of one that the feed adds (`reserved-column`).
    """
    first, last = configs[0][1], configs[-1][1]
    mapped = any(config.mapping_mode != "none" for config in (first, last, latest))
    chosen = last if mapped and mode == "endVersion" else latest
    taken = {name.lower() for name in (*chosen.schema.names, *chosen.physical_schema.names)}
    for name in EXTRA_COLUMNS.names:
        if name in taken:
            raise InvalidRequest(
                f"the table has a column {name!r} of its own, which the change feed adds",
                code="reserved-column",
                column=name,
                hint="rename the column; a table with a change feed must not have it",
            )
    return chosen


def ensure_recorded(configs: Sequence[Change], first: int, last: int) -> None:
    """Refuses a range in which changes were not recorded all the time.

    Raises:
        InvalidRequest: `change-feed-disabled`.
    """
    off = next((version for version, config in configs if not change_data_feed.is_used(config)), None)
    if off is None:
        return
    since = next((version for version, config in configs if version > off and change_data_feed.is_used(config)), None)
    hint = (
        f"ask for changes up to version {off - 1}" if off > first else "set it before the changes that you want to see"
    )
    if since is not None:
        hint = f"changes are recorded from version {since} on" + (
            f", and up to version {off - 1}" if off > first else ""
        )
    raise InvalidRequest(
        f"changes of versions {first} to {last} were not all recorded: delta.enableChangeDataFeed is not true at "
        f"version {off}",
        code="change-feed-disabled",
        version=off,
        hint=hint,
    )


def ensure_compatible(shown: TableConfig, configs: Sequence[Change], first: int, last: int) -> None:
    """Refuses a range with versions whose rows cannot be shown in the chosen columns.

    Columns may be added in the range, and their types widened where the table has that feature. Rows of a version
    before a rename or a drop would lose values, or show them under another name than they had.

    Raises:
        InvalidRequest: `incompatible-schema`; names the column and the version.
    """
    widens = is_supported(type_widening.FEATURE, shown.protocol)
    for version, config in configs:
        problem = difference(config.schema, config.physical_schema, shown.schema, shown.physical_schema, widens)
        if problem is not None:
            column, text = problem
            raise InvalidRequest(
                f"changes of versions {first} to {last} have no common schema: at version {version}, {text}",
                code="incompatible-schema",
                version=version,
                column=column,
                hint="read the changes before and after the change of schema apart",
            )


def difference(
    old: Struct, old_physical: Struct, new: Struct, new_physical: Struct, widens: bool, place: str = ""
) -> tuple[str, str] | None:
    """The first column of `old` that cannot be shown as one of `new`, and why; None: all can.

    Args:
        old: Columns, under the names that they have for users.
        old_physical: The same under the names that they have in files.
        new: As `old`.
        new_physical: As `old_physical`.
        widens: Whether a type may be wider in `new`.
        place: What stands before a column's name, for columns of a struct.
    """
    targets = {f.name.lower(): (f, p) for f, p in zip(new.fields, new_physical.fields, strict=True)}
    for f, physical in zip(old.fields, old_physical.fields, strict=True):
        column = f"{place}{f.name}"
        found = targets.get(f.name.lower())
        if found is None or found[1].name.lower() != physical.name.lower():
            return column, f"it has a column {column!r} that was renamed or dropped since"
        target, target_physical = found
        if f.nullable and not target.nullable:
            return column, f"the column {column!r} may be null, later it may not"
        problem = _type_difference(f.type, physical.type, target.type, target_physical.type, widens, column)
        if problem is not None:
            return problem
    return None


def _type_difference(
    old: DataType, old_physical: DataType, new: DataType, new_physical: DataType, widens: bool, column: str
) -> tuple[str, str] | None:
    if isinstance(old, Struct) and isinstance(new, Struct):
        assert isinstance(old_physical, Struct)
        assert isinstance(new_physical, Struct)
        return difference(old, old_physical, new, new_physical, widens, f"{column}.")
    if isinstance(old, Array) and isinstance(new, Array):
        assert isinstance(old_physical, Array)
        assert isinstance(new_physical, Array)
        inner = (old.element, old_physical.element, new.element, new_physical.element)
        return _type_difference(*inner, widens, f"{column}.element")
    if isinstance(old, Map) and isinstance(new, Map):
        assert isinstance(old_physical, Map)
        assert isinstance(new_physical, Map)
        keys = (old.key, old_physical.key, new.key, new_physical.key)
        values = (old.value, old_physical.value, new.value, new_physical.value)
        return _type_difference(*keys, widens, f"{column}.key") or _type_difference(*values, widens, f"{column}.value")
    if old == new or (widens and type_widening.is_widening(old, new)):
        return None
    return column, f"the column {column!r} is {old}, later {new}"
