"""Which files of a clustered table are clustered next. No file is there: the log alone says all."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from made_table import make_table

from alluvium.delta.description.shown_columns import shown_path
from alluvium.delta.upkeep.clustering.zcubes import (
    CUBE_COLUMNS,
    CUBE_ID,
    CubeFigures,
    CubePlan,
    CubeSizes,
    cube_marks,
    plan_cubes,
)
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.schema.types import LONG, Field, Struct
from alluvium.storage.open import open_store

SCHEMA = Struct((Field("a", LONG), Field("b", LONG)))
BY = [("a",), ("s", "c")]
SAID = '["a","s.c"]'
MB = 1 << 20
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1, "sizeInBytes": 34}


def add(
    path: str, size: int, cube: str | None = None, by: str | None = SAID, provider: str | None = "liquid", deleted=0
):
    tags = {CUBE_ID: cube, CUBE_COLUMNS: by} if cube else {}
    one = {
        "path": path,
        "partitionValues": {},
        "size": size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": '{"numRecords":100}',
        "tags": {name: value for name, value in tags.items() if value is not None} or None,
        "clusteringProvider": provider if cube else None,
    }
    return {"add": one | ({"deletionVector": {**VECTOR, "cardinality": deleted}} if deleted else {})}


def snapshot_of(root: Path, *adds: dict) -> Snapshot:
    url = make_table(root / "t", SCHEMA)
    (root / "t" / "_delta_log" / f"{1:020}.json").write_text("\n".join(map(json.dumps, adds)))
    return load_snapshot(open_store(url))


def cubes_of(plan: CubePlan) -> list[list[str]]:
    found: dict[int, list[str]] = {}
    for path, number in zip(plan.bins.files["path"].to_pylist(), plan.bins.numbers.to_pylist(), strict=True):
        found.setdefault(number, []).append(path)
    return [found[n] for n in sorted(found)]


ALWAYS = CubeSizes(large_bytes=100 * MB)


def test_new_files_are_clustered_and_a_lone_cube_is_left(tmp_path):
    plan = plan_cubes(snapshot_of(tmp_path, add("x", 5), add("y", 7)), BY, CubeSizes(), 4)
    assert (cubes_of(plan), plan.bins.counts) == ([["x", "y"]], (3,))
    assert plan.figures == CubeFigures((0, 0), (2, 12), 0, (2, 12))
    alone = plan_cubes(snapshot_of(tmp_path / "2", add("x", 5, "1"), add("y", 7, "1")), BY, CubeSizes(), 4)
    assert (cubes_of(alone), alone.figures) == ([], CubeFigures((2, 12), (0, 0), 1, (0, 0)))
    # As in the reference, a new file is a cube by itself.
    assert cubes_of(plan_cubes(snapshot_of(tmp_path / "3", add("x", 5)), BY, CubeSizes(), 4)) == [["x"]]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        # A hundred times what came is not taken up again, four times is.
        ((300 * MB, 12 * MB, 3 * MB), ["new", "small"]),
        ((300 * MB, 80 * MB, 20 * MB), ["new", "small", "big"]),
        ((300 * MB, 80 * MB, 3 * MB), ["new"]),
        # What is tiny costs nothing.
        ((4 * MB, 3 * MB, 1), ["new", "small", "big"]),
        # Without new files the smallest cube is the beginning; alone it stays.
        ((300 * MB, 80 * MB, 0), ["small", "big"]),
        ((800 * MB, 80 * MB, 0), []),
    ],
)
def test_a_cube_is_taken_up_again_where_it_is_worth_it(tmp_path, sizes, expected):
    big, small, new = sizes
    files = [add("big", big, "2"), add("small", small, "1"), *([add("new", new)] if new else [])]
    (found,) = cubes_of(plan_cubes(snapshot_of(tmp_path, *files), BY, CubeSizes(), MB)) or [[]]
    assert found == expected


def test_a_size_that_is_said_decides(tmp_path):
    files = [add("big", 100 * MB, "1"), add("small", 99 * MB, "2"), add("new", 1)]
    assert cubes_of(plan_cubes(snapshot_of(tmp_path, *files), BY, ALWAYS, MB)) == [["new", "small"]]
    # Rows that a vector deletes do not count.
    files = [add("big", 100 * MB, "1", deleted=1), add("small", 99 * MB, "2"), add("new", 1)]
    plan = plan_cubes(snapshot_of(tmp_path / "2", *files), BY, ALWAYS, MB)
    assert cubes_of(plan) == [["new", "big"], ["small"]] or cubes_of(plan) == [["new", "big", "small"]]


def test_cubes_are_packed_up_to_their_size_new_files_first(tmp_path):
    files = [add("c", 6, "2"), add("d", 5, "1"), add("e", 3), add("f", 9, "3")]
    plan = plan_cubes(snapshot_of(tmp_path, *files), BY, CubeSizes(large_bytes=10, target_bytes=9), 4)
    assert (cubes_of(plan), plan.bins.counts) == ([["e", "d"], ["c"], ["f"]], (2, 1, 2))


@pytest.mark.parametrize(
    ("files", "target", "expected"),
    [
        # Without more ado the rest, of 4, would be clustered again with whatever comes next.
        ((6, 6, 6, 6, 6, 4), 30, [3, 3]),
        ((6, 6, 6, 6, 6, 6, 6, 6, 6, 4), 24, [4, 3, 3]),
        # Of two that were to be small both would be.
        ((6, 6, 6, 1), 18, [3, 1]),
        ((6, 6, 6, 6, 6, 6), 18, [3, 3]),
        ((40, 4), 40, [1, 1]),
        ((4,), 40, [1]),
    ],
)
def test_what_is_left_over_is_no_small_cube_where_it_need_not_be(tmp_path, files, target, expected):
    snapshot = snapshot_of(tmp_path, *(add(f"{n}", size) for n, size in enumerate(files)))
    plan = plan_cubes(snapshot, BY, CubeSizes(large_bytes=12, target_bytes=target), 100)
    assert list(map(len, cubes_of(plan))) == expected
    assert max(sum(files[int(path)] for path in cube) for cube in cubes_of(plan)) <= target


def test_what_others_clustered_is_left_but_in_full(tmp_path):
    files = [
        add("new", 1), add("old", 2, "1", by='["a"]'), add("odd", 4, "2", by="no list"), add("theirs", 8, "3", provider="other"),
        add("untold", 16, "4", by=None), add("ours", 32, "5"),
    ]  # fmt: skip
    snapshot = snapshot_of(tmp_path, *files)
    plan = plan_cubes(snapshot, BY, CubeSizes(), MB)
    # A cube that does not say by what is none.
    assert [set(c) for c in cubes_of(plan)] == [{"new", "untold", "ours"}]
    assert plan.figures == CubeFigures((2, 40), (4, 23), 2, (3, 49))
    full = plan_cubes(snapshot, BY, CubeSizes(), MB, full=True)
    assert [set(c) for c in cubes_of(full)] == [{"new", "untold", "ours", "old", "odd", "theirs"}]
    assert full.figures == CubeFigures((4, 46), (2, 17), 4, (6, 63))


def test_in_full_even_one_file_of_other_columns_is_clustered(tmp_path):
    files = [add("a", 300 * MB, "1"), add("b", MB, "2"), add("old", 2, "3", by='["b"]')]
    plan = plan_cubes(snapshot_of(tmp_path, *files), BY, CubeSizes(), MB, full=True)
    assert [set(c) for c in cubes_of(plan)] == [{"a", "b", "old"}]
    settled = plan_cubes(snapshot_of(tmp_path / "2", *files[:1]), BY, CubeSizes(), MB, full=True)
    assert cubes_of(settled) == []


def test_files_of_a_bin_are_marked_as_one_cube():
    marks = cube_marks(pa.array([0, 1, 0, None, None], pa.int64()), BY)
    tags = [dict(one) for one in marks["tags"].to_pylist()]
    ids = [one[CUBE_ID] for one in tags]
    assert (ids[0] == ids[2], len(set(ids)), {one[CUBE_COLUMNS] for one in tags}) == (True, 4, {SAID})
    assert marks["clusteringProvider"].to_pylist() == ["liquid"] * 5


def test_columns_are_named_as_in_the_reference():
    assert [shown_path(path) for path in (("a",), ("s", "c"), ("a.b", "c d"))] == ["a", "s.c", "`a.b`.c d"]


def test_a_cube_may_be_as_large_as_those_that_are_left(tmp_path):
    """Whoever says that smaller cubes are taken, gets cubes that are not taken again."""
    files = [add("a", 6), add("b", 6), add("c", 6)]
    for large, target, bins in (
        (20, 9, [["a", "b", "c"]]),
        (None, 9, [["a"], ["b"], ["c"]]),
        (20, 40, [["a", "b", "c"]]),
        (12, 9, [["a", "b"], ["c"]]),
    ):
        plan = plan_cubes(snapshot_of(tmp_path / f"{large}-{target}", *files), BY, CubeSizes(large, target), 4)
        assert cubes_of(plan) == bins
