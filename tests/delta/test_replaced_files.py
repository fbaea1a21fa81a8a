"""What an overwrite by a condition removes as whole files: what partition values decide, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.delta.view.scan import whole_files
from alluvium.errors import UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = open_store(str(tmp_path / "t"))
    for number, p in enumerate(("a1", "a2", "b1")):
        commit_rows(open_target(store, partitioned=True), [number], p)
    return store


def replacing(store: Store, text: str, rows: bool = True) -> Replace:
    return Replace(parse_predicate(text, open_target(store).schema), text, rows=rows)


def ids(store: Store) -> list[int]:
    return sorted(alluvium.open(store.url).to_arrow()["id"].to_pylist())


def test_partition_values_decide(store: Store) -> None:
    target = open_target(store)
    for text in ("p like 'a%'", "p in ('a1', 'a2')", "p < 'b' and p is not null"):
        assert not target.replaces_rows(replacing(store, text)), text
    commit_rows(target, [7], "a1", replacing(store, "p like 'a%'"))
    assert ids(store) == [2, 7]


@pytest.mark.parametrize(
    "text", ["p rlike '^a'", "p ilike 'A%'", "ascii(p) = 97", "cast(p as int) = 1", "p = 'a1' and hash(p) = 1"]
)
def test_what_is_not_understood_goes_row_by_row(store: Store, text: str) -> None:
    target = open_target(store)
    assert target.replaces_rows(replacing(store, text)) and target.replaces_rows(replacing(store, text, rows=False))
    # Whoever would remove files all the same is refused.
    with pytest.raises(UnsupportedFeature) as caught:
        commit_rows(target, [7], "a1", replacing(store, text))
    assert caught.value.code == "replace-where-data" and ids(store) == [0, 1, 2]


@pytest.mark.parametrize("text", ["id >= 0", "p = 'a1' and id = 0", "id in (0) or hash(id) = 1", "hash(id) = 1"])
def test_statistics_remove_nothing(store: Store, text: str) -> None:
    """Bounds say that `id >= 0` is true for every row; a writer may have been wrong."""
    target = open_target(store)
    assert target.snapshot is not None
    assert whole_files(target.snapshot, parse_predicate(text, target.schema)).every.num_rows == 0
    assert target.replaces_rows(replacing(store, text))
    with pytest.raises(UnsupportedFeature) as caught:
        target.replaces_rows(replacing(store, text, rows=False))
    assert caught.value.column == "id"
