"""`vacuum`: files deleted that no version needs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from alluvium.api.delta.maintenance import vacuum_table
from alluvium.cli.arguments import parse_storage
from alluvium.cli.render import Format, Shown, counted, open_console, print_record, print_rows, size_text, time_text
from alluvium.delta.upkeep.vacuum.vacuum import VacuumPreview


def vacuum(
    url: str,
    retention_hours: float | None = None,
    lite: bool = False,
    no_check: bool = False,
    dry_run: bool = False,
    clones: Sequence[str] = (),
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """Deletes files that neither the table nor any version within the retention needs.

    The retention is that of the table (delta.deletedFileRetentionDuration), a week by default.
    """
    done = vacuum_table(url, retention_hours, parse_storage(storage_option), dry_run, lite, not no_check, clones)
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
    times = [dt.datetime.fromtimestamp(one / 1000, dt.timezone.utc) for one in preview.lost_times_ms if one is not None]
    note += f", of {time_text(times[0])} to {time_text(times[-1])}" if times else ""
    note += f"; clones {', '.join(preview.lost_clones)}" if preview.lost_clones else ""
    if how is Format.TABLE and not rows:
        open_console().print(note)
        return
    if how is Format.JSON:
        files = {"files": preview.files.num_rows, "bytes": preview.size_bytes}
        what = {"lost_versions": list(lost), "lost_clones": list(preview.lost_clones)}
        print_record({**files, **what, "paths": [row["path"] for row in rows]}, how)
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
