"""The log of a streamed table's columns, in a query's checkpoint, in delta-spark's form: either goes on with it.

An entry is an object whose name counts up from 0, of two lines: the form's version, and JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.spec import Metadata, Protocol
from alluvium.errors import DECODE_ERRORS, AlluviumError, CorruptTable, InvalidRequest
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import Struct
from alluvium.storage.store import PutOutcome, Store

_FORM = b"v1"


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a stream reads files by, from a version on.

    Attributes:
        table_id: Of the table.
        delta_commit_version: The version that set this, or at which it held.
        data_schema_json: All columns, as the table's metadata have them.
        partition_schema_json: The partition columns in the same form.
        source_metadata_path: Where the query keeps what it knows of the source, `<checkpoint>/sources/0`.
        table_configurations: The table's properties.
        protocol_json: The `protocol` action.
        previous_metadata_seq_num: The entry before this one, where that is not the one that was written before it.
    """

    table_id: str
    delta_commit_version: int
    data_schema_json: str
    partition_schema_json: str
    source_metadata_path: str
    table_configurations: dict[str, str] | None = None
    protocol_json: str | None = None
    previous_metadata_seq_num: int | None = None


class _Action(msgspec.Struct, frozen=True):
    protocol: Protocol


class _Partitions(msgspec.Struct, frozen=True):
    class Named(msgspec.Struct, frozen=True):
        name: str

    fields: tuple[Named, ...]


def entry_of(version: int, config: TableConfig, place: str) -> Entry:
    """What is kept of a version.

    Args:
        version: The version.
        config: What it says of itself.
        place: Where the query keeps what it knows of the source.
    """
    found = [config.schema.find(name) for name in config.partition_columns]
    metadata = config.metadata
    return Entry(
        table_id=metadata.id,
        delta_commit_version=version,
        data_schema_json=metadata.schema_string,
        partition_schema_json=format_schema(Struct(tuple(f for f in found if f is not None))),
        source_metadata_path=place,
        table_configurations=dict(metadata.configuration),
        protocol_json=msgspec.json.encode(_Action(config.protocol)).decode(),
    )


def config_of(entry: Entry, now: TableConfig) -> TableConfig:
    """The table as an entry has it.

    Args:
        entry: The entry.
        now: The table as it is, for what old entries do not say.

    Raises:
        CorruptTable: `tracking-log-damaged`.
    """
    try:
        partitions = msgspec.json.decode(entry.partition_schema_json, type=_Partitions)
        protocol = now.protocol
        if entry.protocol_json is not None:
            protocol = msgspec.json.decode(entry.protocol_json, type=_Action).protocol
        metadata: Metadata = msgspec.structs.replace(
            now.metadata,
            schema_string=entry.data_schema_json,
            partition_columns=tuple(f.name for f in partitions.fields),
            configuration=now.metadata.configuration
            if entry.table_configurations is None
            else entry.table_configurations,
        )
        return parse_config(protocol, metadata)
    except (*DECODE_ERRORS, AlluviumError) as error:
        raise _damaged(f"its schema or protocol cannot be read: {error}") from None


@dataclass(frozen=True, slots=True)
class TrackingLog:
    """The log, as far as it is known.

    Attributes:
        store: The objects of the log alone.
        number: Of the newest entry; -1: there is none.
        newest: The newest entry.
        previous: The entry before it.
    """

    store: Store
    number: int = -1
    newest: Entry | None = None
    previous: Entry | None = None

    def appended(self, entry: Entry, *, replaces: bool = False) -> TrackingLog:
        """The log with one more entry.

        Args:
            entry: The entry.
            replaces: Whether it takes the newest one's place: the one before that is the one before it.

        Raises:
            InvalidRequest: Another query writes there (`tracking-location-conflict`).
        """
        if entry == self.newest:
            return self
        previous = self.newest
        if replaces and self.newest is not None:
            number = self.newest.previous_metadata_seq_num
            entry = msgspec.structs.replace(
                entry, previous_metadata_seq_num=self.number - 1 if number is None else number
            )
            previous = self.previous
        data = _FORM + b"\n" + msgspec.json.encode(entry)
        name = str(self.number + 1)
        outcome = self.store.put_if_absent(name, data)
        # What is there now tells: the store may have given no answer, and another run of this query may have come to
        # the same.
        if outcome is not PutOutcome.DONE and self.store.get(name) != data:
            raise InvalidRequest(
                f"another query keeps its columns in {self.store.url!r}, too",
                code="tracking-location-conflict",
                path=self.store.url,
                hint="give one of them another schemaTrackingLocation, or a streamingSourceTrackingId",
            )
        return replace(self, number=self.number + 1, newest=entry, previous=previous)


def directory_of(location: str, table_id: str, tracking_id: str | None) -> str:
    """Where below `schemaTrackingLocation` the log of a table lies; `streamingSourceTrackingId` tells sources apart."""
    return f"{location.rstrip('/')}/_schema_log_{table_id}" + ("" if tracking_id is None else f"_{tracking_id}")


def load_tracking_log(store: Store, table_id: str) -> TrackingLog:
    """Reads the log.

    Args:
        store: Its objects.
        table_id: Of the table that is streamed.

    Raises:
        CorruptTable: An entry cannot be read (`tracking-log-damaged`).
        InvalidRequest: It is another table's (`tracking-log-of-other-table`).
    """
    names = [info.path for info in store.list_from("")]
    numbers = sorted(int(name) for name in names if name.isascii() and name.isdigit())
    if not numbers:
        return TrackingLog(store)
    newest = _read(store, numbers[-1])
    if newest.table_id != table_id:
        raise InvalidRequest(
            f"the log of columns in {store.url!r} is of the table of id {newest.table_id}, not {table_id}",
            code="tracking-log-of-other-table",
            path=store.url,
            hint="give another schemaTrackingLocation",
        )
    before = newest.previous_metadata_seq_num
    number = numbers[-1] - 1 if before is None else before
    return TrackingLog(store, numbers[-1], newest, _read(store, number) if number in numbers else None)


def _read(store: Store, number: int) -> Entry:
    form, _, text = store.get(str(number)).partition(b"\n")
    if form.strip() != _FORM:
        raise _damaged(f"the entry {number} is of the form {form[:20]!r}", store.url)
    try:
        return msgspec.json.decode(text, type=Entry)
    except DECODE_ERRORS as error:
        raise _damaged(f"the entry {number} cannot be read: {error}", store.url) from None


def _damaged(problem: str, path: str | None = None) -> CorruptTable:
    return CorruptTable(
        f"the log of a stream's columns is damaged: {problem}",
        code="tracking-log-damaged",
        path=path,
        hint="give another schemaTrackingLocation",
    )
