"""Table properties (`metaData.configuration`) as one typed record.

Names and defaults are those of the Delta protocol and its reference implementation. What is stored is
untrusted: a value that does not parse raises where it is needed, and names the property.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from alluvium.errors import InvalidRequest, suggest

T = TypeVar("T")

_DAY_MS = 86_400_000
_UNIT_MS = {
    "microsecond": 0.001,
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": _DAY_MS,
    "week": 7 * _DAY_MS,
}
TRUNCATION_RETENTION = "delta.dropFeatureTruncateHistory.retentionDuration"
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
_SIZE = re.compile(r"(\d{1,18})\s*([kmgt]?)b?")
_INTERVAL_PART = re.compile(r"\s*(-?\d+)\s+([a-z]+?)s?(?=\s|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TableProperties:
    """The `delta.*` properties that Alluvium acts on; times in milliseconds.

    Attributes:
        append_only: `delta.appendOnly`: rows may be added, never changed or removed.
        checkpoint_interval: `delta.checkpointInterval`: commits from checkpoint to checkpoint.
        num_indexed_cols: `delta.dataSkippingNumIndexedCols`: leading leaves with statistics; -1 is all.
        stats_columns: `delta.dataSkippingStatsColumns`: the leaves with statistics, instead of the leading ones.
        deleted_file_retention_ms: `delta.deletedFileRetentionDuration`: how long tombstones stay.
        log_retention_ms: `delta.logRetentionDuration`: how long old log entries stay.
        txn_retention_ms: `delta.setTransactionRetentionDuration`: how long transaction identifiers stay.
        write_stats_as_json: `delta.checkpoint.writeStatsAsJson`.
        write_stats_as_struct: `delta.checkpoint.writeStatsAsStruct`.
        checkpoint_policy: `delta.checkpointPolicy`: `"classic"`, or `"v2"` where the feature is supported.
        expired_log_cleanup: `delta.enableExpiredLogCleanup`: checkpoints take expired log entries along.
        isolation_level: `delta.isolationLevel`: `"WriteSerializable"` or `"Serializable"`.
        truncation_retention_ms: `delta.dropFeatureTruncateHistory.retentionDuration`: how long versions stay that need
            a feature which is dropped together with its history.
    """

    append_only: bool = False
    checkpoint_interval: int = 10
    num_indexed_cols: int = 32
    stats_columns: tuple[str, ...] | None = None
    deleted_file_retention_ms: int = 7 * _DAY_MS
    log_retention_ms: int = 30 * _DAY_MS
    txn_retention_ms: int | None = None
    write_stats_as_json: bool = True
    write_stats_as_struct: bool = False
    checkpoint_policy: str = "classic"
    expired_log_cleanup: bool = True
    isolation_level: str = "Serializable"
    truncation_retention_ms: int = _DAY_MS


def parse_boolean(text: str) -> bool:
    folded = text.strip().lower()
    if folded not in ("true", "false"):
        raise ValueError("expected true or false")
    return folded == "true"


def parse_interval_ms(text: str) -> int:
    """`"interval 1 week"`, `"7 days"`, `"2 hours 30 minutes"` as milliseconds (months and years have no length)."""
    body = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE)
    total, end = 0.0, 0
    while match := _INTERVAL_PART.match(body, end):
        unit = match[2].lower()
        if unit not in _UNIT_MS:
            raise ValueError(f"unknown unit {match[2]!r}; use weeks, days, hours, minutes, seconds")
        total += int(match[1]) * _UNIT_MS[unit]
        end = match.end()
    if end == 0 or body[end:].strip():
        raise ValueError("expected an interval such as 'interval 7 days'")
    if total < 0:
        raise ValueError("an interval must not be negative")
    return int(total)


def _whole(text: str, bits: int = 32) -> int:
    # As Java reads it: Python takes underscores, digits of other scripts and any length, too.
    if _WHOLE.fullmatch(text) is None or abs(int(text)) >= 1 << bits - 1:
        raise ValueError(f"expected a whole number of {bits} bits")
    return int(text)


def _positive(text: str) -> int:
    value = _whole(text)
    if value < 1:
        raise ValueError("must be at least 1")
    return value


def _indexed_columns(text: str) -> int:
    value = _whole(text)
    if value < -1:
        raise ValueError("must be -1 (all columns) or more")
    return value


def _checkpoint_policy(text: str) -> str:
    folded = text.strip().lower()
    if folded not in ("classic", "v2"):
        raise ValueError("expected classic or v2")
    return folded


def _isolation_level(text: str) -> str:
    known = {"serializable": "Serializable", "writeserializable": "WriteSerializable"}
    if text.strip().lower() not in known:
        raise ValueError("expected Serializable or WriteSerializable")
    return known[text.strip().lower()]


def parse_columns(text: str) -> tuple[str, ...]:
    """Names with commas between, as they are written."""
    # A comma inside backticks belongs to the name.
    return tuple(part.strip() for part in re.findall(r"(?:`(?:[^`]|``)*`|[^,`])+", text) if part.strip())


def parse_names(text: str) -> tuple[str, ...]:
    """Names of columns at the top with commas between, without their backticks."""
    return tuple(name[1:-1].replace("``", "`") if name.startswith("`") else name for name in parse_columns(text))


_PARSERS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "delta.appendOnly": ("append_only", parse_boolean),
    "delta.checkpointInterval": ("checkpoint_interval", _positive),
    "delta.dataSkippingNumIndexedCols": ("num_indexed_cols", _indexed_columns),
    "delta.dataSkippingStatsColumns": ("stats_columns", parse_columns),
    "delta.deletedFileRetentionDuration": ("deleted_file_retention_ms", parse_interval_ms),
    "delta.logRetentionDuration": ("log_retention_ms", parse_interval_ms),
    "delta.setTransactionRetentionDuration": ("txn_retention_ms", parse_interval_ms),
    "delta.checkpoint.writeStatsAsJson": ("write_stats_as_json", parse_boolean),
    "delta.checkpoint.writeStatsAsStruct": ("write_stats_as_struct", parse_boolean),
    "delta.checkpointPolicy": ("checkpoint_policy", _checkpoint_policy),
    "delta.enableExpiredLogCleanup": ("expired_log_cleanup", parse_boolean),
    "delta.isolationLevel": ("isolation_level", _isolation_level),
    TRUNCATION_RETENTION: ("truncation_retention_ms", parse_interval_ms),
}
assert {name for name, _ in _PARSERS.values()} == {f.name for f in fields(TableProperties)}


def _count(text: str) -> int:
    value = _whole(text, 64)
    if value < 0:
        raise ValueError("must not be negative")
    return value


def parse_size_bytes(text: str) -> int:
    """`"134217728"`, `"128mb"`, `"1 GB"` as bytes, as Spark reads sizes."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError("expected a size such as 134217728 or 128mb")
    value = int(match[1]) << (10 * " kmgt".index(match[2] or " "))
    if value < 1:
        raise ValueError("must be at least one byte")
    return value


def _formats(text: str) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else ()
    if not set(names) <= {"hudi", "iceberg"}:
        raise ValueError("expected hudi, iceberg, or both with a comma between")
    return names


def _one_of(*known: str) -> Callable[[str], object]:
    def parse(text: str) -> str:
        if text.strip().lower() not in known:
            raise ValueError(f"expected {' or '.join(known)}")
        return text.strip().lower()

    return parse


#: Properties that other modules act on, or that are of no concern to us: looked at when they are set, not when a
#: table is read.
_OTHERS: Mapping[str, Callable[[str], object]] = {
    "delta.autoOptimize": parse_boolean,
    "delta.autoOptimize.autoCompact": _one_of("true", "false", "auto", "legacy"),
    "delta.autoOptimize.optimizeWrite": parse_boolean,
    "delta.castIcebergTimeType": parse_boolean,
    "delta.checkpointRetentionDuration": parse_interval_ms,
    "delta.columnMapping.mode": _one_of("none", "name", "id"),
    "delta.compatibility.symlinkFormatManifest.enabled": parse_boolean,
    "delta.enableChangeDataFeed": parse_boolean,
    "delta.enableDeletionVectors": parse_boolean,
    "delta.enableFullRetentionRollback": parse_boolean,
    "delta.enableIcebergCompatV1": parse_boolean,
    "delta.enableIcebergCompatV2": parse_boolean,
    "delta.enableIcebergCompatV3": parse_boolean,
    "delta.enableInCommitTimestamps": parse_boolean,
    "delta.enableMaterializePartitionColumnsFeature": parse_boolean,
    "delta.enableRowTracking": parse_boolean,
    "delta.enableTypeWidening": parse_boolean,
    "delta.enableVariantShredding": parse_boolean,
    "delta.inCommitTimestampEnablementTimestamp": _count,
    "delta.inCommitTimestampEnablementVersion": _count,
    "delta.parquet.compression.codec": _one_of(
        "none", "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "zstd"
    ),
    "delta.parquet.format.version": _one_of("1.0.0", "2.12.0"),
    "delta.randomPrefixLength": _positive,
    "delta.randomizeFilePrefixes": parse_boolean,
    "delta.requireCheckpointProtectionBeforeVersion": _count,
    "delta.rowTrackingSuspended": parse_boolean,
    "delta.sampleRetentionDuration": parse_interval_ms,
    "delta.targetFileSize": parse_size_bytes,
    "delta.universalFormat.enabledFormats": _formats,
}

#: Kept by writers: nobody else sets them.
RESERVED = frozenset(
    (
        "delta.columnMapping.maxColumnId",
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
    )
)
#: Not properties but parts of the table's description, or of its catalog's.
TABLE_ATTRIBUTES = frozenset(("comment", "location", "provider", "owner", "external"))
CONSTRAINT_PREFIX = "delta.constraints."

_FOLDED = {name.lower(): name for name in (*_PARSERS, *_OTHERS, *RESERVED)}


def parse_properties(configuration: Mapping[str, str]) -> TableProperties:
    """The typed record of a table's configuration.

    Raises:
        InvalidRequest: A value does not parse; code `"invalid-property"`, names the property.
    """
    values: dict[str, object] = {}
    for key, text in configuration.items():
        canonical = _FOLDED.get(key.lower())
        if canonical is not None and canonical in _PARSERS:
            attribute, parse = _PARSERS[canonical]
            values[attribute] = _parse_value(canonical, text, parse)
    return TableProperties(**values)  # type: ignore[arg-type]  # each parser gives its attribute's type


def _parse_value(name: str, text: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidRequest(
            f"table property {name} = {text!r} is not valid: {error}",
            code="invalid-property",
            hint="set the property to a valid value",
        ) from None


def parse_settable(name: str, text: str) -> object:
    """The value of a property that not every reader needs, given its canonical name.

    Raises:
        InvalidRequest: It does not parse (`invalid-property`).
    """
    return _parse_value(name, text, _OTHERS[name])


def is_known_property(name: str) -> bool:
    """Whether a name is a property's, be it a feature, a constraint or one that is the user's own."""
    folded = name.lower()
    return (
        not folded.startswith("delta.") or folded in _FOLDED or folded.startswith((CONSTRAINT_PREFIX, "delta.feature."))
    )


def canonical_property(name: str) -> str:
    """The spelling of a `delta.*` property as the reference writes it; other names as they are.

    Raises:
        InvalidRequest: A `delta.*` name that nobody knows; the nearest one is suggested.
    """
    if not name.lower().startswith("delta."):
        return name
    if known := _FOLDED.get(name.lower()):
        return known
    if name.lower().startswith(CONSTRAINT_PREFIX):
        # Constraints differ without regard to case, as columns do.
        return name.lower()
    raise InvalidRequest(
        f"unknown table property {name!r}", code="unknown-property", hint=suggest(name, _FOLDED.values())
    )


def settable_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties that a caller may set, under their canonical names and with values that parse.

    Raises:
        InvalidRequest: An unknown name (`unknown-property`), one that only writers set (`reserved-property`), one given
            twice, or a value that does not parse (`invalid-property`).
    """
    found: dict[str, str] = {}
    for name, text in properties.items():
        canonical = canonical_property(name)
        if canonical in RESERVED:
            raise InvalidRequest(f"table property {canonical} is not for users to set", code="reserved-property")
        if canonical in found:
            raise InvalidRequest(f"table property {canonical} is given twice", code="invalid-property")
        if canonical in _OTHERS:
            _parse_value(canonical, text, _OTHERS[canonical])
        # Blanks around a value, which delta-spark takes for a part of it: it could not open the table again.
        found[canonical] = text.strip() if canonical.lower() in _FOLDED else text
    parse_properties(found)
    return found


def ensure_consistent(configuration: Mapping[str, str]) -> None:
    """Refuses properties that contradict each other.

    Raises:
        InvalidRequest: `"contradicting-properties"`.
    """
    properties = parse_properties(configuration)
    if properties.log_retention_ms < properties.deleted_file_retention_ms:
        # Without their log entries nobody would know which deleted files to keep.
        raise InvalidRequest(
            "delta.logRetentionDuration must not be shorter than delta.deletedFileRetentionDuration",
            code="contradicting-properties",
            hint="set both, the first to at least the second",
        )
    compat = [n for n in _COMPATS if configuration.get(n, "false").strip().lower() == "true"]
    if len(compat) > 1:
        raise InvalidRequest(f"{' and '.join(compat)} exclude each other", code="contradicting-properties")
    if not compat and "iceberg" in configuration.get(_UNIFORM, "").split(","):
        raise InvalidRequest(
            f"{_UNIFORM} names iceberg, which needs one of {', '.join(_COMPATS)}", code="contradicting-properties"
        )
    vectors = configuration.get("delta.enableDeletionVectors", "false").strip().lower() == "true"
    if vectors and compat and compat[0] != _COMPATS[2]:
        # Iceberg readers of versions 1 and 2 know no deletion vectors.
        raise InvalidRequest(
            f"{compat[0]} and delta.enableDeletionVectors exclude each other", code="contradicting-properties"
        )
    manifests = configuration.get(_MANIFESTS, "false").strip().lower() == "true"
    if vectors and manifests:
        raise InvalidRequest(
            f"{_MANIFESTS} and delta.enableDeletionVectors exclude each other", code="contradicting-properties"
        )


#: Readers of such manifests know no vectors.
_MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"
_UNIFORM = "delta.universalFormat.enabledFormats"
_COMPATS = ("delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2", "delta.enableIcebergCompatV3")
