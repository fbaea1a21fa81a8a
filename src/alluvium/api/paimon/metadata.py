"""`t.metadata` of a Paimon table: its schema file, and, called with a name, tables about the table."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from alluvium.errors import InvalidRequest, suggest
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.view.system.system_tables import SYSTEM_TABLES
from alluvium.paimon.view.tables import METADATA_TABLES
from alluvium.storage.locating import locating

#: Of Delta tables alone, and what comes near.
_ELSEWHERE = {
    "features": 'Paimon has no table features; .properties and .system("options") have its options',
    "transactions": '.system("snapshots") has the commit users and identifiers, .system("consumers") who reads how far',
}


@dataclass(frozen=True, slots=True, eq=False)
class AskedSchema(TableSchema):
    """The schema with its members, equal to it, and its table beside it."""

    snapshot: Snapshot | None = field(default=None, repr=False)

    def __call__(self, name: str) -> pa.Table:
        """One of the tables about the table.

        Args:
            name: `"files"`: the data files that batch readers see; `"commits"`: the snapshots, as the history shows
                them; `"partitions"`: as the system table; `"columns"`: the schema.

        Raises:
            InvalidRequest: There is no such table (`unknown-metadata-table`).
        """
        assert self.snapshot is not None, "a view has one"
        if name not in METADATA_TABLES:
            hint = _ELSEWHERE.get(name) or (
                f'use .system("{name}")' if name in SYSTEM_TABLES else suggest(name, METADATA_TABLES)
            )
            raise InvalidRequest(
                f"there is no table {name!r} about a Paimon table", code="unknown-metadata-table", hint=hint
            )
        with locating(self.snapshot.store, self.snapshot.version):
            return METADATA_TABLES[name](self.snapshot)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSchema) and _plain(self) == _plain(other)

    __hash__ = TableSchema.__hash__


def asked_schema(snapshot: Snapshot) -> AskedSchema:
    """The schema of a state, which can be asked for tables about it."""
    return AskedSchema(**_fields(snapshot.schema), snapshot=snapshot)


def _plain(schema: TableSchema) -> TableSchema:
    return TableSchema(**_fields(schema))


def _fields(schema: TableSchema) -> dict[str, Any]:
    return {f.name: getattr(schema, f.name) for f in dataclasses.fields(TableSchema) if f.init}
