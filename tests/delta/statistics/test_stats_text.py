"""Statistics that a checkpoint has as columns alone, as the text of commits: value by value."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
from delta_values import make_files

from alluvium.delta.statistics.stats_text import stats_texts, with_stats_text
from alluvium.delta.terms.spec import FILES

UTC = dt.timezone.utc
LEAF = pa.struct([
    ("n", pa.int64()), ("d", pa.decimal128(20, 3)), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")),
    ("clock", pa.timestamp("us")), ("s", pa.struct([("t", pa.string()), ("at", pa.timestamp("ns", "UTC"))])), ("f", pa.float64()),
])  # fmt: skip
PARSED = pa.struct([("numRecords", pa.int64()), ("tightBounds", pa.bool_()), ("minValues", LEAF)])
LOW = {
    "n": -3, "d": Decimal("1.500"), "day": dt.date(1, 1, 1), "at": dt.datetime(2024, 1, 1, 0, 0, 0, 123_999, UTC),
    "clock": dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), "s": {"t": "é", "at": dt.datetime(2024, 1, 1, tzinfo=UTC)}, "f": 0.5,
}  # fmt: skip
TEXT = (
    '{"numRecords":4,"tightBounds":false,"minValues":{"n":-3,"d":1.500,"day":"0001-01-01","at":"2024-01-01T00:00:00.123Z",'
    '"clock":"1969-12-31T23:59:59.999","s":{"t":"é","at":"2024-01-01T00:00:00.000Z"},"f":0.5}}'
)


def parsed(*rows: object) -> pa.StructArray:
    return pa.array(rows, PARSED)


def test_values_as_statistics_spell_them() -> None:
    """ "Timestamp columns are truncated down to milliseconds"; decimals keep their digits."""
    row = {"numRecords": 4, "tightBounds": False, "minValues": LOW}
    assert stats_texts(pa.array([None], pa.string()), parsed(row)).to_pylist() == [TEXT]


def test_what_is_null_is_left_out() -> None:
    rows = parsed(
        {"numRecords": 0, "minValues": {"s": {"t": None}}}, {"minValues": None}, {"numRecords": 3, "minValues": {}}
    )
    found = stats_texts(pa.nulls(3, pa.string()), rows).to_pylist()
    assert list(map(json.loads, found)) == [
        {"numRecords": 0, "minValues": {"s": {}}}, {}, {"numRecords": 3, "minValues": {}}
    ]  # fmt: skip


def test_texts_that_are_there_stay_and_files_without_both_have_none() -> None:
    texts = pa.array([None, "kept", None, ""], pa.string())
    one = {"numRecords": 7}
    found = stats_texts(texts, parsed(one, one, None, one))
    assert found.to_pylist() == ['{"numRecords":7}', "kept", None, ""]
    whole = pa.array(["a", "b"])
    assert stats_texts(whole, parsed(one, one)) is whole
    assert stats_texts(pa.array([], pa.string()), parsed()).to_pylist() == []


def test_files_as_commits_have_them() -> None:
    files = make_files({"path": "a"}, {"path": "b", "stats": "said"}, {"path": "c"})
    assert with_stats_text(files.append_column("more", pa.array([1, 2, 3]))).equals(files)
    columns = pa.chunked_array([parsed({"numRecords": 1}), parsed(None, {"numRecords": 3})])
    both = pa.concat_tables([files.slice(0, 2), files.slice(2)]).append_column("stats_parsed", columns)
    found = with_stats_text(both)
    assert found.schema == FILES and found["path"].to_pylist() == ["a", "b", "c"]
    assert found["stats"].to_pylist() == ['{"numRecords":1}', "said", '{"numRecords":3}']


def test_dates_that_python_does_not_have_cost_nothing_else() -> None:
    kind = pa.struct([("numRecords", pa.int64()), ("maxValues", pa.struct([("d", pa.date32())]))])
    days = pa.array([2_932_897, 0], pa.int32()).cast(pa.date32())
    bounds = pa.StructArray.from_arrays([days], names=["d"])
    rows = pa.StructArray.from_arrays([pa.array([1, 2]), bounds], names=[f.name for f in kind])
    far, near = map(json.loads, stats_texts(pa.nulls(2, pa.string()), rows).to_pylist())
    assert far["numRecords"] == 1 and far["maxValues"]["d"].endswith("10000-01-01")
    assert near == {"numRecords": 2, "maxValues": {"d": "1970-01-01"}}
