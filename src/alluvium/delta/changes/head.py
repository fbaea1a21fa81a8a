"""Protocol and metadata of an older version, without its files."""

from __future__ import annotations

from alluvium.delta.log.read import commit_version
from alluvium.delta.log.read_changes import load_commit, parse_head
from alluvium.delta.log.read_checkpoint import read_checkpoint_head
from alluvium.delta.log.segment import list_segment
from alluvium.delta.terms.spec import Metadata, Protocol
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CorruptTable
from alluvium.storage.store import Store


def load_head(store: Store, version: int) -> tuple[Protocol, Metadata]:
    """What holds at a version: the newest of each up to it, looked for backwards.

    Raises:
        NotFound: The version can no longer be told (`missing-version`): log and checkpoints before it are gone.
        CorruptTable: The log breaks the specification.
    """
    segment = list_segment(store, version)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    for commit in reversed(segment.commits):
        found = parse_head(load_commit(store, commit), commit.path, commit_version(commit))
        # "The latest `protocol` action seen wins", "The latest `metaData` action seen wins"
        protocol, metadata = protocol or found[0], metadata or found[1]
        if protocol is not None and metadata is not None:
            return protocol, metadata
    try:
        head = read_checkpoint_head(store, segment.checkpoint)
    except CorruptTable as error:
        if error.code != "damaged-checkpoint":
            raise
        # There may be a way around it, which the whole state knows to take.
        config = load_snapshot(store, version).config
        return config.protocol, config.metadata
    protocol, metadata = protocol or head.protocol, metadata or head.metadata
    if protocol is None or metadata is None:
        missing = "protocol" if protocol is None else "metaData"
        raise CorruptTable(
            f"the log up to version {version} holds no {missing} action",
            code="no-protocol" if protocol is None else "no-metadata",
            version=version,
        )
    return protocol, metadata
