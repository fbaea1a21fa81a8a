"""What the log says of files in cubes, before and after they are written anew: random files beside lists of them."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from delta_values import make_files

from alluvium.delta.terms.spec import FILES
from alluvium.delta.upkeep.clustering.zcubes import CUBE_COLUMNS, CUBE_ID, PROVIDER, cube_groups, cube_marks, kept_marks
from alluvium.delta.upkeep.optimize import Bins, joined_bins


def files(cubes: list[str | None]) -> pa.Table:
    rows = []
    for number, cube in enumerate(cubes):
        tags = None if cube is None else {CUBE_ID: cube, CUBE_COLUMNS: '["a"]', "mine": str(number)}
        rows.append(
            {
                "path": f"f{number}",
                "tags": None if tags is None else list(tags.items()),
                "clusteringProvider": cube and "liquid",
            }
        )
    return make_files(*rows) if rows else FILES.empty_table()


@pytest.mark.parametrize("seed", range(10))
def test_cubes_stay_together_and_keep_what_was_said(seed: int) -> None:
    lot = random.Random(seed)
    cubes = [lot.choice([None, "x", "y", "z"]) for _ in range(lot.randint(1, 9))]
    table = files(cubes)
    groups = cube_groups(table)
    expected: dict[str | None, list[str]] = {}
    for number, cube in enumerate(cubes):
        expected.setdefault(cube, []).append(f"f{number}")
    assert [group["path"].to_pylist() for group in groups] == list(expected.values())
    # Each group in bins of its own, which are numbered on.
    parts = []
    for group in groups:
        numbers = sorted(lot.randint(0, 1) for _ in range(group.num_rows))
        numbers = [number - numbers[0] for number in numbers]
        parts.append(
            Bins(group, pa.array(numbers, pa.int64()), tuple(lot.randint(1, 3) for _ in range(numbers[-1] + 1)))
        )
    bins = joined_bins(parts)
    assert bins.files["path"].to_pylist() == [path for group in groups for path in group["path"].to_pylist()]
    firsts = [sum(len(part.counts) for part in parts[:n]) for n in range(len(parts))]
    assert bins.numbers.to_pylist() == [
        n + first for part, first in zip(parts, firsts, strict=True) for n in part.numbers.to_pylist()
    ]
    assert bins.counts == tuple(count for part in parts for count in part.counts)
    written = [lot.choice([None, *range(len(bins.counts))]) for _ in range(6)]
    kept = kept_marks(bins, pa.array(written, pa.int64()))
    for number, row in zip(written, kept.to_pylist(), strict=True):
        if number is None:
            assert row == {"tags": None, "clusteringProvider": None}
            continue
        first = bins.files.take([bins.numbers.to_pylist().index(number)]).select(["tags", "clusteringProvider"])
        assert row == first.to_pylist()[0]


def test_files_of_a_bin_are_a_cube() -> None:
    marks = cube_marks(pa.array([3, None, 3, 5, None], pa.int64()), [("a",), ("r", "x.y")]).to_pylist()
    ids = [dict(row["tags"])[CUBE_ID] for row in marks]
    assert ids[0] == ids[2] and len(set(ids)) == 4
    assert {row["clusteringProvider"] for row in marks} == {PROVIDER}
    assert {tuple(json.loads(dict(row["tags"])[CUBE_COLUMNS])) for row in marks} == {("a", "r.`x.y`")}
