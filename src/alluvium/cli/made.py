"""Commands that make a table of what is there: `clone`, `convert`."""

from __future__ import annotations

from collections.abc import Sequence

from alluvium.api.delta.maintenance import clone_table, convert_table
from alluvium.cli.arguments import parse_pairs, parse_storage
from alluvium.cli.render import Format, counted, open_console, print_record, size_text
from alluvium.plan.changes import Preview


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
