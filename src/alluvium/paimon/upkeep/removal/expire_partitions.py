"""Partitions expire: those whose time is over are taken out of the table by a commit, as by DELETE of all their rows.

Older snapshots have them still. Specification: `org.apache.paimon.operation.PartitionExpire`,
`PartitionValuesTimeExpireStrategy`, `PartitionUpdateTimeExpireStrategy`.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import CommitConflict, InvalidRequest
from alluvium.paimon.commit.draft import Draft, Replaced
from alluvium.paimon.files.partitions import Partitions, partition_text, partitions_of
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms import life_options as life
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.upkeep.again import again
from alluvium.paimon.upkeep.life.java_time_patterns import parse_time
from alluvium.paimon.write.target import publish
from alluvium.plan.changes import Committed
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy

log = logging.getLogger("alluvium")


@dataclass(frozen=True, slots=True)
class PartitionExpiry:
    """Which partitions expire.

    Attributes:
        before: Those whose time is before this, by the clock of whoever names them.
        strategy: `"values-time"`: by their values; `"update-time"`: by their newest file.
        pattern: How a time is put together of values: `"$day $hour:00:00"`; None: it is the first one.
        formatter: How it is written, as Java's patterns have it.
        most: At most so many go.
    """

    before: dt.datetime
    strategy: str = "values-time"
    pattern: str | None = None
    formatter: str | None = None
    most: int = 100


@dataclass(frozen=True, slots=True)
class ExpiredPartitions:
    """What went, or would.

    Attributes:
        partitions: Each as a mapping of key to text.
        committed: The commit; None: there was none.
    """

    partitions: tuple[Mapping[str, str], ...] = ()
    committed: Committed | None = None


def partition_expiry(options: Mapping[str, str], now: dt.datetime, **given: str | int | None) -> PartitionExpiry:
    """As a table's options say, but for what is given: `expiration_time_ms`, `strategy`, `pattern`,
    `formatter`, `most`.

    Raises:
        InvalidRequest: Nobody says after what time (`"no-expiration-time"`).
    """
    said = {key: value for key, value in given.items() if value is not None}
    age_ms = said.get("expiration_time_ms", life.PARTITION_EXPIRATION_MS.get(options))
    if age_ms is None:
        raise InvalidRequest(
            "nobody says when partitions expire",
            code="no-expiration-time",
            hint=f"give expiration_time, or set {life.PARTITION_EXPIRATION_MS.key}",
        )
    strategy = {life.PARTITION_EXPIRATION_STRATEGY.key: str(said["strategy"])} if "strategy" in said else options
    pattern = said.get("pattern", life.PARTITION_TIMESTAMP_PATTERN.get(options))
    formatter = said.get("formatter", life.PARTITION_TIMESTAMP_FORMATTER.get(options))
    return PartitionExpiry(
        now - dt.timedelta(milliseconds=int(age_ms)),
        life.PARTITION_EXPIRATION_STRATEGY.get(strategy),
        None if pattern is None else str(pattern),
        None if formatter is None else str(formatter),
        int(said.get("most", life.PARTITION_EXPIRATION_MAX.get(options))),
    )


def expire_partitions(
    snapshot: Snapshot, expiry: PartitionExpiry, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
) -> ExpiredPartitions:
    """Takes expired partitions out of the newest state; again where somebody wrote to one of them meanwhile.

    Raises:
        CommitConflict: Somebody did every time.
        InvalidRequest: The table has no partitions (`"no-partitions"`), or the pattern is none.
    """
    if not snapshot.schema.partition_keys:
        raise InvalidRequest("the table is not partitioned", code="no-partitions", url=snapshot.store.url)

    def attempt() -> ExpiredPartitions:
        nonlocal snapshot
        rows, texts = _expired(snapshot, expiry)
        if not texts or dry_run:
            return ExpiredPartitions(tuple(texts))
        draft = Draft(snapshot.schema, ENTRIES.empty_table(), Replaced(partitions=rows))
        try:
            published = publish(snapshot.store, draft, snapshot, retry)
        except CommitConflict:
            snapshot = load_snapshot(snapshot.store, At(), snapshot.branch, time_zone=snapshot.time_zone)
            raise
        # Which files went, the snapshot tells.
        return ExpiredPartitions(tuple(texts), Committed.nothing(published.entry.version))

    return again(attempt, retry, "partitions expire")


def _expired(snapshot: Snapshot, expiry: PartitionExpiry) -> tuple[pa.Array, list[dict[str, str]]]:
    """The rows of bytes of partitions that expire, and their texts, in the order of these."""
    entries = snapshot.entries
    rows = entries["partition"].combine_chunks().dictionary_encode().dictionary
    partitions = partitions_of(entries, snapshot.schema)
    texts = _texts(snapshot.schema, partitions)
    if expiry.strategy == "update-time":
        going = _idle(entries, partitions, expiry.before)
    else:
        going = [at for at, text in enumerate(texts) if _is_past(text, snapshot.schema, expiry)]
    chosen = sorted(going, key=lambda at: ",".join(str(v) for v in texts[at].values()))[: expiry.most]
    told = [{key: str(value) for key, value in texts[at].items()} for at in chosen]
    return rows.take(pa.array(chosen, pa.int64())), told


def _texts(schema: TableSchema, partitions: Partitions) -> list[dict[str, str | None]]:
    fields = [f for name in schema.partition_keys if (f := schema.find(name)) is not None]
    columns = [partition_text(partitions.values[f.name].combine_chunks(), f, legacy=False).to_pylist() for f in fields]
    return [dict(zip(schema.partition_keys, row, strict=True)) for row in zip(*columns, strict=True)]


def _is_past(values: Mapping[str, str | None], schema: TableSchema, expiry: PartitionExpiry) -> bool:
    """Whether the time of a partition is past; one whose values are no time stays."""
    text = values[schema.partition_keys[0]] if expiry.pattern is None else expiry.pattern
    if text is None or (expiry.pattern is not None and None in values.values()):
        return False
    if expiry.pattern is not None:
        for key in schema.partition_keys:
            text = text.replace(f"${key}", str(values[key]))
    time = parse_time(text, expiry.formatter)
    if time is None:
        log.warning("the partition %s names no time, and does not expire", dict(values))
        return False
    return time < expiry.before


def _idle(entries: pa.Table, partitions: Partitions, before: dt.datetime) -> list[int]:
    """Partitions to which nothing came since a time."""
    times = pa.table({"place": partitions.indices, "at": entries["creation_time"]})
    newest = times.group_by("place").aggregate([("at", "max")])
    # "creation time": local, without a zone, as of files.
    past = newest.filter(pc.less(newest["at_max"], pa.scalar(before, pa.timestamp("ms"))))
    return [int(place) for place in past["place"].to_pylist()]
