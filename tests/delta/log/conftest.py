"""A table in memory whose log is written action by action."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from alluvium.delta.log.checkpoint import CheckpointOptions, format_checkpoint
from alluvium.delta.log.names import checkpoint_paths, commit_path
from alluvium.delta.log.segment import list_segment
from alluvium.delta.log.state import LogState, load_state
from alluvium.delta.terms.spec import Action, Add, DeletionVector, Format, Metadata, Protocol, Remove, format_actions
from alluvium.storage.stores.memory import MemoryStore

WEEK_MS = 7 * 24 * 3600 * 1000


@dataclass
class LogWriter:
    """Writes log entries, without any check."""

    store: MemoryStore

    def head(self, **configuration: str) -> list[Action]:
        """The actions that every first commit needs."""
        return [
            Protocol(min_reader_version=1, min_writer_version=2),
            Metadata(
                id="t",
                format=Format(provider="parquet"),
                schema_string='{"type":"struct","fields":[]}',
                partition_columns=(),
                configuration=configuration,
            ),
        ]

    def add(
        self, path: str, vector: str | None = None, offset: int | None = None, size: int = 1, **fields: object
    ) -> Add:
        """An add action."""
        return Add(
            path=path,
            partition_values={},
            size=size,
            modification_time=1,
            data_change=True,
            deletion_vector=self.vector(vector, offset),
            **fields,
        )

    def remove(self, path: str, vector: str | None = None, offset: int | None = None, at: int | None = 10) -> Remove:
        """A remove action."""
        return Remove(path=path, deletion_timestamp=at, data_change=True, deletion_vector=self.vector(vector, offset))

    def vector(self, name: str | None, offset: int | None = None) -> DeletionVector | None:
        """A deletion vector in a file."""
        if name is None:
            return None
        return DeletionVector(storage_type="u", path_or_inline_dv=name, offset=offset, size_in_bytes=8, cardinality=1)

    def commit(self, version: int, actions: Iterable[Action]) -> None:
        """Writes a commit."""
        self.store.put(commit_path(version), format_actions(actions))

    def commits(self, count: int) -> None:
        """Commits 0 to count - 1, of which each adds one file, named `f<version>`."""
        for version in range(count):
            self.commit(version, [*(self.head() if version == 0 else []), self.add(f"f{version}")])

    def checkpoint(self, version: int, state: LogState | None = None) -> LogState:
        """Writes a classic checkpoint of a version."""
        state = state or self.load(version)
        self.store.put(checkpoint_paths(version)[0], format_checkpoint(state, CheckpointOptions(0, WEEK_MS)))
        return state

    def load(self, version: int | None = None) -> LogState:
        """Reads a version, whatever its protocol."""
        return load_state(self.store, list_segment(self.store, version), lambda protocol: None)

    def paths(self, version: int | None = None) -> set[str]:
        """Paths of the live files."""
        return set(self.load(version).files.column("path").to_pylist())


@pytest.fixture
def log() -> LogWriter:
    """A table without a commit."""
    return LogWriter(MemoryStore(uuid.uuid4().hex, "table"))
