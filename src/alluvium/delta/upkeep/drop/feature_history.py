"""Whether versions that can still be read have something of a feature, so that their readers must know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from alluvium.delta.log.names import commit_path
from alluvium.delta.log.read_checkpoint import read_checkpoint_head
from alluvium.delta.log.segment import list_log
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import NotFound

#: Texts without which a commit changes nothing that matters here: quicker to look for than to read the version.
_VECTOR = b'"deletionVector"'
_TELLING = (b'"metaData"', _VECTOR)


def first_with_traces(
    snapshot: Snapshot, properties: Mapping[str, str | None], has_problem: Callable[[Snapshot], bool]
) -> int | None:
    """The oldest version that uses a feature, of those before this one that can be read; None: none does.

    Args:
        snapshot: The newest version.
        properties: The feature's, with the values that they have where it is not used (None: they are absent).
        has_problem: Whether files or schema of a version have something of it.
    """
    listing = list_log(snapshot.store)
    # Of some a checkpoint alone is left.
    versions = sorted(version for version in {*listing.commits, *listing.checkpoints} if version < snapshot.version)
    is_known = False
    for version in versions:
        # What one that was read has not, a commit that tells of nothing has not brought.
        if is_known and version in listing.commits and not _is_telling(snapshot, version):
            continue
        try:
            found = load_snapshot(snapshot.store, version)
        except NotFound:
            # Without a checkpoint before it nobody reads this version.
            continue
        is_known = True
        if has_problem(found) or _is_set(found, properties):
            return version
    return None


def first_checkpoint_of_second_kind(snapshot: Snapshot) -> int | None:
    """The oldest version that has a checkpoint of the second kind. A writer may have written one wherever the feature
    is supported, whatever the policy says, and whatever it calls it.
    """
    found = list_log(snapshot.store).checkpoints
    heads = ((version, read_checkpoint_head(snapshot.store, found[version])) for version in sorted(found))
    return next((version for version, head in heads if head.is_second_kind), None)


def first_removal_with_vector(snapshot: Snapshot) -> int | None:
    """The oldest entry that removes a file with its vector: who knows none takes all its rows for removed then."""
    for version in sorted(list_log(snapshot.store).commits):
        content = snapshot.store.get(commit_path(version))
        if _VECTOR not in content:
            continue
        for line in content.splitlines():
            removed = msgspec.json.decode(line).get("remove") if b'"remove"' in line else None
            if isinstance(removed, dict) and removed.get("deletionVector"):
                return version
    return None


def _is_telling(snapshot: Snapshot, version: int) -> bool:
    content = snapshot.store.get(commit_path(version))
    return any(text in content for text in _TELLING)


def _is_set(found: Snapshot, properties: Mapping[str, str | None]) -> bool:
    configuration = {name.lower(): value for name, value in found.config.metadata.configuration.items()}
    for name, idle in properties.items():
        value = configuration.get(name.lower())
        if value is not None and value.lower() not in ("false", "none", idle):
            return True
    return False
