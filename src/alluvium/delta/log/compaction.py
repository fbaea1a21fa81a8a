"""Log compactions: which of them to read in place of commits, and whether what they said can be trusted. Pure.

Specification: "Log Compaction Files": "the compaction replaces the corresponding commits during action
reconciliation". Two known writers leave out more than they may: older ones of the reference implementation drop the
tombstones of domains, and delta-kernel drops removed files that are older than the retention. What comes from before
the compacted range would then rise from the dead, so such compactions are passed over. So are those that are not
reconciled: of several actions of one file nobody knows which is the newest, the order of lines being nobody's promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.log.names import CommitName, CompactedName, parse_name
from alluvium.delta.log.read import CommitActions
from alluvium.delta.log.replay import logical_file_keys
from alluvium.storage.store import ObjectInfo


def choose_compactions(commits: Sequence[ObjectInfo], compactions: Iterable[ObjectInfo]) -> tuple[ObjectInfo, ...]:
    """The fewest files to read for a run of commits: compactions where they fit, commits between them.

    Args:
        commits: The commits to read, ascending, without a gap.
        compactions: All that there are, in any order; those that reach beyond the commits are left out.
    """
    offered = list(compactions)
    if not commits or not offered:
        return tuple(commits)
    versions = [_version(info) for info in commits]
    longest: dict[int, tuple[int, ObjectInfo]] = {}
    for info in offered:
        name = parse_name(info.path.rpartition("/")[2])
        # "`y` must be _greater_ than `x`"
        if isinstance(name, CompactedName) and name.start < name.end <= versions[-1]:
            longest[name.start] = max((name.end, info), longest.get(name.start, (-1, info)), key=lambda found: found[0])
    chosen: list[ObjectInfo] = []
    position = 0
    while position < len(commits):
        end, info = longest.get(versions[position], (versions[position], commits[position]))
        chosen.append(info)
        position += end - versions[position] + 1
    return tuple(chosen)


def may_lack_removes(entries: Iterable[ObjectInfo], commits: Sequence[ObjectInfo], retention_ms: int) -> bool:
    """Whether a compaction among the files read may lack the removes of files that are older than itself.

    A remove is dropped where it is older than the retention when the compaction is written. From version 0 on there is
    nothing before that could come back.

    Args:
        entries: The files that were read.
        commits: All commits that they stand for.
        retention_ms: `delta.deletedFileRetentionDuration`.
    """
    times = {_version(info): info.modified_ms for info in commits}
    return any(
        name.start > 0 and info.modified_ms - times.get(name.start, 0) >= retention_ms
        for info, name in compacted(entries)
    )


def may_lack_domains(entries: Iterable[ObjectInfo]) -> bool:
    """Whether a compaction among the files read may lack the tombstones of domains that are older than itself."""
    return any(name.start > 0 for _, name in compacted(entries))


def is_reconciled(actions: CommitActions) -> bool:
    """Whether a compaction says one thing of each file, application, domain and of the table: "the actions of the
    commits [...] reconciled".

    Args:
        actions: Of this compaction alone.
    """
    single = [actions.protocol, actions.metadata or actions.metadata_damage, actions.row_id_high_water_mark]
    if actions.singles != len(actions.txns) + len(actions.domains) + len(single) - single.count(None):
        return False
    keys = pa.chunked_array([logical_file_keys(b) for b in (*actions.adds, *actions.removes)], pa.string())
    return int(pc.count_distinct(keys).as_py()) == len(keys)


def compacted(entries: Iterable[ObjectInfo]) -> list[tuple[ObjectInfo, CompactedName]]:
    """The compactions among log files."""
    named = ((info, parse_name(info.path.rpartition("/")[2])) for info in entries)
    return [(info, name) for info, name in named if isinstance(name, CompactedName)]


def _version(commit: ObjectInfo) -> int:
    name = parse_name(commit.path.rpartition("/")[2])
    return name.version if isinstance(name, CommitName) else -1
