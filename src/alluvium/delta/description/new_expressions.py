"""Expressions that a change brings into a table must pass the gate by which every later write will read them.

Otherwise the change would be the last one: no writer of ours would touch the table again. Expressions that stood there
before, of another engine, are not looked at: they must not keep anybody from changing the rest.
"""

from __future__ import annotations

from alluvium.delta.features.columns import check_constraints, column_defaults, generated_columns
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema.types import Field

_HINT = (
    "an expression over the row's columns alone: functions that depend on nothing but their arguments, no queries, "
    "no comments, no raw strings with backslashes"
)


def ensure_computable(config: TableConfig, current: TableConfig | None) -> None:
    """Refuses constraints, defaults and generated columns that writers could not compute.

    Args:
        config: The table as it is to be.
        current: As it was; None: it is new.

    Raises:
        InvalidRequest: `"invalid-constraint"`, `"invalid-expression"`.
    """
    try:
        _ensure_constraints(config, current)
    except UnsupportedFeature as error:
        raise InvalidRequest(error.message, code="invalid-constraint", hint=_HINT) from None
    try:
        _ensure_columns(config, current)
    except UnsupportedFeature as error:
        raise InvalidRequest(error.message, code="invalid-expression", column=error.column, hint=_HINT) from None


def _ensure_constraints(config: TableConfig, current: TableConfig | None) -> None:
    known = {} if current is None else current.metadata.configuration
    for key, sql in config.metadata.configuration.items():
        if key.startswith(check_constraints.PREFIX) and known.get(key) != sql:
            check_constraints.constraint_check(key, sql, config)


def _ensure_columns(config: TableConfig, current: TableConfig | None) -> None:
    known = {} if current is None else {f.name: f for f in current.schema.fields}

    def is_new(f: Field, key: str) -> bool:
        before = known.get(f.name)
        return key in f.metadata and (before is None or before.metadata.get(key) != f.metadata[key])

    for f in config.schema.fields:
        if is_new(f, column_defaults.KEY):
            column_defaults.default_of(f)
    if any(is_new(f, generated_columns.KEY) for f in config.schema.fields):
        generated_columns.derived_columns(config.schema)
