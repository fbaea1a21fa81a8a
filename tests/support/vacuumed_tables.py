"""Tables whose files are of chosen ages, and what must hold of them after VACUUM."""

from __future__ import annotations

import json
import os
import time
import uuid
from pathlib import Path

from plain_writer import SCHEMA, commit_rows, open_target

from alluvium.delta.commit.draft import Draft
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.log.names import LOG_DIRECTORY, commit_path
from alluvium.delta.log.segment import list_log
from alluvium.delta.rows.vector_files import vector_column, write_vectors
from alluvium.delta.terms.actions import Actions, tombstones_of
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.upkeep.vacuum.vacuum import Vacuumed, VacuumPreview, VacuumRequest, vacuum
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import RECENT, Snapshot, load_snapshot
from alluvium.delta.write.target import DeltaTarget, publish
from alluvium.plan.changes import Describe, Operation, ReadScope, Replace
from alluvium.plan.retry import DEFAULT_RETRY
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

DAY_S = 86_400


def age(root: Path, days: float, *, log: bool = True, files: bool = True) -> None:
    """Makes what is there look as if it were so old; negative: younger than now."""
    then = time.time() - days * DAY_S
    for directory, _, names in os.walk(root):
        in_log = LOG_DIRECTORY in Path(directory).relative_to(root).parts
        for name in names:
            if log if in_log else files:
                os.utime(os.path.join(directory, name), (then, then))
    # What was read lately is known by the times of its files.
    RECENT.clear()


def backdate_tombstones(store: Store) -> None:
    """As if the clock of the writer that removed files were wrong by years."""
    for version, info in list_log(store).commits.items():
        lines = []
        for line in store.get(info.path).splitlines():
            document = json.loads(line)
            if "remove" in document:
                document["remove"]["deletionTimestamp"] = 1_000
            lines.append(json.dumps(document))
        store.put(commit_path(version), "\n".join(lines).encode())


def litter(root: Path, *paths: str, days: float = 30) -> None:
    """Files that the log does not know."""
    then = time.time() - days * DAY_S
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"12345")
        os.utime(root / path, (then, then))


def files_of(root: Path) -> set[str]:
    """All files but those of the log."""
    # Folders that another process takes away meanwhile are passed over, and links to folders count as files.
    listed = (Path(place) / name for place, _, names in os.walk(root) for name in names)
    links = (Path(place) / name for place, names, _ in os.walk(root) for name in names)
    found = {str(path.relative_to(root)) for path in (*listed, *(link for link in links if link.is_symlink()))}
    return {path for path in found if not path.startswith(LOG_DIRECTORY)}


def overwritten(root: Path, times: int = 3) -> Store:
    """A table of one row that was replaced some times: each version has one file of its own."""
    store = open_store(root)
    for n in range(times + 1):
        commit_rows(open_target(store), [n], replace=Replace() if n else None)
    return store


def newest(store: Store) -> Snapshot:
    return load_snapshot(store)


def live(store: Store, version: int | None = None) -> set[str]:
    """The data files of a version."""
    return set(data_paths(load_snapshot(store, version).files).to_pylist())


def mask_first_file(store: Store) -> str:
    """Gives the first live file a deletion vector in a file of its own, and gives that file's path."""
    snapshot = load_snapshot(store)
    file = snapshot.files.slice(0, 1)
    vectors, path = write_vectors(store, [(_ROW_0, 1)], uuid.uuid4())
    masked = file.set_column(file.schema.get_field_index("deletionVector"), "deletionVector", vector_column(vectors))
    removed = tombstones_of(file, int(time.time() * 1000))
    known = snapshot.config.protocol
    protocol = None if "deletionVectors" in (known.writer_features or ()) else _WITH_VECTORS
    actions = Actions(protocol=protocol, added=masked.select(file.schema.names), removed=removed)
    publish(store, Draft(actions, ReadScope.table(), Operation("DELETE"), snapshot.version), snapshot, DEFAULT_RETRY)
    assert path is not None
    return path


_WITH_VECTORS = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=("deletionVectors",),
    writer_features=("deletionVectors", "appendOnly", "invariants"),
)
#: A 64-bit bitmap of row 0 in the portable format: one bitmap, of the upper half 0, with one array of one number.
_ROW_0 = (
    (1).to_bytes(8, "little")
    + (0).to_bytes(4, "little")
    + (12346).to_bytes(4, "little")
    + (1).to_bytes(4, "little")
    + (0).to_bytes(2, "little")
    + (0).to_bytes(2, "little")
    + (16).to_bytes(4, "little")
    + (0).to_bytes(2, "little")
)


def commits(store: Store) -> int:
    return len(list_log(store).commits)


TABLES_OWN = VacuumRequest()
NOW = VacuumRequest(retention_ms=0, checks=False)


def run(store: Store, request: VacuumRequest = TABLES_OWN) -> Vacuumed:
    done = vacuum(newest(store), request)
    assert isinstance(done, Vacuumed)
    return done


def preview(store: Store, request: VacuumRequest = TABLES_OWN) -> VacuumPreview:
    found = vacuum(newest(store), request, dry_run=True)
    assert isinstance(found, VacuumPreview)
    return found


def goes(store: Store, request: VacuumRequest = TABLES_OWN) -> set[str]:
    return set(preview(store, request).files["path"].to_pylist())


def with_properties(store: Store, **properties: str) -> None:
    config = table_config(
        NewTable(SCHEMA, properties={name.replace("__", "."): text for name, text in properties.items()})
    )
    DeltaTarget(store, config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
