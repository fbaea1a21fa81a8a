"""What is wrong with a table: its log, checkpoints, files and statistics looked at, none of them changed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec
import pyarrow as pa

from alluvium.delta.log.checksum import check_checksum, parse_checksum
from alluvium.delta.log.last_checkpoint import read_last_checkpoint
from alluvium.delta.log.names import (
    LAST_CHECKPOINT_PATH,
    LOG_DIRECTORY,
    CheckpointName,
    checksum_path,
    parse_name,
)
from alluvium.delta.log.read_checkpoint import file_sources, read_checkpoint_files, read_checkpoint_head
from alluvium.delta.log.segment import list_log
from alluvium.delta.upkeep.checks.check_files import check_change_data, check_data_files, check_deletion_vectors
from alluvium.delta.upkeep.checks.check_shortcuts import (
    check_checkpoints_against_commits,
    check_compactions,
    check_hadoop_checksums,
)
from alluvium.delta.upkeep.checks.finding import Finding, summed_up
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import DECODE_ERRORS, AlluviumError, CorruptTable, NotFound
from alluvium.storage.store import Store

#: Characters of a value that are shown.
_SHOWN_TEXT = 200


class _Statistics(msgspec.Struct):
    """The parts of `stats` whose form is fixed. Specification: "Per-file Statistics"."""

    num_records: int | None = msgspec.field(name="numRecords", default=None)
    min_values: dict[str, msgspec.Raw] | None = msgspec.field(name="minValues", default=None)
    max_values: dict[str, msgspec.Raw] | None = msgspec.field(name="maxValues", default=None)
    null_count: dict[str, msgspec.Raw] | None = msgspec.field(name="nullCount", default=None)


_STATISTICS = msgspec.json.Decoder(_Statistics)


def check_log(store: Store) -> tuple[Finding, ...]:
    """Whether the log's commits follow each other, and its checkpoints and compactions are whole and readable, and say
    what the commits say.
    """
    return (
        *_check_commits(store),
        *_check_empty_commits(store),
        *_check_hint(store),
        *_check_checkpoints(store),
        *check_checkpoints_against_commits(store),
        *check_compactions(store),
        *check_hadoop_checksums(store),
    )


def check_snapshot(snapshot: Snapshot) -> tuple[Finding, ...]:
    """Whether the version's checksum agrees, the live files are there with the size that the log gives, their deletion
    vectors are whole, their statistics parse, and the files of change data are there.
    """
    return (
        *check_checksum_file(snapshot),
        *check_data_files(snapshot),
        *check_deletion_vectors(snapshot),
        *_check_statistics(snapshot.files),
        *check_change_data(snapshot),
    )


def _check_commits(store: Store) -> Iterator[Finding]:
    """ "A table has a single serial history of atomic versions, which are named using contiguous [...] integers." """
    versions = list(list_log(store).commits)
    for before, after in itertools.pairwise(versions):
        if after != before + 1:
            missing = str(before + 1) if after == before + 2 else f"{before + 1} to {after - 1}"
            yield Finding("error", "log", f"commits are missing: {missing}")


def _check_hint(store: Store) -> Iterator[Finding]:
    """The hint is never trusted, so a wrong one only costs time."""
    try:
        store.head(LAST_CHECKPOINT_PATH)
    except NotFound:
        return
    hint = read_last_checkpoint(store)
    if hint is None:
        yield Finding("warning", "checkpoint", "the hint does not parse", LAST_CHECKPOINT_PATH)
    elif hint.version not in list_log(store).checkpoints:
        yield Finding(
            "warning",
            "checkpoint",
            f"it names a checkpoint of version {hint.version}, which is not there",
            LAST_CHECKPOINT_PATH,
        )


def _check_checkpoints(store: Store) -> Iterator[Finding]:
    whole = list_log(store).checkpoints
    for path, version in _checkpoint_files(store):
        if version not in whole:
            yield Finding("warning", "checkpoint", "parts of the checkpoint are missing, or it is empty", path)
    for version, files in whole.items():
        try:
            head = read_checkpoint_head(store, files)
            read_checkpoint_files(store, file_sources(files, head))
        except AlluviumError as error:
            yield Finding("error", "checkpoint", f"the checkpoint of version {version} cannot be read: {error.message}",
                          error.path or files[0].path)  # fmt: skip


def _check_empty_commits(store: Store) -> Iterator[Finding]:
    """An empty commit is a version without actions to every reader, which its writer will not have meant."""
    empty = [
        Finding("warning", "log", "the commit is empty: what its writer wrote is not in the table", info.path)
        for info in list_log(store).commits.values()
        if info.size == 0
    ]
    yield from summed_up("log", empty)


def check_checksum_file(snapshot: Snapshot) -> Iterator[Finding]:
    """ "If validation fails, readers SHOULD surface the discrepancy to users via error messaging. Readers MUST continue
    functioning if Version Checksum files are missing."
    """
    path = checksum_path(snapshot.version)
    try:
        checksum = parse_checksum(snapshot.store.get(path), path, snapshot.version)
    except NotFound:
        return
    except CorruptTable as error:
        yield Finding("warning", "checksum", error.message, path)
        return
    for problem in check_checksum(snapshot.whole, checksum):
        recorded, found = (str(value)[:_SHOWN_TEXT] for value in (problem.recorded, problem.found))
        yield Finding("warning", "checksum", f"{problem.of}: the checksum has {recorded}, the log {found}", path)


def _checkpoint_files(store: Store) -> Iterator[tuple[str, int]]:
    for info in store.list_from(LOG_DIRECTORY):
        name = parse_name(info.path.rpartition("/")[2])
        if isinstance(name, CheckpointName):
            yield info.path, name.version


def _check_statistics(files: pa.Table) -> Iterator[Finding]:
    found: list[Finding] = []
    pairs = zip(files.column("path").to_pylist(), files.column("stats").to_pylist(), strict=True)
    for path, text in pairs:
        if text and (problem := statistics_problem(text)):
            found.append(Finding("warning", "statistics", problem, path))
    yield from summed_up("statistics", found)


def statistics_problem(text: str) -> str | None:
    """Why readers can do nothing with the statistics of a file; None: they can."""
    try:
        statistics = _STATISTICS.decode(text)
    except DECODE_ERRORS as error:
        return f"statistics do not parse, so the file is never skipped: {error}"
    if statistics.num_records is not None and statistics.num_records < 0:
        return f"the number of rows is negative: {statistics.num_records}"
    return None
