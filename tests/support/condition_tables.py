"""One table of many types in several spellings of its statistics, as others write them, and its plain rows."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

D = decimal.Decimal
UTC = dt.timezone.utc
PARTITION_BY = ("p", "k", "q")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("i", pa.int32()), ("d", pa.float64()), ("f", pa.float32()), ("e", pa.decimal128(18, 2)),
        ("e9", pa.decimal128(9, 2)), ("s", pa.string()), ("b", pa.bool_()), ("day", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")), ("tn", pa.timestamp("us")),
        ("n", pa.struct([("a", pa.int32()), ("s", pa.string())])), ("arr", pa.list_(pa.int32())), ("bin", pa.binary()),
        ("mark", pa.int32()), ("p", pa.string()), ("k", pa.int32()), ("q", pa.date32()),
    ]
)  # fmt: skip
_AT = dt.datetime(2024, 1, 1, 20, 30, 15, 123456)
_NAN = math.nan
#: A tuple is the rows of one file, all in one partition: i, d, f, e, s, day, hours after `_AT`, b, n.
_FILES: tuple[tuple[tuple[object, ...], tuple[tuple[object, ...], ...]], ...] = (
    (("a1", 1, dt.date(2024, 4, 1)), (
        (1, 1.5, 0.1, D("90071992547409.93"), "ab", dt.date(2024, 2, 29), 0, True, (1, "ab")),
        (2, _NAN, 1.5, D("90071992547409.94"), "a" * 40, dt.date(2024, 2, 28), 1, False, (2, "b")),
    )),
    (("a1", 1, dt.date(2024, 4, 1)), (
        (3, 4.0, _NAN, D("1.00"), "b", dt.date(2023, 12, 31), -24, None, None),
        (None, 20.0, 2.5, D("1234567890123456.77"), "zz", dt.date(2024, 3, 1), 5, True, (None, None)),
    )),
    (("a2", 2, dt.date(2024, 4, 2)), ((1, _NAN, _NAN, D("1234567890123456.78"), "1", None, 3, False, (5, "ab")),)),
    (("b1", 2, dt.date(2024, 5, 6)), (
        (0, -0.0, 0.0, D("9999999999999999.99"), "it's", dt.date(1970, 1, 1), 9, None, (1, "a")),
        (5, None, None, None, None, None, None, None, None),
    )),
    (("b1", None, None), ((2, 12.0, 3.0, D("-90071992547409.93"), "é", dt.date(1500, 2, 28), 4, True, (1, "ab")),)),
    (("x", 1, dt.date(2023, 4, 1)), (
        (None, None, None, D("2.50"), "\U0001f600", dt.date(2024, 2, 29), 12, True, (2, "ba")),
        (1000000000, math.inf, -math.inf, D("12345678901234.56"), "a", dt.date(2024, 1, 31), -2000, False, (1, "")),
    )),
    ((None, 2, dt.date(2024, 4, 1)), ((2, _NAN, 1.0, D("7.00"), "AB", dt.date(2024, 2, 1), 24, True, (3, "ab")),)),
    (("1", None, dt.date(2024, 4, 30)), ((4, 10.5, 0.5, D("1.50"), " ab", dt.date(2025, 2, 2), 30, False, (1, "ab")),)),
)  # fmt: skip


def batches() -> list[pa.Table]:
    """The rows of each file."""
    found, number = [], 0
    for (p, k, q), rows in _FILES:
        records = []
        for i, d, f, e, s, day, hours, b, n in rows:
            at = None if hours is None else _AT + dt.timedelta(hours=float(str(hours)))
            small = e if isinstance(e, D) and abs(e) < 10**7 else None
            records.append({
                "id": number, "i": i, "d": d, "f": f, "e": e, "e9": small, "s": s, "b": b, "day": day,
                "ts": None if at is None else at.replace(tzinfo=UTC), "tn": at,
                "n": None if n is None else dict(zip("as", n, strict=True)),
                "arr": None if i is None else [i if i < 9 else 9, 2][: number % 3],
                "bin": None if s is None else str(s).encode()[:1], "mark": 0, "p": p, "k": k, "q": q,
            })  # fmt: skip
            number += 1
        found.append(pa.Table.from_pylist(records, SCHEMA))
    return found


def rows() -> pa.Table:
    """All rows."""
    return pa.concat_tables(batches())


def respell(source: Path, target: Path, stats_of: Callable[[pa.Table], dict[str, object] | None]) -> str:
    """A copy of a Delta table whose files have other statistics."""
    shutil.copytree(source, target)
    for entry in sorted((target / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for action in actions:
            if "add" in action:
                stats = stats_of(pq.read_table(target / action["add"]["path"], partitioning=None))
                action["add"].pop("stats")
                if stats is not None:
                    action["add"]["stats"] = json.dumps(stats)
        entry.write_text("\n".join(map(json.dumps, actions)) + "\n")
    for beside in (*(target / "_delta_log").glob("*.crc"), *(target / "_delta_log").glob(".*.crc")):
        beside.unlink()
    return str(target)


def open_stats(file: pa.Table) -> dict[str, object]:
    """As deltalake writes them: without NaN, decimals as doubles."""
    found: dict[str, dict[str, object]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for name in file.column_names:
        values = file[name].combine_chunks()
        if pa.types.is_struct(values.type):
            found["nullCount"][name] = {
                f.name: pc.struct_field(values, [n]).null_count for n, f in enumerate(values.type)
            }
            continue
        found["nullCount"][name] = values.null_count
        known = [v for v in values.to_pylist() if v is not None and v == v]
        if known and not pa.types.is_list(values.type) and not pa.types.is_binary(values.type):
            found["minValues"][name], found["maxValues"][name] = (_openly(end(known)) for end in (min, max))
    return {"numRecords": file.num_rows, **found}


def _openly(value: object) -> object:
    if isinstance(value, D):
        return float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(timespec="microseconds") + ("" if value.tzinfo is None else "Z")
    return value.isoformat() if isinstance(value, dt.date) else value


def cut_stats(file: pa.Table) -> dict[str, object]:
    """Text cut to two characters, times to milliseconds, null counts left out, bounds not tight."""
    found = open_stats(file)
    low, high = found["minValues"], found["maxValues"]
    assert isinstance(low, dict) and isinstance(high, dict)
    for name in ("s",):
        if name in low:
            low[name], high[name] = str(low[name])[:2], str(high[name])[:2] + "\U0010ffff"
    for ends in (low, high):
        for name in ("ts", "tn"):
            if name in ends:
                text = str(ends[name])
                ends[name] = text[:23] + ("Z" if text.endswith("Z") else "")
        ends.pop("e", None)
    return {**found, "nullCount": {}, "tightBounds": False}


def no_stats(file: pa.Table) -> None:
    """Nothing."""


#: How the statistics of a table are spelled; None: as we write them.
SPELLINGS: dict[str, Callable[[pa.Table], dict[str, object] | None] | None] = {
    "ours": None, "open": open_stats, "cut": cut_stats, "none": no_stats,
}  # fmt: skip
