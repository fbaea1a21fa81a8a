"""Statistics: what readers may believe, and that what we write is what delta-spark 4.4 writes."""

from __future__ import annotations

import io
import json
import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter, FooterColumn, read_footer
from alluvium.delta.statistics.stats import AddStatistics, format_stats, stats_columns, truncated_max
from alluvium.errors import InvalidRequest
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow, to_arrow
from alluvium.schema.types import Array, DataType, Field, Map, Struct

UTC = timezone.utc
DELETION_VECTOR = pa.struct([("storageType", pa.string())])


def adds(
    *stats: str | None, masked: tuple[int, ...] = (), parsed: pa.Array | None = None, p: str | None = None
) -> pa.Table:
    columns = {
        "stats": pa.array(stats, pa.string()),
        "partitionValues": pa.array([[("p", p)] for _ in stats], pa.map_(pa.string(), pa.string())),
        "deletionVector": pa.array(
            [{"storageType": "u"} if i in masked else None for i in range(len(stats))], DELETION_VECTOR
        ),
    }
    return pa.table(columns if parsed is None else {**columns, "stats_parsed": parsed})


def of(data_type: DataType, low: str, high: str | None = None, **options: object) -> tuple[object, object]:
    """The bounds that one file's JSON values mean for a column `c`."""
    text = f'{{"numRecords":3,"minValues":{{"c":{low}}},"maxValues":{{"c":{high or low}}},"nullCount":{{"c":0}}}}'
    statistics = AddStatistics(adds(text), Struct((Field("c", data_type),)), (), **options)  # type: ignore[arg-type]
    lower, upper = statistics.lower(("c",)), statistics.upper(("c",))
    assert lower is not None
    assert upper is not None
    assert lower.type == upper.type == to_arrow(data_type)
    return lower[0].as_py(), upper[0].as_py()


@pytest.mark.parametrize(
    ("data_type", "low", "high", "expected"),
    [
        (t.LONG, "-9223372036854775808", "9223372036854775807", (-(2**63), 2**63 - 1)),
        (t.BYTE, "1.0", "2", (1, 2)),
        (t.DOUBLE, "-1.5", "1E22", (-1.5, 1e22)),
        (t.DOUBLE, '"-Infinity"', '"Infinity"', (-math.inf, math.inf)),
        (t.DOUBLE, "1", "2", (1.0, 2.0)),
        (t.STRING, '"a"', '"\\ud83d\\ude00\\u007f"', ("a", "\U0001f600\x7f")),
        (t.DATE, '"0001-01-01"', '"9999-12-31"', (date(1, 1, 1), date(9999, 12, 31))),
        (t.BOOLEAN, "false", "true", (False, True)),
        (
            t.Decimal(38, 18),
            "1E-18",
            "12345678901234567890.500000000000000001",
            (Decimal("1E-18"), Decimal("12345678901234567890.500000000000000001")),
        ),
        (t.Decimal(10, 2), "-7", "7.5", (Decimal(-7), Decimal("7.5"))),
    ],
    ids=str,
)
def test_values_of_each_type(data_type: DataType, low: str, high: str, expected: tuple[object, object]) -> None:
    assert of(data_type, low, high) == expected


def test_nan_is_a_bound() -> None:
    low, high = of(t.DOUBLE, "1.5", '"NaN"')
    assert low == 1.5
    assert isinstance(high, float)
    assert math.isnan(high)


def test_timestamps_were_truncated_to_milliseconds() -> None:
    instant = datetime(2024, 1, 1, 0, 0, 0, 123_000, UTC)
    widened = instant + timedelta(microseconds=999)
    assert of(t.TIMESTAMP, '"2024-01-01T00:00:00.123Z"') == (instant, widened)
    assert of(t.TIMESTAMP, '"2023-12-31T16:00:00.123-08:00"') == (instant, widened)
    assert of(t.TIMESTAMP, '"2024-01-01 00:00:00.123"') == (instant, widened)
    assert of(t.TIMESTAMP, '"2024-01-01T01:00:00.123"', time_zone="+01:00") == (instant, widened)
    naive = (instant.replace(tzinfo=None), widened.replace(tzinfo=None))
    assert of(t.TIMESTAMP_NTZ, '"2024-01-01T00:00:00.123"') == naive
    assert of(t.TIMESTAMP_NTZ, '"2024-01-01T00:00:00.123Z"') == naive


def test_statistics_of_a_narrower_type_serve_after_widening() -> None:
    assert of(t.TIMESTAMP_NTZ, '"2024-02-29"')[0] == datetime(2024, 2, 29)
    assert of(t.DOUBLE, "7") == (7.0, 7.0)
    assert of(t.Decimal(12, 4), "-999.99")[0] == Decimal("-999.99")
    # A float's shortest text is not the float: its value as a double lies beside it.
    widened = Struct((Field("c", t.DOUBLE, True, {"delta.typeChanges": []}),))
    text = '{"numRecords":1,"minValues":{"c":0.1},"maxValues":{"c":0.1},"nullCount":{"c":0}}'
    statistics = AddStatistics(adds(text), widened, ())
    lower, upper = statistics.lower(("c",)), statistics.upper(("c",))
    assert lower is not None
    assert upper is not None
    stored = pa.scalar(0.1, pa.float32()).cast(pa.float64()).as_py()
    assert lower[0].as_py() <= 0.1 < stored <= upper[0].as_py()


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (t.LONG, '"1"'),
        (t.LONG, "1.5"),
        (t.LONG, "true"),
        (t.LONG, "99999999999999999999"),
        (t.BYTE, "128"),
        (t.DOUBLE, '"abc"'),
        (t.STRING, "1"),
        (t.STRING, "{}"),
        (t.DATE, '"2024-13-01"'),
        (t.DATE, "19000"),
        (t.TIMESTAMP, '"+48690-07-02T22:50:38.211Z"'),
        (t.TIMESTAMP, '"soon"'),
        (t.Decimal(4, 2), "123.45"),
        (t.Decimal(4, 2), '"1.5"x'),
        (t.Decimal(4, 2), "false"),
        (t.Decimal(4, 2), "[1]"),
        (t.BINARY, '"a"'),
        (t.LONG, "null"),
    ],
    ids=str,
)
def test_wrong_values_are_unknown(data_type: DataType, value: str) -> None:
    assert of(data_type, value) == (None, None)


GOOD = (
    '{"numRecords":2,"minValues":{"a":1,"s":{"b":"x"}},"maxValues":{"a":2,"s":{"b":"y"}},'
    '"nullCount":{"a":0,"s":{"b":1}}}'
)
SCHEMA = Struct((Field("a", t.LONG), Field("s", Struct((Field("b", t.STRING),))), Field("p", t.INTEGER)))


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"minValues":7}',
        '{"minValues":{"s":1,"a":"x"},"maxValues":[],"nullCount":{"a":{},"s":null}}',
        "{" + '"a":{' * 5000,
    ],
    ids=str,
)
def test_one_bad_file_costs_no_other_file_its_statistics(bad: str | None) -> None:
    statistics = AddStatistics(adds(GOOD, bad, GOOD), SCHEMA, ("p",))
    assert statistics.num_files == 3
    assert statistics.num_rows().to_pylist() == [2, None, 2]
    for path, low, high, nulls in ((("a",), 1, 2, 0), (("s", "b"), "x", "y", 1)):
        columns = statistics.lower(path), statistics.upper(path), statistics.null_count(path)
        assert [c.to_pylist() for c in columns if c is not None] == [[v, None, v] for v in (low, high, nulls)]


def test_a_wrong_type_somewhere_leaves_the_rest_of_the_file_known() -> None:
    text = '{"numRecords":2,"minValues":{"a":1,"s":7},"maxValues":{"a":2},"nullCount":{"a":0}}'
    statistics = AddStatistics(adds(text), SCHEMA, ("p",))
    statistics.prepare([("a",), ("s", "b")])
    assert str(statistics.lower(("a",))) == str(pa.array([1]))
    assert str(statistics.lower(("s", "b"))) == str(pa.array([None], pa.string()))
    assert statistics.num_rows().to_pylist() == [2]


def test_partition_columns_are_exact_and_have_no_bounds() -> None:
    statistics = AddStatistics(adds(GOOD, GOOD, p="7"), SCHEMA, ("p",))
    exact = statistics.exact(("p",))
    assert exact is not None
    assert exact.to_pylist() == [7, 7]
    assert exact.type == pa.int32()
    assert statistics.exact(("a",)) is None
    assert statistics.lower(("p",)) is None
    assert statistics.lower(("nowhere",)) is None
    assert statistics.lower(("s",)) is None


def test_physical_names_and_names_that_need_care() -> None:
    names = ("col-1", 'quo"te', "back\\slash", "tab\t", "é")
    schema = Struct(tuple(Field(f"l{i}", t.LONG) for i in range(len(names))))
    values = {name: i for i, name in enumerate(names)}
    text = json.dumps({"numRecords": 1, "minValues": values, "maxValues": values, "nullCount": values})
    physical: dict[tuple[str, ...], tuple[str, ...]] = {(f"l{i}",): (name,) for i, name in enumerate(names)}
    statistics = AddStatistics(adds(text), schema, (), physical)
    for i in range(len(names)):
        lower = statistics.lower((f"l{i}",))
        assert lower is not None
        assert lower.to_pylist() == [i]


def test_null_counts_of_masked_files_count_only_when_they_settle_it() -> None:
    def text(nulls: int, extra: str = "") -> str:
        return f'{{"numRecords":5,"minValues":{{"a":1}},"maxValues":{{"a":9}},"nullCount":{{"a":{nulls}}}{extra}}}'

    files = adds(
        text(2), text(2, ',"tightBounds":true'), text(2, ',"tightBounds":false'), text(0), text(5), text(2),
        masked=(3, 4, 5),
    )  # fmt: skip
    statistics = AddStatistics(files, SCHEMA, ("p",))
    nulls, upper = statistics.null_count(("a",)), statistics.upper(("a",))
    assert nulls is not None
    assert upper is not None
    assert nulls.to_pylist() == [2, 2, None, 0, 5, None]
    assert upper.to_pylist() == [9] * 6


@pytest.mark.parametrize("greatest", [2**63 - 1, 2**63 - 808, 2**63 - 1001])
@pytest.mark.parametrize("kind", [t.TIMESTAMP, t.TIMESTAMP_NTZ])
def test_the_greatest_timestamp_of_all_stays_the_greatest(kind: DataType, greatest: int) -> None:
    bound = pa.struct([("t", to_arrow(kind))])
    maxima = pa.StructArray.from_arrays([pa.array([greatest, 0]).cast(to_arrow(kind))], fields=list(bound))
    parsed = pa.StructArray.from_arrays([pa.array([1, 1]), maxima], names=["numRecords", "maxValues"])
    upper = AddStatistics(adds(None, None, parsed=parsed), Struct((Field("t", kind),)), ()).upper(("t",))
    assert upper is not None
    assert upper.cast(pa.int64()).to_pylist() == [min(greatest + 999, 2**63 - 1), 999]


def test_struct_statistics_stand_in_where_the_text_is_missing() -> None:
    leaf = pa.struct([("a", pa.int64()), ("t", pa.timestamp("us", "UTC"))])
    low = {"a": 10, "t": datetime(2024, 1, 1, tzinfo=UTC)}
    parsed = pa.array(
        [{"numRecords": 4, "minValues": low, "maxValues": low, "nullCount": {"a": 1}}] * 2,
        pa.struct(
            [
                ("numRecords", pa.int64()),
                ("minValues", leaf),
                ("maxValues", leaf),
                ("nullCount", pa.struct([("a", pa.int64())])),
            ]
        ),
    )
    schema = Struct((Field("a", t.LONG), Field("t", t.TIMESTAMP), Field("s", Struct((Field("b", t.STRING),)))))
    statistics = AddStatistics(adds(None, GOOD, parsed=parsed), schema, ())
    assert statistics.num_rows().to_pylist() == [4, 2]
    expected = {("a",): [10, 1], ("t",): [low["t"], None], ("s", "b"): [None, "x"]}
    for path, values in expected.items():
        lower = statistics.lower(path)
        assert lower is not None
        assert lower.to_pylist() == values
    upper, nulls = statistics.upper(("t",)), statistics.null_count(("a",))
    assert upper is not None
    assert upper[0].as_py() == datetime(2024, 1, 1, 0, 0, 0, 999, UTC)
    assert nulls is not None
    assert nulls.to_pylist() == [1, 0]


def test_tombstones_have_no_statistics() -> None:
    statistics = AddStatistics(adds(GOOD).drop_columns(["stats", "deletionVector"]), SCHEMA, ("p",))
    lower = statistics.lower(("a",))
    assert lower is not None
    assert lower.to_pylist() == [None]


# Observed: what delta-spark 4.4.0 wrote for these maxima.
Z32, TOP = "z" * 32, "\U0010ffff"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a" * 31, "a" * 31),
        ("a" * 32, "a" * 32),
        ("a" * 33, "a" * 32 + "\x7f"),
        (Z32 + "~x", Z32 + "\x7f"),
        (Z32 + "\x7f", Z32 + TOP),
        (Z32 + "é", Z32 + TOP),
        (Z32 + "\uffff", Z32 + TOP),
        (Z32 + TOP, Z32 + TOP),
        (Z32 + TOP * 3 + "a", Z32 + TOP * 3 + "\x7f"),
        (Z32 + TOP * 3, Z32 + TOP * 3),
        ("z" * 31 + "\U0001f600", "z" * 31 + "\U0001f600"),
        ("z" * 31 + "\U0001f600b", "z" * 31 + "\U0001f600\x7f"),
        ("\U0001f600" * 16, "\U0001f600" * 16),
        ("\U0001f600" * 20, "\U0001f600" * 16 + TOP),
        (TOP * 32 + "a", TOP * 32 + "\x7f"),
        (TOP * 40, None),
        ("", ""),
    ],
    ids=ascii,
)
def test_long_maxima(value: str, expected: str | None) -> None:
    assert truncated_max(value) == expected


def test_text_that_delta_spark_writes() -> None:
    footer = FileFooter(
        2,
        {
            ("i",): ColumnStats(t.INTEGER, -3, 3, 0),
            ("d",): ColumnStats(t.DOUBLE, -2.5, math.inf, 0),
            ("dec",): ColumnStats(t.Decimal(20, 3), Decimal("-12345678901234567.100"), Decimal("0.001"), 0),
            ("b",): ColumnStats(t.BOOLEAN, False, True, 0),
            ("dt",): ColumnStats(t.DATE, -719162, 3789391, 0),
            ("ts",): ColumnStats(t.TIMESTAMP, -1, 1704067200123456, 0),
            ("ntz",): ColumnStats(t.TIMESTAMP_NTZ, -1, 1704067200123999, 0),
            ("bin",): ColumnStats(t.BINARY, b"a", b"b", 0),
            ("st", "a"): ColumnStats(t.INTEGER, 1, 2, 0),
            ("st", "b", "c"): ColumnStats(t.STRING, "x", "y", 0),
            ("nul",): ColumnStats(t.INTEGER, None, None, 2),
        },
    )
    assert format_stats([footer], tight_bounds=True).to_pylist() == [
        '{"numRecords":2,"minValues":{"i":-3,"d":-2.5,"dec":-12345678901234567.100,"dt":"0001-01-01",'
        '"ts":"1969-12-31T23:59:59.999Z","ntz":"1969-12-31T23:59:59.999","st":{"a":1,"b":{"c":"x"}}},'
        '"maxValues":{"i":3,"d":"Infinity","dec":0.001,"dt":"+12345-01-01",'
        '"ts":"2024-01-01T00:00:00.123Z","ntz":"2024-01-01T00:00:00.123","st":{"a":2,"b":{"c":"y"}}},'
        '"nullCount":{"i":0,"d":0,"dec":0,"b":0,"dt":0,"ts":0,"ntz":0,"bin":0,"st":{"a":0,"b":{"c":0}},"nul":2},'
        '"tightBounds":true}'
    ]
    assert format_stats([FileFooter(7)]).to_pylist() == ['{"numRecords":7}']


NESTED = Struct(
    (
        Field("p", t.INTEGER),
        Field("arr", Array(t.INTEGER)),
        Field("m", Map(t.STRING, t.INTEGER)),
        Field("s", Struct((Field("x", t.INTEGER), Field("y", Struct((Field("p", t.INTEGER), Field("q", t.INTEGER))))))),
        Field("c", t.INTEGER),
        Field("we.ird", t.INTEGER),
        Field("a,b", t.INTEGER),
    )
)


@pytest.mark.parametrize(
    ("limit", "explicit", "expected"),
    [
        (0, None, []),
        (1, None, ["arr"]),
        (4, None, ["arr", "m", "s/x", "s/y/p"]),
        (-1, None, ["arr", "m", "s/x", "s/y/p", "s/y/q", "c", "we.ird", "a,b"]),
        (32, ("s.y", "C"), ["s/y/p", "s/y/q", "c"]),
        (1, ("`c`", "s.x"), ["s/x", "c"]),
        (32, ("`we.ird`", "`a,b`"), ["we.ird", "a,b"]),
        (32, (), []),
    ],
)
def test_which_leaves_get_statistics(limit: int, explicit: tuple[str, ...] | None, expected: list[str]) -> None:
    found = stats_columns(NESTED, ("p",), limit, explicit)
    assert ["/".join(column.path) for column in found] == expected


def test_an_explicit_column_must_exist() -> None:
    with pytest.raises(InvalidRequest):
        stats_columns(NESTED, ("p",), explicit=("c", "zz"))


ROUND_TRIP = Struct(
    (
        Field("i", t.LONG),
        Field("f", t.DOUBLE),
        Field("s", t.STRING),
        Field("dec", t.Decimal(38, 9)),
        Field("d", t.DATE),
        Field("ts", t.TIMESTAMP),
        Field("n", Struct((Field("ntz", t.TIMESTAMP_NTZ), Field("t", t.STRING)))),
    )
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=45) | st.text("zé\x7f\uffff" + "\U0001f600" + TOP, max_size=45)
ROWS = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.none() | st.floats(),
        "s": st.none() | TEXTS,
        "dec": st.none() | st.decimals(-(10**28), 10**28, places=9),
        "d": st.none() | st.dates(),
        "ts": st.none() | st.datetimes(timezones=st.just(UTC)),
        "n": st.none() | st.fixed_dictionaries({"ntz": st.none() | st.datetimes(), "t": st.none() | TEXTS}),
    }
)


@pytest.mark.long
@settings(deadline=None, max_examples=150)
@given(st.lists(st.lists(ROWS, min_size=1, max_size=5), min_size=1, max_size=3))
def test_what_is_written_bounds_every_value(files: list[list[dict[str, object]]]) -> None:
    footers = []
    for rows in files:
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema_to_arrow(ROUND_TRIP)), sink, row_group_size=2)
        footers.append(read_footer(pa.BufferReader(sink.getvalue()), stats_columns(ROUND_TRIP, ())))
    texts = format_stats(footers).to_pylist()
    assert all(json.loads(text)["numRecords"] == len(rows) for text, rows in zip(texts, files, strict=True))
    statistics = AddStatistics(adds(*texts), ROUND_TRIP, ())
    for path, _ in ROUND_TRIP.leaves():
        lower, upper, nulls = statistics.lower(path), statistics.upper(path), statistics.null_count(path)
        assert lower is not None
        assert upper is not None
        assert nulls is not None
        for i, rows in enumerate(files):
            values = [_at(row, path) for row in rows]
            known = [v for v in values if v is not None and v == v]
            assert nulls[i].as_py() == values.count(None)
            low, high = lower[i].as_py(), upper[i].as_py()
            assert low is None or all(low <= v for v in known)
            assert high is None or all(v <= high for v in known)
            if known and path in (("i",), ("dec",), ("d",), ("ts",), ("n", "ntz")):
                assert low is not None
                assert high is not None


def _at(row: dict[str, object], path: tuple[str, ...]) -> object:
    found: object = row
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


@given(TEXTS)
def test_truncated_texts_are_short_and_bound_the_value(value: str) -> None:
    text = format_stats([FileFooter(1, {("s",): ColumnStats(t.STRING, value, value, 0)})]).to_pylist()[0]
    document = json.loads(text)
    low, high = document["minValues"]["s"], document["maxValues"].get("s")
    # Spark compares strings by their UTF-8 bytes.
    assert low.encode() <= value.encode()
    assert len(low) <= 32
    assert high is None or value.encode() <= high.encode()


def test_footer_columns_carry_their_types() -> None:
    assert stats_columns(Struct((Field("a", t.DATE),)), ()) == (FooterColumn(("a",), t.DATE),)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        # As deltalake prints them: doubles.
        ("90071992547409.94", "90071992547409.93"),
        ("90071992547409.94", "90071992547409.95"),
        ("-1234567890123456.8", "-1234567890123456.78"),
        ("1e16", "9999999999999999.99"),
    ],
)
def test_decimals_that_a_double_does_not_hold_have_wide_bounds(text: str, stored: str) -> None:
    """From the 16th digit on a bound may be another number than the value that it stands for."""
    low, high = of(t.Decimal(18, 2) if "e" not in text else t.Decimal(20, 2), text)
    assert isinstance(low, Decimal) and isinstance(high, Decimal)
    assert low <= Decimal(stored) <= high and high - low < Decimal(100)


def test_decimals_of_few_digits_and_of_more_than_doubles_print_are_exact() -> None:
    assert of(t.Decimal(18, 2), "1234567890123.45") == (Decimal("1234567890123.45"),) * 2
    assert of(t.Decimal(15, 2), "9999999999999.99") == (Decimal("9999999999999.99"),) * 2
    assert of(t.Decimal(38, 18), "12345678901234567890.5") == (Decimal("12345678901234567890.5"),) * 2
    low, high = of(t.Decimal(16, 0), "9999999999999999")
    assert isinstance(low, Decimal) and low < 9999999999999999 and high is None
