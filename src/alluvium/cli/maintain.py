"""Commands that look after a table: doctor, checkpoint."""

from __future__ import annotations

from dataclasses import asdict

import typer

from alluvium.api.maintenance import check_table, write_checkpoint
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
