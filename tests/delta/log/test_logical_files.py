"""What logical files are known by, and older files under newer ones: beside plain loops."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pyarrow as pa
import pytest
from delta_values import make_files, removal_of

from alluvium.delta.log import replay
from alluvium.delta.log.read import ORDER
from alluvium.delta.log.replay import logical_file_keys, overlay, reconcile, vector_ids, without_repeats
from alluvium.delta.terms.spec import FILES, TOMBSTONES

Row = dict[str, Any]
PATHS = ["a", "bb", "x%20y", "x y", "ü", "f" * 2000]


def vector(lot: random.Random) -> Row | None:
    if lot.random() < 0.5:
        return None
    offset = lot.choice([None, 0, 1, 10])
    return {"storageType": lot.choice("up"), "pathOrInlineDv": lot.choice(["v", "v1"]), "offset": offset, "sizeInBytes": 1, "cardinality": 1}  # fmt: skip


def unique_id(found: Row | None) -> str | None:
    if found is None:
        return None
    name = f"{found['storageType']}{found['pathOrInlineDv']}"
    return name if found["offset"] is None else f"{name}@{found['offset']}"


def key(row: Row) -> tuple[str, str | None]:
    """ "identified by their `(path, deletionVector.uniqueId)` primary key" """
    return row["path"].replace("%20", " "), unique_id(row["deletionVector"])


def rows(lot: random.Random, count: int, paths: list[str] = PATHS) -> list[Row]:
    return [
        {"path": lot.choice(paths), "deletionVector": vector(lot), "size": lot.randrange(10**6)} for _ in range(count)
    ]


def table(found: list[Row]) -> pa.Table:
    return make_files(*found).combine_chunks() if found else FILES.empty_table()


def batches(lot: random.Random, whole: pa.Table) -> list[pa.RecordBatch]:
    """The same in batches of any sizes, empty ones as well."""
    cuts = sorted(lot.randrange(whole.num_rows + 1) for _ in range(3))
    parts = zip([0, *cuts], [*cuts, whole.num_rows], strict=True)
    return [
        pa.RecordBatch.from_arrays([c.combine_chunks() for c in whole.slice(a, b - a).columns], schema=whole.schema)
        for a, b in parts
    ]


@pytest.mark.parametrize("seed", range(10))
def test_keys_of_files_are_equal_where_path_and_vector_are(seed: int) -> None:
    lot = random.Random(seed)
    found = rows(lot, 30)
    (batch,) = table(found).to_batches()
    assert vector_ids(batch.column("deletionVector")).to_pylist() == [unique_id(row["deletionVector"]) for row in found]
    keys = logical_file_keys(batch)
    numbered: dict[str, tuple[str, str | None]] = {}
    for text, row in zip(keys.to_pylist(), found, strict=True):
        assert numbered.setdefault(text, key(row)) == key(row)
    assert len(numbered) == len({key(row) for row in found})
    bare = table([{"path": row["path"]} for row in found])
    assert logical_file_keys(bare.to_batches()[0]).to_pylist() == [row["path"].replace("%20", " ") for row in found]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("paths", [PATHS, ["aa", "bb", "cc", "dd"]], ids=["any", "of one length"])
def test_of_files_that_are_listed_twice_the_last_is_kept(seed: int, paths: list[str]) -> None:
    lot = random.Random(seed)
    found = rows(lot, lot.choice([0, 1, 5, 20]), paths)
    given = batches(lot, table(found))
    kept = without_repeats(list(given))
    last = {key(row): n for n, row in enumerate(found)}
    expected = [row["size"] for n, row in enumerate(found) if last[key(row)] == n]
    assert [size for batch in kept for size in batch.column("size").to_pylist()] == expected
    # Where nothing repeats the batches are those that were given.
    once = batches(lot, table(list({key(row): row for row in found}.values())))
    assert all(one is other for one, other in zip(without_repeats(once), once, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_older_files_under_newer_ones(seed: int) -> None:
    lot = random.Random(seed)
    older = list({key(row): row for row in rows(lot, 12)}.values())
    newer = list({key(row): row for row in rows(lot, lot.choice([0, 4]))}.values())
    gone = [row for row in rows(lot, lot.choice([0, 4])) if key(row) not in map(key, newer)]
    found = overlay(batches(lot, table(older)), table(newer), removal_of(table(gone)))
    named = {key(row) for row in (*newer, *gone)}
    expected = [row["size"] for row in older if key(row) not in named] + [row["size"] for row in newer]
    assert found.schema == FILES and found["size"].to_pylist() == expected
    assert overlay([], table(newer), removal_of(table(gone)))["size"].to_pylist() == [row["size"] for row in newer]


@pytest.mark.parametrize("seed", range(10))
def test_more_columns_of_older_files_stay(seed: int) -> None:
    """Statistics that a checkpoint has as columns alone; newer files have none of them."""
    lot = random.Random(seed)
    older, newer = (
        table([{"path": f"o{n}", "size": n} for n in range(6)]),
        table([{"path": f"o{n}", "size": 10 + n} for n in (1, 7)]),
    )
    more = older.append_column("stats_parsed", pa.array(range(6)))
    adds = newer.append_column(ORDER, pa.array([0, 1]))
    live, tombstones = reconcile(batches(lot, more), [], batches(lot, adds), [])
    assert live.schema == more.schema and tombstones.schema == TOMBSTONES
    expected = {0: 0, 2: 2, 3: 3, 4: 4, 5: 5, 11: None, 17: None}
    assert dict(zip(live["size"].to_pylist(), live["stats_parsed"].to_pylist(), strict=True)) == expected


@pytest.mark.parametrize(("many", "small"), [(64, 512), (2, 5), (0, 3)])
def test_many_small_batches_become_few(monkeypatch: pytest.MonkeyPatch, many: int, small: int) -> None:
    """Those that are large enough stay as they are; no row is lost, and none moves."""
    monkeypatch.setattr(replay, "_MANY_BATCHES", many)
    monkeypatch.setattr(replay, "_SMALL_ROWS", small)
    lot = random.Random(many)
    for count in (many, many + 1, many + 40):
        sizes = [lot.choice([1, 2, 0, small, small + 1]) for _ in range(count)]
        numbers = iter(range(sum(sizes)))
        given = [
            pa.RecordBatch.from_arrays(part.columns, schema=FILES)
            for size in sizes
            for part in table([{"path": f"f{next(numbers)}"} for _ in range(size)]).to_batches()
        ]
        live, _ = reconcile(list(given), [], [], [])
        assert live["path"].to_pylist() == [f"f{n}" for n in range(sum(sizes))]
        found = [batch.num_rows for batch in live.to_batches()]
        if len(given) <= many:
            assert found == [batch.num_rows for batch in given]
            continue
        # Of two neighbours one at least is large.
        assert all(max(pair) >= small for pair in itertools.pairwise(found))
        assert all(n < 2 * small or n in sizes for n in found)
