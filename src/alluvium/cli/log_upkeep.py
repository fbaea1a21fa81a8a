"""Commands that keep the log of a table short: `checkpoint`, `clean-log`, `compact-log`."""

from __future__ import annotations

from collections.abc import Sequence

from alluvium.api.delta.maintenance import clean_log, compact_commits, write_checkpoint
from alluvium.cli.arguments import parse_storage
from alluvium.cli.render import Format, Shown, open_console, print_record, print_rows


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
