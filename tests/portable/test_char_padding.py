"""Columns of type char(n) without Spark: read padded, compared padded, and never skipped for it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from char_table import EXPECTED, FILES, PADDED, ROWS, SCHEMA, Row, make_table
from hypothesis import given, settings
from hypothesis import strategies as st

import alluvium
from alluvium.delta.rows.candidates import choose_candidates
from alluvium.delta.view.scan import whole_files
from alluvium.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.expr.evaluate import evaluate
from alluvium.expr.sql.parse import parse_predicate
from alluvium.schema import types as t
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.types import Field, Struct


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_table(tmp_path_factory.mktemp("chars") / "t")


def by_id(rows: pa.Table) -> list[Row]:
    found: list[Row] = rows.sort_by("id").to_pylist()
    return found


def test_texts_are_padded_wherever_they_stand(url: str) -> None:
    table = alluvium.open(url)
    assert by_id(table.to_arrow()) == PADDED
    assert by_id(pa.Table.from_batches(table.to_batches(batch_size=1))) == PADDED
    assert by_id(table.to_arrow(columns=["id", "mp"])) == [{"id": row["id"], "mp": row["mp"]} for row in PADDED]


def test_the_change_data_feed_is_padded(url: str) -> None:
    changes = pa.Table.from_batches(alluvium.open(url).changes(0).to_batches())
    assert by_id(changes.select(SCHEMA.names)) == PADDED


@pytest.mark.long
def test_predicates_find_what_the_reference_finds(url: str) -> None:
    table = alluvium.open(url)
    found = {text: sorted(table.to_arrow(columns=["id"], where=text)["id"].to_pylist()) for text in EXPECTED}
    assert found == EXPECTED
    assert {text: table.count(text) for text in EXPECTED} == {text: len(ids) for text, ids in EXPECTED.items()}


def test_what_is_padded_after_it_was_computed_is_left_to_spark(url: str) -> None:
    for text in ("c = concat('a', '')", "c in ('a', concat('a', ''))"):
        with pytest.raises(InvalidRequest) as caught:
            alluvium.open(url).to_arrow(where=text)
        assert caught.value.code == "unsupported-expression"


def test_files_are_still_skipped(url: str) -> None:
    table = alluvium.open(url)
    assert [file["path"] for file in table.files("p = 'y'").to_pylist()] == ["f3.parquet"]
    # `abcde` alone is not skipped for its partition, and `a\t` has no upper bound, for it is greater than `a`.
    assert {file["path"] for file in table.files("c >= 'abc'").to_pylist()} == {
        "f1.parquet", "f3.parquet", "f5.parquet", "f6.parquet",
    }  # fmt: skip
    assert table.files("c is null").num_rows == 1


def test_bounds_are_of_what_is_read(url: str) -> None:
    found = alluvium.open(url).bounds(["c", "d", "p", "s.c"])
    ends = {name: (bound.min, bound.max) for name, bound in found.items()}
    assert ends == {"c": ("     ", "ä    "), "d": ("   ", "b  "), "p": ("x   ", "zzzz"), "s.c": ("   ", "b  ")}


def test_texts_that_are_too_long_stay(tmp_path: Path) -> None:
    long = {**ROWS[0], "c": "abcdefg", "p": "xxxxxx"}
    table = alluvium.open(make_table(tmp_path / "t", files=[[long, {**ROWS[0], "id": 2, "p": "xxxxxx"}]]))
    assert [row["c"] for row in by_id(table.to_arrow())] == ["abcdefg", "a    "]
    assert table.to_arrow()["p"].to_pylist() == ["xxxxxx"] * 2
    for text, ids in {"c = 'abcdefg'": [1], "c in ('abcdefgh', 'abcdefg')": [1], "c > 'abcdef'": [1], "c < 'b'": [1, 2],
                      "p = 'xxxxxx'": [1, 2], "c = 'a       '": [2]}.items():  # fmt: skip
        assert sorted(table.to_arrow(where=text)["id"].to_pylist()) == ids, text


#: Characters around the blank, which sorts after those that nobody sees.
TEXTS = st.text(alphabet="\t\x1f !ab\u00e4\U0001f600", max_size=4)
MAYBE = st.one_of(st.none(), TEXTS)
PREDICATES = [
    f"{column} {op}"
    for column in ("c", "p", "s.c")
    for op in ("= {}", "<=> {}", "!= {}", "< {}", "<= {}", "> {}", ">= {}", "in ({}, {})", "between {} and {}",
               "like {}", "is null")
]  # fmt: skip


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(
    files=st.lists(st.tuples(MAYBE, st.lists(st.tuples(MAYBE, MAYBE), min_size=1, max_size=3)), min_size=1, max_size=4),
    predicates=st.lists(st.tuples(st.sampled_from(PREDICATES), TEXTS, TEXTS), min_size=4, max_size=8),
)
def test_no_row_is_lost(
    files: list[tuple[str | None, list[tuple[str | None, str | None]]]], predicates: list[tuple[str, str, str]]
) -> None:
    schema = Struct(tuple(SCHEMA.fields[SCHEMA.names.index(name)] for name in ("id", "c", "s", "p")))
    numbers = iter(range(1000))
    rows = [
        # An empty text is no partition value.
        [{"id": next(numbers), "c": c, "s": {"c": inner, "x": 1}, "p": p or None} for c, inner in of_file]
        for p, of_file in files
    ]
    with tempfile.TemporaryDirectory() as folder:
        table = alluvium.open(make_table(Path(folder) / "t", schema, rows))
        everything = table.to_arrow()
        for template, *texts in predicates:
            text = template.format(*(f"'{value}'" for value in texts))
            asked = sorted(table.to_arrow(columns=["id"], where=text)["id"].to_pylist())
            matches = evaluate(parse_predicate(text, schema), everything)
            assert asked == sorted(everything.filter(matches)["id"].to_pylist()), text
            assert table.count(text) == len(asked), text
        for name in ("c", "p", "s.c"):
            column = everything["s"].combine_chunks().field("c") if name == "s.c" else everything[name]
            known = sorted((v for v in column.to_pylist() if v is not None), key=lambda v: v.encode())
            bound = table.bounds([name])[name]
            assert (bound.min, bound.max) == ((known[0], known[-1]) if known else (None, None)), name


def test_a_verb_gets_every_file_that_may_hold_its_rows(url: str) -> None:
    snapshot = alluvium.open(url)._snapshot
    for text in ("c = 'a'", "p = 'x'", "c <= 'a'"):
        where = parse_predicate(text, SCHEMA)
        candidates = choose_candidates(snapshot, where)
        matching = [[number in EXPECTED[text] for number in numbers] for numbers in FILES]
        paths = candidates.paths.to_pylist()
        assert {f"f{n}.parquet" for n, matches in enumerate(matching) if any(matches)} <= set(paths), text
        # A file goes as a whole where the predicate is true of all of it.
        whole = {f"f{n}.parquet" for n, matches in enumerate(matching) if all(matches)}
        sure = set(whole_files(snapshot, where).every["path"].to_pylist())
        assert sure <= whole and (sure == whole or text != "p = 'x'"), text


@pytest.mark.parametrize("stored", ["ab", "ab   "])
def test_padded_values_of_generated_partitions_tell_nothing(tmp_path: Path, stored: str) -> None:
    generated = {CHAR_VARCHAR: "char(5)", "delta.generationExpression": "substring(t, 1, 2)"}
    schema = Struct((Field("id", t.INTEGER), Field("t", t.STRING), Field("p", t.STRING, True, generated)))
    table = alluvium.open(make_table(tmp_path / "t", schema, [[{"id": 1, "t": "abc", "p": stored}]]))
    assert table.to_arrow(where="t = 'abc'")["p"].to_pylist() == ["ab   "]


@pytest.mark.parametrize(
    ("declared", "error", "code"),
    [("char(", CorruptTable, "invalid-text-type"), ("char(99999999999)", CorruptTable, "invalid-text-type"),
     ("char(2000000000)", UnsupportedFeature, "unsupported-type")],
)  # fmt: skip
def test_senseless_lengths_are_refused(tmp_path: Path, declared: str, error: type[Exception], code: str) -> None:
    schema = Struct((Field("c", t.STRING, True, {CHAR_VARCHAR: declared}), Field("p", t.STRING)))
    table = alluvium.open(make_table(tmp_path / "t", schema, [[{"c": "a", "p": "x"}]]))
    for where in (None, "c = 'a'"):
        with pytest.raises(error) as caught:
            table.to_arrow(where=where)
        assert (caught.value.code, caught.value.column) == (code, "c")
