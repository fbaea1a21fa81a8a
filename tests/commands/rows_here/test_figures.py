"""What DELETE, UPDATE and MERGE without Spark tell of themselves, beside counts of a plain model: random statements."""

from __future__ import annotations

import json
import random
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sessionless import FEED, VECTORS, committed, table_of

import alluvium
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import AlluviumError
from alluvium.plan.changes import Committed, Preview
from alluvium.storage.open import open_store

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])
MODES: dict[str, dict[str, str]] = {"files": {}, "vectors": VECTORS, "feed": FEED}
#: Ids by the file that they are in; the last file is a partition of its own.
FILES = ((0, 1, 2, 3), (4, 5, 6), (7, 8), (20, 21))
FIGURES = ("numAddedFiles", "numRemovedFiles", "numAddedBytes", "numRemovedBytes")


def p_of(number: int) -> str:
    return "far" if number >= 20 else "near"


def made(url: str, **properties: str) -> None:
    for ids in FILES:
        data = pa.table({"id": ids, "p": [p_of(i) for i in ids], "v": [i * 10 for i in ids]}, SCHEMA)
        alluvium.write(data, url, mode="append", partition_by=["p"], **properties)


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}/table"


def sizes(url: str) -> dict[str, int]:
    return {add["path"]: add["size"] for add in load_snapshot(open_store(url)).files.to_pylist()}


def figures(before: dict[str, int], after: dict[str, int]) -> tuple[int, int, int, int]:
    """Files added and removed, and their bytes."""
    gone, came = before.keys() - after.keys(), after.keys() - before.keys()
    return len(came), len(gone), sum(after[f] for f in came), sum(before[f] for f in gone)


def as_numbers(metrics: Any, wanted: dict[str, int]) -> dict[str, int]:
    return {name: int(metrics[name]) for name in wanted}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
def test_a_deletion_counts_rows_and_files(url: str, mode: str, seed: int) -> None:
    made(url, **MODES[mode])
    gone = random.Random(seed).sample([i for ids in FILES[:3] for i in ids], 3 + seed)
    condition, masks = f"id in ({', '.join(map(str, gone))})", mode == "vectors"
    touched = [ids for ids in FILES if set(ids) & set(gone)]
    emptied = [ids for ids in touched if set(ids) <= set(gone)]
    copied = 0 if masks else sum(len(set(ids) - set(gone)) for ids in touched)
    told = table_of(url).delete(condition, dry_run=True)
    assert isinstance(told, Preview)
    assert (len(told.removed), len(told.masked), len(told.rewritten)) == (
        (len(emptied), len(touched) - len(emptied), 0) if masks else (len(touched), 0, len(touched) - len(emptied))
    )
    assert told.added == told.masked and told.differences == {} and told.version == 3
    before = sizes(url)
    done = table_of(url).delete(condition)
    assert isinstance(done, Committed) and (done.version, done.attempts) == (4, 1)
    wanted = {
        **dict(zip(FIGURES, figures(before, sizes(url)), strict=True)),
        "numDeletedRows": len(gone), "numCopiedRows": copied,
        "numDeletionVectorsAdded": len(touched) - len(emptied) if masks else 0,
        "numDeletionVectorsUpdated": 0, "numDeletionVectorsRemoved": 0,
        # Where rows only go with whole files readers derive it.
        "numAddedChangeFiles": int(mode == "feed" and copied > 0),
    }  # fmt: skip
    assert as_numbers(done.metrics, wanted) == wanted
    assert int(told.operation.metrics["numDeletedRows"]) == len(gone)
    assert int(told.operation.metrics["numCopiedRows"]) == wanted["numCopiedRows"]
    assert int(told.operation.metrics["numRemovedFiles"]) == wanted["numRemovedFiles"]
    (entry,) = table_of(url).history(1).to_pylist()
    assert entry["operation"] == "DELETE" and dict(entry["operationMetrics"]) == dict(done.metrics)
    assert dict(entry["operationParameters"]) == {"predicate": json.dumps([condition])}
    assert {"executionTimeMs", "scanTimeMs", "rewriteTimeMs"} < done.metrics.keys()
    assert all(0 <= int(done.metrics[n]) < 60_000 for n in ("executionTimeMs", "scanTimeMs", "rewriteTimeMs"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("changed", [(0,), (0, 4, 5, 6), (0, 1, 2, 3), ()])
def test_an_update_counts_rows_and_files(url: str, mode: str, changed: tuple[int, ...]) -> None:
    made(url, **MODES[mode])
    condition = f"id in ({', '.join(map(str, changed))})" if changed else "v < 0"
    touched = [ids for ids in FILES if set(ids) & set(changed)]
    told = table_of(url).update(condition, {"v": "-1"}, dry_run=True)
    before = sizes(url)
    done = table_of(url).update(condition, {"v": "-1"})
    assert isinstance(done, Committed) and isinstance(told, Preview)
    assert done.version == (4 if changed else 3) and done.attempts == bool(changed)
    masks = mode == "vectors"
    copied = 0 if masks else sum(len(set(ids) - set(changed)) for ids in touched)
    wanted = {"numUpdatedRows": len(changed), "numCopiedRows": copied, "numDeletionVectorsRemoved": 0}
    assert as_numbers(done.metrics, wanted) == wanted == as_numbers(told.operation.metrics, wanted)
    after = sizes(url)
    assert int(done.metrics["numAddedFiles"]) == len(after.keys() - before.keys())
    assert int(done.metrics["numAddedChangeFiles"]) == (1 if mode == "feed" and changed else 0)
    if changed:
        (entry,) = table_of(url).history(1).to_pylist()
        assert entry["operation"] == "UPDATE"
        assert dict(entry["operationParameters"]) == {"predicate": json.dumps([condition])}


def test_an_update_of_all_has_no_condition_in_the_history(url: str) -> None:
    made(url, **VECTORS)
    done = committed(table_of(url).update(None, {"v": "0"}))
    # Where every row changes there is nothing to keep behind masks.
    assert (done["numUpdatedRows"], done["numDeletionVectorsAdded"], done["numRemovedFiles"]) == ("11", "0", "4")
    (entry,) = table_of(url).history(1).to_pylist()
    assert dict(entry["operationParameters"]) == {"predicate": "[]"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
def test_a_merge_counts_rows_of_every_clause(url: str, mode: str, seed: int) -> None:
    made(url, **MODES[mode])
    chance = random.Random(seed)
    ids = sorted({*chance.sample(range(12), 5), 30, 31})
    source = pa.table({"id": ids, "p": [p_of(i) for i in ids], "v": [1] * len(ids)}, SCHEMA)
    there = [i for ids_of in FILES for i in ids_of]
    met, lonely = [i for i in there if i in ids], [i for i in there if i not in ids]
    builder = (
        table_of(url)
        .merge(source, "t.id = s.id")
        .whenMatchedDelete("t.id % 3 = 0")
        .whenMatchedUpdate(None, {"v": "s.v"})
        .whenNotMatchedInsertAll("s.id <> 31")
        .whenNotMatchedBySourceDelete("t.id = 20")
        .whenNotMatchedBySourceUpdate("t.id = 21 or t.id = 1", {"v": "-7"})
    )
    before = sizes(url)
    done = builder.execute()
    assert isinstance(done, Committed)
    matched_deleted = sum(i % 3 == 0 for i in met)
    lonely_updated = sum(i in (1, 21) for i in lonely)
    new = [i for i in ids if i not in there and i != 31]
    files = ("numTargetFilesAdded", "numTargetFilesRemoved", "numTargetBytesAdded", "numTargetBytesRemoved")
    wanted = {
        **dict(zip(files, figures(before, sizes(url)), strict=True)),
        "numSourceRows": len(ids), "numTargetRowsInserted": len(new),
        "numTargetRowsMatchedDeleted": matched_deleted, "numTargetRowsNotMatchedBySourceDeleted": 1,
        "numTargetRowsDeleted": matched_deleted + 1,
        "numTargetRowsMatchedUpdated": len(met) - matched_deleted,
        "numTargetRowsNotMatchedBySourceUpdated": lonely_updated,
        "numTargetRowsUpdated": len(met) - matched_deleted + lonely_updated,
    }  # fmt: skip
    assert as_numbers(done.metrics, wanted) == wanted
    changed = {*met, 20, *(i for i in (1, 21) if i in lonely)}
    copied = 0 if mode == "vectors" else sum(len(set(f) - changed) for f in FILES if set(f) & changed)
    assert int(done.metrics["numTargetRowsCopied"]) == copied
    assert int(done.metrics["numOutputRows"]) == copied + wanted["numTargetRowsUpdated"] + len(new)
    (entry,) = table_of(url).history(1).to_pylist()
    assert entry["operation"] == "MERGE"
    assert dict(entry["operationParameters"]) == {
        "predicate": '["t.id = s.id"]',
        "matchedPredicates": '[{"predicate":"t.id % 3 = 0","actionType":"delete"},{"actionType":"update"}]',
        "notMatchedPredicates": '[{"predicate":"s.id <> 31","actionType":"insert"}]',
        "notMatchedBySourcePredicates": '[{"predicate":"t.id = 20","actionType":"delete"},'
        '{"predicate":"t.id = 21 or t.id = 1","actionType":"update"}]',
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("brings", [True, False])
def test_an_overwrite_of_rows_counts_what_stays(url: str, mode: str, brings: bool) -> None:
    """Rows that are replaced: of one file some, of another all."""
    made(url, **MODES[mode])
    new = pa.table(
        {"id": [4, 5] if brings else [], "p": ["near"] * (2 * brings), "v": [0, 1] if brings else []}, SCHEMA
    )
    before = sizes(url)
    done = alluvium.write(new, url, mode="overwrite", replaceWhere="id >= 3 and id < 7 and p = 'near'")
    after = sizes(url)
    found = alluvium.open(url).to_arrow()["id"].to_pylist()
    assert sorted(found) == sorted([0, 1, 2, 7, 8, 20, 21, *([4, 5] if brings else [])])
    came = after.keys() - before.keys()
    masks = mode == "vectors"
    assert int(done.metrics["numRemovedFiles"]) == len(before.keys() - after.keys()) == (1 if masks else 2)
    assert int(done.metrics["numFiles"]) == len(came) + masks
    assert int(done.metrics["numOutputBytes"]) == sum(after[f] for f in came)
    changes = [info.path for info in open_store(url).list_tree("_change_data")]
    assert int(done.metrics["numAddedChangeFiles"]) == len(changes) and bool(changes) == (mode == "feed")
    counted = {name: done.metrics.get(name) for name in ("numCopiedRows", "numDeletedRows", "numOutputRows")}
    assert counted == (
        {"numCopiedRows": "3", "numDeletedRows": "4", "numOutputRows": "5"} if brings else dict.fromkeys(counted)
    )
    assert "executionTimeMs" not in done.metrics


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("verb", ["update", "merge"])
def test_a_verb_that_fails_midway_leaves_no_file(url: str, mode: str, verb: str) -> None:
    """Not even those that were full, and so written, before a row could not be computed."""
    made(url, **MODES[mode], **{"delta.targetFileSize": "1"})
    before = {info.path for info in open_store(url).list_tree("")}
    value = "10 div (t.id - 21)"
    source = pa.table({"id": [1, 5, 7, 21]})
    table = table_of(url)
    act = {
        "update": lambda: table.alias("t").update("id % 2 = 1", {"v": value}),
        "merge": lambda: table.merge(source, "t.id = s.id").whenMatchedUpdate(None, {"v": value}).execute(),
    }[verb]
    with pytest.raises(AlluviumError) as caught:
        act()
    assert caught.value.code == "division-by-zero"
    assert {info.path for info in open_store(url).list_tree("")} == before


@pytest.mark.parametrize("mode", MODES)
def test_all_rows_of_files_whose_counts_nobody_knows(tmp_path: Path, mode: str) -> None:
    """A deletion of everything takes files as they are; rows that it does not know the number of it must count."""
    url = str(tmp_path / "t")
    made(url, **MODES[mode])
    last = sorted((tmp_path / "t" / "_delta_log").glob("*.json"))[-1]
    actions = [json.loads(line) for line in last.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    last.write_text("".join(json.dumps(action) + "\n" for action in actions))
    done = table_of(url).delete()
    assert isinstance(done, Committed)
    wanted = {"numDeletedRows": sum(map(len, FILES)), "numRemovedFiles": len(FILES), "numCopiedRows": 0}
    assert as_numbers(done.metrics, wanted) == wanted
    assert alluvium.open(url).to_arrow().num_rows == 0


@pytest.mark.parametrize("on", ["t.id = s.id", "t.id = s.id + 0 and t.p = 'near'"])
def test_a_merge_reads_only_files_that_the_source_can_meet(url: str, on: str) -> None:
    """By the bounds of the source's keys, and by what the condition says of the table alone."""
    made(url)
    far = next(path for path in sizes(url) if "far" in path)
    open_store(url).delete(far)
    merge = table_of(url).merge(pa.table({"id": [1, 5]}), on)
    merge.whenMatchedUpdate(None, {"v": "-1"}).execute()
    found = alluvium.open(url).to_arrow(where="p = 'near'").to_pylist()
    assert {row["id"] for row in found if row["v"] == -1} == {1, 5}
    everywhere = table_of(url).merge(pa.table({"id": [1]}), on).whenNotMatchedBySourceDelete("t.id > 100")
    with pytest.raises(AlluviumError) as caught:
        everywhere.execute()
    assert caught.value.path == far


@pytest.mark.parametrize("condition", ["id = 1", "id = 99"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_an_append_only_table_refuses_whatever_would_be_found(url: str, condition: str, dry_run: bool) -> None:
    made(url, **{"delta.appendOnly": "true"})
    with pytest.raises(AlluviumError) as caught:
        table_of(url).delete(condition, dry_run=dry_run)
    assert caught.value.code == "append-only"
