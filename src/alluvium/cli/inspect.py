"""Commands that look at a table: show, schema, history, files, cat, changes, diff."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

import alluvium
from alluvium.cli.arguments import open_table
from alluvium.cli.difference import compare
from alluvium.cli.render import (
    Format,
    Shown,
    count_text,
    counted,
    metrics_text,
    open_console,
    pairs_text,
    plain_rows,
    print_csv,
    print_record,
    print_rows,
    size_text,
    time_text,
    values_text,
)
from alluvium.codecs.variants.variant_text import show_variants
from alluvium.errors import InvalidRequest
from alluvium.schema.types import Struct

if TYPE_CHECKING:
    from alluvium.api.paimon.paimon_view import PaimonView

_HISTORY = (
    Shown("version", right=True),
    Shown("timestamp", "time (UTC)", time_text),
    Shown("operation"),
    Shown("operationParameters", "parameters", pairs_text),
    Shown("operationMetrics", "files and rows", metrics_text),
    Shown("engineInfo", "engine"),
)
_FILES = (
    Shown("path"),
    Shown("num_rows", "rows", count_text, right=True),
    Shown("size", None, size_text, right=True),
    Shown("partition", None, values_text),
    Shown("modification_time", "modified (UTC)", time_text),
)
_SCHEMA = (Shown("column"), Shown("type"), Shown("nullable"), Shown("partition"), Shown("metadata"))
_DIFFERENCES = (Shown("change"), Shown("what"), Shown("before"), Shown("after"))


def show(
    url: str,
    version: int | None = None,
    timestamp: str | None = None,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """Version, size, protocol, properties."""
    t = open_table(url, version, timestamp, storage_option)
    files = t.files()
    rows = pc.sum(files.column("num_rows"), skip_nulls=False, min_count=0).as_py()
    size = pc.sum(files.column("size"), min_count=0).as_py()
    identity, rules, marks = _of_delta(t) if isinstance(t, alluvium.Table) else _of_paimon(t)
    record: dict[str, object] = {
        "url": t.url,
        "format": t.format,
        **identity,
        "version": t.version,
        "timestamp": t.timestamp,
        "files": files.num_rows,
        "size": size,
        "rows": rows,
        "columns": len(t.schema),
        "partition_columns": list(t.partition_columns),
        **rules,
        "properties": dict(t.properties),
        **marks,
    }
    texts = {
        "timestamp": f"{time_text(t.timestamp)} UTC" if t.timestamp else "no snapshot yet",
        "files": count_text(files.num_rows),
        "size": size_text(size),
        "rows": count_text(rows) if rows is not None else "unknown: some files have no statistics",
    }
    told = {key: pairs_text(value) for key, value in record.items() if isinstance(value, dict)}
    told |= {key: ", ".join(map(str, value)) for key, value in record.items() if isinstance(value, list)}
    print_record(record, how, texts={**told, **texts})


def _of_delta(t: alluvium.Table) -> tuple[dict[str, object], ...]:
    """What it is, what reading it takes, and what it keeps."""
    features = sorted({*(t.protocol.reader_features or ()), *(t.protocol.writer_features or ())})
    return (
        {"id": t.metadata.id, "name": t.metadata.name, "description": t.metadata.description},
        {
            "reader_version": t.protocol.min_reader_version,
            "writer_version": t.protocol.min_writer_version,
            "features": features,
        },
        {"txns": dict(t.txns), "domains": dict(t.domains)},
    )


def _of_paimon(t: PaimonView) -> tuple[dict[str, object], ...]:
    """The same of Paimon, whose `rows` are those of the files: every row of a key counts, deletions, too."""
    return (
        {"branch": t.branch, "schema_id": t.metadata.id, "description": t.metadata.comment},
        {"primary_keys": list(t.primary_keys)},
        {"tags": t.system("tags")["tag_name"].to_pylist(), "branches": t.system("branches")["branch_name"].to_pylist()},
    )


def schema(
    url: str,
    version: int | None = None,
    timestamp: str | None = None,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """The columns of a table."""
    t = open_table(url, version, timestamp, storage_option)
    rows = [
        {
            "column": f.name,
            "type": str(f.type),
            "nullable": f.nullable,
            "partition": f.name in t.partition_columns,
            "metadata": dict(f.metadata) or None,
        }
        for f in t.schema
    ]
    partition_or_metadata = [
        c for c in _SCHEMA if c.key not in ("partition", "metadata") or any(row[c.key] for row in rows)
    ]
    print_rows(rows, partition_or_metadata, how)


def history(
    url: str,
    limit: int | None = None,
    version: int | None = None,
    timestamp: str | None = None,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """The commits, newest first."""
    commits = open_table(url, version, timestamp, storage_option).history(limit)
    print_rows(commits.to_pylist(), _HISTORY, how)


def files(
    url: str,
    where: str | None = None,
    limit: int | None = None,
    version: int | None = None,
    timestamp: str | None = None,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """The data files that may hold rows.

    With --where, files are left out that cannot hold a row for which it is true.
    """
    if limit is not None and limit < 0:
        raise InvalidRequest(f"limit must not be negative: {limit}", code="invalid-limit")
    t = open_table(url, version, timestamp, storage_option)
    kept = t.files(where)
    shown = kept if limit is None else kept.slice(0, limit)
    note = f"{counted(kept.num_rows, 'file')}, {size_text(pc.sum(kept.column('size'), min_count=0).as_py())}"
    if where is not None:
        note += f"; {count_text(t.files().num_rows - kept.num_rows)} skipped"
    if shown.num_rows < kept.num_rows:
        note += f"; {count_text(shown.num_rows)} shown"
    print_rows(plain_rows(shown), _FILES, how, note=note)


def cat(
    url: str,
    columns: str | None = None,
    where: str | None = None,
    limit: int = 20,
    version: int | None = None,
    timestamp: str | None = None,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """The first rows."""
    t = open_table(url, version, timestamp, storage_option)
    with t.to_batches(_names(columns), where, batch_size=_batch_size(limit)) as reader:
        _print_first(reader, limit, how, t.schema.struct)


def changes(
    url: str,
    start: str,
    end: str | None = None,
    columns: str | None = None,
    where: str | None = None,
    limit: int = 20,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """The rows that versions inserted, updated and deleted.

    Of Delta START and END are included, and the table must have a change data feed. Of Paimon they are snapshots or
    tags, and START is left out.
    """
    t = open_table(url, storage=storage_option)
    if not isinstance(t, alluvium.Table):
        found = t.changes(start, end, columns=_names(columns), where=where)
        _print_first(found.to_reader(), limit, how, t.schema.struct)
        return
    with t.changes_batches(start, end, columns=_names(columns), where=where, batch_size=_batch_size(limit)) as reader:
        _print_first(reader, limit, how, t.schema.struct)


def system(
    url: str,
    name: str,
    limit: int = 20,
    version: int | None = None,
    timestamp: str | None = None,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """The first rows of a table about a table.

    Of Delta: files, commits, partitions, columns, features, transactions. Of Paimon: its system tables.
    """
    t = open_table(url, version, timestamp, storage_option)
    found = t.metadata(name) if isinstance(t, alluvium.Table) else t.system(name)
    _print_first(found.to_reader(), limit, how, Struct())


def _names(columns: str | None) -> list[str] | None:
    return None if columns is None else [name.strip() for name in columns.split(",")]


def _batch_size(limit: int) -> int:
    """Small batches, for the first few rows are all that is wanted of a table that may be large."""
    return max(1, min(limit, 65_536))


def _print_first(reader: pa.RecordBatchReader, limit: int, how: Format, schema: Struct) -> None:
    batches: list[pa.RecordBatch] = []
    missing = limit
    while missing > 0 and (batch := next(reader, None)) is not None:
        batches.append(batch.slice(0, missing))
        missing -= batches[-1].num_rows
    first = show_variants(pa.Table.from_batches(batches, reader.schema), schema)
    numbers = {f.name for f in first.schema if pa.types.is_integer(f.type) or pa.types.is_floating(f.type)}
    if how is Format.CSV:
        print_csv(plain_rows(first), first.column_names)
    else:
        print_rows(plain_rows(first), [Shown(name, right=name in numbers) for name in first.column_names], how)


def diff(
    url: str,
    first: int,
    second: int,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """What changed between two versions.

    Files and rows added and removed, columns, properties, protocol.
    """
    before = open_table(url, first, None, storage_option)
    after = open_table(url, second, None, storage_option)
    found = compare((first, second), before, after)
    if how is Format.JSON:
        print_record(found.as_record(), how)
        return
    rows = found.rows()
    if how is Format.TABLE and not rows:
        open_console().print(f"versions {first} and {second} hold the same")
        return
    print_rows(rows, _DIFFERENCES, how, title=f"version {first} to version {second}")
