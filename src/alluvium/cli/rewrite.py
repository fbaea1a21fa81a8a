"""`optimize`: files written anew."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from alluvium.cli.arguments import parse_storage
from alluvium.cli.render import Format, Shown, counted, open_console, print_record, print_rows, size_text
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Preview


def optimize(
    url: str,
    where: str | None = None,
    zorder_by: str | None = None,
    sort_by: str | None = None,
    full: bool = False,
    purge: bool = False,
    dry_run: bool = False,
    how: Format = Format.TABLE,
    storage_option: Sequence[str] = (),
) -> None:
    """Puts small files together, within their partitions; the one command that starts Spark.

    Where PySpark is not installed files are put together, and purged, without it; what puts rows in order needs it.

    With --zorder-by all files are written anew, rows near each other that are alike in the columns; with --sort-by in
    their order.
    """
    orders = {"zorder_by": zorder_by, "sort_by": sort_by}
    said = [f"--{name}" for name, is_said in (("full", full), ("purge", purge)) if is_said]
    said += [f"--{name.replace('_', '-')}" for name, text in orders.items() if text]
    if len(said) > 1:
        raise InvalidRequest(f"{' and '.join(said)} at once", code="contradicting-options", hint="one after the other")
    columns = {name: [one.strip() for one in (text or "").split(",") if one.strip()] for name, text in orders.items()}
    storage = parse_storage(storage_option)
    if importlib.util.find_spec("pyspark") is None and not full and not any(orders.values()):
        done = _without_spark(url, where, purge, storage, dry_run)
    else:
        done = _with_spark().optimize_at(
            url, where, **columns, full=full, purge=purge, options=storage, dry_run=dry_run
        )
    if isinstance(done, Mapping):
        _print_optimized(done, how)
        return
    paths = [{"path": path} for path in done.removed]
    note = f"{counted(len(paths), 'file')} of {size_text(int(done.operation.metrics['numRemovedBytes']))}"
    if how is Format.TABLE and not paths:
        open_console().print("nothing to do")
        return
    print_rows(paths, (Shown("path", "would be rewritten"),), how, note=note)


def _without_spark(
    url: str, where: str | None, purge: bool, storage: Mapping[str, str], dry_run: bool
) -> Mapping[str, Any] | Preview:
    builder = (
        importlib.import_module("alluvium.api.delta.portable.delta_table")
        .PortableDeltaTable.forPath(url, storage)
        .optimize()
    )
    builder = builder if where is None else builder.where(where)
    done = builder.executePurge(dry_run=dry_run) if purge else builder.executeCompaction(dry_run=dry_run)
    if isinstance(done, Preview):
        return done
    metrics: Mapping[str, Any] = done["metrics"][0].as_py()
    return metrics


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
