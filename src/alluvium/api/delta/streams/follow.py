"""A table followed without Spark: its rows, then what versions add, each batch with an offset to go on from."""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, SupportsIndex

import msgspec
import pyarrow as pa

from alluvium.api.lane import read_batches
from alluvium.api.options import parse_options, parse_timestamp_ms
from alluvium.delta.features.rows import change_data_feed
from alluvium.delta.streams.batch import LostBatch
from alluvium.delta.streams.offset import Offset, format_offset, parse_offset
from alluvium.delta.streams.options import FLAGS, VALUES, StreamOptions, parse_stream_options
from alluvium.delta.streams.stream import Stream
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import DECODE_ERRORS, InvalidRequest
from alluvium.plan.ports import ScanSource
from alluvium.storage.store import Store


class _Rows(msgspec.Struct):
    """Beside an offset: how many rows behind it have been read, where a file was not read to its end."""

    rows: Annotated[int, msgspec.Meta(ge=0)] = 0


def follow_table(
    snapshot: Snapshot,
    open_store: Callable[[str], Store],
    start: str | SupportsIndex | None,
    options: Mapping[str, object],
    changes: bool,
    wait_s: float | None,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """As `Table.follow`, which says what the arguments and the errors are."""
    _ensure_waits(wait_s)
    stream = Stream(snapshot, _asked(start, options, changes))
    if stream.options.changes and not change_data_feed.is_used(snapshot.config):
        raise InvalidRequest(
            "the table does not record changes: delta.enableChangeDataFeed is not true",
            code="change-feed-disabled",
            url=snapshot.store.url,
            version=snapshot.version,
        )
    if isinstance(start, str) and start.lower() != "latest":
        reached = parse_offset(start, stream.table_id)
        return _followed(stream, open_store, reached, _rows_behind(start), wait_s, is_resumed=True)
    # Now, not when somebody asks for the first batch.
    return _followed(stream, open_store, stream.begin(), 0, wait_s, is_resumed=False)


def _ensure_waits(wait_s: float | None) -> None:
    if wait_s is None or (isinstance(wait_s, (int, float)) and math.isfinite(wait_s) and wait_s >= 0):
        return
    raise InvalidRequest(
        f"wait_s says how many seconds to wait for more, not {wait_s!r}",
        code="invalid-wait",
        hint="give None to end where there is nothing new",
    )


def _rows_behind(offset: str) -> int:
    try:
        return msgspec.json.decode(offset, type=_Rows).rows
    except DECODE_ERRORS as error:
        raise InvalidRequest(
            f"{offset!r} is no offset of `follow`: {error}", code="invalid-offset", hint="give one that came with rows"
        ) from None


def _asked(start: str | SupportsIndex | None, options: Mapping[str, object], changes: bool) -> StreamOptions:
    given = dict(options)
    version = _version_of(start)
    if version is not None:
        named = next((n for n in given if n.lower() in ("startingversion", "startingtimestamp")), None)
        if named is not None:
            raise InvalidRequest(
                f"start says where to begin, and so does {named}", code="version-and-timestamp", hint="leave one out"
            )
        given["startingVersion"] = version
    parsed = parse_options(given, (*FLAGS, *VALUES), ())
    text = parsed.get("startingTimestamp")
    asked = parse_stream_options(parsed.known, None if text is None else parse_timestamp_ms(text, "startingTimestamp"))
    return replace(asked, changes=changes or asked.changes, max_files=1, max_bytes=None, allows_new_partitions=True)


def _version_of(start: str | SupportsIndex | None) -> str | int | None:
    """The version, or `"latest"`; None: it is an offset, or nothing."""
    if start is None:
        return None
    if isinstance(start, str):
        return start if start.lower() == "latest" else None
    # Versions of NumPy and pandas are numbers, too; True is none.
    if isinstance(start, SupportsIndex) and not isinstance(start, bool):
        return operator.index(start)
    raise InvalidRequest(
        f"start is an offset, a version or 'latest', not {start!r}",
        code="invalid-start",
        hint="give a text that came with rows, or a whole number",
    )


def _followed(
    stream: Stream,
    open_store: Callable[[str], Store],
    reached: Offset,
    rows: int,
    wait_s: float | None,
    is_resumed: bool,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    while True:
        end = stream.latest(reached, is_resumed=is_resumed)
        if end is None or end == reached:
            if wait_s is None:
                return
            time.sleep(wait_s)
            continue
        waiting: pa.RecordBatch | None = None
        for batch in _rows_of(stream, stream.batch(reached, end), open_store, rows):
            if waiting is not None:
                rows += waiting.num_rows
                yield _inside(format_offset(reached), rows), waiting
            waiting = batch
        if waiting is not None:
            yield format_offset(end), waiting
        reached, rows, is_resumed = end, 0, True


def _rows_of(
    stream: Stream, sources: tuple[ScanSource, ...], open_store: Callable[[str], Store], skipped: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a batch behind the first few, in an order that is the same each time."""
    names = stream.schema.names
    for source in sources:
        if isinstance(source, LostBatch):
            # Found only now: the log was cleaned up, or the table changed, since its end was looked for.
            raise source.error
        for batch in read_batches(source.plan_scan(None), stream.snapshot.store, open_store, names):
            rest = batch.slice(min(skipped, batch.num_rows))
            skipped -= batch.num_rows - rest.num_rows
            if rest.num_rows:
                yield rest


def _inside(begin: str, rows: int) -> str:
    """An offset, and how many rows behind it have been read."""
    return msgspec.json.encode({**msgspec.json.decode(begin), "rows": rows}).decode()
