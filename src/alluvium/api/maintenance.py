"""What keeps a table in order, without Spark."""

from __future__ import annotations

from collections.abc import Mapping

from alluvium.api.open import open_snapshot, storage_for
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.upkeep.checkup import Finding, check_log, check_snapshot
from alluvium.errors import CorruptTable


def check_table(url: str, storage_options: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    """What is wrong with a table; nothing is changed, and no data file is read.

    Args:
        url: The table.
        storage_options: Credentials and settings of the object store.

    Returns:
        The findings, none for a sound table: gaps in the log, checkpoints that are damaged or incomplete, data files
        that are gone or of another size than the log says, statistics that do not parse.

    Raises:
        NotFound: There is no table.
        UnsupportedFeature: The table needs a reader that we are not.
    """
    store = storage_for(url, storage_options, None)
    findings = check_log(store)
    try:
        return (*findings, *check_snapshot(open_snapshot(store)))
    except CorruptTable as error:
        return (*findings, Finding("error", "log", error.message, error.path))


def write_checkpoint(url: str, storage_options: Mapping[str, str] | None = None) -> int:
    """Writes a checkpoint of the newest version, so that readers need not read all commits.

    Args:
        url: The table.
        storage_options: Credentials and settings of the object store.

    Returns:
        The version of the checkpoint.

    Raises:
        NotFound: There is no table.
        UnsupportedFeature: The table needs a writer that we are not.
        CorruptTable: The log breaks the specification.
    """
    snapshot = open_snapshot(storage_for(url, storage_options, None))
    # A feature that we do not know may ask for more than our checkpoint holds.
    ensure_writable(snapshot.config)
    write_checkpoint_at(snapshot)
    return snapshot.version
