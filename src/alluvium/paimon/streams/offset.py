"""How far a stream has come, in the form of Paimon's connector for Spark."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from alluvium.errors import DECODE_ERRORS, InvalidRequest, UnsupportedFeature

#: The index before all splits of a snapshot. Streams here end between snapshots, never between splits.
_BEFORE = -1


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    snapshot_id: int
    index: int
    scan_snapshot: bool


@dataclass(frozen=True, slots=True)
class Offset:
    """A place before a snapshot.

    Attributes:
        snapshot_id: All before it has been read.
        is_whole: Whether it is to be read as a whole, the first rows of a stream; otherwise what it changed is.
    """

    snapshot_id: int
    is_whole: bool = False


def format_offset(offset: Offset) -> str:
    """The JSON that stands in a checkpoint."""
    return msgspec.json.encode(_Wire(offset.snapshot_id, _BEFORE, offset.is_whole)).decode()


def parse_offset(text: str) -> Offset:
    """The offset that a checkpoint holds.

    Raises:
        InvalidRequest: It is none (`invalid-offset`).
        UnsupportedFeature: It lies between splits of a snapshot, where only Paimon's own connector ends
            (`parted-changes`).
    """
    try:
        wire = msgspec.json.decode(text, type=_Wire)
    except DECODE_ERRORS as error:
        raise InvalidRequest(
            f"{text!r} is no offset of a stream from a Paimon table: {error}",
            code="invalid-offset",
            hint="the checkpoint is another query's, or was damaged: begin with a new one",
        ) from None
    if wire.index != _BEFORE:
        raise UnsupportedFeature(
            f"the checkpoint parts the snapshot {wire.snapshot_id}",
            code="parted-changes",
            version=wire.snapshot_id,
            hint="let the engine that wrote it finish the snapshot, then go on here",
        )
    return Offset(wire.snapshot_id, wire.scan_snapshot)
