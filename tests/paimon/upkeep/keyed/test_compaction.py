"""What a planned compaction says to who carries it out: which rows are read, how they merge, and what files come of it."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from paimon_rows import append, full, open_target

from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter, RunEnds
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.upkeep.keyed.compaction import LEVEL, PLACE, Compaction, compacted_entries
from alluvium.paimon.upkeep.keyed.plan import Asked, places_of, plan_compaction
from alluvium.paimon.view.file_rows import FILE
from alluvium.paimon.view.merge import FILE_ORDER
from alluvium.plan.write import BUCKET_COLUMN, DROPS, LOGS, LOOKS, REWRITES, WRITTEN_FILES, Regrouped
from alluvium.schema.types import LONG
from alluvium.storage.open import open_store

SCHEMA = pa.schema(
    [pa.field("k", pa.int32(), False), ("s", pa.string()), ("n", pa.int64()), pa.field("p", pa.string(), False)]
)


def compaction_of(files: list[tuple[int, int, bool, bool, int]], **options: str) -> Compaction:
    """Of a file a code, a level (of what it was: 0), whether its keys are looked up, whether it is asked, and a place."""
    url = f"memory://{uuid.uuid4()}/t"
    PaimonTable.create(url, SCHEMA, ["p"], ["k", "p"], {"bucket": "1", **options})
    store = open_store(url)
    for n in range(len(files)):
        append(
            open_target(store, **{"write-only": "true", "changelog-producer": "none"}),
            [{"k": 1, "s": f"s{n}", "n": n, "p": "a"}],
        )
    snapshot = load_snapshot(store)
    planned = full(snapshot)
    codes, levels, looks, asked, places = (list(one) for one in zip(*files, strict=True))
    fates = pa.table(
        {"code": pa.array(codes, pa.int64()), "level": pa.array(levels, pa.int64()), "looks": looks,
         "is_asked": asked, "place": pa.array(places, pa.int64()), "order": pa.array(range(len(files)), pa.int64())}
    )  # fmt: skip
    return replace(planned, fates=fates)


R, L, RL, RD = (
    Regrouped.code(number, rewrites=rewrites, logs=logs, drops=drops, looks=False)
    for number, (rewrites, logs, drops) in enumerate([(1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 1)])
)
FATES = [
    (R, 5, True, False, 0), (L, 3, True, False, 0), (RL, 5, False, False, 1), (RD, 0, False, False, 1),
    (-1, 0, False, True, 0), (-1, 4, False, True, 1), (-1, 0, False, False, 2),
]  # fmt: skip


def test_codes() -> None:
    seen = set()
    flags = itertools.product((False, True), repeat=4)
    for number, (rewrites, logs, drops, looks) in itertools.product(range(5), flags):
        code = Regrouped.code(number, rewrites=rewrites, logs=logs, drops=drops, looks=looks)
        assert [bool(code & bit) for bit in (REWRITES, LOGS, DROPS, LOOKS)] == [rewrites, logs, drops, looks]
        seen.add(code)
    assert len(seen) == 80 and min(seen) == 0


def test_what_becomes_of_files() -> None:
    planned = compaction_of(FATES)
    codes = np.array([one[0] for one in FATES])
    rewritten = [bool(code >= 0 and code & REWRITES) for code in codes]
    moved = [one[1] != 0 and not new for one, new in zip(FATES, rewritten, strict=True)]
    assert planned.is_rewritten.to_pylist() == rewritten
    assert planned.is_moved.to_pylist() == moved
    names = planned.entries["file_name"].to_pylist()
    assert planned.before["file_name"].to_pylist() == [
        n for n, a, b in zip(names, rewritten, moved, strict=True) if a or b
    ]
    assert planned.moved["file_name"].to_pylist() == [n for n, m in zip(names, moved, strict=True) if m]
    assert planned.moved["level"].to_pylist() == [one[1] for one, m in zip(FATES, moved, strict=True) if m]
    assert planned.moved.schema == planned.entries.schema
    assert planned.reads_rows and planned.logs


def test_a_count_that_is_not_believed_is_not_told_at_a_higher_level() -> None:
    """A file of pypaimon's says 0, whatever kinds its rows have by `rowkind.field`; above level 0 it would be believed."""
    planned = compaction_of(FATES)
    assert planned.moved["delete_row_count"].to_pylist() == [0, 0]
    schema = replace(planned.schema, options={**planned.schema.options, "rowkind.field": "s"})
    planned = replace(planned, snapshot=replace(planned.snapshot, schema=schema))
    assert planned.moved["delete_row_count"].to_pylist() == [None, None]
    assert planned.moved.schema == planned.entries.schema
    assert planned.plan_write().keyed.merge.has_retracts


@pytest.mark.parametrize(
    ("codes", "reads", "logs"), [((-1,), False, False), ((R,), True, False), ((L,), True, True), ((-1, RL), True, True)]
)
def test_whether_there_are_rows_to_write(codes: tuple[int, ...], reads: bool, logs: bool) -> None:
    planned = compaction_of([(code, 0, False, False, 0) for code in codes])
    assert (planned.reads_rows, planned.logs) == (reads, logs)
    nothing = Compaction.nothing(planned.snapshot, planned.entries)
    assert nothing.entries.num_rows == 0 and nothing.fates.num_rows == 0
    assert nothing.fates.schema.names == planned.fates.schema.names and not nothing.logs


def test_which_rows_are_read() -> None:
    planned = compaction_of(FATES)
    names = planned.entries["file_name"].to_pylist()
    rows = planned.rows
    assert rows.entries["file_name"].to_pylist() == names[:4]
    said = rows.said.to_pylist()
    assert [one[BUCKET_COLUMN] for one in said] == [R, L, RL, RD]
    assert [one[PLACE] for one in said] == [0, 0, 1, 1]
    assert [one[FILE] for one in said] == [0, 1, 2, 3] and [one[FILE_ORDER] for one in said] == [0, 1, 2, 3]
    assert [one[LEVEL] for one in said] == [0, 0, 0, 0]
    keys = planned.new_keys
    assert keys.entries["file_name"].to_pylist() == names[:2]
    assert [one[BUCKET_COLUMN] for one in keys.said.to_pylist()] == [None, None]


@pytest.mark.long
@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
@pytest.mark.parametrize("sequence", [None, "n"])
@pytest.mark.parametrize("logged", [False, True])
def test_among_which_rows_new_keys_are_looked_up(engine: str, sequence: str | None, logged: bool) -> None:
    options = {"merge-engine": engine, **({"sequence.field": sequence} if sequence else {})}
    fates = [
        (RL if logged else R, 5, True, False, 0),
        (-1, 4, False, True, 0),
        (-1, 4, False, True, 1),
        (R, 5, False, False, 1),
    ]
    planned = compaction_of(fates, **options)
    needless = engine == "deduplicate" and sequence is None and not logged
    found = planned.looked_up
    assert (found is None) == needless
    if found is not None:
        # Of the bucket of the files whose keys are new, and of no other.
        assert found.entries["file_name"].to_pylist() == planned.entries["file_name"].to_pylist()[1:2]
    assert compaction_of([(RL, 5, True, False, 0)], **options).looked_up is None
    elsewhere = [(RL, 5, True, False, 0), (-1, 4, False, True, 1)]
    assert compaction_of(elsewhere, **options).looked_up is None


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_rows_that_are_deleted_where_they_are(vectors: str) -> None:
    planned = compaction_of(FATES, **{"deletion-vectors.enabled": vectors})
    found = planned.asked
    assert (found is None) == (vectors == "false")
    if found is not None:
        assert (
            found.is_placed and found.entries["file_name"].to_pylist() == planned.entries["file_name"].to_pylist()[4:6]
        )
    assert compaction_of([(R, 5, True, False, 0)], **{"deletion-vectors.enabled": vectors}).asked is None


@pytest.mark.parametrize(
    ("options", "codes", "wanted"),
    [
        ({}, (R,), {}),
        ({"deletion-vectors.enabled": "true"}, (R,), {"looks_up": True}),
        ({"merge-engine": "first-row"}, (R,), {}),
        ({"changelog-producer": "lookup"}, (RL,), {"looks_up": True, "logs": True, "may_retract": True}),
        ({"changelog-producer": "full-compaction", "num-levels": "4"}, (RL,), {"before": 3, "logs": True, "may_retract": True}),
        ({"changelog-producer": "input"}, (R,), {}),
        (
            {"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true"}, (RL,),
            {"looks_up": True, "logs": True, "may_retract": True, "compared": ("k", "s", "n", "p")},
        ),
        (
            {"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true",
             "changelog-producer.row-deduplicate-ignore-fields": "n,s"}, (RL,),
            {"looks_up": True, "logs": True, "may_retract": True, "compared": ("k", "p")},
        ),
    ],
)  # fmt: skip
def test_how_rows_are_grouped_anew(options: dict[str, str], codes: tuple[int, ...], wanted: dict[str, Any]) -> None:
    plan = compaction_of([(code, 5, True, False, 0) for code in codes], **options).plan_write()
    assert plan.keyed is not None
    assert plan.keyed.regrouped == Regrouped(PLACE, LEVEL, **wanted)
    assert (plan.keyed.bucket, plan.keyed.skipped_kinds, plan.keyed.merge.level) == (BUCKET_COLUMN, (), None)
    assert (plan.bucket, plan.assigned, plan.checks, plan.derived) == (None, None, (), ())


@pytest.mark.parametrize(
    ("code", "retracts", "kept"), [(R, False, False), (R, True, True), (RD, True, False), (RD, False, False)]
)
def test_rows_that_take_others_back_may_be_left(code: int, retracts: bool, kept: bool) -> None:
    """Where the files have some, and the group does not drop them."""
    planned = compaction_of([(code, 5, True, False, 0)])
    place = planned.entries.schema.get_field_index("delete_row_count")
    counts = pa.array([int(retracts)], pa.int64())
    entries = planned.entries.set_column(place, planned.entries.schema.field(place), counts)
    plan = replace(planned, entries=entries).plan_write()
    assert plan.keyed is not None and plan.keyed.regrouped is not None
    assert plan.keyed.merge.has_retracts == retracts
    assert plan.keyed.regrouped.may_retract == kept
    unknown = planned.entries.set_column(place, planned.entries.schema.field(place), pa.nulls(1, pa.int64()))
    told = replace(planned, entries=unknown).plan_write().keyed
    assert told is not None and told.merge.has_retracts


@pytest.mark.parametrize(
    ("sizes", "counts", "target", "most"),
    [
        ([1000, 1000], [50, 150], "1000 b", "100"),
        ([1000, 1000], [50, 150], "2000 b", None),
        ([1000, 1000], [50, 150], "1999 b", "199"),
        ([1000, 1000], [1, 1], "500 b", None),
        ([0, 0], [1, 1], "1 b", "2"),
    ],
)
def test_as_many_rows_as_make_a_file(sizes: list[int], counts: list[int], target: str, most: str | None) -> None:
    planned = compaction_of([(R, 5, True, False, 0)] * 2 + [(-1, 0, False, False, 0)], **{"target-file-size": target})
    entries = planned.entries
    for name, values in (("file_size", [*sizes, 10**6]), ("row_count", [*counts, 10**6])):
        place = entries.schema.get_field_index(name)
        entries = entries.set_column(place, entries.schema.field(place), pa.array(values, pa.int64()))
    options = dict(replace(planned, entries=entries).plan_write().options)
    expected = most if most is None or int(most) < sum(counts) else None
    assert options.get("maxRecordsPerFile") == expected


@pytest.mark.parametrize("kind", ["added", "told"])
def test_the_entries_of_new_files(kind: str) -> None:
    """They stand in the buckets, and come to the levels, of the groups whose codes they have."""
    planned = compaction_of(FATES, **{"changelog-file.prefix": "log-", "data-file.prefix": "rows-"})
    written = pa.Table.from_pylist(
        [
            {"path": f"bucket-{code}/f{code}.parquet", "size": 10 + code, "modification_time_ms": 1, "num_rows": 2,
             "partition": ["a"], "bucket": code}
            for code in (RL, R, RD)
        ],
        schema=WRITTEN_FILES,
    )  # fmt: skip
    numbers = {("_SEQUENCE_NUMBER",): ColumnStats(LONG, 3, 4, 0)}
    footers = [FileFooter(2, numbers, RunEnds((1,), (2,), n)) for n in range(3)]
    made = planned.added(written, footers) if kind == "added" else planned.told(written, footers)
    assert made["bucket"].to_pylist() == [0, 0, 0] and made["level"].to_pylist() == [5, 5, 0]
    assert made["total_buckets"].to_pylist() == [1, 1, 1]
    assert made["file_size"].to_pylist() == [10 + code for code in (RL, R, RD)]
    assert set(made["file_source"].to_pylist()) == ({1} if kind == "added" else {0})
    assert {name.partition("-")[0] for name in made["file_name"].to_pylist()} == {"rows" if kind == "added" else "log"}
    assert made.schema.names == ENTRIES.names and made["delete_row_count"].to_pylist() == [0, 1, 2]
    assert set(made["min_sequence_number"].to_pylist()) == {3} and set(made["max_sequence_number"].to_pylist()) == {4}
    assert compacted_entries(made)["file_source"].to_pylist() == [1, 1, 1]


def test_a_writer_that_compacts_by_itself_does_not_refuse_its_own_rows() -> None:
    options = {"changelog-producer": "lookup", "write-only": "false", "bucket": "1"}
    plan = compaction_of([(RL, 5, True, False, 0)], **options).plan_write()
    assert plan.keyed is not None and plan.bucket is None


def test_the_buckets_of_some_files() -> None:
    planned = compaction_of(FATES[:2])
    names = planned.entries["file_name"].to_pylist()
    partition = planned.entries["partition"].to_pylist()[0]
    paths = pa.chunked_array([[f"p=a/bucket-0/{names[0]}", "p=a/bucket-0/other.parquet"]])
    assert places_of(planned.snapshot, paths) == {(partition, 0)}
    assert places_of(planned.snapshot, paths.slice(1)) == frozenset()
    for places, count in (({(partition, 0)}, 2), ({(partition, 1)}, 0), ({(b"", 0)}, 0)):
        assert plan_compaction(planned.snapshot, Asked(places=frozenset(places))).entries.num_rows == count
