"""How far a stream has come, in delta-spark's form: its checkpoints and ours are the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from alluvium.errors import DECODE_ERRORS, InvalidRequest

#: The index before all files of a version.
BEFORE = -1
#: Of a version that changes the columns, for streams that keep a log of them: a batch ends before its files, and once
#: that is known to be done, another one right behind. Both are delta-spark's, as is their order: all before index 0.
CHANGED, PASSED = -20, -19
#: Forms of an offset that delta-spark 4.4 writes; the third for those that mark a change of the schema.
_PLAIN, _MARKED = 1, 3
#: How `BEFORE` is spelled in the third form, where it comes before the marks.
_BASE = -100

#: What tells two offsets of a table apart, and which is further.
Place: TypeAlias = tuple[int, int]


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    source_version: int
    reservoir_id: str
    reservoir_version: int
    index: int
    is_starting_version: bool


@dataclass(frozen=True, slots=True)
class Offset:
    """A place between two files: all before it have been read.

    Attributes:
        table_id: Of the table's metadata.
        version: The version.
        index: The last file of it that has been read, counted from 0; `BEFORE`: none; `CHANGED`, `PASSED`: none, but
            it has been seen that the columns change.
        in_snapshot: Whether the files are those that were live at the version, the first rows of a stream; otherwise
            they are those that it added.
    """

    table_id: str
    version: int
    index: int = BEFORE
    in_snapshot: bool = False

    @property
    def place(self) -> Place:
        return self.version, _BASE if self.index == BEFORE else self.index

    @property
    def is_mark(self) -> bool:
        """Whether it stands at a change of the columns."""
        return self.index in (CHANGED, PASSED)

    @property
    def first(self) -> int:
        """The index of the first file of the version that has not been read."""
        return max(self.index, BEFORE) + 1


def format_offset(offset: Offset) -> str:
    """The JSON that stands in a checkpoint."""
    form = _MARKED if offset.is_mark else _PLAIN
    wire = _Wire(form, offset.table_id, offset.version, offset.index, offset.in_snapshot)
    return msgspec.json.encode(wire).decode()


def parse_offset(text: str, table_id: str) -> Offset:
    """The offset that a checkpoint holds.

    Args:
        text: JSON.
        table_id: Of the table that is read.

    Raises:
        InvalidRequest: It is none (`invalid-offset`), or one of another table (`different-table`).
    """
    try:
        wire = msgspec.json.decode(text, type=_Wire)
    except DECODE_ERRORS as error:
        raise InvalidRequest(
            f"{text!r} is no offset of a stream from a Delta table: {error}",
            code="invalid-offset",
            hint="the checkpoint is another query's, or was damaged: begin with a new one",
        ) from None
    if wire.source_version not in (_PLAIN, _MARKED):
        raise InvalidRequest(
            f"offsets of form {wire.source_version} are not known",
            code="invalid-offset",
            hint="a newer engine has written the checkpoint: go on with that one",
        )
    if wire.reservoir_id != table_id:
        raise InvalidRequest(
            f"the stream has read the table of id {wire.reservoir_id}, here is the one of id {table_id}",
            code="different-table",
            hint="the table was dropped and made anew, or the checkpoint is that of another table: begin with a new "
            "checkpoint",
        )
    index = BEFORE if wire.source_version == _MARKED and wire.index == _BASE else wire.index
    return Offset(wire.reservoir_id, wire.reservoir_version, index, wire.is_starting_version)
