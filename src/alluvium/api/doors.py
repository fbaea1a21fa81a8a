"""Which door opens which format, and which format lies at a URL: the one place that knows.

The doors stand above what both formats share. So they are named here, not imported, and each is loaded when the first
table of its format is met: reading a Delta table loads nothing of Paimon.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from alluvium.errors import InvalidRequest
from alluvium.plan.ports import ScanSource
from alluvium.schema.types import Struct
from alluvium.storage.store import Store

if TYPE_CHECKING:
    from alluvium.api.delta.table import Table
    from alluvium.api.paimon.paimon_view import PaimonView


@dataclass(frozen=True, slots=True)
class Asked:
    """Which state of a table is asked for; a value is None where the call does not say.

    Attributes:
        version: A version, of Paimon a snapshot.
        timestamp_ms: The newest one committed at or before this time, milliseconds since 1970 UTC.
        tag: Of Paimon.
        branch: Of Paimon.
        options: Of Paimon: dynamic table options.
    """

    version: int | None = None
    timestamp_ms: int | None = None
    tag: str | None = None
    branch: str | None = None
    options: Mapping[str, object] | None = None

    @property
    def suits_any_format(self) -> bool:
        """Whether nothing is asked for that only one format has."""
        return self.tag is None and self.branch is None and not self.options


class Door(Protocol):
    """What the module `door` of each format has: everything that this room asks of a format."""

    def open_view(self, store: Store, asked: Asked, access: Mapping[str, str]) -> Table | PaimonView:
        """The view without Spark; `access`: the settings of its storage, for files outside the table."""

    def open_source(
        self, store: Store, given: Mapping[str, str], time_zone: str, open_any: Callable[[str], Store]
    ) -> tuple[ScanSource, Struct]:
        """The state that a data source's options (by folded names) name, and its columns."""

    def pins(self, source: Any) -> dict[str, str]:
        """Options that name the very state of a source of this format."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format and where its door is."""

    name: str
    module: str

    @property
    def door(self) -> Door:
        return cast(Door, importlib.import_module(self.module))


DELTA = Format("delta", "alluvium.api.delta.door")
PAIMON = Format("paimon", "alluvium.api.paimon.door")


def format_at(store: Store) -> Format:
    """The format of the table at the store's root; where there is none, Delta, whose door says so."""
    return PAIMON if is_paimon(store) else DELTA


def is_paimon(store: Store) -> bool:
    """Whether a Paimon table lies at the store's root, and no Delta table."""
    return bool(store.list_from("schema", "schema-")) and not store.list_from("_delta_log")


def ensure_no_paimon(
    store: Store,
    tag: str | None,
    branch: str | None,
    options: Mapping[str, object] | None,
    asked: str | None = None,
) -> None:
    """Arguments of Paimon's tables mean nothing elsewhere.

    Raises:
        InvalidRequest: `"not-a-paimon-table"`.
    """
    if tag is not None or branch is not None or options or asked is not None:
        raise InvalidRequest(
            "tags, branches, options, system tables and modes are Paimon's: there is no Paimon table",
            code="not-a-paimon-table",
            url=store.url,
        )
