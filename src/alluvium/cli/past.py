"""Commands about a Delta table's past: `versions`, `restore`; and `generate`, for who knows no versions."""

from __future__ import annotations

from collections.abc import Sequence

import alluvium
from alluvium.api.delta.maintenance import generate_manifests
from alluvium.cli.arguments import open_table, parse_storage
from alluvium.cli.render import Format, Shown, counted, open_console, print_record, print_rows, size_text
from alluvium.errors import UnsupportedFeature
from alluvium.plan.changes import Preview


def versions(
    url: str, limit: int | None = None, how: Format = Format.TABLE, storage_option: Sequence[str] = ()
) -> None:
    """Which versions can be read, and which still could after VACUUM, newest first."""
    table = open_table(url, storage=storage_option)
    if not isinstance(table, alluvium.Table):
        raise UnsupportedFeature(
            "snapshots of Paimon tables are read as long as they are listed", hint="alluvium system URL snapshots"
        )
    found = table.readable_versions().to_pylist()[::-1]
    kept = sum(row["after_vacuum"] for row in found)
    note = f"{counted(sum(row['readable'] for row in found), 'version')} can be read, {kept} after VACUUM"
    columns = (Shown("version", right=True), Shown("timestamp"), Shown("readable"), Shown("after_vacuum"))
    print_rows(found[:limit], columns, how, note=note)


def restore(
    url: str,
    version: int | None = None,
    timestamp: str | None = None,
    dry_run: bool = False,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """Makes an older version the newest one. Nothing is deleted: the versions in between stay."""
    done = alluvium.alter(url, parse_storage(storage_option)).restore(version, timestamp, dry_run)
    metrics = done.operation.metrics if isinstance(done, Preview) else done.metrics
    if how is not Format.TABLE:
        missing = {"missing": list(done.missing)} if isinstance(done, Preview) else {}
        print_record({"version": done.version, **{k: int(v) for k, v in metrics.items()}, **missing}, how)
        return
    console = open_console()
    if not metrics:
        console.print(f"that is version {done.version}, the newest")
        return
    back, gone = (
        f"{counted(int(metrics[count]), 'file')} of {size_text(int(metrics[size]))}"
        for count, size in (("numRestoredFiles", "restoredFilesSize"), ("numRemovedFiles", "removedFilesSize"))
    )
    if not isinstance(done, Preview):
        console.print(f"version {done.version}: {back} came back, {gone} left")
        return
    console.print(f"{back} would come back, {gone} leave")
    if done.missing:
        console.print(f"it would be refused: {counted(len(done.missing), 'file')} gone, {done.missing[0]} first")


def generate(url: str, how: Format = Format.TABLE, storage_option: Sequence[str] = ()) -> None:
    """Writes manifests of symbolic links, by which engines read the newest version that know no Delta log."""
    version = generate_manifests(url, parse_storage(storage_option))
    if how is Format.TABLE:
        open_console().print(f"the manifests list the files of version {version}")
    else:
        print_record({"version": version}, how)
