"""Values that are given beside a statement, `spark.sql(text, args=...)`, put where they belong."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TypeVar

from alluvium.api.sql.text.names import split_name
from alluvium.api.sql.text.terms import AsOf, NamedBy, Parameter, PathLiteral, Settings, Statement, TableName
from alluvium.errors import InvalidRequest, suggest

Arguments = Mapping[str, object] | Sequence[object]
_S = TypeVar("_S", bound=Statement)


def bind_parameters(statement: _S, args: Arguments, settings: Settings | None = None) -> _S:
    """The statement with its parameters' values, but for those within a `SqlText`: Spark binds them, reading it.

    Args:
        statement: As it was parsed.
        args: By name, or in their order.
        settings: The session's, for names.

    Raises:
        InvalidRequest: `"unbound-parameter"`: no value is given for one; `"invalid-parameter"`: a value is not what
            stands at its place.
    """
    bound = {
        field.name: _bound(field.name, getattr(statement, field.name), args, settings or Settings())
        for field in dataclasses.fields(statement)  # type: ignore[arg-type]  # each statement is a dataclass
    }
    return type(statement)(**bound)


def _bound(field: str, value: object, args: Arguments, settings: Settings) -> object:
    if isinstance(value, Parameter):
        return _BY_FIELD[field](value, _given(value, args))
    if isinstance(value, NamedBy):
        return TableName(split_name(_text(value.parameter, _given(value.parameter, args)), settings))
    if isinstance(value, (PathLiteral, AsOf)):
        parts = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **{k: _bound(k, v, args, settings) for k, v in parts.items()})  # type: ignore[arg-type]  # checked by field
    if field == "properties" and isinstance(value, tuple):
        return tuple((key, _bound("property", text, args, settings)) for key, text in value)
    return value


def _given(parameter: Parameter, args: Arguments) -> object:
    """The value of a parameter."""
    if parameter.name is not None:
        names = args if isinstance(args, Mapping) else {}
        if parameter.name in names:
            return names[parameter.name]
        hint = suggest(parameter.name, names) if names else f'give it: args={{"{parameter.name}": ...}}'
        raise InvalidRequest(f"no value is given for {parameter}", code="unbound-parameter", hint=hint)
    values = () if isinstance(args, Mapping) else args
    position = parameter.position or 0
    if position < len(values):
        return values[position]
    raise InvalidRequest(
        f"no value is given for {parameter}", code="unbound-parameter", hint="give a list of as many values: args=[...]"
    )


def _refused(parameter: Parameter, value: object, wanted: str) -> InvalidRequest:
    return InvalidRequest(
        f"the parameter {parameter} is {wanted}, not {type(value).__name__}",
        code="invalid-parameter",
        hint=f"give {wanted}",
    )


def _text(parameter: Parameter, value: object) -> str:
    if not isinstance(value, str):
        raise _refused(parameter, value, "a text")
    return value


def _whole(parameter: Parameter, value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise _refused(parameter, value, "a whole number from 0")
    return value


def _hours(parameter: Parameter, value: object) -> float:
    if not isinstance(value, (int, float, Decimal)) or isinstance(value, bool) or not math.isfinite(value):
        raise _refused(parameter, value, "a number")
    return float(value)


def _time(parameter: Parameter, value: object) -> str:
    if isinstance(value, (datetime, date)):
        return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
    return _text(parameter, value)


def _property(parameter: Parameter, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, Decimal)) else _text(parameter, value)


_BY_FIELD: dict[str, Callable[[Parameter, object], object]] = {
    "path": _text,
    "location": _text,
    "version": _whole,
    "limit": _whole,
    "timestamp": _time,
    "retain_hours": _hours,
    "property": _property,
}
