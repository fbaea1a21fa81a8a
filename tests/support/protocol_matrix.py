"""Which protocol a table gets: properties and columns, and what delta-spark 4.4 was measured to write.

`tests/delta/description/test_upgrade.py` holds ours to it, `tests/interop/test_tables.py` holds delta-spark to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

BASIC = ("appendOnly", "invariants")
W4 = (*BASIC, "checkConstraints", "changeDataFeed", "generatedColumns")


@dataclass(frozen=True)
class Case:
    """A table to create, and its protocol: reader, writer, reader features, writer features (None: legacy)."""

    properties: dict[str, str]
    reader: int
    writer: int
    readers: tuple[str, ...] | None = None
    writers: tuple[str, ...] | None = None
    columns: tuple[tuple[str, str], ...] = (("a", "int"), ("b", "string"))
    nullable: bool = True
    generated: dict[str, str] = field(default_factory=dict)

    @property
    def protocol(self) -> tuple[int, int, frozenset[str] | None, frozenset[str] | None]:
        return (self.reader, self.writer, _set(self.readers), _set(self.writers))

    def __str__(self) -> str:
        return f"{self.properties} {self.columns}"


def _set(names: tuple[str, ...] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)


def _both(feature: str, *more: str) -> dict:
    return {"reader": 3, "writer": 7, "readers": (feature,), "writers": (feature, *BASIC, *more)}


def _writers(*features: str, reader: int = 1) -> dict:
    return {"reader": reader, "writer": 7, "writers": (*features, *BASIC)}


MATRIX: tuple[Case, ...] = (
    Case({}, 1, 2),
    Case({"delta.appendOnly": "true"}, 1, 2),
    Case({"delta.enableChangeDataFeed": "false"}, 1, 2),
    Case({"delta.enableChangeDataFeed": "true"}, **_writers("changeDataFeed")),
    Case({"delta.columnMapping.mode": "none"}, 1, 2),
    Case({"delta.columnMapping.mode": "name"}, **_writers("columnMapping", reader=2)),
    Case({"delta.columnMapping.mode": "id"}, **_writers("columnMapping", reader=2)),
    Case({"delta.enableDeletionVectors": "true"}, **_both("deletionVectors")),
    Case({"delta.enableRowTracking": "true"}, **_writers("rowTracking", "domainMetadata")),
    Case({"delta.enableTypeWidening": "true"}, **_both("typeWidening")),
    Case({"delta.enableInCommitTimestamps": "true"}, **_writers("inCommitTimestamp")),
    Case({"delta.checkpointPolicy": "v2"}, **_both("v2Checkpoint")),
    Case({"delta.checkpointPolicy": "classic"}, 1, 2),
    Case({"delta.constraints.c": "a > 0"}, 1, 3),
    Case({"delta.enableMaterializePartitionColumnsFeature": "true"}, **_writers("materializePartitionColumns")),
    Case({"delta.feature.appendOnly": "supported"}, 1, 2),
    Case({"delta.feature.checkConstraints": "supported"}, 1, 3),
    Case({"delta.feature.changeDataFeed": "supported"}, **_writers("changeDataFeed")),
    Case({"delta.feature.columnMapping": "supported"}, **_writers("columnMapping", reader=2)),
    Case({"delta.feature.DELETIONvectors": "enabled"}, **_both("deletionVectors")),
    Case({"delta.feature.rowTracking": "supported"}, **_writers("rowTracking", "domainMetadata")),
    Case({"delta.feature.icebergCompatV2": "supported"}, **_writers("icebergCompatV2", "columnMapping", reader=2)),
    Case({"delta.feature.vacuumProtocolCheck": "supported"}, **_both("vacuumProtocolCheck")),
    Case({"delta.feature.allowColumnDefaults": "supported"}, **_writers("allowColumnDefaults")),
    Case({"delta.feature.checkpointProtection": "supported"}, **_writers("checkpointProtection")),
    Case({"delta.ignoreProtocolDefaults": "true"}, 1, 1),
    *(
        Case({"delta.minReaderVersion": str(r), "delta.minWriterVersion": str(w)}, *found)
        for (r, w), found in {
            (1, 1): (1, 1), (1, 2): (1, 2), (1, 3): (1, 3), (1, 4): (1, 4), (1, 5): (1, 4), (1, 6): (1, 6),
            (2, 2): (1, 2), (2, 5): (2, 5), (2, 6): (2, 6), (1, 7): (1, 1), (3, 7): (1, 1), (3, 6): (2, 6),
        }.items()
    ),
    Case({"delta.minWriterVersion": "5"}, 1, 4),
    Case({"delta.minReaderVersion": "3"}, 1, 2),
    Case({"delta.minWriterVersion": "3", "delta.enableChangeDataFeed": "true"}, **_writers("changeDataFeed", "checkConstraints")),
    Case({"delta.minReaderVersion": "1", "delta.minWriterVersion": "7", "delta.columnMapping.mode": "name"}, 2, 7, None, ("columnMapping",)),
    Case({"delta.minWriterVersion": "4", "delta.enableDeletionVectors": "true"}, 3, 7, ("deletionVectors",), ("deletionVectors", *W4)),
    Case({"delta.minWriterVersion": "4", "delta.feature.generatedColumns": "supported"}, 1, 4),
    Case({"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}, 3, 7, ("columnMapping", "deletionVectors"), ("columnMapping", "deletionVectors", *BASIC)),
    Case({"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"}, **_writers("columnMapping", "rowTracking", "domainMetadata", reader=2)),
    Case({"delta.columnMapping.mode": "name", "delta.feature.checkConstraints": "supported"}, **_writers("columnMapping", "checkConstraints", reader=2)),
    Case({}, **_both("timestampNtz"), columns=(("a", "int"), ("t", "timestamp_ntz"))),
    Case({}, **_both("timestampNtz"), columns=(("a", "int"), ("t", "struct<x:array<timestamp_ntz>>"))),
    Case({}, **_both("variantType"), columns=(("a", "int"), ("v", "variant"))),
    Case({}, 1, 2, columns=(("a", "int"), ("c", "varchar(3)"))),
    Case({}, 1, 2, nullable=False),
    Case({}, **_writers("generatedColumns"), columns=(("a", "int"), ("b", "int")), generated={"b": "a + 1"}),
)  # fmt: skip

#: (properties of an existing table, properties then set, protocol afterwards or None: the change is refused)
CHANGES: tuple[tuple[dict[str, str], dict[str, str], Case], ...] = (
    ({}, {"delta.enableChangeDataFeed": "true"}, Case({}, **_writers("changeDataFeed"))),
    ({}, {"delta.enableDeletionVectors": "true"}, Case({}, **_both("deletionVectors"))),
    ({}, {"delta.feature.checkConstraints": "supported"}, Case({}, 1, 3)),
    ({}, {"delta.feature.columnMapping": "supported"}, Case({}, **_writers("columnMapping", reader=2))),
    ({}, {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}, Case({}, 1, 2)),
    ({}, {"delta.minReaderVersion": "1", "delta.minWriterVersion": "1"}, Case({}, 1, 2)),
    ({}, {"delta.minReaderVersion": "1", "delta.minWriterVersion": "5"}, Case({}, 1, 4)),
    ({}, {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}, Case({}, 2, 5)),
    ({"delta.minWriterVersion": "4"}, {"delta.enableChangeDataFeed": "true"}, Case({}, 1, 4)),
    ({"delta.minWriterVersion": "4"}, {"delta.feature.columnMapping": "supported"}, Case({}, 2, 5)),
    ({"delta.minWriterVersion": "4"}, {"delta.enableInCommitTimestamps": "true"}, Case({}, 1, 7, None, ("inCommitTimestamp", *W4))),
    ({"delta.minReaderVersion": "2", "delta.minWriterVersion": "6"}, {"delta.checkpointPolicy": "v2"}, Case({}, 3, 7, ("v2Checkpoint", "columnMapping"), ("v2Checkpoint", "columnMapping", "identityColumns", *W4))),
    ({"delta.enableDeletionVectors": "true"}, {"delta.enableChangeDataFeed": "true"}, Case({}, **_both("deletionVectors", "changeDataFeed"))),
    ({"delta.enableDeletionVectors": "true"}, {"delta.minReaderVersion": "1", "delta.minWriterVersion": "3"}, Case({}, **_both("deletionVectors", "checkConstraints"))),
    ({"delta.minWriterVersion": "7"}, {"delta.feature.rowTracking": "supported"}, Case({}, 1, 7, None, ("rowTracking", "domainMetadata"))),
    ({"delta.minWriterVersion": "7"}, {"delta.feature.appendOnly": "supported"}, Case({}, 1, 7, None, ("appendOnly",))),
)  # fmt: skip
