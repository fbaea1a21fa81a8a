"""Delta's wire documents, one struct an action, under the names that the protocol gives them.

Attributes are the protocol's words in snake_case (`minReaderVersion` is `min_reader_version`). A field that the
protocol requires has no default. "Clients must ignore such unrecognized fields": unknown ones are dropped, except in
`CommitInfo`, whose content is free, and in `Metadata`, which is written anew by whoever changes a table.

Whatever has a row per file stays out of these structs on hot paths: see the Arrow schemas `FILES` and `TOMBSTONES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, TypeAlias

import msgspec
import pyarrow as pa

from alluvium.delta.terms.lines import damaged_line, decode_line, split_lines
from alluvium.errors import DECODE_ERRORS
from alluvium.schema.types import JsonValue

#: The protocol's Long and Int. Bounded, so that a number that Arrow cannot hold is found with its line.
Long: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Int: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


_UNKNOWN = "(unknown)"


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """A document of the log: camelCase outside, absent where it is None."""


class Format(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Encoding of the data files. Specification: "Format Specification"."""

    provider: str
    # Tables converted by other engines leave it out; an empty map is what it then means.
    options: dict[str, str] = msgspec.field(default_factory=dict)


class Protocol(Wire, frozen=True, kw_only=True):
    """What a client must implement. Specification: "Protocol Evolution"."""

    min_reader_version: Int
    min_writer_version: Int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None


class Metadata(Wire, frozen=True, kw_only=True):
    """The table's description. Specification: "Change Metadata".

    Attributes:
        unknown: Fields that we do not know, and their JSON. They mean nothing to us, but whoever wrote them finds them
            again in the metadata that we write.
    """

    id: str
    name: str | None = None
    description: str | None = None
    format: Format
    schema_string: str
    partition_columns: tuple[str, ...]
    configuration: dict[str, str]
    created_time: Long | None = None
    # Under a name that `parse_metadata` overwrites, whatever a log says under it.
    unknown: tuple[tuple[str, bytes], ...] = msgspec.field(default=(), name=_UNKNOWN)


class DeletionVector(Wire, frozen=True, kw_only=True):
    """Where the deleted rows of a file are listed. Specification: "Deletion Vector Descriptor Schema"."""

    storage_type: str
    path_or_inline_dv: str
    offset: Int | None = None
    size_in_bytes: Int
    cardinality: Long

    @property
    def unique_id(self) -> str:
        """Tells apart the versions of one file. Specification: "Derived Fields"."""
        # "If `offset` is `None` then `<storageType><pathOrInlineDv>`. Otherwise [...]@<offset>"
        name = self.storage_type + self.path_or_inline_dv
        return name if self.offset is None else f"{name}@{self.offset}"


class Add(Wire, frozen=True, kw_only=True):
    """A logical file enters the table. Specification: "Add File and Remove File"."""

    path: str
    partition_values: dict[str, str | None]
    size: Long
    modification_time: Long
    data_change: bool
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None
    clustering_provider: str | None = None


class Remove(Wire, frozen=True, kw_only=True):
    """A logical file leaves the table. Specification: "Add File and Remove File"."""

    path: str
    deletion_timestamp: Long | None = None
    data_change: bool
    extended_file_metadata: bool | None = None
    partition_values: dict[str, str | None] | None = None
    size: Long | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None


class Cdc(Wire, frozen=True, kw_only=True):
    """A file of change data. Specification: "Add CDC File"."""

    path: str
    partition_values: dict[str, str | None]
    size: Long
    data_change: bool
    tags: dict[str, str | None] | None = None


class Txn(Wire, frozen=True, kw_only=True):
    """How far an application has come. Specification: "Transaction Identifiers"."""

    app_id: str
    version: Long
    last_updated: Long | None = None


class DomainMetadata(Wire, frozen=True, kw_only=True):
    """Configuration of a named domain, or its end. Specification: "Domain Metadata".

    The draft of 2023 calls `configuration` a map; every writer stores text, and so does the final protocol.
    """

    domain: str
    configuration: str
    removed: bool


class RowIdHighWaterMark(Wire, frozen=True, kw_only=True):
    """The largest row id given so far (draft of 2023). Specification: "Increase Row ID High-water Mark"."""

    high_water_mark: Long
    preserved_row_ids: bool | None = None


class Sidecar(Wire, frozen=True, kw_only=True):
    """A file with file actions of a checkpoint of the second kind."""

    path: str
    size_in_bytes: Long
    modification_time: Long
    tags: dict[str, str | None] | None = None


class CheckpointMetadata(Wire, frozen=True, kw_only=True):
    """Marks a checkpoint of the second kind."""

    version: Long
    tags: dict[str, str | None] | None = None


class LastCheckpoint(Wire, frozen=True, kw_only=True):
    """Content of `_last_checkpoint`: a hint, never to be trusted. Specification: "Last Checkpoint File"."""

    version: Long
    size: Long
    parts: Int | None = None
    size_in_bytes: Long | None = None
    num_of_add_files: Long | None = None
    checksum: str | None = None


#: The years 1 to 9999, which is what Python's calendar holds, in milliseconds since 1970 UTC.
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999


class CommitInfo(msgspec.Struct, frozen=True):
    """Provenance of a commit; "Implementations are free to store any valid JSON-formatted data".

    Attributes:
        content: The whole object as it is in the log. The properties give the well-known fields where they have the
            usual type, and None where they have not.
    """

    content: Mapping[str, JsonValue]

    @property
    def timestamp(self) -> int | None:
        """When the commit was prepared, milliseconds since 1970 UTC, by the writer's clock."""
        return self._integer("timestamp")

    @property
    def in_commit_timestamp(self) -> int | None:
        """The commit's time in tables with in-commit timestamps, milliseconds since 1970 UTC; a time that no calendar
        of ours has is none.
        """
        found = self._integer("inCommitTimestamp")
        return None if found is None or not _FIRST_MS <= found <= _LAST_MS else found

    @property
    def read_version(self) -> int | None:
        """The version that the commit was based on."""
        return self._integer("readVersion")

    @property
    def operation(self) -> str | None:
        """`"WRITE"`, `"MERGE"`, ..."""
        return self._text("operation")

    @property
    def engine_info(self) -> str | None:
        """Which engine wrote the commit."""
        return self._text("engineInfo")

    @property
    def isolation_level(self) -> str | None:
        """`"Serializable"`, `"WriteSerializable"` or `"SnapshotIsolation"`."""
        return self._text("isolationLevel")

    @property
    def txn_id(self) -> str | None:
        """The writer's unique name for the attempt."""
        return self._text("txnId")

    @property
    def user_metadata(self) -> str | None:
        """What the user had to say."""
        return self._text("userMetadata")

    @property
    def is_blind_append(self) -> bool | None:
        """Whether the commit only added rows and read none."""
        value = self.content.get("isBlindAppend")
        return value if isinstance(value, bool) else None

    @property
    def operation_parameters(self) -> Mapping[str, JsonValue]:
        """Arguments of the operation; values are mostly text."""
        return self._object("operationParameters")

    @property
    def operation_metrics(self) -> Mapping[str, JsonValue]:
        """What the operation did, in figures as text."""
        return self._object("operationMetrics")

    def _integer(self, name: str) -> int | None:
        value = self.content.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def _text(self, name: str) -> str | None:
        value = self.content.get(name)
        return value if isinstance(value, str) else None

    def _object(self, name: str) -> Mapping[str, JsonValue]:
        value = self.content.get(name)
        return value if isinstance(value, dict) else {}


Action: TypeAlias = (
    Add
    | Remove
    | Cdc
    | Txn
    | DomainMetadata
    | Protocol
    | Metadata
    | CommitInfo
    | RowIdHighWaterMark
    | Sidecar
    | CheckpointMetadata
)


_ABSENT = msgspec.Raw(b"")


class Line(Wire, frozen=True, kw_only=True):
    """One line of a log file: an object with one key, the kind of the action."""

    add: Add | None = None
    remove: Remove | None = None
    cdc: Cdc | None = None
    txn: Txn | None = None
    domain_metadata: DomainMetadata | None = None
    protocol: Protocol | None = None
    meta_data: msgspec.Raw = _ABSENT
    commit_info: msgspec.Raw = _ABSENT
    row_id_high_water_mark: RowIdHighWaterMark | None = None
    sidecar: Sidecar | None = None
    checkpoint_metadata: CheckpointMetadata | None = None


_KEYS: Mapping[type, str] = {
    Add: "add",
    Remove: "remove",
    Cdc: "cdc",
    Txn: "txn",
    DomainMetadata: "domainMetadata",
    Protocol: "protocol",
    Metadata: "metaData",
    RowIdHighWaterMark: "rowIdHighWaterMark",
    Sidecar: "sidecar",
    CheckpointMetadata: "checkpointMetadata",
}

_LINES = msgspec.json.Decoder(Line)
_METADATA = msgspec.json.Decoder(Metadata)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_METADATA_NAMES = frozenset(f.encode_name for f in msgspec.structs.fields(Metadata))
_ENCODER = msgspec.json.Encoder()


def parse_actions(data: bytes, *, path: str | None = None, version: int | None = None) -> list[Action]:
    """Reads a log entry. Specification: "Delta Log Entries".

    Unknown actions and empty lines are left out: "clients can assume that unrecognized actions, fields, and/or
    metadata domains are never required in order to correctly interpret the transaction log".

    Args:
        data: New-line delimited JSON.
        path: The file, for errors.
        version: Its version, for errors.

    Raises:
        CorruptTable: A line is not an action; the message names the line, counted from 1.
    """
    actions: list[Action] = []
    for number, text in split_lines(data):
        line = decode_line(text, _LINES, number, path, version)
        try:
            actions.extend(_actions_of(line))
        except DECODE_ERRORS as error:
            raise damaged_line(number, error, path, version) from None
    return actions


def parse_own_actions(data: bytes) -> Iterator[Action]:
    """Reads a log entry that we have made ourselves, and that is well-formed by that: many lines, quickly."""
    for line in _LINES.decode_lines(data):
        if line.add is not None:
            yield line.add
        else:
            yield from _actions_of(line)


def parse_metadata(raw: bytes | msgspec.Raw) -> Metadata | None:
    """The value of a `metaData` action, unknown fields included; None for `null`.

    Raises:
        msgspec.MsgspecError: It breaks the specification; or another of `DECODE_ERRORS`.
    """
    if bytes(raw) in (b"", b"null"):
        return None
    known = _METADATA.decode(raw)
    members = _MEMBERS.decode(raw)
    unknown = tuple((name, bytes(value)) for name, value in members.items() if name not in _METADATA_NAMES)
    return msgspec.structs.replace(known, unknown=unknown)


def parse_commit_info(raw: bytes | msgspec.Raw) -> CommitInfo:
    """The value of a `commitInfo` action.

    What is not an object has no content for us, and neither has what is not text, or nested too deeply: the decoder
    of lines passes it over unread, and no reader needs it.
    """
    try:
        content = msgspec.json.decode(raw)
    except DECODE_ERRORS:
        return CommitInfo({})
    return CommitInfo(content if isinstance(content, dict) else {})


def _actions_of(line: Line) -> Iterable[Action]:
    if line.commit_info:
        yield parse_commit_info(line.commit_info)
    for action in (
        line.add, line.remove, line.cdc, line.txn, line.domain_metadata, line.protocol, parse_metadata(line.meta_data),
        line.row_id_high_water_mark, line.sidecar, line.checkpoint_metadata,
    ):  # fmt: skip
        if action is not None:
            yield action


def format_actions(actions: Iterable[Action]) -> bytes:
    """A log entry: "every action is stored as a single line JSON document", compact, without nulls."""
    return b"".join(_ENCODER.encode(_document(action)) + b"\n" for action in actions)


def known_metadata(metadata: Metadata) -> Metadata:
    """The description without fields that we do not know."""
    return msgspec.structs.replace(metadata, unknown=()) if metadata.unknown else metadata


def _document(action: Action) -> dict[str, object]:
    if isinstance(action, CommitInfo):
        return {"commitInfo": action.content}
    if isinstance(action, Metadata) and action.unknown:
        unknown = {name: msgspec.Raw(value) for name, value in action.unknown}
        return {"metaData": {**msgspec.to_builtins(known_metadata(action)), **unknown}}
    return {_KEYS[type(action)]: action}


STRING_MAP = pa.map_(pa.string(), pa.string())

#: Arrow form of `DeletionVector`.
DELETION_VECTOR = pa.struct(
    [
        pa.field("storageType", pa.string()),
        pa.field("pathOrInlineDv", pa.string()),
        pa.field("offset", pa.int32()),
        pa.field("sizeInBytes", pa.int32()),
        pa.field("cardinality", pa.int64()),
    ]
)

#: One row an `add`: the live files of a version, under the protocol's names. `path` is as in the log (a URI).
#: A table may carry one more column, `stats_parsed`, where a checkpoint has statistics only in that form.
FILES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("partitionValues", STRING_MAP, nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("modificationTime", pa.int64(), nullable=False),
        pa.field("dataChange", pa.bool_(), nullable=False),
        pa.field("stats", pa.string()),
        pa.field("tags", STRING_MAP),
        pa.field("deletionVector", DELETION_VECTOR),
        pa.field("baseRowId", pa.int64()),
        pa.field("defaultRowCommitVersion", pa.int64()),
        pa.field("clusteringProvider", pa.string()),
    ]
)

#: One row a `cdc`.
CHANGE_FILES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("partitionValues", STRING_MAP, nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("dataChange", pa.bool_(), nullable=False),
    ]
)

#: One row a `remove`.
TOMBSTONES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("deletionTimestamp", pa.int64()),
        pa.field("dataChange", pa.bool_(), nullable=False),
        pa.field("extendedFileMetadata", pa.bool_()),
        pa.field("partitionValues", STRING_MAP),
        pa.field("size", pa.int64()),
        pa.field("tags", STRING_MAP),
        pa.field("deletionVector", DELETION_VECTOR),
        pa.field("baseRowId", pa.int64()),
        pa.field("defaultRowCommitVersion", pa.int64()),
    ]
)
