"""deltalake and DuckDB go on with tables that we write without Spark, and we with what they left."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from open_readers import NEEDS_READERS, ask_readers, run_script
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.api.delta.maintenance import check_table, write_checkpoint
from alluvium.delta.upkeep.checks.finding import Finding

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from open_tables import without_spark  # noqa: E402, F401  # it registers itself
from open_tables.maker import TABLES, Maker  # noqa: E402
from row_texts import row_texts  # noqa: E402

pytestmark = NEEDS_READERS

CONTINUED = (
    "classic_checkpoint", "checkpoint_of_parts", "checkpoint_with_parsed_statistics", "v2_checkpoint_of_several_sidecars",
    "compacted_log",
)  # fmt: skip
#: Of deltalake's dataset, which knows no v2 checkpoints, elsewhere.
READERS = ("query", "duckdb")


@dataclass(frozen=True)
class Continued:
    """By table: our rows, the rows that the others left and what was wrong then; and where the readers put theirs."""

    before: dict[str, pa.Table]
    left: dict[str, pa.Table]
    wrong: dict[str, Sequence[Finding]]
    told: Path


@pytest.fixture(scope="module")
def continued(tmp_path_factory: pytest.TempPathFactory) -> Continued:
    """Our tables, continued by both and then by us again, with a checkpoint of it all."""
    root = tmp_path_factory.mktemp("continued")
    makers = {name: Maker(None, str(root / name)) for name in CONTINUED}
    for name, maker in makers.items():
        TABLES[name].make(maker)
    before = rows_of(makers)
    run_script("write_openly.py", *(maker.path for maker in makers.values()))
    left, wrong = rows_of(makers), {name: check_table(maker.path) for name, maker in makers.items()}
    for maker in makers.values():
        commit_rows(open_target(maker.store), [400], p="ours")
        write_checkpoint(maker.path)
    ask_readers(root / "told", [TABLES[name].job(name, maker.path) for name, maker in makers.items()])
    return Continued(before, left, wrong, root / "told")


def rows_of(makers: Mapping[str, Maker]) -> dict[str, pa.Table]:
    return {name: alluvium.open(maker.path).to_arrow() for name, maker in makers.items()}


def added(table: pa.Table, *rows: tuple[int, str]) -> list[str]:
    more = pa.table({"id": [i for i, _ in rows], "p": [p for _, p in rows]}, schema=table.schema)
    return row_texts(pa.concat_tables([table, more]))


@pytest.mark.parametrize("name", CONTINUED)
def test_we_read_what_they_left(continued: Continued, name: str) -> None:
    assert row_texts(continued.left[name]) == added(continued.before[name], (200, "deltalake"), (300, "duckdb"))
    assert continued.wrong[name] == ()


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", CONTINUED)
def test_they_read_what_we_made_of_it(continued: Continued, name: str, reader: str) -> None:
    files = (continued.told / name / reader).glob("*.arrow")
    newest = max((file for file in files if file.stem.isdigit()), key=lambda file: int(file.stem))
    assert row_texts(pa.ipc.open_file(newest).read_all()) == added(continued.left[name], (400, "ours"))
