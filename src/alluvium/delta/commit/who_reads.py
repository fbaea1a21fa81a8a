"""Who can still read and write a table after its protocol changed: delta-spark by its versions, others as measured.

Versions of delta-spark are those of its page "How does Delta Lake manage feature compatibility?"; what deltalake and
DuckDB read is measured by tests/interop/test_open_readers.py (docs/other-readers.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from alluvium.delta.terms.spec import Protocol

_LISTED_READER, _LISTED_WRITER = 3, 7
#: The first version of delta-spark that knows a feature.
_SINCE: Mapping[str, tuple[int, int]] = {
    "appendOnly": (0, 7), "invariants": (0, 7), "checkConstraints": (0, 8), "generatedColumns": (1, 0),
    "columnMapping": (1, 2), "changeDataFeed": (2, 0), "deletionVectors": (2, 3), "timestampNtz": (2, 4),
    "v2Checkpoint": (3, 0), "domainMetadata": (3, 0), "icebergCompatV1": (3, 0), "icebergCompatV2": (3, 1),
    "clustering": (3, 1), "allowColumnDefaults": (3, 1), "rowTracking": (3, 2), "typeWidening-preview": (3, 2),
    "identityColumns": (3, 3), "inCommitTimestamp": (3, 3), "vacuumProtocolCheck": (3, 3), "typeWidening": (4, 0),
    "variantType": (4, 0), "variantType-preview": (4, 0), "variantShredding-preview": (4, 0),
    "checkpointProtection": (4, 0),
}  # fmt: skip
_OF_LISTS = (2, 3)
#: By the versions that came before lists.
_OF_READER = {1: (0, 7), 2: (1, 2)}
_OF_WRITER = {1: (0, 7), 2: (0, 7), 3: (0, 8), 4: (2, 0), 5: (2, 0), 6: (3, 3)}
_NOT_BY_DATASET = frozenset(
    ("columnMapping", "deletionVectors", "v2Checkpoint", "typeWidening", "typeWidening-preview", "vacuumProtocolCheck")
)
_NOT_BY_QUERY = frozenset(("typeWidening", "typeWidening-preview", "vacuumProtocolCheck"))
_DELTALAKE, _DUCKDB = "deltalake 1.6.6", "DuckDB 1.5.5"


def who_reads(before: Protocol, after: Protocol) -> tuple[str, ...]:
    """What changes for readers and writers, as lines for people; none where the protocol stays."""
    if before == after:
        return ()
    lines = (("can be read by", _readers(before), _readers(after)), ("can be written by", *_writers(before, after)))
    return tuple(
        f"{what}: {then}, as before" if now == then else f"{what}: {then}; before: {now}" for what, now, then in lines
    )


def _readers(protocol: Protocol) -> str:
    version = protocol.min_reader_version
    names = set(protocol.reader_features or ()) if version >= _LISTED_READER else set[str]()
    if version == _LISTED_READER - 1:
        names = {"columnMapping"}
    first = _first(names, _OF_READER.get(version, _OF_LISTS))
    others = [_DUCKDB]
    if not names & _NOT_BY_QUERY:
        others.append(f"{_DELTALAKE} by queries alone" if names & _NOT_BY_DATASET else _DELTALAKE)
    return ", ".join([first, *others])


def _writers(before: Protocol, after: Protocol) -> tuple[str, str]:
    return _writer(before), _writer(after)


def _writer(protocol: Protocol) -> str:
    version = protocol.min_writer_version
    names = protocol.writer_features or () if version >= _LISTED_WRITER else ()
    return _first(names, _OF_WRITER.get(version, _OF_LISTS))


def _first(names: Iterable[str], least: tuple[int, int]) -> str:
    """The version of delta-spark from which on all of the features are known."""
    known = [_SINCE[name] for name in names if name in _SINCE]
    unknown = sorted(name for name in names if name not in _SINCE)
    first = max([least, *known])
    also = f" that know {', '.join(unknown)}" if unknown else ""
    return f"delta-spark from {first[0]}.{first[1]} on{also}"
