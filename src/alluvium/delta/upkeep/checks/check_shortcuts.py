"""Whether checkpoints, compactions and Hadoop's checksums say what the commits say that they stand for."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator, Mapping

import pyarrow as pa

from alluvium.delta.log.compaction import is_reconciled
from alluvium.delta.log.names import LAST_CHECKPOINT_PATH, LOG_DIRECTORY, ChecksumName, parse_name
from alluvium.delta.log.read import CommitActions, read_commits
from alluvium.delta.log.replay import logical_file_keys, reconcile
from alluvium.delta.log.segment import list_log, list_segment
from alluvium.delta.log.state import LogState, load_state
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.upkeep.checks.finding import Finding, Level, summed_up
from alluvium.errors import AlluviumError
from alluvium.storage.paths import is_near
from alluvium.storage.store import ObjectInfo, Store

_CRC_MAGIC = b"crc\0"
_CRC_HEADER_BYTES = 8


def check_checkpoints_against_commits(store: Store) -> Iterator[Finding]:
    """Whether a checkpoint lists the files that the log before it leads to, as far as that is still there.

    Readers believe checkpoints: of one that says otherwise rows are lost, or come back.
    """
    listing = list_log(store)
    for version in listing.checkpoints:
        try:
            told = load_without(store, version, ())
            own = {info.path for info in told.segment.checkpoint}
            replayed = load_without(store, version, own)
        except AlluviumError:
            # That it cannot be read is told elsewhere; and where commits before it are gone, nothing contradicts it.
            continue
        if told.segment.checkpoint_version == version and (problem := _difference(told, replayed)):
            path = told.segment.checkpoint[0].path
            yield Finding("error", "checkpoint", f"the checkpoint of version {version} {problem}", path)


def load_without(store: Store, version: int, without: set[str] | tuple[()]) -> LogState:
    """A version as some checkpoints' files do not say it.

    Raises:
        CorruptTable: Without them it cannot be read.
        NotFound: Likewise.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_state(store, list_segment(store, version, without), _any_protocol)


def _any_protocol(protocol: Protocol) -> None:
    """What is compared are file actions, which are known by path and vector under every protocol."""


def _difference(told: LogState, replayed: LogState) -> str | None:
    found, expected = _keys(told.files), _keys(replayed.files)
    if more := sorted(found - expected):
        return f"lists {len(more)} files that the commits do not lead to: {_shown(more[0])}"
    if fewer := sorted(expected - found):
        return f"lacks {len(fewer)} files that the commits lead to: {_shown(fewer[0])}"
    if told.metadata != replayed.metadata:
        return "describes the table otherwise than the commits do"
    return None if _same_protocol(told.protocol, replayed.protocol) else "has another protocol than the commits"


def _same_protocol(one: Protocol, other: Protocol) -> bool:
    """Feature lists are sets; and an empty one is as good as none."""
    versions = [(p.min_reader_version, p.min_writer_version) for p in (one, other)]
    readers, writers = ([set(features or ()) for features in pair] for pair in (
        (one.reader_features, other.reader_features), (one.writer_features, other.writer_features)
    ))  # fmt: skip
    return versions[0] == versions[1] and readers[0] == readers[1] and writers[0] == writers[1]


def check_compactions(store: Store) -> Iterator[Finding]:
    """Whether compactions can be read, are reconciled, and say what their commits say.

    One that cannot be read, or is not reconciled, only costs time: readers take the commits.
    """
    listing = list_log(store)
    for (start, end), info in listing.compactions.items():
        actions = read_commits(store, [info])
        if actions.damage is not None:
            yield Finding("warning", "compaction", actions.damage.message, info.path)
        elif not is_reconciled(actions):
            text = "it says several things of one file, application or domain, so that the commits are read instead"
            yield Finding("warning", "compaction", text, info.path)
        elif all(version in listing.commits for version in range(start, end + 1)):
            commits = [listing.commits[version] for version in range(start, end + 1)]
            if problem := _contradiction(actions, read_commits(store, commits)):
                yield Finding("error", "compaction", problem, info.path)


def _contradiction(actions: CommitActions, commits: CommitActions) -> str | None:
    """What a compaction says otherwise. Removes and ends of domains that it lacks are known habits of writers, which
    readers reckon with.
    """
    if commits.damage is not None:
        return None
    (files, removed), (live, gone) = (
        tuple(_keys(table) for table in reconcile([], [], list(a.adds), list(a.removes))) for a in (actions, commits)
    )
    if files != live:
        odd = sorted(files ^ live)
        return f"{len(odd)} files are added by it or by its commits alone: {_shown(odd[0])}"
    if more := sorted(removed - gone):
        return f"it removes {len(more)} files that its commits do not remove: {_shown(more[0])}"
    if (actions.metadata, actions.protocol) != (commits.metadata, commits.protocol):
        return "it describes the table otherwise than its commits do"
    return None if _versions(actions) == _versions(commits) else "it has other transactions than its commits"


def _versions(actions: CommitActions) -> Mapping[str, int]:
    return {name: txn.version for name, txn in actions.txns.items()}


def _keys(files: pa.Table) -> set[str]:
    return {key for batch in files.to_batches() for key in logical_file_keys(batch).to_pylist()}


def _shown(key: str) -> str:
    """The path of a logical file."""
    return key.partition("\0")[0]


def check_hadoop_checksums(store: Store) -> Iterator[Finding]:
    """Whether the checksums that Hadoop keeps beside the log's files on a local disk fit.

    It refuses to read a file that its checksum does not fit; whatever replaces the file by other means leaves one. So
    does deltalake, which points `_last_checkpoint`, be it of delta-spark's, to its own checkpoints.
    """
    if not is_near(store.url):
        return
    objects = {info.path.rpartition("/")[2]: info for info in store.list_from(LOG_DIRECTORY)}
    found = [
        _refused(objects[name[1:-4]].path, crc.path)
        for name, crc in objects.items()
        if name.startswith(".") and name.endswith(".crc") and name[1:-4] in objects
        and not _fits(store, objects[name[1:-4]], crc)
    ]  # fmt: skip
    for level in ("error", "warning"):
        yield from summed_up("checksum", [finding for finding in found if finding.level == level])


def _refused(path: str, crc_path: str) -> Finding:
    """What it is that Spark cannot read; the table without the hint, or a version checksum, takes it seconds more."""
    is_spared = path == LAST_CHECKPOINT_PATH or isinstance(parse_name(path.rpartition("/")[2]), ChecksumName)
    level: Level = "warning" if is_spared else "error"
    does = "does without it" if is_spared else "refuses to read it"
    told = f"the checksum that Hadoop keeps of the file does not fit, so that Spark {does}: delete {crc_path}"
    return Finding(level, "checksum", told, path)


def _fits(store: Store, file: ObjectInfo, crc: ObjectInfo) -> bool:
    """Hadoop's `ChecksumFileSystem`: a magic number, bytes in a piece (4 bytes), the CRC-32 of each piece (4 bytes)."""
    recorded = store.get(crc.path)
    piece_bytes = int.from_bytes(recorded[4:_CRC_HEADER_BYTES], "big")
    if recorded[:4] != _CRC_MAGIC or piece_bytes == 0:
        # Not a checksum that Hadoop would look at.
        return True
    data = store.get(file.path)
    pieces = (data[start : start + piece_bytes] for start in range(0, len(data), piece_bytes))
    return recorded[_CRC_HEADER_BYTES:] == b"".join(zlib.crc32(piece).to_bytes(4, "big") for piece in pieces)
