"""Columns that a catalog knows of a table, beside those of its files: what it says holds, where files can show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from alluvium.delta.features.columns.column_defaults import KEY as DEFAULT
from alluvium.delta.upkeep.convert.footers import Footers
from alluvium.delta.upkeep.convert.schemas import INTEGERS
from alluvium.errors import InvalidRequest
from alluvium.plan.scan import BEFORE
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Field, Map, Struct
from alluvium.schema.walk import fields_within

#: The property by which a table has defaults.
SUPPORTS_DEFAULTS = "delta.feature.allowColumnDefaults"


def has_defaults(columns: Struct) -> bool:
    """Whether a column has a default for rows to come."""
    return any(DEFAULT in f.metadata for f in columns.fields)


def ensure_shown(columns: Struct, partitions: Sequence[str], footers: Footers) -> None:
    """Refuses files whose rows a table of these columns would show otherwise than the catalog's table did.

    Args:
        columns: As the catalog has them.
        partitions: Those that are in no file, or do not count there.
        footers: What the files have.

    Raises:
        InvalidRequest: Types differ (`schemas-differ`), or files lack a column that has a value in their rows all the
            same (`not-convertible`).
    """
    known = {name.lower() for name in partitions}
    data = Struct(tuple(f for f in columns.fields if f.name.lower() not in known))
    for path, stored, wanted in _others(footers.schema, data, ()):
        raise InvalidRequest(
            f"files have {'.'.join(path)!r} as {stored}, and the catalog as {wanted}",
            code="schemas-differ",
            column=".".join(path),
            hint="write the files anew with the catalog's type, or give the catalog theirs",
        )
    for f in data.fields:
        if _says_value(f) and f.name.lower() not in footers.everywhere:
            raise InvalidRequest(
                f"files lack {f.name!r}, which is {f.metadata[BEFORE]} in their rows: a Delta table would show null",
                code="not-convertible",
                column=f.name,
                hint="write the rows into a Delta table of their own",
            )


def hidden_column(stored: Struct, columns: Struct) -> str | None:
    """A column, or a member of one, that files have and the table does not show."""
    shown = {tuple(part.lower() for part in path) for path, _ in fields_within(columns)}
    for path, _ in fields_within(stored):
        if tuple(part.lower() for part in path) not in shown:
            return ".".join(path)
    return None


def _says_value(f: Field) -> bool:
    text = f.metadata.get(BEFORE)
    return isinstance(text, str) and text.strip().lower() != "null"


def _others(stored: DataType, wanted: DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Where a type of the files is none that shows the same under the other."""
    if isinstance(stored, Struct) and isinstance(wanted, Struct):
        for f in wanted.fields:
            found = stored.find(f.name)
            if found is not None:
                yield from _others(found.type, f.type, (*path, f.name))
    elif isinstance(stored, Array) and isinstance(wanted, Array):
        yield from _others(stored.element, wanted.element, (*path, "element"))
    elif isinstance(stored, Map) and isinstance(wanted, Map):
        yield from _others(stored.key, wanted.key, (*path, "key"))
        yield from _others(stored.value, wanted.value, (*path, "value"))
    elif stored not in (wanted, t.VOID) and not _is_wider(stored, wanted):
        yield path, str(stored), str(wanted)


def _is_wider(stored: DataType, wanted: DataType) -> bool:
    return stored in INTEGERS and wanted in INTEGERS and INTEGERS.index(stored) <= INTEGERS.index(wanted)
