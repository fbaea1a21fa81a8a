"""Files of the log that only stand for others: damaged ones are written anew, or taken away where nobody needs them.

Commits are never touched: what is wrong with them nobody can know better.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from alluvium.delta.features.registry import ensure_readable_protocol, ensure_writable
from alluvium.delta.log.checksum import checksum_after
from alluvium.delta.log.names import (
    LAST_CHECKPOINT_PATH,
    LOG_DIRECTORY,
    SIDECAR_DIRECTORY,
    CheckpointName,
    CommitName,
    CompactedName,
    checksum_path,
    commit_path,
    parse_name,
)
from alluvium.delta.log.read_checkpoint import read_checkpoint_head
from alluvium.delta.log.segment import list_log
from alluvium.delta.log.sidecar import sidecar_file
from alluvium.delta.log.state import LogState
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.terms.config import parse_config
from alluvium.delta.terms.spec import CommitInfo, parse_actions
from alluvium.delta.upkeep.checks.check_shortcuts import load_without
from alluvium.delta.upkeep.checks.checkup import check_checksum_file, check_log
from alluvium.delta.upkeep.checks.finding import Finding
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import AlluviumError, CorruptTable, NotFound
from alluvium.storage.store import ObjectInfo, Store

#: A checkpoint of several parts is whole only when the last of them is there.
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Mended:
    """What became of findings.

    Attributes:
        done: Mended ones, and how; of a dry run those that would be.
        left: Those that cannot be mended.
    """

    done: tuple[Finding, ...] = ()
    left: tuple[Finding, ...] = ()

    def __add__(self, other: Mended) -> Mended:
        return Mended((*self.done, *other.done), (*self.left, *other.left))


def mend_log(store: Store, dry_run: bool) -> Mended:
    """Mends checkpoints, the hint at the last, compactions and Hadoop's checksums."""
    checkpoints, mended = list[Finding](), Mended()
    for finding in check_log(store):
        if finding.check == "checkpoint" and finding.path != LAST_CHECKPOINT_PATH:
            checkpoints.append(finding)
        else:
            mended += _mend(store, finding, dry_run)
    # The hint has gone by now, if it was damaged: a new checkpoint leaves a new one.
    return mended + _mend_checkpoints(store, checkpoints, dry_run)


def _mend(store: Store, finding: Finding, dry_run: bool) -> Mended:
    name = parse_name((finding.path or "").rpartition("/")[2])
    doomed = None
    if finding.path == LAST_CHECKPOINT_PATH or (finding.check == "compaction" and isinstance(name, CompactedName)):
        # Readers look at the commits where these are not.
        doomed = finding.path
    elif finding.check == "checksum" and isinstance(name, CommitName) and _parses(store, name.version):
        doomed = f"{LOG_DIRECTORY}/.{(finding.path or '').rpartition('/')[2]}.crc"
    if doomed is None:
        return Mended(left=(finding,))
    if not dry_run:
        store.delete(doomed)
    return Mended((_done(finding, f"removed: {doomed}"),))


def _parses(store: Store, version: int) -> bool:
    """Whether a commit makes sense: then its checksum is of another file that had its name."""
    path = commit_path(version)
    try:
        return any(True for _ in parse_actions(store.get(path), path=path, version=version))
    except AlluviumError:
        return False


def _mend_checkpoints(store: Store, found: Sequence[Finding], dry_run: bool) -> Mended:
    mended = Mended()
    by_version: dict[int, list[Finding]] = {}
    for finding in found:
        name = parse_name((finding.path or "").rpartition("/")[2])
        versions = [name.version] if isinstance(name, CheckpointName) else _versions_with(store, finding.path or "")
        for version in versions:
            by_version.setdefault(version, []).append(finding)
        if not versions:
            mended += Mended(left=(finding,))
    for version, findings in sorted(by_version.items()):
        mended += _mend_checkpoint(store, version, findings, dry_run)
    return mended


def _versions_with(store: Store, sidecar: str) -> list[int]:
    """The checkpoints that a sidecar is of."""
    found = []
    if sidecar.startswith(f"{SIDECAR_DIRECTORY}/"):
        for version, files in list_log(store).checkpoints.items():
            with suppress(AlluviumError):
                head = read_checkpoint_head(store, files)
                if any(sidecar_file(one, files[0].path).path == sidecar for one in head.sidecars):
                    found.append(version)
    return found


def _mend_checkpoint(store: Store, version: int, findings: Sequence[Finding], dry_run: bool) -> Mended:
    files = list(_checkpoint_files(store, version))
    if any(info.modified_ms > time.time() * 1000 - _HOUR_MS for info in files):
        return _left(findings, "it is younger than an hour: perhaps somebody is writing it")
    paths = [info.path for info in files]
    try:
        snapshot = _snapshot(store, load_without(store, version, set(paths)))
    except (CorruptTable, NotFound):
        return _left(findings, "the log before it is gone, so that nothing else says what it said")
    if not dry_run:
        _rewrite(store, snapshot, paths)
    return Mended(tuple(_done(f, "written anew") for f in findings))


def _left(findings: Sequence[Finding], why: str) -> Mended:
    return Mended(left=tuple(Finding(f.level, f.check, f"{f.message}; {why}", f.path) for f in findings))


def _checkpoint_files(store: Store, version: int) -> Iterator[ObjectInfo]:
    for info in store.list_from(LOG_DIRECTORY, f"{version:020d}"):
        name = parse_name(info.path.rpartition("/")[2])
        if isinstance(name, CheckpointName) and name.version == version:
            yield info
        elif not info.path.rpartition("/")[2].startswith(f"{version:020d}"):
            return


def _snapshot(store: Store, state: LogState) -> Snapshot:
    ensure_readable_protocol(state.protocol)
    config = parse_config(state.protocol, state.metadata)
    ensure_writable(config)
    return Snapshot(store, state, config)


def _rewrite(store: Store, snapshot: Snapshot, files: Sequence[str]) -> None:
    """A checkpoint in the place of the files of others. Between the two steps there are both, or none: the commits that
    it stands for are there, too.
    """
    for path in files:
        store.delete(path)
    write_checkpoint_at(snapshot)


def mend_checksum(snapshot: Snapshot, dry_run: bool) -> Mended:
    """Mends the version's checksum.

    "Writers MUST NOT overwrite existing Version Checksum files": one that is wrong goes first.
    """
    found = tuple(check_checksum_file(snapshot))
    if not found:
        return Mended()
    if not dry_run:
        path = checksum_path(snapshot.version)
        snapshot.store.delete(path)
        if (checksum := checksum_after(snapshot.whole, _commit_info(snapshot))) is not None:
            snapshot.store.put_if_absent(path, msgspec.json.encode(checksum), makes_directory=False)
    return Mended(tuple(_done(f, "written anew") for f in found))


def _commit_info(snapshot: Snapshot) -> list[CommitInfo]:
    path = commit_path(snapshot.version)
    try:
        actions = parse_actions(snapshot.store.get(path), path=path, version=snapshot.version)
    except NotFound:
        return []
    return [action for action in actions if isinstance(action, CommitInfo)]


def _done(finding: Finding, how: str) -> Finding:
    return Finding(finding.level, finding.check, f"{finding.message}: {how}", finding.path)
