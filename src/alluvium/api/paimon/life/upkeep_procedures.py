"""Procedures about the files of a table: what expires, is cleaned up or compacted; readers of streams; statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from alluvium.api.paimon.life.procedure import (
    BOOLEAN,
    DONE,
    INT,
    LONG,
    STRING,
    Given,
    Procedure,
    Rows,
    chosen,
    done,
    names,
)
from alluvium.api.paimon.life.whole_databases import compact_database, remove_orphan_files

_NUMBERS = {"retain_max?": INT, "retain_min?": INT, "older_than?": STRING, "max_deletes?": INT}


def _expire_snapshots(given: Given) -> Rows:
    return ((len(given.table.expire_snapshots(**_retention(given)).ids),),)


def _expire_changelogs(given: Given) -> Rows:
    done = given.table.expire_changelogs(**_retention(given), delete_all=given.flag("delete_all"))
    return ((len(done.ids),),)


class _Retention(TypedDict):
    """What stays, as of `PaimonTable.expire_snapshots`."""

    retain_max: int | None
    retain_min: int | None
    older_than: int | None
    max_deletes: int | None


def _retention(given: Given) -> _Retention:
    return {
        "retain_max": given.number("retain_max"),
        "retain_min": given.number("retain_min"),
        "older_than": given.time_ms("older_than"),
        "max_deletes": given.number("max_deletes"),
    }


def _expire_partitions(given: Given) -> Rows:
    done = given.table.expire_partitions(
        given.text("expiration_time"),
        given.text("timestamp_formatter"),
        given.text("timestamp_pattern"),
        given.text("expire_strategy"),
        given.number("max_expires"),
    )
    lines = [", ".join(f"{key}={value}" for key, value in one.items()) for one in done.partitions]
    return [(line,) for line in lines or ["No expired partitions."]]


def _remove_orphan_files(given: Given) -> Rows:
    older_than, dry_run = given.time_ms("older_than"), given.flag("dry_run")
    if given.database is None:
        found = [given.table.remove_orphan_files(older_than, dry_run)]
    else:
        found = remove_orphan_files(given.url, given.database, older_than, dry_run, given.storage_options)
    return ((sum(one.count for one in found), sum(one.size_bytes for one in found)),)


def _remove_unexisting_files(given: Given) -> Rows:
    return [(path,) for path in given.table.remove_unexisting_files(given.flag("dry_run")).paths]


def _compact(given: Given) -> object:
    return given.table.compact(
        chosen(given),
        order_strategy=given.text("order_strategy"),
        order_by=names(given.text("order_by") or ""),
        compact_strategy=given.text("compact_strategy") or "full",
        partition_idle_time=given.text("partition_idle_time"),
    )


def _compact_database(given: Given) -> Rows:
    found = compact_database(
        given.url,
        given.text("including_databases"),
        given.text("including_tables"),
        given.text("excluding_tables"),
        given.options(),
        given.storage_options,
    )
    return ((f"Compact database finished. Success: {len(found.compacted)}, Failed: {len(found.failed)}",),)


def _rescale(given: Given) -> object:
    return given.table.rescale(given.number("bucket_num"), chosen(given))


def _analyze(given: Given) -> object:
    columns = given.text("columns")
    return given.table.analyze(None if columns is None else names(columns))


def _purge_files(given: Given) -> Rows:
    given.table.purge_files()
    return (("Success",),)


def _repair_earliest_snapshot(given: Given) -> Rows:
    wanted = given.number("snapshot_id") or 0
    return ((given.table.repair_earliest_snapshot(wanted), wanted),)


#: By Java's names.
UPKEEP: Mapping[str, Procedure] = {
    "expire_snapshots": Procedure(
        {"table": STRING, **_NUMBERS, "options?": STRING}, (("deleted_snapshots_count", INT),), _expire_snapshots
    ),
    "expire_changelogs": Procedure(
        {"table": STRING, **_NUMBERS, "delete_all?": BOOLEAN, "options?": STRING},
        (("deleted_changelogs_count", INT),),
        _expire_changelogs,
    ),
    "expire_partitions": Procedure(
        {
            "table": STRING,
            "expiration_time?": STRING,
            "timestamp_formatter?": STRING,
            "timestamp_pattern?": STRING,
            "expire_strategy?": STRING,
            "max_expires?": INT,
            "options?": STRING,
        },
        (("expired_partitions", STRING),),
        _expire_partitions,
    ),
    "remove_orphan_files": Procedure(
        {"table": STRING, "older_than?": STRING, "dry_run?": BOOLEAN, "parallelism?": INT, "mode?": STRING},
        (("deletedFileCount", LONG), ("deletedFileTotalLenInBytes", LONG)),
        _remove_orphan_files,
        takes_databases=True,
    ),
    "remove_unexisting_files": Procedure(
        {"table": STRING, "dry_run?": BOOLEAN, "parallelism?": INT}, (("fileName", STRING),), _remove_unexisting_files
    ),
    "mark_partition_done": Procedure(
        {"table": STRING, "partitions": STRING},
        DONE,
        done(lambda g: g.table.mark_partition_done(g.needed("partitions"))),
    ),
    "reset_consumer": Procedure(
        {"table": STRING, "consumerId": STRING, "nextSnapshotId?": LONG},
        DONE,
        done(lambda g: g.table.reset_consumer(g.needed("consumerId"), g.number("nextSnapshotId"))),
    ),
    "clear_consumers": Procedure(
        {"table": STRING, "includingConsumers?": STRING, "excludingConsumers?": STRING},
        DONE,
        done(lambda g: g.table.clear_consumers(g.text("includingConsumers"), g.text("excludingConsumers"))),
    ),
    "compact": Procedure(
        {
            "table": STRING,
            "partitions?": STRING,
            "compact_strategy?": STRING,
            "order_strategy?": STRING,
            "order_by?": STRING,
            "where?": STRING,
            "options?": STRING,
            "partition_idle_time?": STRING,
        },
        DONE,
        done(_compact),
    ),
    "rescale": Procedure(
        {"table": STRING, "bucket_num?": INT, "partitions?": STRING, "where?": STRING}, DONE, done(_rescale)
    ),
    "analyze": Procedure({"table": STRING, "columns?": STRING}, DONE, done(_analyze)),
    "compact_manifest": Procedure(
        {"table": STRING, "options?": STRING}, DONE, done(lambda g: g.table.compact_manifests())
    ),
    "compact_database": Procedure(
        {
            "including_databases?": STRING,
            "including_tables?": STRING,
            "excluding_tables?": STRING,
            "options?": STRING,
        },
        (("result", STRING),),
        _compact_database,
        subject=None,
    ),
    "purge_files": Procedure({"table": STRING}, (("result", STRING),), _purge_files),
    "repair_earliest_snapshot": Procedure(
        {"table": STRING, "snapshot_id": LONG},
        (("previous_earliest_snapshot_id", LONG), ("current_earliest_snapshot_id", LONG)),
        _repair_earliest_snapshot,
    ),
}
