"""Checkpoints of the second kind: the head of a JSON one, and where sidecars lie. Pure.

Specification: "V2 Spec", "Sidecar File Information", "Checkpoint Metadata".
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from alluvium.delta.log.names import SIDECAR_DIRECTORY
from alluvium.delta.terms.lines import decode_lines
from alluvium.delta.terms.spec import (
    CheckpointMetadata,
    DomainMetadata,
    Metadata,
    Protocol,
    RowIdHighWaterMark,
    Sidecar,
    Txn,
    Wire,
    parse_metadata,
)
from alluvium.errors import DECODE_ERRORS, CorruptTable
from alluvium.storage.paths import decode_uri_path
from alluvium.storage.store import ObjectInfo

_ABSENT = msgspec.Raw(b"")


class _HeadLine(Wire, frozen=True, kw_only=True):
    """A line of a JSON checkpoint. Of files only that they are there is looked at."""

    add: msgspec.Raw = _ABSENT
    remove: msgspec.Raw = _ABSENT
    txn: Txn | None = None
    domain_metadata: DomainMetadata | None = None
    protocol: Protocol | None = None
    meta_data: msgspec.Raw = _ABSENT
    row_id_high_water_mark: RowIdHighWaterMark | None = None
    sidecar: Sidecar | None = None
    checkpoint_metadata: CheckpointMetadata | None = None


_HEAD_LINES = msgspec.json.Decoder(_HeadLine)


@dataclass(frozen=True, slots=True)
class JsonHead:
    """What a JSON checkpoint says beside its files.

    Attributes:
        actions: In the order of the lines.
        lists_files: Whether file actions stand among the lines.
    """

    actions: tuple[Wire, ...]
    lists_files: bool


def parse_json_head(data: bytes, path: str) -> JsonHead:
    """Reads the lines of a JSON checkpoint that are not about files.

    Raises:
        CorruptTable: A line is damaged.
    """
    actions: list[Wire] = []
    lists_files = False
    for line in decode_lines(data, _HEAD_LINES, path, None):
        lists_files = lists_files or bool(line.add) or bool(line.remove)
        for action in (
            line.txn, line.domain_metadata, line.protocol, _described(line.meta_data, path),
            line.row_id_high_water_mark, line.sidecar, line.checkpoint_metadata,
        ):  # fmt: skip
            if action is not None:
                actions.append(action)
    return JsonHead(tuple(actions), lists_files)


def _described(raw: msgspec.Raw, path: str) -> Metadata | None:
    try:
        return parse_metadata(raw)
    except DECODE_ERRORS as error:
        raise CorruptTable(f"its metaData is damaged: {error}", code="damaged-checkpoint", path=path) from None


def sidecar_file(sidecar: Sidecar, checkpoint_path: str) -> ObjectInfo:
    """The object that a sidecar action means.

    "Because sidecar files must always reside in the table's own _delta_log/_sidecars directory", only the name counts:
    of a table that was copied, full paths would lead back into the original.

    Raises:
        CorruptTable: The path names no file.
    """
    try:
        name = decode_uri_path(sidecar.path).rpartition("/")[2]
    except CorruptTable:
        name = ""
    if name in ("", ".", ".."):
        raise CorruptTable(
            f"the checkpoint names a sidecar without a name: {sidecar.path!r}",
            code="damaged-checkpoint",
            path=checkpoint_path,
        )
    return ObjectInfo(f"{SIDECAR_DIRECTORY}/{name}", max(sidecar.size_in_bytes, 0), sidecar.modification_time)
