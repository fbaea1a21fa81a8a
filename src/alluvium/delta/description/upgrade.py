"""Which protocol a table needs: the weakest that supports what its schema and properties ask for.

Specification: "Protocol Evolution", "Table Features for New and Existing Tables". A protocol is a set of features:
one that a legacy version implies as a whole is written as that version, any other as a list. Features are added,
never removed, but by name (`without_feature`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from alluvium.delta.description.new_expressions import ensure_computable
from alluvium.delta.features.columns import column_defaults
from alluvium.delta.features.feature import Feature
from alluvium.delta.features.registry import (
    BY_NAME,
    CHANGE_PASSES,
    FEATURES,
    MAX_READER_VERSION,
    MAX_WRITER_VERSION,
    ensure_writable,
)
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.mapping import FEATURE_NAME as COLUMN_MAPPING
from alluvium.delta.terms.spec import Metadata, Protocol
from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest

#: How features are asked for by name among the properties.
FEATURE_PREFIX = "delta.feature."
MIN_READER, MIN_WRITER = "delta.minReaderVersion", "delta.minWriterVersion"
_IGNORE_DEFAULTS = "delta.ignoreProtocolDefaults"
_DEFAULT_VERSIONS = (1, 2)
#: Added by what the feature is for, not by name.
_NOT_BY_NAME: Mapping[str, str] = {
    "clustering": "create the table with clusterBy(...)",
    "catalogManaged": "such tables are created by their catalog",
}


@dataclass(frozen=True, slots=True)
class ProtocolRequest:
    """What a caller said of the protocol, beside what schema and properties ask for.

    Attributes:
        reader: `delta.minReaderVersion`.
        writer: `delta.minWriterVersion`.
        features: Canonical names out of `delta.feature.X`.
        bare: `delta.ignoreProtocolDefaults`: start from no features at all.
    """

    reader: int | None = None
    writer: int | None = None
    features: tuple[str, ...] = ()
    bare: bool = False


def split_protocol_request(properties: Mapping[str, str]) -> tuple[ProtocolRequest, dict[str, str]]:
    """Takes the properties that speak of the protocol out of the others: they are never stored.

    Raises:
        InvalidRequest: A version out of range (`invalid-property`), a feature that does not exist
            (`unknown-feature`), or one that is not added by name.
    """
    reader = writer = None
    features: list[str] = []
    bare = False
    rest: dict[str, str] = {}
    for name, value in properties.items():
        folded = name.lower()
        if folded == MIN_READER.lower():
            reader = _version(MIN_READER, value, MAX_READER_VERSION)
        elif folded == MIN_WRITER.lower():
            writer = _version(MIN_WRITER, value, MAX_WRITER_VERSION)
        elif folded == _IGNORE_DEFAULTS.lower():
            bare = value.strip().lower() == "true"
        elif folded.startswith(FEATURE_PREFIX):
            features.append(_requested_feature(name, value))
        else:
            rest[name] = value
    return ProtocolRequest(reader, writer, tuple(features), bare), rest


def _version(name: str, text: str, last: int) -> int:
    if not text.strip().isdigit() or not 1 <= int(text) <= last:
        known = ", ".join(str(n) for n in range(1, last + 1))
        raise InvalidRequest(f"{name} must be one of {known}, not {text!r}", code="invalid-property")
    return int(text)


def _requested_feature(name: str, value: str) -> str:
    if value.strip().lower() not in ("supported", "enabled"):
        raise InvalidRequest(
            f"table property {name} = {value!r} is not valid: expected 'supported'", code="invalid-property"
        )
    return find_feature(name[len(FEATURE_PREFIX) :]).name


def find_feature(name: str) -> Feature:
    """The feature of that name, in any case.

    Raises:
        InvalidRequest: There is none (`unknown-feature`), or it is not added by name (`feature-not-by-name`).
    """
    by_folded = {known.lower(): feature for known, feature in BY_NAME.items()}
    feature = by_folded.get(name.lower())
    if feature is None:
        raise InvalidRequest(f"there is no feature {name!r}", code="unknown-feature", hint=suggest(name, BY_NAME))
    if feature.name in _NOT_BY_NAME:
        raise InvalidRequest(
            f"the feature {feature.name} is not added by name",
            code="feature-not-by-name",
            hint=_NOT_BY_NAME[feature.name],
        )
    return feature


def implied_features(reader: int, writer: int) -> frozenset[str]:
    """ "Writer Version 2 implies appendOnly and invariants", and so on: what legacy versions stand for."""
    return frozenset(
        f.name
        for f in FEATURES
        if f.legacy_writer is not None and f.legacy_writer <= writer and (f.legacy_reader or 1) <= reader
    )


def supported_features(protocol: Protocol) -> frozenset[str]:
    """Every feature that a protocol supports, listed or implied, under the names in the protocol."""
    if protocol.min_writer_version < MAX_WRITER_VERSION:
        return implied_features(protocol.min_reader_version, protocol.min_writer_version)
    return frozenset(protocol.writer_features or ()) | frozenset(protocol.reader_features or ())


def protocol_of(features: Iterable[str]) -> Protocol:
    """The weakest protocol that supports exactly these features.

    "Writers may only list a feature in `writerFeatures` when the Writer Version is 7", and lists have no use where a
    legacy version says the same.
    """
    names = frozenset(features)
    for writer in range(1, MAX_WRITER_VERSION):
        for reader in (1, 2):
            if implied_features(reader, writer) == names:
                return Protocol(min_reader_version=reader, min_writer_version=writer)
    records = [(name, BY_NAME.get(name)) for name in sorted(names)]
    readers = [(name, f) for name, f in records if f is not None and f.reader]
    reader = max((f.legacy_reader or MAX_READER_VERSION for _, f in readers), default=1)
    return Protocol(
        min_reader_version=reader,
        min_writer_version=MAX_WRITER_VERSION,
        # "`readerFeatures` must not exist when the Reader Version is not 3."
        reader_features=tuple(name for name, _ in readers) if reader == MAX_READER_VERSION else None,
        writer_features=tuple(sorted(names)),
    )


def required_protocol(
    metadata: Metadata,
    current: Protocol | None = None,
    request: ProtocolRequest | None = None,
    copied: Protocol | None = None,
) -> Protocol:
    """The protocol of a table with this metadata.

    Args:
        metadata: As it is to be committed.
        current: The table's protocol until now; None for a new table.
        request: What the caller said of the protocol.
        copied: That of a table of which this one is a copy: all that it supports is supported.

    Returns:
        `current` itself where it supports everything already.

    Raises:
        InvalidRequest: An existing table's metadata asks for a feature that must be added by name first
            (`feature-not-enabled`); a reader version with lists and a writer version without (`invalid-property`).
    """
    request = request or ProtocolRequest()
    asked = with_required(request.features)
    needed = with_required(f.name for f in _requested_by(metadata))
    if copied is not None:
        asked |= supported_features(copied)
        if current is None:
            # A copy begins as what it copies, and not with what new tables have.
            current = copied
    if current is None:
        return protocol_of(_starting_features(request) | asked | needed)
    supported = supported_features(current)
    missing = set() if copied else {name for name in needed - asked if not _supports(supported, name)}
    _ensure_automatic(missing)
    wanted = asked | needed | _legacy_request(request)
    missing = {name for name in wanted if not _supports(supported, name)}
    return protocol_of(supported | missing) if missing else current


def configure(
    metadata: Metadata,
    current: TableConfig | None = None,
    request: ProtocolRequest | None = None,
    copied: TableConfig | None = None,
) -> TableConfig:
    """The configuration of a table with this metadata, and the protocol that it needs.

    Args:
        metadata: As the caller wants it; features complete it (ids of new columns, ...).
        current: The table's configuration until now; None for a new table.
        request: What the caller said of the protocol.
        copied: A table of which this one is a copy: what it supports is supported, and its expressions are not new.

    Raises:
        UnsupportedFeature: The table would use a feature that we do not write.
        InvalidRequest: As for `required_protocol`; as for `ensure_computable`.
    """
    for complete in CHANGE_PASSES:
        metadata = complete(metadata, current)
    missing = sorted(f.name for f in _requested_by(metadata) if not f.writable)
    if missing:
        raise UnsupportedFeature(
            f"the change needs {', '.join(missing)}, which Alluvium does not write yet",
            features=missing,
            hint="leave out the property or type that asks for it",
        )
    before = current.protocol if current else None
    protocol = required_protocol(metadata, before, request, copied.protocol if copied else None)
    for feature in FEATURES:
        if feature.on_support is not None and feature.name in supported_features(protocol):
            metadata = feature.on_support(metadata, current)
    config = parse_config(protocol, metadata)
    _ensure_new_defaults_supported(config, copied or current)
    ensure_writable(config)
    ensure_computable(config, copied or current)
    return config


def _ensure_new_defaults_supported(config: TableConfig, current: TableConfig | None) -> None:
    """As the reference: a default never brings its feature along, it must be asked for by name.

    "The table must be on Writer Version 7, and a feature name `allowColumnDefaults` must exist in the table
    `protocol`'s `writerFeatures`": a default that no writer looks at would be a promise that nobody keeps.
    """
    known = {} if current is None else {f.name: f.metadata.get(column_defaults.KEY) for f in current.schema.fields}
    defaults = [f for f in config.schema.fields if column_defaults.KEY in f.metadata]
    new = [f for f in defaults if f.metadata[column_defaults.KEY] != known.get(f.name)]
    if new:
        ensure_defaults_supported(config, new[0].name)


def ensure_defaults_supported(config: TableConfig, column: str) -> None:
    """Refuses a column's default in a table whose protocol has none."""
    if column_defaults.FEATURE.name not in supported_features(config.protocol):
        raise InvalidRequest(
            f"column {column!r} has a default, which the table does not support",
            code="feature-not-enabled",
            column=column,
            hint="set the property delta.feature.allowColumnDefaults to supported first",
        )


def with_required(names: Iterable[str]) -> frozenset[str]:
    """The features and those that they cannot be without, and so on."""
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            record = BY_NAME.get(name)
            pending.extend(record.requires if record is not None else ())
    return frozenset(found)


def without_feature(protocol: Protocol, name: str) -> Protocol:
    """The weakest protocol that supports all that this one does, but for one feature.

    Raises:
        InvalidRequest: The protocol does not support it (`feature-not-supported`), or another feature needs it
            (`feature-in-use`).
    """
    supported = supported_features(protocol)
    record = BY_NAME.get(name)
    names = {name, *((record.name, *record.aliases) if record is not None else ())}
    present = supported & names
    if not present:
        raise InvalidRequest(
            f"the table does not support the feature {name}",
            code="feature-not-supported",
            hint=f"it supports: {', '.join(sorted(supported)) or 'none'}",
        )
    rest = supported - present
    dependents = sorted(other for other in rest if names & set(BY_NAME[other].requires if other in BY_NAME else ()))
    if dependents:
        raise InvalidRequest(
            f"the feature {name} is needed by {', '.join(dependents)}",
            code="feature-in-use",
            hint=f"drop {dependents[0]} first",
        )
    return protocol_of(rest)


def _supports(supported: frozenset[str], name: str) -> bool:
    record = BY_NAME[name]
    return not supported.isdisjoint((record.name, *record.aliases))


def _requested_by(metadata: Metadata) -> list[Feature]:
    config = _as_if_all_supported(metadata)
    return [f for f in FEATURES if (f.is_requested or f.is_used)(config)]


def _as_if_all_supported(metadata: Metadata) -> TableConfig:
    # Some features count as used only where the protocol lists them. Column mapping is left out, for columns need
    # not have their ids yet.
    names = [f.name for f in FEATURES if f.name != COLUMN_MAPPING]
    everything = Protocol(
        min_reader_version=MAX_READER_VERSION,
        min_writer_version=MAX_WRITER_VERSION,
        reader_features=tuple(f.name for f in FEATURES if f.reader and f.name != COLUMN_MAPPING),
        writer_features=tuple(names),
    )
    return parse_config(everything, metadata)


def _starting_features(request: ProtocolRequest) -> frozenset[str]:
    reader, writer = _DEFAULT_VERSIONS
    if request.bare:
        return frozenset()
    writer = writer if request.writer is None else request.writer
    # Writer version 7 stands for no features but those that are listed.
    return frozenset() if writer == MAX_WRITER_VERSION else implied_features(request.reader or reader, writer)


def _legacy_request(request: ProtocolRequest) -> frozenset[str]:
    writer, reader = request.writer or 1, request.reader or 1
    if reader == MAX_READER_VERSION and writer != MAX_WRITER_VERSION:
        # "Creating a table with a Reader Version 3 and Writer Version less than 7 is not allowed."
        raise InvalidRequest(
            "reader version 3 requires writer version 7", code="invalid-property", hint=f"set {MIN_WRITER} to 7, too"
        )
    return frozenset() if writer == MAX_WRITER_VERSION else implied_features(reader, writer)


def _ensure_automatic(missing: Iterable[str]) -> None:
    manual = sorted(name for name in missing if not BY_NAME[name].automatic)
    if manual:
        raise InvalidRequest(
            f"the change needs the feature {', '.join(manual)}, which existing tables get by request only",
            code="feature-not-enabled",
            hint=f"addFeatureSupport({manual[0]!r}) first; older readers may then be unable to read the table",
        )


def find_droppable(name: str, droppable: Iterable[str]) -> str:
    """The canonical name of a feature that may be dropped, given in any case.

    Raises:
        InvalidRequest: There is no such feature (`unknown-feature`), or nobody knows how a table can do without it
            (`feature-not-droppable`).
    """
    feature = BY_NAME.get(name) or {k.lower(): f for k, f in BY_NAME.items()}.get(name.lower())
    if feature is None:
        raise InvalidRequest(f"there is no feature {name!r}", code="unknown-feature", hint=suggest(name, BY_NAME))
    known = sorted(droppable)
    if feature.name not in known:
        raise InvalidRequest(
            f"the feature {feature.name} cannot be dropped",
            code="feature-not-droppable",
            hint=f"features that can: {', '.join(known)}; else write the rows into a new table",
        )
    return feature.name
