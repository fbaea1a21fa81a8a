"""Figures and values as people and programs see them."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from alluvium.cli.arguments import parse_storage
from alluvium.cli.render import (
    counted,
    metrics_text,
    pairs_text,
    plain_rows,
    plain_text,
    print_csv,
    print_json,
    size_text,
    values_text,
)
from alluvium.errors import InvalidRequest


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (1_234_567_890, "1.2 GB"),
        (10**18, "1000.0 PB"),
        (None, "?"),
    ],
)
def test_sizes(size: int | None, text: str):
    assert size_text(size) == text


def test_counts():
    assert [counted(n, "file") for n in (0, 1, 336_776)] == ["0 files", "1 file", "336,776 files"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (1.5, "1.5"),
        (Decimal("1.50"), "1.50"),
        (dt.date(2013, 1, 2), "2013-01-02"),
        (dt.datetime(2013, 1, 2, 3, tzinfo=dt.timezone.utc), "2013-01-02T03:00:00+00:00"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (b"\x00\xff", "AP8="),
    ],
)
def test_plain_text(value: object, text: str):
    assert plain_text(value) == text


def test_maps_for_people():
    assert values_text({"month": "1", "day": None}) == "month=1/day=null"
    assert pairs_text({"mode": "Append", "partitionBy": "[]", "n": 0}) == "mode=Append, n=0"
    assert (values_text(None), pairs_text(None)) == ("", "")


def test_metrics_for_people():
    metrics = {"numFiles": "2", "numRemovedFiles": "1", "numRemovedBytes": "5", "numOutputRows": "336776", "x": "y"}
    assert metrics_text({**metrics, "numOutputBytes": "4200000"}) == "+2 files, -1 file, 336,776 rows, 4.2 MB, x=y"
    assert metrics_text({"numFiles": "many"}) == "numFiles=many"
    assert metrics_text(None) == ""


def test_maps_of_text_become_objects_and_others_stay_pairs():
    table = pa.table(
        {
            "m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
            "n": pa.array([[(1, 2)], []], pa.map_(pa.int64(), pa.int64())),
        }
    )
    assert plain_rows(table) == [{"m": {"a": 1}, "n": [(1, 2)]}, {"m": None, "n": []}]


def test_json_holds_every_kind_of_value(capsys: pytest.CaptureFixture[str]):
    print_json({"d": dt.date(2013, 1, 2), "n": Decimal("1.5"), "b": b"\x00", "f": float("nan"), "o": dt.timedelta(1)})
    assert json.loads(capsys.readouterr().out) == {
        "d": "2013-01-02", "n": "1.5", "b": "AA==", "f": None, "o": "P1D",
    }  # fmt: skip


def test_csv_quotes_what_must_be(capsys: pytest.CaptureFixture[str]):
    print_csv([{"a": 'x,"y"', "b": None}, {"a": "line\nbreak", "b": 1}], ["a", "b"])
    assert capsys.readouterr().out == 'a,b\n"x,""y""",\n"line\nbreak",1\n'


def test_storage_options():
    assert parse_storage(["region=eu", "token=a=b", "empty="]) == {"region": "eu", "token": "a=b", "empty": ""}
    assert parse_storage(None) == {}


@pytest.mark.parametrize("pair", ["region", "=eu", ""])
def test_a_storage_option_without_a_value_is_refused(pair: str):
    with pytest.raises(InvalidRequest) as caught:
        parse_storage([pair])
    assert caught.value.code == "invalid-option"
