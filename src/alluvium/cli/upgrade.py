"""`upgrade`: a table's protocol is raised, and who could still read it is told before."""

from __future__ import annotations

from collections.abc import Sequence

import alluvium
from alluvium.cli.arguments import parse_storage
from alluvium.cli.render import Format, open_console, print_record
from alluvium.plan.changes import Preview


def upgrade(
    url: str,
    reader: int,
    writer: int,
    dry_run: bool = False,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """Supports what versions of the protocol imply, for readers and for writers. Versions never fall.

    With --dry-run it tells who could still read and write the table.
    """
    alteration = alluvium.alter(url, parse_storage(storage_option))
    told = alteration.upgrade_protocol(reader, writer, dry_run=True)
    assert isinstance(told, Preview), "it was asked for"
    # As in the reference, what changes nothing would be a version all the same.
    done = told if dry_run or not told.differences else alteration.upgrade_protocol(reader, writer)
    if how is not Format.TABLE:
        print_record({"version": done.version, **({"notes": list(told.notes)} if dry_run else {})}, how)
    elif not told.differences:
        open_console().print("nothing to do")
    else:
        open_console().print(str(told) if dry_run else f"version {done.version}", markup=False)
