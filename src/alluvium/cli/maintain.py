"""Commands that look after a table: doctor, and what keeps its log short."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import ModuleType
from typing import Any

import click

from alluvium.api.delta.maintenance import (
    check_table,
    clean_log,
    clone_table,
    compact_commits,
    convert_table,
    repair_table,
    vacuum_table,
    write_checkpoint,
)
from alluvium.cli.arguments import parse_pairs, parse_storage
from alluvium.cli.render import Format, Shown, counted, open_console, print_record, print_rows, size_text
from alluvium.delta.upkeep.vacuum.vacuum import VacuumPreview
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Preview

_DATA = "dataFilePath"
_FINDING = (Shown("level"), Shown("check"), Shown("message"), Shown("path", "file"))


def doctor(
    url: str,
    repair: bool = False,
    dry_run: bool = False,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """Looks for damage; exit code 1 if there is any, with --repair if any is left.

    Checks that the log has no gap, checkpoints are whole, data files are there with their size, statistics parse.
    """
    if repair:
        _repair(url, dry_run, how, storage_option)
        return
    findings = check_table(url, parse_storage(storage_option))
    if how is Format.TABLE and not findings:
        open_console().print("[green]sound[/]: the log, its checkpoints, all data files and their statistics")
        return
    print_rows([asdict(f) for f in findings], _FINDING, how, note=counted(len(findings), "finding"))
    if findings:
        raise click.exceptions.Exit(1)


def _repair(url: str, dry_run: bool, how: Format, storage_option: Sequence[str]) -> None:
    done = repair_table(url, parse_storage(storage_option), dry_run)
    rows = [{"outcome": "removed", "level": "error", "check": "files", "message": _lost(row), "path": row[_DATA]}
            for row in done.missing.to_pylist()]  # fmt: skip
    rows += [{"outcome": "mended", **asdict(f)} for f in done.mended]
    rows += [{"outcome": "left", **asdict(f)} for f in done.left]
    note = f"statistics of {counted(done.statistics, 'file')} computed; " if done.statistics else ""
    note += "nothing was written" if done.dry_run else f"version {done.version}"
    if how is Format.TABLE and not rows:
        open_console().print(note)
    else:
        print_rows(rows, (Shown("outcome", "would be" if dry_run else None), *_FINDING), how, note=note)
    if done.left:
        raise click.exceptions.Exit(1)


def _lost(row: Mapping[str, object]) -> str:
    if row["dataFileMissing"]:
        return "the data file is gone"
    return f"its deletion vector is gone: {row['deletionVectorPath']}"


def checkpoint(url: str, how: Format = Format.TABLE, storage_option: Sequence[str] = ()) -> None:
    """Writes a checkpoint of the newest version."""
    version = write_checkpoint(url, parse_storage(storage_option))
    if how is Format.TABLE:
        open_console().print(f"checkpoint of version {version} written")
    else:
        print_record({"version": version}, how)


def clean(
    url: str,
    dry_run: bool = False,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """Deletes expired files of the log, as far as a checkpoint stands for them."""
    cleanup = clean_log(url, parse_storage(storage_option), dry_run)
    note = "nothing has expired" if cleanup.first_version is None else f"versions from {cleanup.first_version} on stay"
    if how is Format.TABLE and not cleanup.paths:
        open_console().print(note)
        return
    paths = [{"path": path} for path in cleanup.paths]
    print_rows(paths, (Shown("path", "would go" if dry_run else "deleted"),), how, note=note)


def compact(
    url: str,
    start: int,
    end: int,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """Writes one file that readers may take in place of a run of commits."""
    path = compact_commits(url, start, end, parse_storage(storage_option))
    if how is Format.TABLE:
        open_console().print(f"{path} stands for versions {start} to {end}")
    else:
        print_record({"path": path}, how)


def optimize(
    url: str,
    where: str | None = None,
    zorder_by: str | None = None,
    dry_run: bool = False,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """Puts small files together, within their partitions; the one command that starts Spark.

    With --zorder-by all files are written anew, rows near each other that are alike in the columns.
    """
    columns = [name.strip() for name in (zorder_by or "").split(",") if name.strip()]
    done = _with_spark().optimize_at(url, where, columns, parse_storage(storage_option), dry_run)
    if isinstance(done, Mapping):
        _print_optimized(done, how)
        return
    paths = [{"path": path} for path in done.removed]
    note = f"{counted(len(paths), 'file')} of {size_text(int(done.operation.metrics['numRemovedBytes']))}"
    if how is Format.TABLE and not paths:
        open_console().print("nothing to do")
        return
    print_rows(paths, (Shown("path", "would be rewritten"),), how, note=note)


def _with_spark() -> ModuleType:
    """The module that starts Spark; all others do without its packages."""
    try:
        return importlib.import_module("alluvium.api.delta.optimize.own_session")
    except ModuleNotFoundError as error:
        raise InvalidRequest(
            f"optimize needs Spark, whose package is not installed: {error.name}",
            code="missing-dependency",
            hint="pip install 'alluvium[spark]', and Java 17",
        ) from None


def _print_optimized(metrics: Mapping[str, Any], how: Format) -> None:
    files = {
        "files_removed": metrics["numFilesRemoved"],
        "bytes_removed": metrics["filesRemoved"]["totalSize"],
        "files_added": metrics["numFilesAdded"],
        "bytes_added": metrics["filesAdded"]["totalSize"],
    }
    if how is not Format.TABLE:
        print_record(files, how)
    elif not files["files_removed"]:
        open_console().print("nothing to do")
    else:
        before, after = (
            f"{counted(files[f'files_{side}'], 'file')} of {size_text(files[f'bytes_{side}'])}"
            for side in ("removed", "added")
        )
        open_console().print(f"{before} became {after}")


def clone(
    url: str,
    target: str,
    version: int | None = None,
    timestamp: str | None = None,
    shallow: bool = False,
    replace: bool = False,
    pairs: Sequence[str] = (),
    dry_run: bool = False,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """Makes a table that begins as another one, with copies of its files or, with --shallow, by naming them.

    A clone that is made again with --replace copies only the files that it has not yet.
    """
    properties, storage = parse_pairs(pairs, "--property delta.appendOnly=true"), parse_storage(storage_option)
    done = clone_table(url, target, shallow, replace, properties, version, timestamp, storage, dry_run)
    metrics = done.operation.metrics if isinstance(done, Preview) else done.metrics
    if how is not Format.TABLE:
        missing = {"missing": list(done.missing)} if isinstance(done, Preview) else {}
        print_record({"version": done.version, **{k: int(v) for k, v in metrics.items()}, **missing}, how)
        return
    files = f"{counted(int(metrics['sourceNumOfFiles']), 'file')} of {size_text(int(metrics['sourceTableSize']))}"
    copied = f"{counted(int(metrics['numCopiedFiles']), 'file')} of {size_text(int(metrics['copiedFilesSize']))}"
    console = open_console()
    if not isinstance(done, Preview):
        console.print(f"version {done.version} of the clone: {files}, copied {copied}")
        return
    console.print(f"the clone would have {files}, and copy {copied}")
    if done.missing:
        console.print(f"it would be refused: {counted(len(done.missing), 'file')} gone, {done.missing[0]} first")


def convert(
    url: str,
    partitioned_by: str | None = None,
    no_statistics: bool = False,
    dry_run: bool = False,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """Makes a Delta table of the Parquet files in a folder, which stay where and as they are.

    Partition columns and their types are found by the folders' names, unless they are given.
    """
    done = convert_table(url, partitioned_by, parse_storage(storage_option), dry_run, not no_statistics)
    if how is not Format.TABLE:
        files = len(done.added) if isinstance(done, Preview) else done.files.num_rows
        print_record({"version": None if isinstance(done, Preview) else done.version, "files": files}, how)
    elif isinstance(done, Preview):
        open_console().print(str(done), markup=False)
        open_console().print(counted(len(done.added), "file"))
    elif done.attempts:
        open_console().print(f"{counted(done.files.num_rows, 'file')} are version {done.version} of a table")
    else:
        open_console().print(f"it is a table already, at version {done.version}")


def vacuum(
    url: str,
    retention_hours: float | None = None,
    lite: bool = False,
    no_check: bool = False,
    dry_run: bool = False,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """Deletes files that neither the table nor any version within the retention needs.

    The retention is that of the table (delta.deletedFileRetentionDuration), a week by default.
    """
    done = vacuum_table(url, retention_hours, parse_storage(storage_option), dry_run, lite, not no_check)
    if isinstance(done, VacuumPreview):
        _print_preview(done, how)
        return
    if how is Format.TABLE:
        what = f"{counted(done.files, 'file')} of {size_text(done.size_bytes)} deleted"
        open_console().print(f"{what}, {counted(done.directories, 'empty folder')} removed")
    else:
        record = {
            "files": done.files,
            "bytes": done.size_bytes,
            "directories": done.directories,
            "version": done.version,
        }
        print_record(record, how)


def _print_preview(preview: VacuumPreview, how: Format) -> None:
    rows = [{**row, "kind": "file"} for row in preview.files.to_pylist()]
    rows += [{"path": path, "size": 0, "modified_ms": None, "kind": "empty folder"} for path in preview.directories]
    lost = preview.lost_versions
    note = f"{counted(preview.files.num_rows, 'file')} of {size_text(preview.size_bytes)}; "
    note += f"unreadable afterwards: versions {_ranges(lost)}" if lost else "no version becomes unreadable"
    if how is Format.TABLE and not rows:
        open_console().print(note)
        return
    if how is Format.JSON:
        files = {"files": preview.files.num_rows, "bytes": preview.size_bytes}
        print_record({**files, "lost_versions": list(lost), "paths": [row["path"] for row in rows]}, how)
        return
    print_rows(
        rows, (Shown("path", "would go"), Shown("size", None, size_text, right=True), Shown("kind")), how, note=note
    )


def _ranges(versions: Sequence[int]) -> str:
    """Ascending numbers in short: `0 to 4, 7`."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and version == runs[-1][1] + 1:
            runs[-1][1] = version
        else:
            runs.append([version, version])
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in runs)
