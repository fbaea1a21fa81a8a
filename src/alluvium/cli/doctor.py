"""`doctor`: what is wrong with a table, and what of it can be mended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import click

from alluvium.api.delta.maintenance import check_table, repair_table
from alluvium.cli.arguments import parse_storage
from alluvium.cli.render import Format, Shown, counted, open_console, print_rows

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
