"""Which door opens which format, and which format lies at a URL: the one place that knows.

The doors stand above what all formats share. So they are named here, not imported, and each is loaded when the first
table of its format is met: reading a Delta table loads nothing of Paimon. A format has two doors: one that opens
without Spark, and one for DataFrames. A further format is a further entry of `FORMATS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import pyarrow as pa

from alluvium.api.arguments import text_of
from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from alluvium.api.calls import Reading, Writing
    from alluvium.api.delta.table import Table
    from alluvium.api.paimon.paimon_view import PaimonView
    from alluvium.api.views.explanation import Explanation
    from alluvium.plan.changes import Committed
    from alluvium.plan.ports import ScanSource
    from alluvium.plan.retry import RetryPolicy
    from alluvium.schema.types import Struct
    from alluvium.storage.store import Store


@dataclass(frozen=True, slots=True)
class Asked:
    """Which state of a table is asked for; a value is None where the call does not say.

    Attributes:
        version: A version, of Paimon a snapshot.
        timestamp_ms: The newest one committed at or before this time, milliseconds since 1970 UTC.
        tag: Of Paimon.
        branch: Of Paimon.
        options: Of Paimon: dynamic table options.
        system: Of Paimon: a system table instead of the rows.
        mode: Of Paimon: how changes are found.
        follows: Of Delta: whether each query is to read the newest version, where none is asked for.
        must_follow: Whether a frame that does not is no answer.
    """

    version: int | None = None
    timestamp_ms: int | None = None
    tag: str | None = None
    branch: str | None = None
    options: Mapping[str, object] | None = None
    system: str | None = None
    mode: str = "auto"
    follows: bool = False
    must_follow: bool = False

    @property
    def is_of_a_time(self) -> bool:
        """Whether a version or a time is asked for."""
        return (self.version, self.timestamp_ms) != (None, None)

    @property
    def suits_any_format(self) -> bool:
        """Whether nothing is asked for that only one format has."""
        own = (self.tag, self.branch, self.system)
        return own == (None, None, None) and not self.options and self.mode == "auto"


@dataclass(frozen=True, slots=True)
class ArrowWriting:
    """A call of `write` without Spark.

    Attributes:
        rows: What to write; it can be read once.
        source: What the caller gave for it.
        store: The table's objects.
        save_mode: As the history names it.
        partition_by: Partition columns of a table to create.
        options: As the caller spells them.
        retry: How often a lost commit is tried again.
    """

    rows: pa.RecordBatchReader
    source: object
    store: Store
    save_mode: str
    partition_by: Sequence[str]
    options: Mapping[str, object]
    retry: RetryPolicy


def ensure_follows(asked: Asked, obstacle: str | None, url: str) -> None:
    """Refuses a frame that is to follow its table and cannot: it would show the version that it was made with for ever.

    Args:
        asked: What is asked for.
        obstacle: Why it cannot; None: it can.
        url: Of the table.

    Raises:
        UnsupportedFeature: As said.
    """
    if asked.must_follow and obstacle is not None:
        raise UnsupportedFeature(
            f"the frame cannot follow its table: {obstacle}",
            code="unsupported-option",
            url=url,
            features=("follow",),
            hint="leave follow out, and read the table again when it has changed",
        )


class Door(Protocol):
    """What the module `door` of each format has: everything that this room asks of a format without Spark."""

    def open_view(self, store: Store, asked: Asked, access: Mapping[str, str]) -> Table | PaimonView:
        """The view without Spark; `access`: the settings of its storage, for files outside the table."""

    def open_source(
        self, store: Store, given: Mapping[str, str], time_zone: str, open_any: Callable[[str], Store]
    ) -> tuple[ScanSource, Struct]:
        """The state that a data source's options (by folded names) name, and its columns."""

    def pins(self, source: Any) -> dict[str, str]:
        """Options that name the very state of a source of this format."""

    def explain(self, store: Store, where: str | None) -> Explanation:
        """How the newest state would be read without Spark."""

    def write(self, writing: ArrowWriting) -> Committed:
        """Rows into a table, which may have to be made, without Spark."""


class FrameDoor(Protocol):
    """What the module `frame_door` of each format has: everything that this room asks of a format with Spark."""

    def read(self, reading: Reading) -> DataFrame:
        """The rows of a state, or what else the call asks for."""

    def changes(self, reading: Reading, start: object, end: object) -> DataFrame:
        """The rows that changed in a range."""

    def write(self, writing: Writing) -> Committed:
        """Rows into a table, which may have to be made."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format, where its doors are, and by what a table of it is told.

    Attributes:
        name: As callers say it.
        title: As messages say it.
        module: Of its `Door`.
        frame_module: Of its `FrameDoor`.
        mark: A folder of the table, and the name from which on something lies in it.
    """

    name: str
    title: str
    module: str
    frame_module: str
    mark: tuple[str, str]

    @property
    def door(self) -> Door:
        return cast(Door, importlib.import_module(self.module))

    @property
    def frame_door(self) -> FrameDoor:
        return cast(FrameDoor, importlib.import_module(self.frame_module))

    def is_marked(self, store: Store) -> bool:
        """Whether its mark lies at the store's root."""
        return bool(store.list_from(*self.mark))


DELTA = Format("delta", "Delta", "alluvium.api.delta.door", "alluvium.api.delta.frames.frame_door", ("_delta_log", ""))
PAIMON = Format("paimon", "Paimon", "alluvium.api.paimon.door", "alluvium.api.paimon.frame_door", ("schema", "schema-"))
#: The first is what a place without any table is taken for, and what goes first where there are marks of several.
FORMATS = (DELTA, PAIMON)


def format_at(store: Store) -> Format:
    """The format of the table at the store's root; where there is none, the first, whose door says so."""
    # The first is asked last: its mark alone needs no look, and listing a long log takes its time.
    first, *others = FORMATS
    found = next((each for each in others if each.is_marked(store)), first)
    return first if found is first or first.is_marked(store) else found


def has_table(store: Store) -> bool:
    """Whether a table of any format lies at the store's root."""
    return any(each.is_marked(store) for each in FORMATS)


def format_named(name: str) -> Format:
    """The format that a caller names.

    Raises:
        InvalidRequest: `"unknown-format"`.
    """
    found = next((each for each in FORMATS if each.name == text_of(name, "format").lower()), None)
    if found is None:
        known = [each.name for each in FORMATS]
        raise InvalidRequest(f"unknown format {name!r}", code="unknown-format", hint=suggest(name, known))
    return found
