"""Whole tables: what is skipped, counted and bounded from the log is what their rows say.

Random rows, deleted rows, statistics that are there or not, and partition columns that are generated from the rows by
a writer in another time zone than the reader's.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

import alluvium
from alluvium.codecs.footers.parquet_footer import read_footer
from alluvium.codecs.z85 import format_z85
from alluvium.delta.statistics.stats import format_stats, stats_columns
from alluvium.expr.evaluate import evaluate
from alluvium.expr.sql.parse import parse_predicate
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import Field, Struct

UTC = dt.timezone.utc
DATA = Struct(
    (
        Field("i", t.INTEGER),
        Field("d", t.DOUBLE),
        Field("s", t.STRING),
        Field("ts", t.TIMESTAMP),
        Field("tn", t.TIMESTAMP_NTZ),
        Field("n", Struct((Field("i", t.INTEGER),))),
    )
)
Row = dict[str, object]


def _local(row: Row, zone: ZoneInfo) -> dt.datetime | None:
    ts = row["ts"]
    return ts.astimezone(zone) if isinstance(ts, dt.datetime) else None


def _text(pattern: str) -> Callable[[Row, ZoneInfo], str | None]:
    return lambda row, zone: (at := _local(row, zone)) and at.strftime(pattern)


def _truncated(row: Row, zone: ZoneInfo) -> str | None:
    at = _local(row, zone)
    if at is None:
        return None
    return at.replace(minute=0, second=0, microsecond=0).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")


#: Name, type, generation expression, and the partition value of a row as a writer in a zone makes it.
GENERATED: list[tuple[str, str, str, Callable[[Row, ZoneInfo], str | None]]] = [
    ("p_day", "date", "CAST(ts AS DATE)", _text("%Y-%m-%d")),
    ("p_year", "integer", "YEAR(ts)", _text("%Y")),
    ("p_month", "integer", "MONTH(ts)", lambda row, zone: (at := _local(row, zone)) and str(at.month)),
    ("p_dom", "integer", "DAY(ts)", lambda row, zone: (at := _local(row, zone)) and str(at.day)),
    ("p_hour", "integer", "HOUR(ts)", lambda row, zone: None if (at := _local(row, zone)) is None else str(at.hour)),
    ("p_text", "string", "DATE_FORMAT(ts, 'yyyy-MM')", _text("%Y-%m")),
    ("p_stamp", "string", "date_format(ts, 'yyyy-MM-dd-HH')", _text("%Y-%m-%d-%H")),
    ("p_trunc", "timestamp", "date_trunc('HOUR', ts)", _truncated),
    ("p_ntz", "date", "CAST(tn AS DATE)", lambda row, zone: row["tn"] and str(row["tn"])[:10]),
    ("p_month_of", "date", "trunc(tn, 'MM')", lambda row, zone: row["tn"] and str(row["tn"])[:8] + "01"),
    ("p_head", "string", "SUBSTRING(s, 1, 2)", lambda row, zone: str(row["s"])[:2] if row["s"] else None),
    ("p_same", "integer", "i", lambda row, zone: None if row["i"] is None else str(row["i"])),
]
INSTANTS = [
    dt.datetime(2024, 3, 10, 6, 59, 59, 999999),
    dt.datetime(2024, 3, 10, 7),
    dt.datetime(2024, 1, 1, 3, 30),
    dt.datetime(2023, 12, 31, 22),
    dt.datetime(2024, 11, 3, 6, 15, 0, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 500),
]
VALUES: dict[str, list[object]] = {
    "i": [-3, 0, 1, 7],
    "d": [math.nan, -0.0, 1.5, 2.0, -math.inf],
    "s": ["", "a", "ab", "abc", "abd", "b", "é", "x" * 40, "x" * 32 + "\U0010ffff"],
    "ts": [at.replace(tzinfo=UTC) for at in INSTANTS],
    "tn": list(INSTANTS),
    "n": [{"i": 1}, {"i": None}, {"i": 5}],
}
PREDICATES = [
    "i = 1", "i >= 0", "i < 7 or i is null", "not (i > 0)", "i in (0, 7)", "i <=> null", "d > 1", "d <= 2", "isnan(d)",
    "s like 'ab%'", "s = 'ab'", "s >= 'b'", "startswith(s, 'a')", "substring(s, 1, 1) = 'a'", "s is not null",
    "ts >= '2024-01-01'", "ts < '2024-01-01'", "ts is null", "cast(ts as date) = '2024-01-01'", "year(ts) = 2023",
    "date_trunc('MONTH', ts) = '2024-03-01'", "ts between '2024-03-10 07:00:00' and '2024-03-11'", "ts is not null",
    "date_format(ts, 'yyyy-MM') = '2023-12'", "tn > '2024-03-01'", "cast(tn as date) <= '2024-01-01'", "n.i > 1",
    "trunc(tn, 'MM') = '2024-03-01'", "ts >= '2024-01-01' and (i = 1 or s < 'b')", "ts = '2023-12-31 22:00:00'",
    "i + 1 > 1 and not (s = 'a' or ts < '2023-12-31 23:00:00')", "n.i is null", "true", "false",
]  # fmt: skip


def _any(name: str) -> st.SearchStrategy[object]:
    return st.one_of(st.none(), st.sampled_from(VALUES[name]))


rows = st.fixed_dictionaries({name: _any(name) for name in VALUES})
tables = st.lists(
    # A file has one value of every partition column: rows are copies of the first but for what is drawn anew.
    st.tuples(st.lists(rows, min_size=1, max_size=4), st.booleans(), st.frozensets(st.integers(0, 3))),
    min_size=1,
    max_size=4,
)


def _vector(deleted: list[int]) -> dict[str, object]:
    data = (1_681_511_377).to_bytes(4, "little") + BitMap64(deleted).serialize()
    padded = data + bytes(-len(data) % 4)
    described = {"storageType": "i", "pathOrInlineDv": format_z85(padded), "sizeInBytes": len(data)}
    return {**described, "cardinality": len(deleted)}


def _write(
    root: Path, files: list[tuple[list[Row], bool, frozenset[int]]], generated: list[int], zone: ZoneInfo
) -> pa.Table:
    """The table, and its live rows."""
    chosen = [GENERATED[k] for k in generated]
    fields = json.loads(_schema_json())
    fields += [
        {"name": name, "type": kind, "nullable": True, "metadata": {"delta.generationExpression": text}}
        for name, kind, text, _ in chosen
    ]
    features = {"readerFeatures": ["deletionVectors", "timestampNtz"]}
    features["writerFeatures"] = [*features["readerFeatures"], "generatedColumns"]
    lines: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {
            "metaData": {
                "id": "t",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [name for name, *_ in chosen],
                "configuration": {},
            }
        },
    ]
    live: list[Row] = []
    schema = schema_to_arrow(DATA)
    for number, (of_file, has_stats, deleted) in enumerate(files):
        values = {name: make(of_file[0], zone) for name, _, _, make in chosen}
        same = [row for row in of_file if all(make(row, zone) == values[name] for name, _, _, make in chosen)]
        path = root / f"f{number}.parquet"
        pq.write_table(pa.Table.from_pylist(same, schema), path)
        add: dict[str, object] = {
            "path": path.name, "partitionValues": values, "size": path.stat().st_size, "modificationTime": 0,
            "dataChange": True,
        }  # fmt: skip
        gone = sorted(k for k in deleted if k < len(same))
        if has_stats or gone:
            with pa.OSFile(str(path)) as source:
                footer = read_footer(source, stats_columns(DATA, ()))
            text = format_stats([footer], None if not gone else False)[0].as_py()
            # "numRecords" must be there where rows are deleted; bounds need not.
            add["stats"] = text if has_stats else json.dumps({"numRecords": len(same)})
        if gone:
            add["deletionVector"] = _vector(gone)
        lines.append({"add": add})
        live += [row for k, row in enumerate(same) if k not in gone]
    log = root / "_delta_log"
    log.mkdir()
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))
    return pa.Table.from_pylist(live, schema)


def _schema_json() -> str:
    nested = {"type": "struct", "fields": [{"name": "i", "type": "integer", "nullable": True, "metadata": {}}]}
    kinds = {"i": "integer", "d": "double", "s": "string", "ts": "timestamp", "tn": "timestamp_ntz", "n": nested}
    return json.dumps([{"name": k, "type": v, "nullable": True, "metadata": {}} for k, v in kinds.items()])


def _order(value: object) -> object:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


@pytest.mark.long
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    files=tables,
    generated=st.lists(st.integers(0, len(GENERATED) - 1), max_size=4, unique=True),
    zone=st.sampled_from(["UTC", "America/New_York", "Pacific/Kiritimati", "Asia/Kolkata"]),
    texts=st.lists(st.sampled_from(PREDICATES), min_size=5, max_size=9, unique=True),
)
def test_the_log_never_loses_a_row(
    files: list[tuple[list[Row], bool, frozenset[int]]], generated: list[int], zone: str, texts: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        live = _write(Path(folder), files, generated, ZoneInfo(zone))
        table = alluvium.open(folder)
        assert table.count() == live.num_rows
        for text in texts:
            matches = evaluate(parse_predicate(text, DATA), live).to_pylist().count(True)
            assert table.to_arrow(where=text).num_rows == matches, text
            assert table.count(text) == matches, text
        for name in ("i", "d", "s", "ts", "tn", "n.i"):
            values = live.column(name.split(".")[0]).to_pylist()
            known = [v["i"] if isinstance(v, dict) else v for v in values if v is not None]
            ordered = sorted((v for v in known if v is not None), key=_order)
            found = table.bounds([name])[name]
            assert (
                [_order(found.min), _order(found.max)] == [_order(v) for v in (ordered[0], ordered[-1])]
                if (ordered)
                else found.min is found.max is None
            ), name
        for k in generated:
            table.bounds([GENERATED[k][0]])
