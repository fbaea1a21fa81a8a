"""The same scenarios in both engines: equal tables after every step, and each engine goes on with the other's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from reference_engine import ENGINES, NEEDS_REFERENCE, REFERENCE

import alluvium

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from compare_scenarios import compare, differences  # noqa: E402
from row_texts import row_texts  # noqa: E402
from scenarios import columns, tables, values  # noqa: E402, F401  # they register themselves
from scenarios.bench import SCENARIOS  # noqa: E402

pytestmark = [
    pytest.mark.timeout(3600),
    *NEEDS_REFERENCE,
    # The first act ran in full and was compared; reading the tables of the other engine stops at a change feed across a
    # rename, which both engines refuse and the script does not expect. Ten minutes: too long for every run.
    pytest.mark.skipif(
        "ALLUVIUM_SCENARIOS" not in os.environ, reason="unfinished: set ALLUVIUM_SCENARIOS=1 to play all scenarios"
    ),
]

#: Where we differ and mean to: in which scenario, at what, and why. Each must still be met somewhere.
KNOWN = (
    (".*", r"nullCount\..+: only theirs: ", "Parquet's footers do not always tell how many arrays or maps are null"),
    ("every_type", r"(max|min)Values\.d: only theirs: ", "Parquet has no bounds of columns with NaN"),
    (".*", r"removed\[\d+\]\.stats: false \| true", "tombstones may have statistics; nobody uses them"),
    (".*", r"\.(protocol|metaData): \[\] \| \[", "what did not change is not said again"),
    (".*", r"^end\.schema\..*nullable: true \| false", "Spark would believe files that do not keep NOT NULL"),
    (".*", r'numFiles: "0" \| "1"', "it counts a file that it wrote for no rows and did not add"),
    (".*", r'numOutputRows: only ours: "0"', "it says nothing where no rows were written"),
    (".*", r"\.tags.*preserved", "the protocol asks for the tag delta.rowTracking.preserved"),
    (".*", r"EnablementTimestamp: ", "a time"),
    (".*", r"delta\.feature\.domain", "it forgets the case of the feature's name"),
    ("clustered", r"^replace unclustered\..*domainMetadata", "the domain is removed, there it holds no columns"),
    ("clustered", r"^overwrite\..*domainMetadata", "an overwrite there forgets the clustering columns; ours keeps them"),
    (".*", r"removed.*partitionValues\.\w+: only ours: null", "tombstones there lose partition values that are null"),
    ("row_tracking_later", r"", "ids for older files are one commit, there as many as it likes"),
)  # fmt: skip


def run(engine: str, acts: str, root: Path) -> dict[str, Any]:
    out = root / f"{engine}-{acts}.json"
    command = [str(HERE / "run_scenarios.py"), acts, engine, str(root), str(out)]
    # The project's own Spark and its settings must not leak into another session.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    if engine == "theirs":
        command.insert(0, str(REFERENCE / "venv/bin/python"))
        environment |= {"PYTHONPATH": str(ENGINES), "REFERENCE_DIR": str(REFERENCE)}
    else:
        command.insert(0, sys.executable)
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=2400)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(out.read_text())


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenarios")


@pytest.fixture(scope="module")
def told(root: Path) -> dict[str, dict[str, Any]]:
    ours = run("ours", "play", root)
    elsewhere = root / "elsewhere.json"
    command = [
        str(REFERENCE / "venv/bin/python"),
        str(HERE / "read_elsewhere.py"),
        str(root / "ours 100%ü"),
        str(elsewhere),
    ]
    subprocess.run(command, check=True, timeout=600)
    theirs = run("theirs", "play+go_on", root)
    ours |= run("ours", "go_on+read", root)
    theirs |= run("theirs", "read", root)
    return {"ours": ours, "theirs": theirs, "elsewhere": json.loads(elsewhere.read_text())}


def unknown(name: str, found: list[str]) -> list[str]:
    return [line for line in found if not any(re.fullmatch(n, name) and re.search(p, line) for n, p, _ in KNOWN)]


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_engines_leave_the_same_table(told, name: str) -> None:
    assert unknown(name, list(compare(told["ours"]["play"][name], told["theirs"]["play"][name]))) == []


def test_what_is_known_to_differ_still_does(told) -> None:
    lines = [
        (name, line) for name in SCENARIOS for line in compare(told["ours"]["play"][name], told["theirs"]["play"][name])
    ]
    idle = [p for n, p, _ in KNOWN if not any(re.fullmatch(n, name) and re.search(p, line) for name, line in lines)]
    assert idle == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_version_has_the_same_rows(told, root: Path, name: str) -> None:
    """Both tables by our own reader, and the row ids where there are any."""
    ours, theirs = (root / f"{who} 100%ü" / name for who in ("ours", "theirs"))
    newest = len([p for p in (ours / "_delta_log").glob("*.json") if p.stem.isdigit()])
    for version in range(0 if name == "row_tracking_later" else newest):
        assert rows(ours, version) == rows(theirs, version), version


def rows(path: Path, version: int) -> list[str]:
    table = alluvium.open(str(path), version=version)
    tracked = table.properties.get("delta.enableRowTracking") == "true"
    found = table.to_arrow(columns=["*", "_row_id"] if tracked else None)
    return row_texts(found)


@pytest.mark.parametrize("name", SCENARIOS)
def test_delta_spark_goes_on_with_our_table_as_with_its_own(told, name: str) -> None:
    act = told["theirs"]["go_on"]
    assert [step["error"] for step in act[f"ours/{name}"]["steps"]] == [None] * len(act[f"ours/{name}"]["steps"])
    assert unknown(name, list(differences(act[f"ours/{name}"], act[f"theirs/{name}"]))) == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_we_go_on_with_its_table_as_it_does(told, name: str) -> None:
    (ours,) = told["ours"]["go_on"][f"theirs, continued/{name}"]["steps"]
    theirs = told["theirs"]["go_on"][f"theirs/{name}"]["steps"][0]
    assert ours["error"] is None
    assert unknown(name, list(differences(ours, theirs))) == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_read_the_same_rows_and_changes_in_the_end(told, name: str) -> None:
    for owner in ("ours", "theirs", "theirs, continued"):
        ours, theirs = (told[who]["read"][f"{owner}/{name}"] for who in ("ours", "theirs"))
        assert ours == theirs, owner
        assert ours["rows"], owner


#: What deltalake 1.6.6 says of features that it does not read.
NOT_READ = re.compile("not yet supported by the deltalake reader|[Vv]oid|null")


@pytest.mark.parametrize("name", SCENARIOS)
def test_deltalake_and_duckdb_read_what_they_support(told, root: Path, name: str) -> None:
    path, read = root / "ours 100%ü" / name, 0
    for version, found in told["elsewhere"][name].items():
        ours = alluvium.open(str(path), version=int(version))
        # deltalake takes mapped columns of a legacy protocol for missing ones, whoever wrote them.
        is_mapped = ours.properties.get("delta.columnMapping.mode", "none") != "none"
        assert "refused" not in found or NOT_READ.search(found["refused"]), (version, found)
        for reader in ("deltalake", "duckdb", "extension"):
            if reader in found and not is_mapped:
                assert row_texts(ours.to_arrow()) == found[reader], (reader, version)
                read += 1
    assert read or ours.protocol.min_reader_version > 1, "everybody reads a table without reader features"
