"""Generated partition columns bound the columns that they are computed from."""

from __future__ import annotations

import json

import pytest

import alluvium
from alluvium.storage.open import open_store

COLUMNS = {"ts": "timestamp", "tn": "timestamp_ntz", "s": "string", "i": "integer"}


def _files_left(
    tmp: str,
    partitions: list[tuple[str, str, str, list[str | None]]],
    where: str,
    features: tuple[str, ...] = ("generatedColumns",),
) -> list[int]:
    """Which files are left, of files without statistics: each partition column as name, type, expression, values."""
    fields = [{"name": k, "type": v, "nullable": True, "metadata": {}} for k, v in COLUMNS.items()]
    fields += [
        {"name": name, "type": kind, "nullable": True, "metadata": {"delta.generationExpression": text}}
        for name, kind, text, _ in partitions
    ]
    metadata = {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [name for name, *_ in partitions],
        "configuration": {},
    }
    ntz = {"readerFeatures": ["timestampNtz"], "writerFeatures": ["timestampNtz", *features]}
    lines: list[object] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **ntz}},
        {"metaData": metadata},
    ]
    for number in range(len(partitions[0][3])):
        values = {name: texts[number] for name, _, _, texts in partitions}
        shared = {"size": 1, "modificationTime": 0, "dataChange": True}
        lines.append({"add": {"path": f"{number}.parquet", "partitionValues": values, **shared}})
    open_store(tmp).put(f"_delta_log/{0:020}.json", "\n".join(map(json.dumps, lines)).encode())
    left = alluvium.open(tmp).files(where)["path"].to_pylist()
    return sorted(int(path.removesuffix(".parquet")) for path in left)


def test_without_the_feature_nobody_had_to_compute_them(tmp_path) -> None:
    partitions = [("d", "date", "CAST(tn AS DATE)", DAYS)]
    assert _files_left(str(tmp_path / "with"), partitions, "tn < '2024-01-05'") == [0, 3]
    assert _files_left(str(tmp_path / "without"), partitions, "tn < '2024-01-05'", ()) == [0, 1, 2, 3]


@pytest.mark.parametrize(("hour", "left"), [("hour(CAST(tn AS TIMESTAMP))", [0, 1]), ("hour(tn)", [])])
def test_an_hour_that_a_clock_leaves_out(tmp_path, hour: str, left: list[int]) -> None:
    """As an instant 02:30 is of the hour behind it, in some zone."""
    parts = {"y": "2024", "m": "3", "d": "31"}
    partitions: list[tuple[str, str, str, list[str | None]]] = [
        (name, "integer", f"{part}(tn)", [parts[name]] * 2)
        for name, part in zip(parts, ("year", "month", "day"), strict=True)
    ]
    partitions.append(("h", "integer", hour, ["3", "5"]))
    assert _files_left(str(tmp_path), partitions, "tn = '2024-03-31 02:30:00'") == left
    assert _files_left(str(tmp_path / "2"), partitions, "tn = '2024-03-30 02:30:00'") == []


DAYS = ["2024-01-01", "2024-01-05", "2024-01-09", None]
MONTHS = ["2023-12", "2024-01", "2024-03", None]


@pytest.mark.parametrize(
    ("partitions", "where", "left"),
    [
        ([("d", "date", "CAST(tn AS DATE)", DAYS)], "tn >= '2024-01-05 12:00:00'", [1, 2, 3]),
        ([("d", "date", "CAST(tn AS DATE)", DAYS)], "tn < '2024-01-05'", [0, 3]),
        ([("d", "date", "CAST(tn AS DATE)", DAYS)], "tn = '2024-01-06' or tn = '2024-01-09 01:00:00'", [2, 3]),
        ([("d", "date", "CAST(tn AS DATE)", DAYS)], "tn is null", [3]),
        ([("d", "date", "CAST(tn AS DATE)", DAYS)], "year(tn) = 2023", [3]),
        ([("d", "date", "CAST(ts AS DATE)", DAYS)], "ts >= '2024-01-05 12:00:00'", [1, 2, 3]),
        ([("d", "date", "to_date(ts)", DAYS)], "ts between '2024-01-06 20:00:00' and '2024-01-07 20:00:00'", [3]),
        # The writer's zone is not known: half past five of the 4th may be the 5th somewhere.
        ([("d", "date", "CAST(ts AS DATE)", DAYS)], "ts = '2024-01-04 17:30:00'", [1, 3]),
        ([("m", "string", "DATE_FORMAT(tn, 'yyyy-MM')", MONTHS)], "tn > '2024-02-10'", [2, 3]),
        ([("m", "string", "date_format(ts, 'yyyyMM')", ["202312", "202403"])], "ts < '2024-01-20'", [0]),
        ([("m", "string", "date_format(ts, 'MM-yyyy')", ["12-2023", "03-2024"])], "ts < '2024-01-20'", [0, 1]),
        # Parts of one digit are no such text: read as if they were, the second of January is December.
        ([("d", "string", "DATE_FORMAT(tn, 'yyyy-MM-dd')", ["2024-1-2", "2024-03-01"])], "tn < '2024-02-01'", [0]),
        ([("m", "date", "trunc(tn, 'MONTH')", ["2024-01-01", "2024-03-01"])], "tn < '2024-02-01'", [0]),
        ([("h", "timestamp", "date_trunc('DAY', ts)", ["2024-01-01 00:00:00", "2024-01-05 00:00:00"])],
         "ts >= '2024-01-04'", [1]),
        ([("p", "string", "SUBSTRING(s, 1, 2)", ["aa", "ab", "b", None])], "s like 'ab%'", [1, 3]),
        ([("p", "string", "SUBSTRING(s, 1, 2)", ["aa", "ab", "b", None])], "s > 'b'", [3]),
        ([("p", "string", "left(s, 2)", ["aa", "ab", "b", None])], "s = 'aac'", [0, 3]),
        ([("p", "integer", "i", ["1", "2", None])], "i > 1", [1, 2]),
        # No calendar of Python's has the last day: nothing is known of it.
        ([("d", "date", "CAST(tn AS DATE)", ["2024-01-01", "2024-01-09", "+12345-01-01"])], "tn > '2024-01-05'", [1, 2]),
        ([("y", "integer", "YEAR(tn)", ["2023", "2023", "2024"]), ("m", "integer", "MONTH(tn)", ["1", "12", "1"])],
         "tn >= '2023-11-30'", [1, 2]),
        ([("m", "integer", "MONTH(tn)", ["1", "12"])], "tn >= '2023-11-30'", [0, 1]),
        ([("y", "integer", "YEAR(tn)", ["2023", "2024"]), ("h", "integer", "HOUR(tn)", ["1", "1"])],
         "tn >= '2024-01-01'", [1]),
        # Days that no calendar has, expressions that we do not know, or that are no expressions.
        ([("y", "integer", "YEAR(tn)", ["2023"]), ("m", "integer", "MONTH(tn)", ["13"])], "tn > '2030-01-01'", [0]),
        ([("y", "integer", "i % 10", ["3"])], "i = 4", [0]),
        ([("y", "integer", "i) IS NULL OR (i", ["3"])], "i = 4", [0]),
        ([("y", "integer", "not sql (", ["3"])], "i = 4", [0]),
        ([("y", "integer", "nowhere", ["3"])], "i = 4", [0]),
    ],
)  # fmt: skip
def test_files_left(
    partitions: list[tuple[str, str, str, list[str | None]]], where: str, left: list[int], tmp_path: object
) -> None:
    assert _files_left(str(tmp_path), partitions, where) == left
