"""`alluvium paimon PROCEDURE URL [NAME=VALUE ...]`: the procedures of Paimon tables."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from alluvium.cli.arguments import parse_pairs, parse_storage
from alluvium.cli.render import Format, Shown, print_rows


def call(
    procedure: str,
    url: str,
    values: Sequence[str] = (),
    branch: str | None = None,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """Carries out a procedure of a Paimon table, as CALL sys.PROCEDURE does in SQL.

    create_tag, create_tag_from_timestamp, create_tag_from_watermark, replace_tag, rename_tag, delete_tag, expire_tags,
    trigger_tag_automatic_creation, rollback, rollback_to_timestamp, rollback_to_watermark, rollback_to_as_latest,
    create_branch, delete_branch, rename_branch, fast_forward, copy, expire_snapshots, expire_changelogs,
    expire_partitions, remove_orphan_files, remove_unexisting_files, repair_earliest_snapshot, purge_files,
    mark_partition_done, reset_consumer, clear_consumers, compact_manifest; compact, compact_database (of a warehouse),
    rescale and analyze need Spark.
    """
    # A format is loaded when a table of it is met.
    procedures = importlib.import_module("alluvium.api.paimon.life.procedures")
    given = parse_pairs(values, "tag=monday snapshot=3")
    rows = procedures.run_procedure(procedure, url, given, parse_storage(storage_option), branch)
    print_rows(rows, tuple(Shown(name) for name, _ in procedures.find_procedure(procedure).result), how)
