"""What Paimon Java reads of tables that it made by scenarios drawn at random, we read: without Spark and with it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from conformance.rows import difference
from interop.paimon_scenarios import Scenario, draw

pytestmark = NEEDS_PAIMON
FIRST, COUNT = (int(number) for number in os.environ.get("ALLUVIUM_PAIMON_SEEDS", "0,6").split(","))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Path, Scenario]]:
    """All scenarios, played in one JVM."""
    root = Path(os.environ.get("ALLUVIUM_PAIMON_SCENARIOS", tmp_path_factory.mktemp("scenarios")))
    found = {}
    for seed in range(FIRST, FIRST + COUNT):
        folder = root / f"{seed:05}"
        found[seed] = (folder, draw(seed, folder))
        if not (folder / "script.json").exists():
            folder.mkdir(parents=True)
            document = {"table": str(found[seed][1].table), "steps": found[seed][1].steps}
            (folder / "script.json").write_text(json.dumps(document), encoding="utf-8")
    if not list(root.glob("*/latest.parquet")):
        paimon(root, *({"folder": str(folder)} for folder, _ in found.values()))
    return found


def by_open(url: str, name: str, read: dict[str, Any]) -> pa.Table:
    options = read.get("options", {})
    if name in ("delta", "changelog"):
        start, end = map(int, options["incremental-between"].split(","))
        return alluvium.open(url).changes(start, end, mode=name)
    if name == "audit":
        return alluvium.open(url).system("audit_log")
    return alluvium.open(url, options=options).to_arrow()


def by_spark(spark: SparkSession, url: str, name: str, read: dict[str, Any]) -> pa.Table:
    options = read.get("options", {})
    if name in ("delta", "changelog"):
        start, end = map(int, options["incremental-between"].split(","))
        return alluvium.changes(spark, url, start, end, mode=name).toArrow()
    if name == "audit":
        return alluvium.read(spark, url, system="audit_log").toArrow()
    return alluvium.read(spark, url, table_options=options).toArrow()


def hashed(options: dict[str, str]) -> list[str]:
    """Columns of sets and of tables by key: Java shows them in the order of its hash tables."""
    marks = (".distinct", ".nested-key")
    return [name for name in ("c", "r") if any(f"fields.{name}{mark}" in options for mark in marks)]


def in_one_order(rows: pa.Table, names: list[str]) -> pa.Table:
    for name in names:
        place, column = rows.schema.get_field_index(name), rows[name]
        values = [None if value is None else sorted(value, key=repr) for value in column.to_pylist()]
        rows = rows.set_column(place, rows.schema.field(place), pa.array(values, column.type))
    return rows


@pytest.mark.parametrize("lane", ["open", "spark"])
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_tables(
    seed: int, lane: str, played: dict[int, tuple[Path, Scenario]], request: pytest.FixtureRequest
) -> None:
    folder, scenario = played[seed]
    refused = [path.read_text(encoding="utf-8") for path in folder.glob("refused-*.txt")]
    compared, problems = 0, []
    for name, read in scenario.reads.items():
        expected_file = folder / f"{name}.parquet"
        if not expected_file.exists():
            continue
        expected = pq.ParquetFile(expected_file).read()
        url = str(scenario.table)
        if lane == "open":
            found = by_open(url, name, read)
        else:
            found = by_spark(request.getfixturevalue("spark"), url, name, read)
        names = hashed(scenario.options)
        problem = difference(in_one_order(expected, names), in_one_order(found, names))
        compared += 1
        if problem is not None:
            problems.append(f"{name}: {problem[:1500]}")
    assert not problems, f"{scenario.options}\n" + "\n".join(problems)
    assert compared or refused, "a scenario is played or refused"
    if not compared:
        pytest.skip(f"Java refuses it: {refused[0][:300]}")
