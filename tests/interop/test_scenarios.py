"""The same scenarios in both engines: equal tables after every step, and each engine goes on with the other's."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from compare_scenarios import compare, differences
from reference_engine import NEEDS_REFERENCE, REFERENCE, judge
from row_texts import row_texts
from run_scenarios import carry_out
from scenarios.bench import SCENARIOS

import alluvium

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.timeout(3600),
    *NEEDS_REFERENCE,
]

#: What every run plays, in the minutes that it may take: the one with most features. ALLUVIUM_SCENARIOS names others:
#: `all`, or some with commas between them.
CORE = ("everything_at_once",)
ASKED = os.environ.get("ALLUVIUM_SCENARIOS", "")
PLAYED = tuple(SCENARIOS) if ASKED == "all" else tuple(ASKED.split(",")) if ASKED else CORE

#: Where we differ and mean to: in which scenario, at what, and why. Each must still be met somewhere.
KNOWN = (
    ("every_type", r"(max|min)Values\.d: only theirs: ", "Parquet has no bounds of columns with NaN"),
    (".*", r"removed\[\d+\]\.stats: false \| true", "tombstones may have statistics; nobody uses them"),
    (".*", r"removed.*partitionValues\.\w+: only ours: null", "tombstones there lose partition values that are null"),
    (".*", r"\.tags(\.delta\.rowTracking\.preserved: only ours|: \{\"delta\.rowTracking\.preserved\": \"true\"\} \| null)",
     "the protocol asks every commit for the tag delta.rowTracking.preserved"),
    ("row_tracking_later", r"\.tags\.rowTrackingEnablementOnly: only theirs", "a tag that no text speaks of"),
    ("replaced_rows|row_changes|generated", r"(\.cdc: false \| true|numAddedChangeFiles: \"0\" \| )", "what became of a file as a whole needs no record"),
    ("row_changes.*", r"[mM]etrics\.materializeSourceTimeMs: only theirs", "no source is materialised apart from the join"),
    ("row_changes.*|automatic|following", r"predicate: \"\[\\\"\(t\.(a|id) = s\.(a|id)\)", "names with the sides that they belong to"),
    ("compactions", r"numVacuumedDirectories: ", "each job of ours writes into a folder of its own"),
    ("dropped_vectors", r"^(drop\.log\[2\]\.(removed|info)|end\.history\[9\])", "small vectors stand in the log: no file of them is left"),
)  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Of a run before, whose tables and answers are to be looked at again; else a run of its own.
    earlier = os.environ.get("ALLUVIUM_SCENARIOS_RUN")
    return Path(earlier) if earlier else tmp_path_factory.mktemp("scenarios")


@pytest.fixture(scope="module")
def told(spark: SparkSession, root: Path) -> dict[str, dict[str, Any]]:
    """What each engine, and each act, tells of each scenario."""
    if not (root / "told").exists():
        play_both(spark, root)
    found: dict[str, dict[str, Any]] = {}
    for file in (root / "told").glob("*/*/*.json"):
        engine, act = file.parts[-3:-1]
        found.setdefault(engine, {}).setdefault(act, {})[file.stem] = json.loads(file.read_text())
    return found


def play_both(spark: SparkSession, root: Path) -> None:
    """Both engines side by side, for each waits for tables of the other."""
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(judge, root, [{"root": str(root), "names": PLAYED}], "run_scenarios")
        session = spark.newSession()
        alluvium.enable(session)
        try:
            carry_out("ours", session, alluvium, root, PLAYED)
        finally:
            # Whoever fails ends the other, who says no more than that: both are shown.
            assert [answer["error"] for answer in theirs.result()] == [None]


@pytest.fixture(scope="module")
def elsewhere(told, root: Path) -> dict[str, Any]:
    """What other readers make of our tables."""
    out = root / "elsewhere.json"
    command = [str(REFERENCE / "venv/bin/python"), str(HERE / "read_elsewhere.py"), str(root / "ours 100%ü"), str(out)]
    subprocess.run(command, check=True, timeout=600)
    return json.loads(out.read_text())


def unknown(name: str, found: list[str]) -> list[str]:
    return [line for line in found if not any(re.fullmatch(n, name) and re.search(p, line) for n, p, _ in KNOWN)]


@pytest.mark.parametrize("name", PLAYED)
def test_both_engines_leave_the_same_table(told, name: str) -> None:
    assert unknown(name, list(compare(told["ours"]["play"][name], told["theirs"]["play"][name]))) == []


def continued(told: dict[str, Any], name: str) -> Iterator[str]:
    """Where we go on otherwise with the reference's table than it does, as far as we go."""
    steps = told["ours"]["go_on"][name]["theirs, continued"]["steps"]
    yield from differences(steps, told["theirs"]["go_on"][name]["theirs"]["steps"][: len(steps)])


@pytest.mark.skipif(ASKED != "all", reason="some are known from other scenarios: ALLUVIUM_SCENARIOS=all")
def test_what_is_known_to_differ_still_does(told) -> None:
    lines = [
        (name, line)
        for name in PLAYED
        for line in (*compare(told["ours"]["play"][name], told["theirs"]["play"][name]), *continued(told, name))
    ]
    meant = [(n, p) for n, p, _ in KNOWN if any(re.fullmatch(n, name) for name in PLAYED)]
    idle = [p for n, p in meant if not any(re.fullmatch(n, name) and re.search(p, line) for name, line in lines)]
    assert idle == []


@pytest.mark.parametrize("name", PLAYED)
def test_every_version_has_the_same_rows(told, root: Path, name: str) -> None:
    """Both tables by our own reader, and the row ids where there are any."""
    ours, theirs = (root / f"{who} 100%ü" / name for who in ("ours", "theirs"))
    # Ours has one version more in the end: we have appended to what delta-spark had continued.
    newest = len([p for p in (theirs / "_delta_log").glob("*.json") if p.stem.isdigit()])
    for version in range(newest):
        assert rows(ours, version) == rows(theirs, version), version


def rows(path: Path, version: int) -> list[str]:
    table = alluvium.open(str(path), version=version)
    tracked = table.properties.get("delta.enableRowTracking") == "true"
    found = table.to_arrow(columns=["*", "_row_id"] if tracked else None)
    return row_texts(found)


@pytest.mark.parametrize("name", PLAYED)
def test_delta_spark_goes_on_with_our_table_as_with_its_own(told, name: str) -> None:
    act = told["theirs"]["go_on"][name]
    assert [step["error"] for step in act["ours"]["steps"]] == [None] * len(act["ours"]["steps"])
    assert unknown(name, list(differences(act["ours"], act["theirs"]))) == []


@pytest.mark.parametrize("name", PLAYED)
def test_we_go_on_with_its_table_as_it_does(told, name: str) -> None:
    """Appended and deleted as the reference does; and what it left of ours is appended to."""
    act = told["ours"]["go_on"][name]
    steps = (*act["theirs, continued"]["steps"], *act["ours"]["steps"])
    assert [step["error"] for step in steps] == [None] * len(steps)
    assert unknown(name, list(continued(told, name))) == []


@pytest.mark.parametrize("name", PLAYED)
def test_both_read_the_same_rows_and_changes_in_the_end(told, name: str) -> None:
    for owner in ("ours", "theirs", "theirs, continued"):
        ours, theirs = (told[who]["read"][name][owner] for who in ("ours", "theirs"))
        assert ours == theirs, owner
    # Ours was appended to last.
    assert told["ours"]["read"][name]["ours"]["rows"]


#: What deltalake 1.6.6 says of features that it does not read.
NOT_READ = re.compile("not yet supported by the deltalake reader|[Vv]oid|null")


@pytest.mark.parametrize("name", PLAYED)
def test_deltalake_and_duckdb_read_what_they_support(told, elsewhere, root: Path, name: str) -> None:
    path, read = root / "ours 100%ü" / name, 0
    # Versions behind these are delta-spark's, whose INT96 not everybody reads.
    own = sum(step["versions"] for step in told["ours"]["play"][name]["steps"])
    for version, found in elsewhere[name].items():
        if int(version) >= own:
            continue
        ours = alluvium.open(str(path), version=int(version))
        # deltalake takes mapped columns of a legacy protocol for missing ones, whoever wrote them.
        is_mapped = ours.properties.get("delta.columnMapping.mode", "none") != "none"
        # Its Arrow knows no files with variants, and says so file by file.
        is_known = name == "variants" or NOT_READ.search(found.get("refused", ""))
        assert "refused" not in found or is_known, (version, found)
        for reader in ("deltalake", "duckdb", "extension"):
            if reader in found and not is_mapped:
                assert row_texts(ours.to_arrow()) == found[reader], (reader, version)
                read += 1
    assert read or ours.protocol.min_reader_version > 1, "everybody reads a table without reader features"
