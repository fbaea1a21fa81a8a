"""`t.metadata` of a Delta table: the metaData action of its log, and, called with a name, tables about the table."""

from __future__ import annotations

from typing import Any, TypeVar

import pyarrow as pa

from alluvium.api.arguments import text_of
from alluvium.delta.terms.spec import Metadata
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.view.tables import METADATA_TABLES
from alluvium.errors import InvalidRequest, suggest

_M = TypeVar("_M", bound=Metadata)


class AskedMetadata(Metadata, frozen=True, kw_only=True, dict=True, gc=True, eq=False):
    """The action with its fields, equal to it, and its table beside it."""

    def __call__(self, name: str) -> pa.Table:
        """One of the tables about the table.

        Args:
            name: `"files"`: the live files; `"commits"`: the history; `"partitions"`: files, rows and bytes of each;
                `"columns"`: the schema; `"features"`: what the protocol asks of readers and writers;
                `"transactions"`: how far applications have come.

        Raises:
            InvalidRequest: There is no such table (`unknown-metadata-table`).
        """
        if text_of(name, "name") not in METADATA_TABLES:
            raise InvalidRequest(
                f"there is no table {name!r} about a table",
                code="unknown-metadata-table",
                hint=suggest(name, METADATA_TABLES),
            )
        snapshot: Snapshot = self.__dict__["snapshot"]
        return METADATA_TABLES[name](snapshot)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Metadata) and _plain(self) == _plain(other)

    __hash__ = Metadata.__hash__


def asked_metadata(snapshot: Snapshot) -> AskedMetadata:
    """The metadata of a version, which can be asked for tables about it."""
    made = _as(AskedMetadata, snapshot.config.metadata)
    made.__dict__["snapshot"] = snapshot
    return made


def _plain(metadata: Metadata) -> Metadata:
    return _as(Metadata, metadata)


def _as(kind: type[_M], metadata: Metadata) -> _M:
    fields: dict[str, Any] = {name: getattr(metadata, name) for name in Metadata.__struct_fields__}
    return kind(**fields)
