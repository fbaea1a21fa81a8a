"""Counts and bounds that the log gives: the tables' data files do not exist, so nothing can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import alluvium
from alluvium.errors import InvalidRequest, NotFound

FIELDS = {"i": "integer", "x": "double", "s": "string", "ts": "timestamp", "day": "date", "e": "decimal(5,2)"}


def _table(root: Path, adds: list[dict[str, object]]) -> alluvium.Table:
    fields = [{"name": k, "type": v, "nullable": True, "metadata": {}} for k, v in FIELDS.items()]
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    metadata = {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["day"],
        "configuration": {},
    }
    lines: list[object] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"metaData": metadata},
    ]
    for number, add in enumerate(adds):
        day = {"partitionValues": {"day": f"2024-01-0{number + 1}"}}
        shared = {"path": f"{number}", "size": 1, "modificationTime": 0, "dataChange": True}
        lines.append({"add": {**shared, **day, **add}})
    (root / "_delta_log").mkdir()
    (root / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))
    return alluvium.open(str(root))


def _stats(rows: int, low: int, high: int, nulls: int = 0, **more: object) -> dict[str, object]:
    document = {
        "numRecords": rows,
        "minValues": {"i": low, "x": float(low), "s": f"{low}", "ts": f"2024-01-01T00:00:0{low}.000Z", "e": low + 0.25},
        "maxValues": {
            "i": high,
            "x": float(high),
            "s": f"{high}",
            "ts": f"2024-01-01T00:00:0{high}.999Z",
            "e": high + 0.5,
        },
        "nullCount": {"i": nulls, "x": nulls, "s": nulls, "ts": nulls, "e": nulls},
    }
    return {"stats": json.dumps({**document, **more})}


def _deleted(count: int) -> dict[str, object]:
    vector = {"storageType": "i", "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    return {"deletionVector": {**vector, "sizeInBytes": 44, "cardinality": count}}


def test_count_is_answered_by_partitions_and_statistics(tmp_path: Path) -> None:
    table = _table(tmp_path, [_stats(10, 0, 4), _stats(20, 5, 9), {**_stats(30, 5, 9), **_deleted(6)}])
    assert table.count() == 10 + 20 + 24
    assert table.count("day >= '2024-01-02'") == 44
    assert table.count("i >= 5") == 44
    assert table.count("i >= 5 and day = '2024-01-02' or i < 0") == 20
    assert table.count("i is null") == 0
    assert table.count("not (s < '5')") == 44
    assert table.count("e between 5.25 and 9.5") == 44


@pytest.mark.parametrize("where", ["i > 5", "x >= 5", "s = '7'", "ts > '2024-01-01 00:00:06'"])
def test_what_is_undecided_is_read(where: str, tmp_path: Path) -> None:
    table = _table(tmp_path, [_stats(10, 0, 4), _stats(20, 5, 9)])
    with pytest.raises(NotFound):
        table.count(where)


def test_nulls_make_a_predicate_uncertain(tmp_path: Path) -> None:
    table = _table(tmp_path, [_stats(10, 0, 4, nulls=1)])
    with pytest.raises(NotFound):
        table.count("i >= 0")
    assert table.count("i >= 0 or i is null or day = '2024-01-01'") == 10


def test_explain_tells_what_is_counted_from_the_log(tmp_path: Path) -> None:
    _table(tmp_path, [_stats(10, 0, 4), _stats(20, 5, 9), {}])
    explained = alluvium.explain(str(tmp_path), "i >= 5")
    assert explained.counted == (20, 1)
    assert "20 rows from the log, 1 files to read" in str(explained)


def test_bounds_are_answered_where_statistics_are_exact(tmp_path: Path) -> None:
    table = _table(tmp_path, [_stats(10, 0, 4), _stats(20, 5, 9), {"stats": json.dumps({"numRecords": 0})}])
    found = table.bounds(["i", "e", "day"])
    assert (found["i"].min, found["i"].max, found["i"].files_read) == (0, 9, 0)
    assert [str(found["e"].min), str(found["e"].max)] == ["0.25", "9.50"]
    assert [str(found["day"].min), str(found["day"].max)] == ["2024-01-01", "2024-01-02"]


@pytest.mark.parametrize("column", ["x", "s", "ts"])
def test_bounds_that_writers_cut_off_are_no_answer(column: str, tmp_path: Path) -> None:
    table = _table(tmp_path, [_stats(10, 0, 4)])
    with pytest.raises(NotFound):
        table.bounds([column])


@pytest.mark.parametrize("more", [{"tightBounds": False}])
def test_wide_bounds_are_no_answer(more: dict[str, object], tmp_path: Path) -> None:
    """ "wide" bounds: "all valid values are within", so that none of them need be there."""
    table = _table(tmp_path, [_stats(10, 0, 4, **more)])
    with pytest.raises(NotFound):
        table.bounds(["i"])


def test_only_files_that_may_hold_an_end_are_read(tmp_path: Path) -> None:
    """The file in the middle is not there, and is not missed."""
    table = _table(tmp_path, [_stats(10, 0, 1), {**_stats(20, 2, 8), **_deleted(6)}, _stats(10, 8, 9)])
    assert (table.bounds(["i"])["i"].min, table.bounds(["i"])["i"].max) == (0, 9)


@pytest.mark.parametrize(("column", "code"), [("nowhere", "unknown-column"), ("i.j", "unknown-column")])
def test_columns_that_have_no_bounds(column: str, code: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as raised:
        _table(tmp_path, [_stats(10, 0, 4)]).bounds([column])
    assert raised.value.code == code


def test_statistics_as_columns_do_not_count_in_json(tmp_path: Path) -> None:
    """ "`stats_parsed`": "Checkpoints [...] may contain" it; in JSON there is `stats` alone, and a struct is ignored."""
    parsed = {"stats_parsed": {"numRecords": 1, "minValues": {"i": 7}, "maxValues": {"i": 7}, "nullCount": {"i": 0}}}
    table = _table(tmp_path, [{**_stats(10, 0, 4), **parsed, "partitionValues_parsed": {"day": "1999-01-01"}}, parsed])
    assert table.files("i = 7")["path"].to_pylist() == ["1"]
    assert table.files("day = '2024-01-01'")["path"].to_pylist() == ["0"]
    assert table.files("i = 3").num_rows == 2


@pytest.mark.parametrize(
    ("kind", "ask"),
    [
        ({"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}]}, "i.x"),
        ({"type": "array", "elementType": "integer", "containsNull": True}, None),
        ({"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": True}, None),
        ("variant", None),
    ],
    ids=str,
)  # fmt: skip
def test_values_without_an_order(
    kind: object, ask: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FIELDS, "i", kind)  # type: ignore[arg-type]
    table = _table(tmp_path, [{"stats": json.dumps({"numRecords": 0})}])
    with pytest.raises(InvalidRequest) as caught:
        table.bounds(["i"])
    assert (caught.value.code, caught.value.column) == ("unordered-column", "i")
    assert (caught.value.hint is not None) == (ask is not None)
    if ask is not None:
        assert table.bounds([ask])[ask].min is None
