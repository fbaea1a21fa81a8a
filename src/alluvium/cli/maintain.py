"""Commands that look after a table: doctor, and what keeps its log short."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from alluvium.api.delta.maintenance import check_table, clean_log, compact_commits, write_checkpoint
from alluvium.cli.arguments import FormatOption, StorageOption, UrlArgument, parse_storage
from alluvium.cli.render import Format, Shown, counted, open_console, print_record, print_rows

_FINDING = (Shown("level"), Shown("check"), Shown("message"), Shown("path", "file"))


def doctor(url: UrlArgument, how: FormatOption = Format.TABLE, storage_option: StorageOption = None) -> None:
    """Looks for damage; exit code 1 if there is any.

    Checks that the log has no gap, checkpoints are whole, data files are there with their size, statistics parse.
    """
    findings = check_table(url, parse_storage(storage_option))
    if how is Format.TABLE and not findings:
        open_console().print("[green]sound[/]: the log, its checkpoints, all data files and their statistics")
        return
    print_rows([asdict(f) for f in findings], _FINDING, how, note=counted(len(findings), "finding"))
    if findings:
        raise typer.Exit(1)


def checkpoint(url: UrlArgument, how: FormatOption = Format.TABLE, storage_option: StorageOption = None) -> None:
    """Writes a checkpoint of the newest version."""
    version = write_checkpoint(url, parse_storage(storage_option))
    if how is Format.TABLE:
        open_console().print(f"checkpoint of version {version} written")
    else:
        print_record({"version": version}, how)


def clean(
    url: UrlArgument,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")] = False,
    how: FormatOption = Format.TABLE,
    storage_option: StorageOption = None,
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
    url: UrlArgument,
    start: Annotated[int, typer.Argument(help="First version.")],
    end: Annotated[int, typer.Argument(help="Last version.")],
    how: FormatOption = Format.TABLE,
    storage_option: StorageOption = None,
) -> None:
    """Writes one file that readers may take in place of a run of commits."""
    path = compact_commits(url, start, end, parse_storage(storage_option))
    if how is Format.TABLE:
        open_console().print(f"{path} stands for versions {start} to {end}")
    else:
        print_record({"path": path}, how)
