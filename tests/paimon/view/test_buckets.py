"""Files are skipped by their bucket only while rows were divided by the same values all along."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty_store import FaultyStore
from paimon_rows import append, open_target

import alluvium
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import DataField, SchemaChange, parse_type
from alluvium.paimon.view.buckets import keeps_buckets
from alluvium.storage.open import open_store


def make(tmp_path: Path, kind: str, stats: str = "none") -> str:
    url = str(tmp_path / "t")
    fields = [DataField(0, "k", parse_type(kind)), DataField(1, "s", parse_type("STRING"))]
    PaimonTable.create(url, fields, options={"bucket": "7", "bucket-key": "k", "metadata.stats-mode": stats})
    return url


def found(url: str, where: str) -> list[object]:
    return sorted(alluvium.open(url).to_arrow(columns=["k"], where=where)["k"].to_pylist())


@pytest.mark.parametrize(("kind", "literal"), [("BIGINT", "{}"), ("STRING", "'{}'")])
def test_after_the_key_has_another_type(tmp_path: Path, kind: str, literal: str) -> None:
    """Hashes of -5 as INT and as BIGINT differ, and so do buckets; Java divides later rows by the new type, too."""
    url = make(tmp_path, "INT")
    numbers = [-5, 7, 2**31 - 1, -(2**31), 0, 100]
    append(open_target(open_store(url)), [{"k": n, "s": "old"} for n in numbers])
    PaimonTable.forPath(url).alter([SchemaChange.update_column_type("k", kind)])
    later = [n if kind == "BIGINT" else str(n) for n in numbers]
    append(open_target(open_store(url)), [{"k": n, "s": "new"} for n in later])
    for n in later:
        assert found(url, f"k = {literal.format(n)}") == [n, n]
    # Once compacted the rows stay where they are, under the new schema: the files do not tell.
    assert not keeps_buckets(load_snapshot(open_store(url)))


def test_other_changes_keep_buckets(tmp_path: Path) -> None:
    url = make(tmp_path, "VARCHAR(10)")
    table = PaimonTable.forPath(url)
    table.alter([SchemaChange.add_column("x", "INT")])
    table.alter([SchemaChange.update_column_type("k", "VARCHAR(20)")])
    append(open_target(open_store(url)), [{"k": str(n), "s": "x"} for n in range(50)])
    snapshot = load_snapshot(open_store(url))
    assert keeps_buckets(snapshot) and snapshot.entries.num_rows == 7
    opened = alluvium.open(url)
    assert opened.to_arrow(columns=["k"], where="k = '31'")["k"].to_pylist() == ["31"]


@pytest.mark.long
@pytest.mark.parametrize("stats", ["none", "full"])
@pytest.mark.parametrize(
    ("before", "after"), [("VARCHAR(10)", "VARCHAR(4)"), ("STRING", "VARCHAR(4)"), ("STRING", "CHAR(4)")]
)
def test_texts_that_were_longer(tmp_path: Path, before: str, after: str, stats: str) -> None:
    """They are read as what is left of them, and lie where the whole was divided to."""
    url = make(tmp_path, before, stats)
    texts = [f"{n:03}-{n}" for n in range(30)]
    append(open_target(open_store(url)), [{"k": text, "s": "x"} for text in texts])
    PaimonTable.forPath(url).alter([SchemaChange.update_column_type("k", after)])
    for text in texts:
        assert found(url, f"k = '{text[:4]}'") == [text[:4]]


def test_char_that_became_a_text_without_an_end(tmp_path: Path) -> None:
    """Files of ORC have it with blanks, which were divided by and are not read."""
    url = make(tmp_path, "CHAR(4)")
    PaimonTable.forPath(url).alter([SchemaChange.update_column_type("k", "STRING")])
    append(open_target(open_store(url)), [{"k": "x", "s": "y"}])
    assert not keeps_buckets(load_snapshot(open_store(url)))


def test_a_table_that_was_never_altered_costs_nothing(tmp_path: Path) -> None:
    url = make(tmp_path, "INT")
    store = FaultyStore(open_store(url))
    snapshot = load_snapshot(store)
    before = len(store.requests)
    assert keeps_buckets(snapshot)
    assert len(store.requests) == before
    assert parse_predicate("k = 1", open_target(store).schema, "UTC") is not None


@pytest.mark.parametrize(("options", "function"), [({}, "hash"), ({"bucket-function.type": "mod"}, "mod")])
def test_how_writers_divide_rows(tmp_path: Path, options: dict[str, str], function: str) -> None:
    url = str(tmp_path / "t")
    fields = [DataField(0, "k", parse_type("INT"))]
    PaimonTable.create(url, fields, options={"bucket": "3", "bucket-key": "k", **options})
    from_plan = open_target(open_store(url)).plan_write(None, ()).bucket
    assert from_plan is not None
    assert (from_plan.count, [c.name for c in from_plan.columns], from_plan.function) == (3, ["k"], function)
