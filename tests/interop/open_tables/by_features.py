"""Tables that Alluvium writes with Spark: column mapping, row changes, and features of the protocol."""

from __future__ import annotations

from .maker import Maker, table

ROWS = "select id, cast(id % 2 as int) p, concat('v', id) v from range(20)"
MASK = {"delta.enableDeletionVectors": "true"}
NAMED = {"delta.columnMapping.mode": "name"}
NUMBERED = {"delta.columnMapping.mode": "id"}


# Column mapping


def _mapped(m: Maker, properties: dict[str, str]) -> None:
    """Columns with names that no file could have, renamed, dropped and added again."""
    m.write(
        "select id, concat('k', id) `a b`, named_struct('x y', id, 'gone', 1) `s,t`, 1 gone from range(3)",
        properties=properties,
    )
    m.alter.rename_column("`a b`", "ä=b")
    m.alter.rename_column("`s,t`.`x y`", "z")
    m.alter.drop_columns("gone", "`s,t`.gone")
    m.alter.add_columns({"gone": "string"})
    m.write("select 9L id, 'new' `ä=b`, named_struct('z', 5L) `s,t`, 'text' gone")
    m.t.update("id = 1", {"gone": "'changed'"})


@table(("id", ">=", 2))
def mapped_names(m: Maker) -> None:
    _mapped(m, NAMED)


@table(("id", ">=", 2))
def mapped_numbers(m: Maker) -> None:
    _mapped(m, NUMBERED)


@table(("id", ">=", 2))
def mapped_names_as_a_feature(m: Maker) -> None:
    """By features of readers, not by the legacy versions that stand for column mapping."""
    _mapped(m, {**NAMED, **MASK})


@table(("id", ">=", 2))
def mapped_maps_of_structs(m: Maker) -> None:
    m.write("select 1L id, map('k', named_struct('v', 1)) m", properties=NUMBERED)
    m.write("select 2L id, map('k', named_struct('v', 1, 'w', 2)) m", mergeSchema=True)


@table(("id", ">=", 2))
def mapped_partitions(m: Maker) -> None:
    m.write(ROWS, partition_by=("p",), properties=NAMED)
    m.alter.rename_column("p", "part")


@table(("id", ">=", 2))
def mapped_later(m: Maker) -> None:
    m.write("select 1 id, 'x' b, named_struct('i', 1) s")
    m.alter.set_properties(NAMED)
    m.alter.rename_column("b", "c")
    m.alter.drop_columns("s")
    m.write("select 3 id, 'y' c")


# DELETE, UPDATE, MERGE


def _changed(m: Maker, properties: dict[str, str]) -> None:
    m.write(ROWS, partition_by=("p",), properties=properties)
    m.t.delete("id = 3")
    m.t.update("id in (4, 5)", {"v": "concat(v, '!')"})
    (
        m.merge("select * from values (5L, 1, 's5'), (6L, 0, 's6'), (100L, 1, 's100') as s(id, p, v)")
        .whenMatchedDelete("s.id = 6")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .whenNotMatchedBySourceDelete("t.id = 10")
        .execute()
    )


@table(("id", ">=", 5))
def changed_rows(m: Maker) -> None:
    _changed(m, {})


@table(("id", ">=", 5), feed=0)
def changed_rows_by_vectors(m: Maker) -> None:
    """Small vectors, which stand in the log; merged with those that were there; in the end a whole file goes."""
    _changed(m, {"delta.enableChangeDataFeed": "true", **MASK})
    m.t.delete("p = 0")


@table(("id", ">=", 4990))
def vectors_in_files(m: Maker) -> None:
    """Too large for the log, then larger; two files at once, whose vectors share one."""
    m.write("select id, id % 2 p from range(5000)", properties=MASK)
    m.write("select id, id % 2 p from range(5000, 9000)")
    m.t.delete("id % 3 = 0")
    m.t.delete("id % 7 = 1 and id < 4000")
    m.t.delete("id in (4995, 8999)")


@table(("id", ">=", 5), feed=0)
def change_feed(m: Maker) -> None:
    m.write(ROWS, partition_by=("p",), properties={"delta.enableChangeDataFeed": "true"})
    m.t.delete("id = 3")
    m.t.update("id in (4, 5)", {"v": "concat(v, '!')"})
    m.write("select 7L id, 1 p, 'over' v", "overwrite")


# Features


@table(("id", ">=", 2))
def widened(m: Maker) -> None:
    m.write(
        "select cast(id as int) id, cast(id as tinyint) b, cast(id / 2 as decimal(5,2)) d, cast(id / 4 as float) f, "
        "named_struct('x', cast(id as smallint)) s from range(4)",
        properties={"delta.enableTypeWidening": "true"},
    )
    for name, wider in {"id": "bigint", "b": "int", "d": "decimal(12,4)", "f": "double", "s.x": "int"}.items():
        m.alter.alter_column(name, type=wider)
    m.write("select 5000000000L id, 70000 b, cast(1.0005 as decimal(12,4)) d, 0.1D f, named_struct('x', 70000) s")


@table(("id", ">=", 2))
def in_commit_timestamps(m: Maker) -> None:
    m.write(ROWS)
    m.alter.set_properties({"delta.enableInCommitTimestamps": "true"})
    m.write(ROWS)


@table(("id", ">=", 5))
def row_tracking(m: Maker) -> None:
    """Rows that move into new files take their ids with them, in columns of their own."""
    m.write(ROWS, properties={"delta.enableRowTracking": "true"})
    m.t.update("id in (4, 5)", {"v": "concat(v, '!')"})
    m.write(ROWS)


@table(("id", ">=", 2))
def clustered(m: Maker) -> None:
    m.create({"id": "bigint", "v": "string"}, cluster_by=("id", "v"))
    m.write("select id, concat('v', id) v from range(4)")


@table(("id", ">=", 2))
def materialised_partitions(m: Maker) -> None:
    m.write(ROWS, partition_by=("p",), properties={"delta.enableMaterializePartitionColumnsFeature": "true"})


@table(("id", ">=", 2))
def iceberg_compat(m: Maker) -> None:
    m.write(ROWS, partition_by=("p",), properties={"delta.enableIcebergCompatV2": "true", **NAMED})


@table(("id", ">=", 2))
def random_prefixes(m: Maker) -> None:
    m.write(ROWS, partition_by=("p",), properties={"delta.randomizeFilePrefixes": "true"})


@table(("id", ">=", 2))
def dropped_features(m: Maker) -> None:
    """What was dropped leaves `checkpointProtection` and checkpoints behind."""
    m.write(ROWS, properties=MASK)
    m.t.delete("id = 3")
    m.t.dropFeatureSupport("deletionVectors")
    m.write("select 30L id, 1 p, 'x' v")


@table(("id", ">=", 2))
def vacuum_protocol_check(m: Maker) -> None:
    m.write(ROWS, properties={"delta.feature.vacuumProtocolCheck": "supported"})


@table(("id", ">=", 5))
def everything_at_once(m: Maker) -> None:
    m.write(
        "select cast(id as int) id, concat('v', id) v from range(8)",
        properties={
            **NAMED, **MASK, "delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true",
            "delta.enableChangeDataFeed": "true", "delta.checkpointPolicy": "v2", "delta.enableTypeWidening": "true",
            "delta.checkpointInterval": "3",
        },
    )  # fmt: skip
    m.alter.rename_column("v", "w")
    m.t.addConstraint("texts", "w < 'x'")
    m.alter.alter_column("id", type="bigint")
    m.t.delete("id = 2")
    m.alter.add_feature("timestampNtz")
    m.write("select 50L id, 'w' w, timestamp_ntz'2024-01-01 00:00:00' n", mergeSchema=True)


@table(("id", ">=", 2), folder="a b 100% ü")
def odd_folder(m: Maker) -> None:
    m.write(ROWS, partition_by=("p",), properties=MASK)
    m.t.delete("id % 2 = 0 or id > 10")
