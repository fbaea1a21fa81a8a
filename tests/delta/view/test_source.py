"""A version as a source of plans; no JVM."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

from plain_writer import commit_rows, open_target
from stream_log import Log, add, masked, metadata

from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.schema.types import LONG, Field
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore


def test_who_judges_all_rows_passes_over_no_file(tmp_path: Path) -> None:
    store = open_store(tmp_path / "t")
    commit_rows(open_target(store), [1])
    plain = DeltaSource(load_snapshot(store))
    exact = DeltaSource(load_snapshot(store), is_exact=True)
    assert [[part.is_exact for part in one.plan_scan().parts] for one in (plain, exact)] == [[False], [True]]
    # Engines keep one relation of those that are equal.
    assert plain.identity != exact.identity


VECTORS = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
}


def test_sources_are_equal_only_if_their_rows_are_and_what_is_made_of_them() -> None:
    one, other = Log("source-one", add("a", size=7), add("b", size=5)), Log("source-other", add("a"))
    first, elsewhere = load_snapshot(one.store), load_snapshot(other.store)
    tokyo = load_snapshot(one.store, time_zone="Asia/Tokyo")
    one.commit(add("c"))
    second = load_snapshot(one.store)
    one.commit(metadata(table_id="u"))
    snapshots = [first, elsewhere, tokyo, second, load_snapshot(one.store)]
    flags = [
        dict(zip(("is_pinned", "is_exact", "follows"), said, strict=True))
        for said in itertools.product([False, True], repeat=3)
    ]
    columns: list[tuple[str, ...]] = [(), ("_row_id",), ("_row_id", "_row_commit_version")]
    made = [DeltaSource(snapshot, asked, **said) for snapshot in snapshots for asked in columns for said in flags]
    assert len({source.identity for source in made}) == len(made)
    assert all(source.identity == replace(source).identity for source in made)
    assert (made[0].place, made[0].version, made[0].size_bytes) == (first.store.url, 0, 12)
    assert made[0].identity[:4] == (first.store.url, "0", "t", str(first.timestamp_ms))


def test_other_versions_of_a_source() -> None:
    log = Log("source-at", add("a"))

    def elsewhere(url: str) -> MemoryStore:
        return MemoryStore(url, "/x")

    snapshot = replace(load_snapshot(log.store, time_zone="+01:00"), open_store=elsewhere)
    source = DeltaSource(snapshot, ("_row_id",), is_pinned=True, is_exact=True, follows=True)
    assert source.at(None) is source and source.at(0) is source
    log.commit(add("b"))
    log.commit(add("c"))
    for version, expected in ((None, 2), (1, 1), (2, 2)):
        found = source.at(version)
        assert found.version == expected and found.snapshot.files.num_rows == expected + 1
        assert (found.metadata_columns, found.is_pinned, found.is_exact, found.follows) == (
            ("_row_id",),
            True,
            True,
            True,
        )
        assert (found.snapshot.time_zone, found.snapshot.open_store) == ("+01:00", elsewhere)
    assert source.at(2).at(0).version == 0
    assert source.at(0) is source


def test_who_follows_a_table_has_room_for_rows_that_are_deleted_later() -> None:
    log = Log("source-room", VECTORS, metadata(delta__enableDeletionVectors="true"), add("a"))
    snapshot = load_snapshot(log.store)

    def parts(**said: bool) -> list[tuple[str, int, bool]]:
        plan = DeltaSource(load_snapshot(log.store), **said).plan_scan()  # type: ignore[arg-type]
        return [(part.key, part.files.num_rows, part.is_masked) for part in plan.parts]

    assert parts() == [("files", 1, False)]
    (plain, room) = parts(follows=True)
    assert plain == ("files", 1, False) and room[0] != "files" and room[1:] == (0, True)
    log.commit(masked(add("b")))
    assert parts() == parts(follows=True) == [("files", 1, False), (room[0], 1, True)]
    # Where there can be none there is no room.
    bare = DeltaSource(load_snapshot(Log("source-no-room", add("a")).store), follows=True)
    assert [part.key for part in bare.plan_scan().parts] == ["files"]
    assert snapshot.version == 0


def test_columns_that_are_asked_for_beside_the_schema() -> None:
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking", "domainMetadata"]}
    file = add("a")
    file["add"] |= {"baseRowId": 0, "defaultRowCommitVersion": 0}  # type: ignore[operator]
    log = Log("source-rows", {"protocol": features}, metadata(delta__enableRowTracking="true"), file)
    snapshot = load_snapshot(log.store)
    assert DeltaSource(snapshot).plan_scan().schema == snapshot.config.schema
    asked = DeltaSource(snapshot, ("_row_id", "_row_commit_version")).plan_scan()
    assert asked.schema.fields == (
        *snapshot.config.schema.fields, Field("_row_id", LONG, False), Field("_row_commit_version", LONG, False),
    )  # fmt: skip
    assert [column.name for column in asked.parts[0].output] == list(asked.schema.names)
