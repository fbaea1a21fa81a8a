"""Which files the changes of a range come from, by mode and by what made them, and what is different between states."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from evolved_tables import Evolved
from paimon_tables import HandWritten

from alluvium.errors import InvalidRequest, NotFound
from alluvium.paimon.files.manifest_write import describe_manifest, format_manifest, format_manifest_list
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.view.changes import (
    STREAMED,
    ChangeRange,
    as_arrays,
    change_mode,
    documents_between,
    placed,
    plan_changes,
    plan_difference,
    plan_overwrite,
    plan_waiting,
    resolve_end,
    resolve_range,
)
from alluvium.paimon.view.scan_parts import plan_files
from alluvium.paimon.view.selection import unmerged
from alluvium.paimon.view.source import PaimonSource, View
from alluvium.plan.scan import FileConstant, Literal, RowPosition, ScanPlan
from alluvium.portable.reader import read_batches
from alluvium.schema import types as t
from alluvium.storage.open import open_store

KV = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64())])


def opened(path: Path) -> Snapshot:
    return load_snapshot(open_store(str(path)))


def table(path: Path, *keys: str, **options: str) -> HandWritten:
    return HandWritten(path / "t", KV, keys, **options)


def counts(plan: ScanPlan) -> list[int]:
    """Rows of each file, which tell which it is."""
    return sorted(n for part in plan.parts for n in part.files["num_rows"].to_pylist())


def read(snapshot: Snapshot, plan: ScanPlan, *names: str) -> list[tuple[Any, ...]]:
    columns = names or ("_VALUE_KIND", "k", "v")
    parts = tuple(
        part if part.merge is not None else replace(part, output=tuple(c for c in part.output if c.name in columns))
        for part in plan.parts
    )
    known = {c.name: t.Field(c.name, c.type) for part in plan.parts for c in part.output}
    if not known:
        return []
    shown = replace(plan, parts=parts, schema=t.Struct(tuple(known[name] for name in columns if name in known)))
    batches = read_batches(shown, snapshot.store, open_store, columns)
    return sorted((tuple(row[n] for n in columns) for batch in batches for row in batch.to_pylist()), key=repr)


def kinds_of_commits(path: Path, *keys: str, **options: str) -> Snapshot:
    """Files of one row by an append, of two by an overwrite, of three by a compaction, of four that wait for a bucket."""
    made = table(path, *keys, **options)
    for count in (1, 2, 3, 4):
        made.commit([{"k": k, "v": count} for k in range(count)], bucket=-2 if count == 4 else 0)
    for number, kind in ((2, "OVERWRITE"), (3, "COMPACT")):
        file = path / f"t/snapshot/snapshot-{number}"
        file.write_text(json.dumps({**json.loads(file.read_text()), "commitKind": kind}))
    return opened(path / "t")


@pytest.mark.parametrize(
    ("keys", "options", "mode", "wanted"),
    [
        ((), {}, "delta", [1]),
        # Those who follow a table are told of rows that wait, too: no append gives them a bucket.
        ((), {}, STREAMED, [1, 4]),
        ((), {"streaming-read-append-overwrite": "true"}, STREAMED, [1, 2, 4]),
        ((), {"streaming-read-append-overwrite": "true"}, "delta", [1]),
        (("k",), {}, "delta", [1]),
        (("k",), {}, STREAMED, [1, 4]),
        (("k",), {"streaming-read-append-overwrite": "true"}, STREAMED, [1, 4]),
        # None of them has a changelog.
        (("k",), {"changelog-producer": "input"}, "changelog", []),
    ],
)
def test_files_of_a_range(
    tmp_path: Path, keys: tuple[str, ...], options: dict[str, str], mode: str, wanted: list[int]
) -> None:
    """ "delta takes only APPEND snapshots' added files"."""
    snapshot = kinds_of_commits(tmp_path, *keys, **options)
    assert counts(plan_changes(snapshot, 0, 4, mode)) == wanted
    assert counts(plan_changes(snapshot, 3, 4, mode)) == [n for n in wanted if n == 4]
    assert counts(plan_changes(snapshot, 0, 1, mode)) == [n for n in wanted if n == 1]
    assert counts(plan_changes(snapshot, 2, 2, mode)) == []
    assert {part.merge for part in plan_changes(snapshot, 0, 4, mode).parts} <= {None}


def test_files_of_changelogs(tmp_path: Path) -> None:
    """By those of the snapshots, be they compactions, or gone but for their changelog."""
    snapshot = kinds_of_commits(tmp_path, "k", **{"changelog-producer": "input"})
    for number in (1, 3):
        file = tmp_path / f"t/snapshot/snapshot-{number}"
        said = json.loads(file.read_text())
        file.write_text(json.dumps({**said, "changelogManifestList": said["deltaManifestList"]}))
    assert counts(plan_changes(snapshot, 0, 4, "changelog")) == [1, 3]
    (tmp_path / "t/changelog").mkdir()
    shutil.move(tmp_path / "t/snapshot/snapshot-1", tmp_path / "t/changelog/changelog-1")
    assert counts(plan_changes(snapshot, 0, 4, "changelog")) == [1, 3]
    assert [d.id for d in documents_between(snapshot, 0, 4, "changelog")] == [1, 2, 3, 4]
    assert [d.id for d in documents_between(snapshot, 1, 3, "delta")] == [2, 3]
    assert documents_between(snapshot, 3, 3, "delta") == []
    with pytest.raises(NotFound) as caught:
        documents_between(snapshot, 0, 2, "delta")
    assert caught.value.code == "snapshot-expired"


def test_what_was_removed_is_no_news(tmp_path: Path) -> None:
    made = table(tmp_path)
    made.commit([{"k": 1, "v": 1}])
    made.commit([{"k": 2, "v": 2}, {"k": 3, "v": 3}], overwrites=True)
    file = tmp_path / "t/snapshot/snapshot-2"
    file.write_text(file.read_text().replace("OVERWRITE", "APPEND"))
    snapshot = opened(tmp_path / "t")
    assert counts(plan_changes(snapshot, 1, 2, "delta")) == [2]
    assert read(snapshot, plan_changes(snapshot, 0, 2, "delta")) == [(0, 1, 1), (0, 2, 2), (0, 3, 3)]


def test_rows_that_wait_for_a_bucket(tmp_path: Path) -> None:
    snapshot = kinds_of_commits(tmp_path, "k")
    assert counts(plan_waiting(snapshot)) == [4]
    assert read(snapshot, plan_waiting(snapshot)) == [(0, k, 4) for k in range(4)]
    assert counts(plan_waiting(snapshot.state(3))) == []


def test_an_overwrite_of_keys(tmp_path: Path) -> None:
    """What went is what the files that went came to, each row once, told as gone; what came likewise."""
    made = table(tmp_path, "k")
    made.commit([{"k": 1, "v": 10}, {"k": 2, "v": 20}])
    made.commit([{"k": 1, "v": 11}, {"k": 3, "v": 30}])
    made.commit([{"k": 3, "v": 30}], ["-D"])
    made.commit([{"k": 1, "v": 12}, {"k": 4, "v": 40}], overwrites=True)
    snapshot = opened(tmp_path / "t")
    went, came = plan_overwrite(snapshot, 4)
    assert (counts(went), counts(came)) == ([1, 2, 2], [2])
    merging = [part for part in went.parts if part.merge is not None]
    assert {part.merge.kind for part in merging if part.merge is not None} == {"_OWN_KIND"}
    for part in went.parts:
        kind = {c.name: c for c in part.output}["_VALUE_KIND"]
        assert (kind.value, kind.type, kind.nullable) == (Literal(3, t.BYTE), t.BYTE, False)
        assert part.output[-1] is kind
        assert ("_OWN_KIND" in [c.name for c in part.output]) is (part.merge is not None)
    gone, new = (PaimonSource(snapshot, View(name, end=4)) for name in ("went", "came"))
    for source, wanted in ((gone, [(3, 1, 11), (3, 2, 20)]), (new, [(0, 1, 12), (0, 4, 40)])):
        assert read(snapshot, source.plan_scan()) == wanted


def test_files_that_an_overwrite_took_and_brought_back(tmp_path: Path) -> None:
    made = table(tmp_path)
    made.commit([{"k": 1, "v": 1}])
    made.commit([{"k": 2, "v": 2}, {"k": 3, "v": 3}])
    # It removes both, and adds the first of them anew beside another.
    old = made._entries[0]
    made.commit([{"k": k, "v": k} for k in (4, 5, 6)], overwrites=True)
    made._list("manifest-list-3-1", [{**e, "_KIND": 1} for e in (old,)] + [old, made._entries[-1]], "manifest-3-1")
    snapshot = opened(tmp_path / "t")
    went, came = plan_overwrite(snapshot, 3)
    assert (counts(went), counts(came)) == ([], [3])


def states(path: Path) -> tuple[Snapshot, Snapshot, Snapshot]:
    snapshot = opened(path / "t")
    return snapshot, snapshot.state(1), snapshot.state(3)


@pytest.mark.parametrize(
    ("options", "before", "after"),
    [
        # The last row of a key wins: what the new files hold is what became of their keys.
        ({}, [], [2, 3]),
        # Others need all rows of a key to tell.
        ({"merge-engine": "partial-update"}, [1], [1, 2, 3]),
        ({"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}, [1], [1, 2, 3]),
        ({"sequence.field": "v"}, [1], [1, 2, 3]),
    ],
)
def test_files_of_a_difference_of_keys(
    tmp_path: Path, options: dict[str, str], before: list[int], after: list[int]
) -> None:
    made = table(tmp_path, "k", **options)
    for count in (1, 2, 3):
        made.commit([{"k": k, "v": count} for k in range(count)])
    plans = plan_difference(*states(tmp_path))
    assert tuple(map(counts, plans)) == (before, after)


def test_files_of_a_difference_that_meet_nobody(tmp_path: Path) -> None:
    """Of other keys than what is new the files are the same in both states, whatever the engine."""
    made = table(tmp_path, "k", **{"merge-engine": "partial-update"})
    made.commit([{"k": 100, "v": 1}])
    made.commit([{"k": k, "v": 2} for k in range(2)])
    made.commit([{"k": k, "v": 2} for k in range(3)])
    assert tuple(map(counts, plan_difference(*states(tmp_path)))) == ([], [2, 3])


def test_files_that_went_bring_along_whom_they_merged_with(tmp_path: Path) -> None:
    """Rows of keys that only the first state had are told with all that they came to there."""
    made = table(tmp_path, "k")
    made.commit([{"k": 1, "v": 1}, {"k": 2, "v": 2}, {"k": 3, "v": 3}])
    made.commit([{"k": 2, "v": 20}])
    made.commit([{"k": 9, "v": 9}, {"k": 10, "v": 10}])
    snapshot = opened(tmp_path / "t")
    # From the newest to the one before: the last file is the first state's alone, and is alone with its keys.
    assert tuple(map(counts, plan_difference(snapshot, snapshot.state(3), snapshot.state(2)))) == ([2], [])
    assert tuple(map(counts, plan_difference(snapshot, snapshot.state(2), snapshot.state(1)))) == ([1, 3], [3])
    assert tuple(map(counts, plan_difference(snapshot, snapshot.state(3), snapshot.state(3)))) == ([], [])


def test_files_of_a_difference_without_keys(tmp_path: Path) -> None:
    made = table(tmp_path)
    for count in (1, 2, 3):
        made.commit([{"k": k, "v": count} for k in range(count)], overwrites=count == 3)
    snapshot = opened(tmp_path / "t")
    assert tuple(map(counts, plan_difference(snapshot, snapshot.state(1), snapshot.state(3)))) == ([1], [3])
    assert tuple(map(counts, plan_difference(snapshot, snapshot.state(1), snapshot.state(2)))) == ([], [2])


def test_rows_that_a_vector_does_not_hide_any_more(tmp_path: Path) -> None:
    """Where an older state is the newest again: the same file has rows that it had not."""
    made = Evolved(tmp_path / "t", pa.schema([("id", pa.int32())]), **{"data-evolution.enabled": "false"}, **{"deletion-vectors.enabled": "true"})  # fmt: skip
    one = made.add({"id": [0, 1, 2]}, 0)
    two = made.add({"id": [3, 4]}, 3)
    made.delete(one, [0, 2])
    snapshot = opened(tmp_path / "t")
    hidden, shown = snapshot.state(3), snapshot.state(2)
    assert tuple(map(counts, plan_difference(snapshot, hidden, shown))) == ([3], [3])
    # Rows that are hidden since are no news, and those that are hidden in both states neither.
    assert tuple(map(counts, plan_difference(snapshot, shown, hidden))) == ([], [])
    assert tuple(map(counts, plan_difference(snapshot, hidden, hidden))) == ([], [])
    # Another vector of the file: of fewer rows, of the same ones once more, and of another file beside.
    for rows, back in (([0], True), ([0, 2], False), ([0, 1, 2], False), ([1, 2], True)):
        made._index.clear()
        made.delete(one, rows)
        newest = opened(tmp_path / "t")
        changed = ([3], [3]) if back else ([], [])
        assert tuple(map(counts, plan_difference(newest, hidden, newest))) == changed, rows
    made._index.clear()
    made.delete(two, [0])
    newest = opened(tmp_path / "t")
    assert tuple(map(counts, plan_difference(newest, hidden, newest))) == ([3], [3])


def test_files_of_columns_of_a_range(tmp_path: Path) -> None:
    """A batch puts together what the whole range says of a row, followers go from snapshot to snapshot."""
    made = Evolved(tmp_path / "t", pa.schema([pa.field("id", pa.int32(), False), ("a", pa.string())]))
    made.add({"id": [1, 2], "a": ["x", "y"]}, 0)
    for values in (["X", "Y"], ["p", "q"]):
        made.add({"a": values}, 0)
    snapshot = opened(tmp_path / "t")
    assert snapshot.schema.fields[0].type.nullable is False
    list_added(tmp_path / "t", made)
    batch = plan_changes(snapshot, 1, 3, "delta")
    follower = plan_changes(snapshot, 1, 3, STREAMED)
    assert counts(batch) == counts(follower) == [2, 2]
    sections = [
        sorted(row["_SECTION"] for part in plan.parts for row in part.files["constants"].to_pylist())
        for plan in (batch, follower)
    ]
    assert sections == [[0, 0], [-1, -1]]
    # Columns that were not written are null, whatever the table says of them.
    assert all(f.nullable for f in batch.schema.fields)
    assert counts(plan_changes(snapshot, 3, 3, "delta")) == []


def list_added(path: Path, made: Evolved) -> None:
    """Lists of what each snapshot added, which the table by hand leaves empty."""
    for number, entry in enumerate(made._entries, start=1):
        entries = pa.Table.from_pylist([entry], ENTRIES)
        data = format_manifest(entries, "null")
        (path / f"manifest/added-{number}").write_bytes(data)
        line = describe_manifest(f"added-{number}", len(data), entries, made.schema)
        (path / f"manifest/manifest-list-main-{number}-1").write_bytes(format_manifest_list(line, "null"))


def test_places_are_numbered_through_all_parts(tmp_path: Path) -> None:
    made = table(tmp_path, "k")
    for count in (2, 1):
        made.commit([{"k": 10 * count + k, "v": count} for k in range(count)])
    made.commit([{"k": 1, "v": 3}])
    (tmp_path / "t/bucket-0/data-2-0.parquet").rename(tmp_path / "t/bucket-0/data-2-0.orc")
    snapshot = opened(tmp_path / "t")
    entries = snapshot.entries
    names = [n.replace("2-0.parquet", "2-0.orc") for n in entries["file_name"].to_pylist()]
    place = entries.schema.get_field_index("file_name")
    entries = entries.set_column(place, "file_name", pa.array(names))
    plain = plan_files(snapshot, unmerged(snapshot, entries), None, None)
    plan = placed(plain)
    assert len(plan.parts) == 2
    numbers = [
        n for part in plan.parts for n in part.files["constants"].combine_chunks().field("_FILE_NUMBER").to_pylist()
    ]
    assert numbers == [0, 1, 2]
    for part, old in zip(plan.parts, plain.parts, strict=True):
        assert part.output[: len(old.output)] == old.output
        assert [(c.name, c.type, c.nullable, c.value) for c in part.output[len(old.output) :]] == [
            ("_FILE_NUMBER", t.LONG, False, FileConstant("_FILE_NUMBER", t.LONG)),
            ("_ROW_NUMBER", t.LONG, False, RowPosition()),
        ]
        kept = part.files["constants"].combine_chunks()
        assert [f.name for f in kept.type][:-1] == [f.name for f in old.files["constants"].type]
        assert part.files.drop_columns(["constants"]).equals(old.files.drop_columns(["constants"]))
    assert plan.schema.names == (*plain.schema.names, "_FILE_NUMBER", "_ROW_NUMBER")
    assert [f.nullable for f in plan.schema.fields][-2:] == [False, False]


def test_rows_of_a_state_in_arrays() -> None:
    rows = pa.table({"_VALUE_KIND": pa.array([0, 2], pa.int8()), "v": [1, None], "l": [[1], []]})
    found = as_arrays(pa.concat_tables([rows.slice(0, 1), rows.slice(1)]))
    assert found.to_pylist() == [{"_VALUE_KIND": 0, "v": [1], "l": [[1]]}, {"_VALUE_KIND": 2, "v": [None], "l": [[]]}]
    assert as_arrays(rows.slice(0, 0)).num_rows == 0
    assert as_arrays(rows.slice(0, 0)).schema == found.schema


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
def test_modes_that_stand_for_another(tmp_path: Path, producer: str) -> None:
    table(tmp_path, "k", **{"changelog-producer": producer}).commit([{"k": 1}])
    snapshot = opened(tmp_path / "t")
    for mode in ("auto", "binlog"):
        assert change_mode(snapshot, mode) == ("delta" if producer == "none" else "changelog")
    for mode in ("streamed", "", "Delta"):
        with pytest.raises(InvalidRequest) as caught:
            change_mode(snapshot, mode)
        assert caught.value.code == "invalid-mode" and "auto, delta, changelog, diff, binlog" in (
            caught.value.hint or ""
        )


@pytest.mark.parametrize(
    ("point", "wanted"),
    [(None, 3), (0, 0), (7, 7), ("2", 2), (" 2 ", 2), ("one", 1), ("3", 1), ("", "invalid-name"), (False, "invalid-version"), (-1, "invalid-version"), ("-1", "tag-not-found"), ("2x", "tag-not-found")],
)  # fmt: skip
def test_an_end_of_a_range(tmp_path: Path, point: object, wanted: int | str) -> None:
    made = table(tmp_path, "k")
    for count in (1, 2, 3):
        made.commit([{"k": count}])
    made.tag("one", 1)
    made.tag("3", 1)
    snapshot = opened(tmp_path / "t")
    if isinstance(wanted, int):
        assert resolve_end(snapshot, point) == wanted
        return
    with pytest.raises((InvalidRequest, NotFound)) as caught:
        resolve_end(snapshot, point)
    assert caught.value.code == wanted


def test_a_start_that_is_not_there(tmp_path: Path) -> None:
    """A time before the first snapshot is the beginning; what else is missing is an error, as it is of an end."""
    made = table(tmp_path, "k")
    for count in (1, 2, 3):
        made.commit([{"k": count}], time_ms=count * 1000)
    made.expire(1)
    made.tag("two", 2)
    snapshot = opened(tmp_path / "t")
    for point, code in ((At(tag="nowhere"), "tag-not-found"), (At(snapshot_id=9), "snapshot-not-found"), (At(snapshot_id=1), "snapshot-expired")):  # fmt: skip
        for start, end in ((point, None), (2, point)):
            with pytest.raises(NotFound) as caught:
                resolve_range(snapshot, start, end, "delta")
            assert caught.value.code == code
    assert resolve_range(snapshot, At(timestamp_ms=5), None, "delta") == ChangeRange("delta", 1, 3)
    assert resolve_range(snapshot, At(timestamp_ms=5), At(timestamp_ms=2500), "diff") == ChangeRange("diff", 2, 2)
    assert resolve_range(snapshot, At(tag="two"), At(snapshot_id=3), "delta") == ChangeRange("delta", 2, 3)
    with pytest.raises(NotFound) as caught:
        resolve_range(snapshot, 0, At(timestamp_ms=5), "delta")
    assert caught.value.code == "no-snapshot-before"


def test_the_newest_of_a_table_that_has_none(tmp_path: Path) -> None:
    table(tmp_path, "k")
    snapshot = opened(tmp_path / "t")
    for start, end in ((At(), 0), (0, At()), (0, None), (At(timestamp_ms=5), 0)):
        with pytest.raises(NotFound) as caught:
            resolve_range(snapshot, start, end, "delta")
        assert caught.value.code == "snapshot-not-found"
