"""Row ids for the files of a table that was not row-tracked, before it is: as the reference, in commits of their own.

Specification, "Writer Requirements for Row Tracking": "writers must first commit new `add` actions that set these
fields to replace the `add` actions that do not have these fields set". The commit that enables row tracking, with which
every change of the table's description conflicts, stays small however many files there are.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from alluvium.delta.commit.draft import Draft
from alluvium.delta.description.evolve import to_json
from alluvium.delta.description.upgrade import protocol_of, supported_features, with_required
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows.row_ids import ENABLED, FEATURE_NAME, is_enabled, is_supported, is_true
from alluvium.delta.log_upkeep.checkpoints import refresh_to
from alluvium.delta.statistics.stats_text import with_stats_text
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.config import parse_config
from alluvium.delta.terms.spec import FILES, Protocol
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import publish
from alluvium.plan.changes import Operation, ReadScope
from alluvium.plan.retry import RetryPolicy
from alluvium.storage.locating import locating


def needs_row_ids(snapshot: Snapshot, properties: Mapping[str, str]) -> bool:
    """Whether properties that are to be set enable row tracking, and files have no row ids yet."""
    wanted = is_true({name: value for name, value in properties.items() if name == ENABLED}, ENABLED)
    return wanted and not is_enabled(snapshot.config) and snapshot.files.column("baseRowId").null_count > 0


def backfill_row_ids(snapshot: Snapshot, engine: str, retry: RetryPolicy) -> Snapshot:
    """Supports row tracking, and gives every live file its row ids.

    Returns:
        The version in which all files have them.

    Raises:
        CommitConflict: Another writer removed files meanwhile.
        UnsupportedFeature: The table needs a writer that we are not.
        CorruptTable: A file does not say how many rows it has.
    """
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
    if not is_supported(snapshot.config):
        snapshot = _support(snapshot, engine, retry)
    files = with_stats_text(snapshot.files.filter(snapshot.files.column("baseRowId").is_null()))
    place = FILES.get_field_index("dataChange")
    files = files.set_column(place, FILES.field(place), pa.repeat(pa.scalar(False), files.num_rows))
    operation = Operation("ROW TRACKING BACKFILL", {"batchId": "0"}, engine=engine)
    # A file that somebody removes meanwhile must not come back by this.
    draft = Draft(Actions(added=files), ReadScope.table(), operation, snapshot.version)
    return refresh_to(snapshot, publish(snapshot.store, draft, snapshot, retry).entry.version)


def _support(snapshot: Snapshot, engine: str, retry: RetryPolicy) -> Snapshot:
    config = snapshot.config
    protocol = protocol_of(supported_features(config.protocol) | with_required([FEATURE_NAME]))
    operation = Operation("UPGRADE PROTOCOL", {"newProtocol": to_json(_shown(protocol))}, engine=engine)
    changed = parse_config(protocol, config.metadata)
    draft = Draft(Actions(protocol=protocol), ReadScope.nothing(), operation, snapshot.version, changed)
    return refresh_to(snapshot, publish(snapshot.store, draft, snapshot, retry).entry.version)


def _shown(protocol: Protocol) -> dict[str, object]:
    return {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "readerFeatures": None if protocol.reader_features is None else sorted(protocol.reader_features),
        "writerFeatures": None if protocol.writer_features is None else sorted(protocol.writer_features),
    }
