"""What became of a table's columns between two versions, found by their names in files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from alluvium.delta.features.registry import is_supported
from alluvium.delta.features.types import type_widening
from alluvium.delta.terms.config import TableConfig
from alluvium.schema.types import Array, DataType, Field, Map, Struct
from alluvium.schema.walk import fields_within

Path: TypeAlias = tuple[str, ...]
_Change: TypeAlias = Literal["same", "wider", "other"]


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """Changes that are more than new columns; columns with their parents, dots between.

    Attributes:
        renamed: Old and new name.
        dropped: Their names.
        widened: Name, old and new type.
        clashing: Columns whose rows before and after no type has.
    """

    renamed: tuple[tuple[str, str], ...]
    dropped: tuple[str, ...]
    widened: tuple[tuple[str, DataType, DataType], ...]
    clashing: tuple[str, ...]

    @property
    def is_additive(self) -> bool:
        """Whether there are none."""
        return not (self.renamed or self.dropped or self.widened or self.clashing)

    def __str__(self) -> str:
        found = [f"{old!r} was renamed to {new!r}" for old, new in self.renamed]
        found += [f"{name!r} was dropped" for name in self.dropped]
        found += [f"{name!r} was {old}, is {new}" for name, old, new in self.widened]
        found += [f"the type of {name!r} was changed" for name in self.clashing]
        return ", ".join(found)


def column_changes(old: TableConfig, new: TableConfig) -> ColumnChanges:
    """What became of the columns of a version in a later one."""
    before, after = _by_place_in_files(old), _by_place_in_files(new)
    widens = is_supported(type_widening.FEATURE, new.protocol)
    both = [(*before[place], *after[place]) for place in before if place in after]
    kinds = {name: _change(f.type, g.type, widens) for name, f, _, g in both}
    return ColumnChanges(
        # Of a struct that was renamed its fields were not.
        renamed=tuple((".".join(a), ".".join(b)) for a, _, b, _ in both if a[-1] != b[-1]),
        dropped=tuple(".".join(name) for place, (name, _) in before.items() if place not in after),
        widened=tuple((".".join(name), f.type, g.type) for name, f, _, g in both if kinds[name] == "wider"),
        clashing=tuple(
            ".".join(name) for name, f, _, g in both if kinds[name] == "other" or (f.nullable and not g.nullable)
        ),
    )


def _by_place_in_files(config: TableConfig) -> dict[Path, tuple[Path, Field]]:
    physical = (path for path, _ in fields_within(config.physical_schema))
    return dict(zip(physical, fields_within(config.schema), strict=True))


def _change(old: DataType, new: DataType, widens: bool) -> _Change:
    """Of a type; what is in a struct is looked at by itself."""
    if isinstance(old, Struct) and isinstance(new, Struct):
        return "same"
    if isinstance(old, Array) and isinstance(new, Array):
        return _change(old.element, new.element, widens)
    if isinstance(old, Map) and isinstance(new, Map):
        both = {_change(old.key, new.key, widens), _change(old.value, new.value, widens)}
        return "other" if "other" in both else "wider" if "wider" in both else "same"
    if old == new:
        return "same"
    return "wider" if widens and type_widening.is_widening(old, new) else "other"
