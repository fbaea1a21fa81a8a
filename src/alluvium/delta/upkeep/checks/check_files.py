"""Whether the files that a version names are there, and what says which of their rows are deleted is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.rows.deletion_vectors import (
    INLINE,
    ensure_sound_vectors,
    load_vectors,
    masked_files,
    parse_descriptors,
)
from alluvium.delta.log.read import read_each
from alluvium.delta.log.segment import list_log
from alluvium.delta.terms.lines import split_lines
from alluvium.delta.terms.spec import Cdc, Wire
from alluvium.delta.upkeep.checks.finding import Finding, Level, summed_up
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import DECODE_ERRORS, AlluviumError, CorruptTable, NotFound
from alluvium.storage.elsewhere import locate
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import decode_uri_path, decode_uri_paths, is_absolute
from alluvium.storage.progress import counting
from alluvium.storage.store import Store

_AHEAD_BYTES = 4 << 20
#: From the path of a file to its store, and its path there.
_Place = Callable[[str], tuple[Store, str]]


class _CdcLine(Wire, frozen=True):
    cdc: Cdc | None = None


_CDC_LINES = msgspec.json.Decoder(_CdcLine)


def check_data_files(snapshot: Snapshot) -> Iterator[Finding]:
    """Whether the live files are there, those of a shallow clone elsewhere, with the size that the log gives."""
    files = snapshot.files
    paths: list[str] = decode_uri_paths(files.column("path")).to_pylist()
    named = list(zip(paths, files.column("size").to_pylist(), strict=True))
    opened = cache(snapshot.open_store)

    def place(path: str) -> tuple[Store, str]:
        return locate(snapshot.store, opened, path) if is_absolute(path) else (snapshot.store, path)

    look = partial(_look_at, place, "files", "the data file", "error")
    found = map_parallel(look, named, advance=counting("data files looked at", len(named)))
    yield from summed_up("files", [f for f in found if f is not None])


def _look_at(place: _Place, check: str, what: str, level: Level, file: tuple[str, int]) -> Finding | None:
    path, size = file
    try:
        store, name = place(path)
        info = store.head(name)
    except NotFound:
        return Finding(level, check, f"{what} is gone", path)
    except AlluviumError as error:
        return Finding(level, check, f"{what} cannot be looked at: {error.message}", path)
    if info.size == size:
        return None
    return Finding(level, check, f"{what} has {info.size} bytes, the log says {size}", path)


def check_deletion_vectors(snapshot: Snapshot) -> Iterator[Finding]:
    """Whether each vector exists, has the checksum and cardinality that are recorded, and does not delete more rows
    than its file has; and whether each file is live once.

    "For any logical file where `deletionVector` is not `null`, the `numRecords` statistic *must* be present".
    """
    masked = masked_files(snapshot.files)
    if not masked.num_rows:
        return
    paths: list[str] = decode_uri_paths(masked.column("path")).to_pylist()
    num_records = snapshot.statistics(masked).num_rows().to_pylist()
    found = [
        Finding("warning", "deletion-vectors", "the file has a deletion vector and no number of rows", path)
        for path, count in zip(paths, num_records, strict=True)
        if count is None
    ]
    loaders = [partial(_problem_of, snapshot, masked.slice(row, 1)) for row in range(masked.num_rows)]
    problems = map_parallel(_call, loaders, advance=counting("deletion vectors read", len(loaders)))
    for path, problem in zip(paths, problems, strict=True):
        if problem is not None:
            found.append(Finding("error", "deletion-vectors", problem, path))
    cardinalities = pc.struct_field(masked["deletionVector"].combine_chunks(), "cardinality").to_pylist()
    for path, count, deleted in zip(paths, num_records, cardinalities, strict=True):
        if count is not None and deleted is not None and deleted > count:
            text = f"{deleted} rows are deleted of a file that has {count}"
            found.append(Finding("error", "deletion-vectors", text, path))
    found += _contradictions(snapshot)
    yield from summed_up("deletion-vectors", found)
    kinds = pc.struct_field(masked["deletionVector"].combine_chunks(), "storageType").to_pylist()
    inline = [path for path, kind in zip(paths, kinds, strict=True) if kind == INLINE]
    if inline:
        text = (
            f"the vectors of {len(inline)} files stand in the log itself, at which delta-spark's VACUUM fails: "
            "delete a row of each, which makes new vectors, or have the files rewritten"
        )
        yield Finding("warning", "deletion-vectors", text, inline[0])


def _contradictions(snapshot: Snapshot) -> Iterator[Finding]:
    """What nobody can read rightly, though each vector be whole."""
    try:
        ensure_sound_vectors(snapshot.files, snapshot.config.protocol, snapshot.store.url, snapshot.version)
    except CorruptTable as error:
        yield Finding("error", "deletion-vectors", error.message, error.path)


def _call(load: Callable[[], str | None]) -> str | None:
    return load()


def _problem_of(snapshot: Snapshot, file: pa.Table) -> str | None:
    """What is wrong with the vector of one file."""
    try:
        descriptors = parse_descriptors(file["deletionVector"].combine_chunks())
        counts = snapshot.statistics(file).num_rows().to_pylist()
        load_vectors(descriptors, snapshot.store, snapshot.open_store, counts)
    except AlluviumError as error:
        return error.message
    return None


def check_change_data(snapshot: Snapshot) -> Iterator[Finding]:
    """Whether the files of change data that the commits name are still there; without them the feed of those versions
    cannot be read, the table can. VACUUM removes old ones by right.
    """
    commits = [info for version, info in list_log(snapshot.store).commits.items() if version <= snapshot.version]
    named: list[tuple[str, int]] = []
    for _, data in read_each(snapshot.store, commits, _AHEAD_BYTES):
        named.extend(_change_files(data))
    look = partial(_look_at, lambda path: (snapshot.store, path), "change-data", "the file of change data", "warning")
    found = map_parallel(look, named, advance=counting("files of change data looked at", len(named)))
    yield from summed_up("change-data", [f for f in found if f is not None])


def _change_files(data: bytes) -> Iterator[tuple[str, int]]:
    """Those below the table's root. A line that does not parse is found by the check of the log."""
    for _, text in split_lines(data):
        if b'"cdc"' not in text:
            continue
        try:
            cdc = _CDC_LINES.decode(text).cdc
            path = "" if cdc is None else decode_uri_path(cdc.path)
        except (*DECODE_ERRORS, AlluviumError):
            continue
        if cdc is not None and not is_absolute(path):
            yield path, cdc.size
