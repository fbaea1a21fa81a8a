"""What files tell of themselves, however the log has it: in chunks, in columns, with names that need care."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pyarrow as pa
import pytest
from delta_values import make_files

from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter
from alluvium.delta.statistics import stats
from alluvium.delta.statistics.stats import AddStatistics, format_stats, stats_columns, struct_member
from alluvium.errors import InvalidRequest
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct

VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
SCHEMA = Struct((Field("a", t.LONG), Field("s", Struct((Field("b", t.STRING),))), Field("p", t.INTEGER)))


def document(lot: random.Random) -> dict[str, Any]:
    """Statistics of which any part may be missing."""
    found: dict[str, Any] = {"numRecords": lot.randrange(9), "tightBounds": lot.random() < 0.5}
    for key in ("minValues", "maxValues", "nullCount"):
        found[key] = {"a": lot.randrange(9), "s": {"b": 0 if key == "nullCount" else lot.choice("xyz")}}
        if lot.random() < 0.3:
            del found[key][lot.choice("as")]
    for key in list(found):
        if lot.random() < 0.2:
            del found[key]
    return found


def told(statistics: AddStatistics) -> list[list[Any]]:
    columns = [statistics.num_rows(), statistics.tight()]
    for path in (("a",), ("s", "b")):
        columns += [statistics.lower(path), statistics.upper(path), statistics.null_count(path)]
    return [column.to_pylist() for column in columns if column is not None]


@pytest.mark.parametrize("seed", range(12))
def test_files_in_chunks_and_in_columns_tell_the_same(seed: int) -> None:
    lot = random.Random(seed)
    documents = [document(lot) if lot.random() < 0.8 else None for _ in range(12)]
    masked = [lot.random() < 0.3 for _ in documents]
    rows = [
        {
            "path": f"f{n}",
            "stats": None if d is None else json.dumps(d),
            "deletionVector": VECTOR if is_masked else None,
        }
        for n, (d, is_masked) in enumerate(zip(documents, masked, strict=True))
    ]
    whole = make_files(*rows)
    found = told(AddStatistics(whole, SCHEMA, ["p"]))
    expected: list[list[Any]] = [[None if d is None else d.get("numRecords") for d in documents]]
    tight = [d is None or d.get("tightBounds", True) is True for d in documents]
    expected.append([is_tight and not is_masked for is_tight, is_masked in zip(tight, masked, strict=True)])
    for path in (("a",), ("s", "b")):
        for key in ("minValues", "maxValues", "nullCount"):
            values: list[Any] = []
            for d, is_tight in zip(documents, expected[1], strict=True):
                value: Any = (d or {}).get(key, {})
                for name in path:
                    value = value.get(name) if isinstance(value, dict) else None
                # "any value other than these two special cases [0 and numRecords] [...] carries no information"
                rows_of = (d or {}).get("numRecords")
                is_special = value is not None and rows_of is not None and value in (0, rows_of)
                values.append(value if key != "nullCount" or is_tight or is_special else None)
            expected.append(values)
    assert found == expected
    chunked = pa.concat_tables([whole.slice(0, 5), whole.slice(5, 0), whole.slice(5)])
    assert told(AddStatistics(chunked, SCHEMA, ["p"])) == found
    # Where a text is missing its columns count, and nowhere else.
    leaf = pa.struct([("a", pa.int64()), ("s", pa.struct([("b", pa.string())]))])
    counts = pa.struct([("a", pa.int64()), ("s", pa.struct([("b", pa.int64())]))])
    kind = pa.struct(
        [
            ("numRecords", pa.int64()),
            ("tightBounds", pa.bool_()),
            ("minValues", leaf),
            ("maxValues", leaf),
            ("nullCount", counts),
        ]
    )
    place = whole.schema.get_field_index("stats")
    texts = [None if lot.random() < 0.5 else row["stats"] for row in rows]
    mixed = whole.set_column(place, whole.schema.field(place), pa.array(texts, pa.string()))
    mixed = mixed.append_column("stats_parsed", pa.array(documents, kind))
    assert told(AddStatistics(mixed, SCHEMA, ["p"])) == found


def test_no_files_tell_nothing() -> None:
    statistics = AddStatistics(make_files().slice(0, 0), SCHEMA, ["p"])
    assert statistics.num_files == 0 and told(statistics) == [[]] * 8


def test_columns_that_were_announced_are_decoded_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    files = make_files({"path": "f", "stats": '{"tightBounds":false,"numRecords":3,"minValues":{"a":1}}'})
    passes: list[tuple[Any, ...]] = []

    class Noting(stats.StatsDecoder):
        def __init__(self, leaves: Any) -> None:
            passes.append(tuple(leaves))
            super().__init__(leaves)

    monkeypatch.setattr(stats, "StatsDecoder", Noting)
    statistics = AddStatistics(files, SCHEMA, ["p"])
    statistics.prepare([("a",), ("s", "b"), ("a",), ("p",), ("missing",), ("s",)])
    assert passes == [(("a",), ("s", "b"))]
    assert statistics.num_rows().to_pylist() == [3] and statistics.tight().to_pylist() == [False]
    statistics.prepare([("a",)])
    lower = statistics.lower(("a",))
    assert lower is not None and lower.to_pylist() == [1] and len(passes) == 1


def test_how_many_rows_there_are_is_found_without_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(leaves: Any) -> None:
        raise AssertionError("nothing is decoded")

    monkeypatch.setattr(stats, "StatsDecoder", refuse)
    files = make_files({"path": "f", "stats": '{"numRecords":3,"minValues":{"a":1}}'}, {"path": "g"})
    assert AddStatistics(files, SCHEMA, ["p"]).num_rows().to_pylist() == [3, None]


def test_members_of_nested_columns() -> None:
    values = pa.array([{"a": {"b": 1, "c": "x"}, "d": 2.5}, None, {"a": None, "d": 1.0}])
    for path, kind, expected in (
        (("a", "b"), pa.int64(), [1, None, None]), (("a", "c"), pa.string(), ["x", None, None]), (("a", "b"), pa.int8(), [1, None, None]),
        (("a", "z"), pa.int64(), [None] * 3), (("z", "b"), pa.int64(), [None] * 3), (("d", "b"), pa.int64(), [None] * 3),
        (("a", "c"), pa.int64(), [None] * 3), (("a",), pa.int64(), [None] * 3), (("d",), pa.int64(), [None] * 3),
        (("d",), pa.float32(), [2.5, None, 1.0]),
    ):  # fmt: skip
        found = struct_member(values, path, kind)
        assert found.type == kind and found.to_pylist() == expected, path


NAMED = Struct((
    Field("Part", t.INTEGER), Field("a`b", t.INTEGER), Field("s t", Struct((Field("U", t.INTEGER), Field("v.w", t.INTEGER)))), Field("last", t.INTEGER),
))  # fmt: skip


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["`a``b`"], ["a`b"]), (["s t"], ["s t/U", "s t/v.w"]), (["`s t`.u"], ["s t/U"]), (["S T.`V.W`", " last "], ["s t/v.w", "last"]),
        (["last", "last"], ["last"]), (["part"], []), (["LAST", "`a``b`"], ["a`b", "last"]),
    ],
)  # fmt: skip
def test_names_that_need_care(names: list[str], expected: list[str]) -> None:
    """They stand in the schema's order, each once; partition columns have no statistics, however they are spelled."""
    found = stats_columns(NAMED, ["PART"], 1, names)
    assert ["/".join(column.path) for column in found] == expected


@pytest.mark.parametrize(
    ("name", "near"), [("lost", "last"), ("s t.x", "s t.U"), ("last.x", "last"), ("s t.U.x", "s t.U")]
)
def test_names_of_no_column(name: str, near: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        stats_columns(NAMED, [], 32, ["last", name])
    assert (caught.value.code, caught.value.column) == ("unknown-column", name) and repr(name) in str(caught.value)
    assert caught.value.hint == f"did you mean {near!r}?"


def test_partition_columns_do_not_count_among_the_first() -> None:
    every = ["a`b", "s t/U", "s t/v.w", "last"]
    for limit, expected in ((1, every[:1]), (2, every[:2]), (4, every), (-5, every)):
        assert ["/".join(column.path) for column in stats_columns(NAMED, ["part"], limit)] == expected


def test_texts_of_new_files() -> None:
    columns = {
        ("a",): ColumnStats(t.LONG, 1, None, None), ("s", "b"): ColumnStats(t.STRING, None, "z", 3), ("s", "f"): ColumnStats(t.DOUBLE, -math.inf, math.nan, 0),
        ("g",): ColumnStats(t.FLOAT, 0.5, math.inf, 1), ("y",): ColumnStats(t.BOOLEAN, False, True, 2),
    }  # fmt: skip
    (text,) = format_stats([FileFooter(5, columns)], tight_bounds=False).to_pylist()
    assert json.loads(text) == {
        "numRecords": 5, "tightBounds": False, "minValues": {"a": 1, "s": {"f": "-Infinity"}, "g": 0.5},
        "maxValues": {"s": {"b": "z", "f": "-Infinity"}, "g": "Infinity"}, "nullCount": {"s": {"b": 3, "f": 0}, "g": 1, "y": 2},
    }  # fmt: skip
    assert format_stats([]).to_pylist() == [] and format_stats([]).type == pa.string()
    assert format_stats([FileFooter(0), FileFooter(1)], tight_bounds=True).to_pylist() == [
        '{"numRecords":0,"tightBounds":true}', '{"numRecords":1,"tightBounds":true}'
    ]  # fmt: skip
