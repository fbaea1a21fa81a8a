"""All features that the protocol names, in order, and the gate that keeps us off tables that we would misread.

Adding a feature: one module, one line in FEATURES (and its place in the pass tuples is its place there), one test
file, one docs page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from alluvium.delta.features.columns import (
    check_constraints,
    column_defaults,
    column_mapping,
    generated_columns,
    identity_columns,
    invariants,
)
from alluvium.delta.features.feature import Feature
from alluvium.delta.features.iceberg import iceberg_compat_v1, iceberg_compat_v2, materialize_partition_columns
from alluvium.delta.features.log import (
    catalog_managed,
    checkpoint_protection,
    domain_metadata,
    in_commit_timestamp,
    v2_checkpoint,
    vacuum_protocol_check,
)
from alluvium.delta.features.rows import append_only, change_data_feed, clustering, deletion_vectors, row_tracking
from alluvium.delta.features.types import timestamp_ntz, type_widening, variant, variant_shredding
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import Protocol
from alluvium.errors import CorruptTable, UnsupportedFeature

#: Highest versions that the specification defines.
MAX_READER_VERSION = 3
MAX_WRITER_VERSION = 7


def _property_is(name: str, *idle: str) -> Callable[[TableConfig], bool]:
    return lambda config: config.metadata.configuration.get(name, idle[0]).lower() not in idle


#: Without a module: the specification has no text of it yet. Readers have nothing to obey.
_ICEBERG_COMPAT_V3 = Feature(
    name="icebergCompatV3",
    reader=False,
    spec="Iceberg Compatibility V3",
    readable=False,
    writable=False,
    refusal="the protocol has no text of icebergCompatV3 yet; set delta.enableIcebergCompatV2 instead",
    requires=("columnMapping", "rowTracking"),
    is_requested=_property_is("delta.enableIcebergCompatV3", "false"),
)

#: Every feature with a record, in the order in which their passes run.
FEATURES: tuple[Feature, ...] = (
    append_only.FEATURE,
    # The values of columns, before the conditions on them.
    column_defaults.FEATURE,
    generated_columns.FEATURE,
    identity_columns.FEATURE,
    invariants.FEATURE,
    check_constraints.FEATURE,
    # Before column mapping, which they may ask for.
    iceberg_compat_v1.FEATURE,
    iceberg_compat_v2.FEATURE,
    # First of the passes: those that follow see the files' own names.
    column_mapping.FEATURE,
    materialize_partition_columns.FEATURE,
    timestamp_ntz.FEATURE,
    type_widening.FEATURE,
    # Last of the scan passes: it splits parts, and their files no longer stand in the order of the log's.
    deletion_vectors.FEATURE,
    v2_checkpoint.FEATURE,
    vacuum_protocol_check.FEATURE,
    checkpoint_protection.FEATURE,
    in_commit_timestamp.FEATURE,
    domain_metadata.FEATURE,
    clustering.FEATURE,
    # Behind column mapping: its columns in the files have one name only.
    row_tracking.FEATURE,
    catalog_managed.FEATURE,
    variant.FEATURE,
    variant_shredding.FEATURE,
    change_data_feed.FEATURE,
    _ICEBERG_COMPAT_V3,
)

BY_NAME: Mapping[str, Feature] = {name: f for f in FEATURES for name in (f.name, *f.aliases)}

SCAN_PASSES = tuple(f.on_scan for f in FEATURES if f.on_scan is not None)
WRITE_PASSES = tuple(f.on_write for f in FEATURES if f.on_write is not None)
CHANGE_PASSES = tuple(f.on_change for f in FEATURES if f.on_change is not None)
COMMIT_PASSES = tuple(f.on_commit for f in FEATURES if f.on_commit is not None)


def ensure_readable_protocol(protocol: Protocol) -> None:
    """The first gate, on the protocol action alone, before anything else of the log is interpreted.

    Raises:
        UnsupportedFeature: The table needs a reader that we are not; names every missing feature.
        CorruptTable: Versions and feature lists contradict each other.
    """
    reader, listed = protocol.min_reader_version, protocol.reader_features
    if reader > MAX_READER_VERSION:
        raise _unsupported(f"the table needs reader version {reader}; the specification ends at 3", ())
    if reader < 1 or protocol.min_writer_version < 1:
        raise CorruptTable("protocol versions start at 1", code="invalid-protocol")
    if reader == MAX_READER_VERSION:
        # "When the table's Reader Version is 3, `readerFeatures` must exist in the `protocol` action"
        if listed is None:
            raise CorruptTable("reader version 3 without a list of reader features", code="invalid-protocol")
        # "Creating a table with a Reader Version 3 and Writer Version less than 7 is not allowed."
        if protocol.min_writer_version != MAX_WRITER_VERSION:
            raise CorruptTable("reader version 3 requires writer version 7", code="invalid-protocol")
        _ensure_listed_for_writers(listed, protocol.writer_features)
    _ensure_known(listed or (), "read", lambda f: f.readable)


def _ensure_listed_for_writers(reader_features: Iterable[str], writer_features: Iterable[str] | None) -> None:
    """ "It is not allowed to add features only to `readerFeatures` but not to `writerFeatures`." """
    if writer_features is None:
        raise CorruptTable("writer version 7 without a list of writer features", code="invalid-protocol")
    orphans = sorted(set(reader_features) - set(writer_features))
    if orphans:
        raise CorruptTable(
            f"reader features are missing among the writer features: {', '.join(orphans)}", code="invalid-protocol"
        )


def ensure_readable(config: TableConfig) -> None:
    """The second gate: legacy versions imply features without listing them; what the metadata uses decides.

    Raises:
        UnsupportedFeature: The table uses a feature that we do not implement.
    """
    ensure_readable_protocol(config.protocol)
    # "The table property should only be honored if the table's protocol has reader and writer versions and/or table
    # features that support the `columnMapping` table feature."
    # A reader's feature that is listed for writers alone breaks the protocol; ignoring it would misread the files.
    orphans = config.protocol.writer_features or ()
    used = [
        f.name
        for f in FEATURES
        if not f.readable
        and (_implied(f, config, writing=False) or (f.reader and f.name in orphans))
        and f.is_used(config)
    ]
    if used:
        raise _unsupported(f"the table uses {', '.join(used)}", used)
    for f in FEATURES:
        if f.on_metadata is not None and is_supported(f, config.protocol):
            f.on_metadata(config)


def ensure_writable(config: TableConfig) -> None:
    """The gate for writers: everything that readers need, and every writer feature.

    Raises:
        UnsupportedFeature: Names every feature that we do not implement.
        CorruptTable: Versions and feature lists contradict each other.
    """
    ensure_readable(config)
    writer, listed = config.protocol.min_writer_version, config.protocol.writer_features
    if writer > MAX_WRITER_VERSION:
        raise _unsupported(f"the table needs writer version {writer}; the specification ends at 7", ())
    if writer == MAX_WRITER_VERSION:
        if listed is None:
            raise CorruptTable("writer version 7 without a list of writer features", code="invalid-protocol")
        _ensure_known(listed, "written", lambda f: f.writable)
    used = [f.name for f in FEATURES if _implied(f, config, writing=True) and not f.writable and f.is_used(config)]
    if used:
        raise _unsupported(f"writing the table needs {', '.join(used)}", used)


def _implied(f: Feature, config: TableConfig, *, writing: bool) -> bool:
    """Whether the protocol's legacy versions imply the feature."""
    version = config.protocol.min_writer_version if writing else config.protocol.min_reader_version
    first = f.legacy_writer if writing else f.legacy_reader
    last = MAX_WRITER_VERSION if writing else MAX_READER_VERSION
    return first is not None and first <= version < last


def is_supported(f: Feature, protocol: Protocol) -> bool:
    """ "A feature is supported by a table when its name is in the `protocol` action's `readerFeatures` and/or
    `writerFeatures`."
    """
    listed = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return not listed.isdisjoint((f.name, *f.aliases))


def _ensure_known(names: Iterable[str], verb: str, honours: Callable[[Feature], bool]) -> None:
    missing = sorted(name for name in names if name not in BY_NAME or not honours(BY_NAME[name]))
    if missing:
        raise _unsupported(f"the table cannot be {verb} without its features {', '.join(missing)}", missing)


def _unsupported(message: str, features: Iterable[str]) -> UnsupportedFeature:
    names = tuple(features)
    reasons = dict.fromkeys(BY_NAME[name].refusal for name in names if name in BY_NAME)
    told = [reason for reason in reasons if reason is not None]
    return UnsupportedFeature(
        message,
        features=names,
        hint="; ".join(told) or "this version of alluvium does not implement that; see docs/features for what it does",
    )
