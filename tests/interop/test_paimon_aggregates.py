"""Columns that are sketches, bitmaps, maps and nested tables: what Paimon Java makes of the rows of a key, we make."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap
from reference_engine import NEEDS_PAIMON, paimon
from sketch_tables import hll_sketch, theta_sketch

import alluvium
from alluvium.codecs.bitmaps import art_bitmap
from alluvium.paimon import PaimonTable

pytestmark = NEEDS_PAIMON

ROW = {
    "type": "ROW",
    "fields": [{"name": "x", "type": "INT"}, {"name": "y", "type": "STRING"}, {"name": "z", "type": "INT"}],
}
NESTED = {"type": "ARRAY", "element": ROW}
TIMED = {"type": "MAP", "key": "STRING NOT NULL", "value": ROW}
#: Of each column its type, its function, and the function's options.
COLUMNS: dict[str, tuple[Any, str, dict[str, str]]] = {
    "hll": ("BYTES", "hll_sketch", {}),
    "theta": ("BYTES", "theta_sketch", {}),
    "b32": ("BYTES", "rbm32", {}),
    "b64": ("BYTES", "rbm64", {}),
    "rows": (NESTED, "nested_update", {}),
    "few": (NESTED, "nested_update", {"count-limit": "3"}),
    "keyed": (NESTED, "nested_update", {"nested-key": "x,y"}),
    "fewkeyed": (NESTED, "nested_update", {"nested-key": "x", "count-limit": "2"}),
    "patch": (NESTED, "nested_partial_update", {"nested-key": "x"}),
    "byname": (TIMED, "merge_map_with_keytime", {"ts-field": "y"}),
    "map": (TIMED, "merge_map", {}),
    "list": ({"type": "ARRAY", "element": "INT"}, "collect", {}),
    "set": ({"type": "ARRAY", "element": "INT"}, "collect", {"distinct": "true"}),
    "texts": ("STRING", "listagg", {"distinct": "true", "list-agg-delimiter": "; "}),
}
KEYS = 20
RETRACTABLE = ("rows", "keyed", "map", "list")
#: An older value comes before what is there, of which the limit then leaves what Java's hash table has first.
ORDERED = tuple(name for name in COLUMNS if name != "fewkeyed")
INSERTS, ANY = ("+I",), ("+I", "+I", "+U", "-U", "-D")
AGGREGATION = {"merge-engine": "aggregation"}
#: Options, columns, kinds of rows.
TABLES: dict[str, tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]] = {
    "aggregation": (AGGREGATION, tuple(COLUMNS), INSERTS),
    "retracting": (AGGREGATION, RETRACTABLE, ANY),
    "ignoring": ({**AGGREGATION, **{f"fields.{n}.ignore-retract": "true" for n in COLUMNS}}, tuple(COLUMNS), ANY),
    "groups": (
        {"merge-engine": "partial-update", "fields.g.sequence-group": ",".join(ORDERED)},
        ORDERED,
        INSERTS,
    ),
}


def bitmap_64(numbers: list[int]) -> bytes:
    by_key: dict[bytes, list[int]] = {}
    for number in sorted({n & (1 << 64) - 1 for n in numbers}):
        by_key.setdefault((number >> 16).to_bytes(6, "big"), []).append(number & 0xFFFF)
    return art_bitmap._format({key: art_bitmap._of_values(np.array(low, np.uint16)) for key, low in by_key.items()})


def numbers_64(data: bytes) -> list[int]:
    found = art_bitmap._parse(data).items()
    return sorted(
        int.from_bytes(k, "big") << 16 | int(v) for k, c in found for v in np.flatnonzero(art_bitmap._bits(c))
    )


def value_of(column: str, pick: random.Random) -> Any:
    """A value as the scripts for Java write it."""
    if pick.random() < 0.15:
        return None
    low = pick.randrange(50)
    high = low + pick.choice((1, 5, 40, 900, 9000))
    if column == "hll":
        return hll_sketch(range(low, high), pick.choice((8, 12, 12, 13))).hex()
    if column == "theta":
        return theta_sketch(range(low, high)).hex()
    if column == "b32":
        return BitMap(range(low, high, pick.choice((1, 3)))).serialize().hex()
    if column == "b64":
        return bitmap_64([n * pick.choice((1, 7, 1 << 20, -(1 << 40))) for n in range(low, min(high, low + 300))]).hex()
    kind = COLUMNS[column][0]
    if kind == "STRING":
        return pick.choice(("a", "b; a", "", "c; c"))
    if kind["type"] == "MAP":
        return [[key, some_row(pick) if pick.random() < 0.8 else None] for key in pick.sample("abc", pick.randrange(4))]
    if kind["element"] == "INT":
        return [pick.choice((1, 2, 3, None)) for _ in range(pick.randrange(4))]
    return [some_row(pick) for _ in range(pick.randrange(4))]


def some_row(pick: random.Random) -> dict[str, Any]:
    return {"x": pick.choice((1, 2, 3, None)), "y": pick.choice(("a", "b", None)), "z": pick.choice((7, 8, None))}


def script_of(root: Path, name: str) -> dict[str, Any]:
    options, columns, kinds = TABLES[name]
    fields = [{"name": "k", "type": "INT NOT NULL"}, {"name": "g", "type": "INT"}]
    settings = {"bucket": "1", "write-only": "true", **options}
    for column in columns:
        kind, function, parameters = COLUMNS[column]
        fields.append({"name": column, "type": kind})
        settings[f"fields.{column}.aggregate-function"] = function
        settings.update({f"fields.{column}.{key}": value for key, value in parameters.items()})
    steps: list[dict[str, Any]] = [
        {"create": {"fields": fields, "partitionKeys": [], "primaryKeys": ["k"], "options": settings}}
    ]
    for commit in range(8):
        pick = random.Random(commit)
        rows = [
            [k, pick.choice((1, 2, 3, None)), *(value_of(c, pick) for c in columns)]
            for k in range(KEYS)
            if pick.random() < 0.7
        ]
        steps.append({"write": {"rows": rows, "kinds": [pick.choice(kinds) for _ in rows]}})
    steps.append({"read": {"out": str(root / f"{name}.parquet")}})
    return {"table": str(root / "db.db" / name), "steps": steps}


def hll_in_use(data: bytes) -> bytes:
    """All bytes but the estimator's that a sketch says not to use: it was merged, out of the order of its values."""
    is_registers, is_out_of_order = data[7] & 3 == 2, data[5] & 16
    return data[:8] + bytes(8) + data[16:] if is_registers and is_out_of_order else data


def in_order(rows: list[Any]) -> list[str]:
    return sorted(map(repr, rows))


#: What is the same where the bytes, or the order, need not be.
MEANINGS: dict[str, Callable[[Any], Any]] = {
    "hll": hll_in_use,
    "theta": lambda data: data,
    "b32": lambda data: BitMap.deserialize(data).to_array().tolist(),
    "b64": numbers_64,
    "rows": lambda rows: rows,
    "few": lambda rows: rows,
    "list": lambda rows: rows,
    "texts": lambda text: text,
}


def meanings(table: pa.Table) -> dict[int, dict[str, Any]]:
    return {
        row["k"]: {
            name: None if value is None else MEANINGS.get(name, in_order if name in COLUMNS else lambda v: v)(value)
            for name, value in row.items()
        }
        for row in table.to_pylist()
    }


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All tables, written and read by Java."""
    root = tmp_path_factory.mktemp("aggregates")
    paimon(root, *(script_of(root, name) for name in TABLES))
    return root


@pytest.mark.parametrize("name", TABLES)
def test_aggregates_are_those_of_java(tables: Path, name: str) -> None:
    theirs = meanings(pq.ParquetFile(tables / f"{name}.parquet").read())
    ours = meanings(alluvium.open(str(tables / "db.db" / name)).to_arrow())
    assert len(theirs) == KEYS
    assert ours.keys() == theirs.keys()
    for key, row in theirs.items():
        for column, value in row.items():
            assert ours[key][column] == value, (key, column)


def test_compacted_they_are_the_same_to_java(spark, tables: Path, tmp_path: Path) -> None:
    """By Python workers: Spark has no operator for any of these. What was not compacted yet merges with what was."""
    jobs, before = [], {}
    for name in TABLES:
        url = str(tmp_path / "db.db" / name)
        shutil.copytree(tables / "db.db" / name, url)
        before[name] = meanings(pq.ParquetFile(tables / f"{name}.parquet").read())
        done = PaimonTable.forPath(url).compact(spark=spark)
        assert done.attempts == 1 and set(alluvium.open(url).system("files")["level"].to_pylist()) == {5}, name
        assert meanings(alluvium.open(url).to_arrow()) == before[name], name
        write = {"write": script_of(tmp_path, name)["steps"][1]["write"]}
        jobs.append({"table": url, "steps": [
            {"read": {"out": f"{url}.rows"}}, write, {"read": {"out": f"{url}.more"}},
        ]})  # fmt: skip
    paimon(tmp_path, *jobs)
    for name, rows in before.items():
        url = str(tmp_path / "db.db" / name)
        assert meanings(pq.ParquetFile(f"{url}.rows").read()) == rows, name
        assert meanings(alluvium.open(url).to_arrow()) == meanings(pq.ParquetFile(f"{url}.more").read()), name
