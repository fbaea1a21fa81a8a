"""Writes log compactions: one file that stands for a run of commits.

Specification: "Log Compaction Files".
"""

from __future__ import annotations

from alluvium.delta.log.names import commit_path, compacted_path
from alluvium.delta.log.read import read_commits
from alluvium.delta.log.replay import reconcile
from alluvium.delta.log.segment import list_log
from alluvium.delta.terms.actions import format_file_actions
from alluvium.delta.terms.spec import format_actions
from alluvium.errors import CommitUnknown, InvalidRequest, NotFound
from alluvium.storage.store import PutOutcome, Store


def compact_log(store: Store, start: int, end: int) -> str:
    """Writes the compaction of the commits from `start` to `end`, both included.

    All removes of the range are kept, however old, and those of domains, too: what comes from before the range would
    rise from the dead without them.

    Returns:
        Its path, relative to the table's root. One that is there already is left as it is.

    Raises:
        InvalidRequest: `end` is not greater than `start` ("`y` must be _greater_ than `x`").
        NotFound: One of the commits is not there.
        CorruptTable: One is damaged.
    """
    if not 0 <= start < end:
        raise InvalidRequest(
            f"a compaction is of two commits or more, not from {start} to {end}", code="invalid-range", url=store.url
        )
    commits = list_log(store, start).commits
    missing = next((version for version in range(start, end + 1) if version not in commits), None)
    if missing is not None:
        raise NotFound(
            f"commit {missing} is not there", code="missing-version", url=store.url, version=missing,
            path=commit_path(missing), hint="compact commits that the log still has",
        )  # fmt: skip
    actions = read_commits(store, [commits[version] for version in range(start, end + 1)])
    if damage := actions.damage or actions.metadata_damage:
        raise damage
    files, tombstones = reconcile([], [], actions.adds, actions.removes)
    single = [a for a in (actions.protocol, actions.metadata, actions.row_id_high_water_mark) if a is not None]
    lines = [*format_file_actions("add", files), *format_file_actions("remove", tombstones)]
    data = format_actions([*single, *actions.txns.values(), *actions.domains.values()])
    path = compacted_path(start, end)
    if store.put_if_absent(path, data + b"".join(line + b"\n" for line in lines)) is PutOutcome.UNKNOWN:
        raise CommitUnknown(
            "the store does not say whether the compaction was written",
            url=store.url,
            path=path,
            hint="nothing depends on it: readers take the commits, or the compaction where it is whole",
        )
    return path
