"""What differs between two versions of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

import alluvium
from alluvium.cli.render import counted, size_text

if TYPE_CHECKING:
    from alluvium.api.paimon.paimon_view import PaimonView

AnyTable: TypeAlias = "alluvium.Table | PaimonView"


@dataclass(frozen=True, slots=True)
class FileTotals:
    """How many files, their bytes, and their rows (None where a file does not say)."""

    files: int
    size: int
    rows: int | None

    @classmethod
    def of(cls, files: pa.Table) -> FileTotals:
        rows = pc.sum(files.column("num_rows"), skip_nulls=False, min_count=0).as_py()
        return cls(files.num_rows, pc.sum(files.column("size"), min_count=0).as_py(), rows)

    def __str__(self) -> str:
        rows = "an unknown number of rows" if self.rows is None else counted(self.rows, "row")
        return f"{counted(self.files, 'file')}, {rows}, {size_text(self.size)}"


@dataclass(frozen=True, slots=True)
class Change:
    """A name whose value is another, or on one side only (None on the other)."""

    what: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """From one version to another."""

    versions: tuple[int, int]
    added: FileTotals
    removed: FileTotals
    schema: tuple[Change, ...]
    properties: tuple[Change, ...]
    protocol: tuple[Change, ...]

    def as_record(self) -> dict[str, object]:
        """For programs."""

        def changes(found: tuple[Change, ...]) -> list[dict[str, str | None]]:
            return [{"what": c.what, "before": c.before, "after": c.after} for c in found]

        def totals(found: FileTotals) -> dict[str, int | None]:
            return {"files": found.files, "size": found.size, "rows": found.rows}

        return {
            "from_version": self.versions[0],
            "to_version": self.versions[1],
            "added": totals(self.added),
            "removed": totals(self.removed),
            "schema": changes(self.schema),
            "properties": changes(self.properties),
            "protocol": changes(self.protocol),
        }

    def rows(self) -> list[dict[str, str | None]]:
        """For people: one line a change, none where nothing changed."""
        found: list[dict[str, str | None]] = []
        if self.removed.files:
            found.append({"change": "files", "what": "removed", "before": str(self.removed), "after": None})
        if self.added.files:
            found.append({"change": "files", "what": "added", "before": None, "after": str(self.added)})
        for kind, changes in (("column", self.schema), ("property", self.properties), ("protocol", self.protocol)):
            found += [{"change": kind, "what": c.what, "before": c.before, "after": c.after} for c in changes]
        return found


def compare(versions: tuple[int, int], before: AnyTable, after: AnyTable) -> Difference:
    """What a reader of both versions would see changed."""
    old, new = before.files(), after.files()
    return Difference(
        versions=versions,
        added=FileTotals.of(_without(new, old)),
        removed=FileTotals.of(_without(old, new)),
        schema=_changes(_columns(before), _columns(after)),
        properties=_changes(before.properties, after.properties),
        protocol=_changes(_protocol(before), _protocol(after)),
    )


def _without(files: pa.Table, others: pa.Table) -> pa.Table:
    """The files that are not among the others."""
    return files.filter(pc.invert(pc.is_in(files.column("path"), value_set=others.column("path"))))


def _columns(t: AnyTable) -> dict[str, str]:
    return {f.name: f"{f.type}{'' if f.nullable else ' not null'}" for f in t.schema}


def _protocol(t: AnyTable) -> dict[str, str]:
    if not isinstance(t, alluvium.Table):
        return {}
    p = t.protocol
    features = {*(p.reader_features or ()), *(p.writer_features or ())}
    versions = {"reader version": str(p.min_reader_version), "writer version": str(p.min_writer_version)}
    return {**versions, **({"features": ", ".join(sorted(features))} if features else {})}


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Change, ...]:
    names = [*before, *(name for name in after if name not in before)]
    return tuple(
        Change(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    )
