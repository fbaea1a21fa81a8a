"""Where a table's description names a column beside the schema: constraints, generated columns, properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.properties import CONSTRAINT_PREFIX, parse_properties
from alluvium.errors import AlluviumError, InvalidRequest
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Expression, Unknown, column_paths, is_understood
from alluvium.schema.ddl import parse_column_path
from alluvium.schema.edit import Path
from alluvium.schema.types import Struct
from alluvium.schema.walk import fields_within

_STATS_COLUMNS = "delta.dataSkippingStatsColumns"
_GENERATED = "delta.generationExpression"


def ensure_unreferenced(config: TableConfig, path: Path) -> None:
    """Refuses to touch a column that a condition or expression names.

    Raises:
        InvalidRequest: `"column-in-use"`.
    """
    for what, sql in _expressions(config):
        if _names(sql, config.schema, path):
            raise InvalidRequest(
                f"column {'.'.join(path)!r} is named by {what}: {sql}",
                code="column-in-use",
                column=".".join(path),
                hint="drop that first",
            )


def _expressions(config: TableConfig) -> Iterator[tuple[str, str]]:
    for key, value in config.metadata.configuration.items():
        if key.startswith(CONSTRAINT_PREFIX):
            yield f"the constraint {key[len(CONSTRAINT_PREFIX) :]!r}", value
    for path, f in fields_within(config.schema):
        expression = f.metadata.get(_GENERATED)
        if isinstance(expression, str):
            yield f"the generated column {'.'.join(path)!r}", expression


def _names(sql: str, schema: Struct, path: Path) -> bool:
    try:
        # A comparison makes a condition of any expression, which is what the parser reads.
        parsed: Expression = parse_predicate(f"({sql}) is null", schema)
    except AlluviumError:
        parsed = Unknown(sql)
    if not is_understood(parsed):
        # What we cannot read may name any column: as far as we can tell, the ones whose name stands in it.
        return path[0].lower() in sql.lower()
    return any(_overlaps(found, path) for found in column_paths(parsed))


def columns_named(sql: str, schema: Struct) -> tuple[str, ...]:
    """The top-level columns that a condition names; none where we cannot read it."""
    try:
        paths = column_paths(parse_predicate(sql, schema))
    except AlluviumError:
        return ()
    return tuple(sorted({path[0] for path in paths}))


def _overlaps(one: Path, other: Path) -> bool:
    length = min(len(one), len(other))
    return [p.lower() for p in one[:length]] == [p.lower() for p in other[:length]]


def renamed_properties(configuration: Mapping[str, str], old: Path, new: Path) -> dict[str, str]:
    """The properties with a column under its new name where one lists columns."""
    return _edit_stats_columns(configuration, lambda path: (*new, *path[len(old) :]) if _below(path, old) else path)


def without_columns(configuration: Mapping[str, str], dropped: Sequence[Path]) -> dict[str, str]:
    """The properties without dropped columns where one lists columns."""
    return _edit_stats_columns(configuration, lambda path: None if any(_below(path, d) for d in dropped) else path)


def _below(path: Path, parent: Path) -> bool:
    return [p.lower() for p in path[: len(parent)]] == [p.lower() for p in parent]


def _edit_stats_columns(configuration: Mapping[str, str], edit: Callable[[Path], Path | None]) -> dict[str, str]:
    found = dict(configuration)
    if _STATS_COLUMNS in found:
        listed = parse_properties({_STATS_COLUMNS: found[_STATS_COLUMNS]}).stats_columns or ()
        edited = [edit(parse_column_path(text)) for text in listed]
        found[_STATS_COLUMNS] = ",".join(".".join(_quoted(part) for part in path) for path in edited if path)
    return found


def _quoted(part: str) -> str:
    return part if part.isidentifier() else "`" + part.replace("`", "``") + "`"
