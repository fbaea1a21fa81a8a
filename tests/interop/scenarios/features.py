"""Scenarios about table features that come and go."""

from __future__ import annotations

from collections.abc import Iterator

from .bench import Bench, Step, scenario

ROWS = "select cast(id as int) a, concat('b', id) b from range(10)"


@scenario("select 9 a, 'z' b", delete="a = 9")
def dropped_features(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: b.write("select 1 a, 'x' b", delta__enableDeletionVectors="true", delta__enableTypeWidening="true"),
    )
    yield "append", lambda: b.write("select 2 a, 'x' b")
    yield "truncate at once", lambda: b.table().dropFeatureSupport("typeWidening", True)
    yield "drop what is not there", lambda: b.table().dropFeatureSupport("typeWidening")
    yield "no such feature", lambda: b.table().dropFeatureSupport("teleportation")
    yield "not droppable", lambda: b.table().dropFeatureSupport("appendOnly")
    yield "truncate vectors", lambda: b.table().dropFeatureSupport("deletionVectors", True)
    yield "drop vectors", lambda: b.table().dropFeatureSupport("deletionVectors", False)
    yield "append after", lambda: b.write("select 3 a, 'x' b")
    yield "constrain", lambda: b.constrain("c", "a > 0")
    yield "drop constraints", lambda: b.table().dropFeatureSupport("checkConstraints")
    yield "unconstrain", lambda: b.unconstrain("c")
    yield "drop constraints by history", lambda: b.table().dropFeatureSupport("checkConstraints", True)
    yield "drop constraints now", lambda: b.table().dropFeatureSupport("checkConstraints")


@scenario("select 9 a, 'z' b", delete="a = 9")
def dropped_vectors(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write(ROWS, delta__enableDeletionVectors="true", delta__enableRowTracking="true")
    yield "delete", lambda: b.table().delete("a = 3")
    yield "append", lambda: b.write("select 20 a, 'x' b")
    yield "drop", lambda: b.table().dropFeatureSupport("deletionVectors")
    yield "append after", lambda: b.write("select 3 a, 'x' b")
    yield "drop row tracking", lambda: b.table().dropFeatureSupport("rowTracking")
    yield "append last", lambda: b.write("select 4 a, 'x' b")


@scenario("select 9 c, 'z' b", delete="c = 9")
def dropped_mapping(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write(ROWS, partition_by=("b",), delta__columnMapping__mode="name")
    yield "rename", lambda: b.rename("a", "c")
    yield "drop", lambda: b.table().dropFeatureSupport("columnMapping")
    yield "append after", lambda: b.write("select 3 c, 'x' b")
    yield "rename again", lambda: b.rename("c", "d")


@scenario("select 9L a, 'z' b", delete="a = 9")
def dropped_widening(b: Bench) -> Iterator[Step]:
    yield "create", lambda: b.write(ROWS, delta__enableTypeWidening="true")
    yield "widen", lambda: b.change("a", type="bigint")
    yield "append", lambda: b.write("select 5000000000L a, 'x' b")
    yield "drop", lambda: b.table().dropFeatureSupport("typeWidening")
    yield "append after", lambda: b.write("select 3L a, 'x' b")


@scenario("select 9 a, 'z' b", delete="a = 9")
def dropped_others(b: Bench) -> Iterator[Step]:
    yield (
        "create",
        lambda: b.write(
            ROWS,
            delta__enableInCommitTimestamps="true",
            delta__checkpointPolicy="v2",
            delta__feature__vacuumProtocolCheck="supported",
        ),
    )
    yield "drop timestamps", lambda: b.table().dropFeatureSupport("inCommitTimestamp")
    yield "drop checkpoints", lambda: b.table().dropFeatureSupport("v2Checkpoint")
    yield "drop vacuum check", lambda: b.table().dropFeatureSupport("vacuumProtocolCheck")
    yield "append", lambda: b.write("select 3 a, 'x' b")
