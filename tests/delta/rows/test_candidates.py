"""Files whose rows may change, as sources: numbers stay with their files, and plans say where each row is."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from stream_log import Log, add, masked

from alluvium.delta.features.rows.row_ids import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from alluvium.delta.rows.candidates import Candidates, candidates_of, choose_candidates
from alluvium.delta.rows.modes import row_change_mode
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import RowChangeMode
from alluvium.plan.scan import FileConstant, RowPosition
from alluvium.schema import types as t

VECTORS = {"delta__enableDeletionVectors": "true"}
TRACKED = {"delta__enableRowTracking": "true", MATERIALIZED_ROW_ID.replace(".", "__"): "_id",
           MATERIALIZED_ROW_COMMIT_VERSION.replace(".", "__"): "_version"}  # fmt: skip
PROTOCOL = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
                         "writerFeatures": ["deletionVectors", "rowTracking", "domainMetadata"]}}  # fmt: skip


def table(**properties: str) -> Log:
    """Three files of ids 0 to 9, 10 to 19 and so on; of the last a row is deleted."""
    log = Log(f"candidates-{uuid.uuid4().hex}", **properties)
    actions = []
    for n in range(3):
        action = add(f"f{n}", size=100 + n)
        told = action["add"]
        assert isinstance(told, dict)
        told["stats"] = (
            f'{{"numRecords":10,"minValues":{{"id":{n * 10}}},"maxValues":{{"id":{n * 10 + 9}}},"nullCount":{{"id":0}}}}'
        )
        told |= {"baseRowId": n * 10, "defaultRowCommitVersion": 1} if TRACKED.items() <= properties.items() else {}
        actions.append(masked(action) if n == 2 else action)
    log.commit(PROTOCOL, *actions)
    return log


def candidates(log: Log, where: str | None = None) -> Candidates:
    snapshot = load_snapshot(log.store)
    return choose_candidates(snapshot, None if where is None else parse_predicate(where, snapshot.config.schema))


def told(found: Candidates) -> list[tuple[str, int]]:
    return sorted(zip(found.paths.to_pylist(), found.numbers.to_pylist(), strict=True))


def test_files_are_chosen_and_numbered() -> None:
    log = table(**VECTORS)
    every, some = candidates(log), candidates(log, "id > 15")
    assert told(every) == [("f0", 0), ("f1", 1), ("f2", 2)] and told(some) == [("f1", 0), ("f2", 1)]
    assert (every.size_bytes, every.total_files, some.size_bytes, some.total_files) == (303, 3, 203, 3)
    assert every.url == log.store.url and every.version == 1 and every.table_schema.names == ("id",)
    assert every.live_counts(every.files).to_pylist() == [10, 10, 9]
    assert every.live_counts(every.files.slice(0, 0)).to_pylist() == []


def test_numbers_stay_with_their_files() -> None:
    every = candidates(table(**VECTORS)).renumbered(pa.array([7, 8, 9]))
    some = every.only(pa.array([9, 7, 5]))
    assert told(some) == [("f0", 7), ("f2", 9)]
    assert some.places(pa.array([9, 7])).to_pylist() == [1, 0] and every.places(pa.array([9])).to_pylist() == [2]
    assert told(every) == [("f0", 7), ("f1", 8), ("f2", 9)]


def test_sources_that_read_alike_are_one() -> None:
    log = table(**VECTORS)
    every = candidates(log)
    assert every.identity == candidates(log).identity
    others = [every.renumbered(pa.array([1, 2, 3])), every.only(pa.array([0, 1])), candidates(log, "id > 15")]
    assert len({every.identity, *(one.identity for one in others)}) == 4


@pytest.mark.parametrize("properties", [VECTORS, {**VECTORS, **TRACKED}], ids=["plain", "tracked"])
def test_rows_tell_where_they_are(properties: dict[str, str]) -> None:
    every = candidates(table(**properties))
    names = every.columns
    is_tracked = "delta__enableRowTracking" in properties
    ids = [names.row_id, names.row_version] if is_tracked else []
    assert (names.row_id is not None) == is_tracked
    assert (every.stored_ids is None) != is_tracked
    if every.stored_ids is not None:
        assert [f.name for f in every.stored_ids.fields] == ["_id", "_version"]
    for where, expected in ((None, {"f0": 0, "f1": 1, "f2": 2}), ("id < 15", {"f0": 0, "f1": 1})):
        plan = every.plan_scan(None if where is None else parse_predicate(where, every.table_schema))
        assert plan.schema.names == ("id", *ids, names.file, names.row)
        found = {}
        for part in plan.parts:
            assert part.is_exact and [c.name for c in part.output] == list(plan.schema.names)
            assert part.output[-2].value == FileConstant(names.file, t.LONG) and part.output[-1].value == RowPosition()
            constants = pa.chunked_array(part.files["constants"]).combine_chunks()
            found |= dict(zip(part.files["path"].to_pylist(), constants.field(names.file).to_pylist(), strict=True))
        assert found == expected
    assert every.only(pa.array([], pa.int64())).plan_scan().parts == ()


def test_names_beside_those_of_the_table() -> None:
    log = Log(f"candidates-{uuid.uuid4().hex}")
    log.commit({"metaData": {**_metadata("__Alluvium_File"), "id": "t"}}, add("f0"))
    names = candidates(log).columns
    assert names.file == "__alluvium_file_" and names.row == "__alluvium_row"


def _metadata(name: str) -> dict[str, object]:
    schema = f'{{"type":"struct","fields":[{{"name":"{name}","type":"long","nullable":true,"metadata":{{}}}}]}}'
    return {
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": {},
    }


@pytest.mark.parametrize("masks", [True, False])
@pytest.mark.parametrize("properties", [VECTORS, {}], ids=["vectors", "plain"])
@pytest.mark.parametrize("stats", [True, False])
def test_rows_are_masked_where_all_files_say_how_many_they_have(
    masks: bool, properties: dict[str, str], stats: bool
) -> None:
    log = table(**properties)
    if not stats:
        action = add("f9")
        del action["add"]["stats"]  # type: ignore[attr-defined]
        log.commit(action)
    every = candidates(log)
    wanted = RowChangeMode.MASK_ROWS if masks and properties and stats else RowChangeMode.REWRITE_FILES
    assert row_change_mode(every.snapshot.config, every, masks=masks) is wanted
    none = candidates_of(every.snapshot, every.files.slice(0, 0))
    wanted = RowChangeMode.MASK_ROWS if masks and properties else RowChangeMode.REWRITE_FILES
    assert row_change_mode(every.snapshot.config, none, masks=masks) is wanted
