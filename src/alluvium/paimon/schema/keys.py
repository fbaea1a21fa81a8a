"""Keys of a table about to be made: where they come from, and what they do to its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from alluvium.errors import InvalidRequest, suggest
from alluvium.paimon.schema.types import DataField, duplicates
from alluvium.paimon.terms.options import PARTITION, PRIMARY_KEY, parse_names


@dataclass(frozen=True, slots=True)
class Keys:
    """Columns, keys and options that fit each other."""

    fields: tuple[DataField, ...]
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: dict[str, str]


def normalize_keys(
    fields: Sequence[DataField], partition_keys: Sequence[str], primary_keys: Sequence[str], options: dict[str, str]
) -> Keys:
    """Takes keys out of the options `partition` and `primary-key`; columns of the primary key become NOT NULL.

    Raises:
        InvalidRequest: `"duplicate-column"`, or `"invalid-key"`: a key that names no column, a column twice, or stands
            in the options, too.
    """
    remaining = dict(options)
    partition = _from_option("partition", tuple(partition_keys), PARTITION, remaining)
    primary = _from_option("primary key", tuple(primary_keys), PRIMARY_KEY, remaining)
    names = [f.name for f in fields]
    if twice := duplicates(names):
        raise InvalidRequest(f"two columns are named {twice[0]!r}", code="duplicate-column", column=twice[0])
    _ensure_columns("partition", partition, names)
    _ensure_columns("primary key", primary, names)
    columns = tuple(replace(f, type=f.type.with_nullable(False)) if f.name in primary else f for f in fields)
    return Keys(columns, partition, primary, remaining)


def _from_option(what: str, given: tuple[str, ...], key: str, options: dict[str, str]) -> tuple[str, ...]:
    text = options.pop(key, None)
    if text is None:
        return given
    if given:
        raise InvalidRequest(
            f"the {what} is given twice: as {', '.join(given)}, and as the option {key} = {text!r}", code="invalid-key"
        )
    return parse_names(text)


def _ensure_columns(what: str, keys: tuple[str, ...], names: list[str]) -> None:
    if twice := duplicates(keys):
        raise InvalidRequest(f"the {what} names {twice[0]!r} twice", code="invalid-key", column=twice[0])
    for name in keys:
        if name not in names:
            raise InvalidRequest(
                f"the {what} names {name!r}, which is no column",
                code="invalid-key",
                column=name,
                hint=suggest(name, names),
            )
