"""deltalake and DuckDB read what we write, with Spark and without: the same rows as we, in every version."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from open_readers import NEEDS_READERS, ask_readers

import alluvium
from alluvium.errors import AlluviumError

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from open_tables import by_features, by_spark, without_spark  # noqa: E402, F401  # they register themselves
from open_tables.maker import TABLES, Maker  # noqa: E402
from open_tables.verdicts import REFUSED, WRONG, Verdict  # noqa: E402
from row_texts import row_texts  # noqa: E402

pytestmark = NEEDS_READERS

READERS = ("dataset", "query", "duckdb")
#: Nothing of a few rows is worth compiling or spreading.
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
ASKED = [(name, reader) for name in TABLES for reader in READERS]


class Read:
    """Where the tables are, and what the readers told of them."""

    def __init__(self, root: Path) -> None:
        self.paths = {name: root / "tables" / (table.folder or name) for name, table in TABLES.items()}
        self._told_root = root / "told"
        self.told: dict[str, Any] = {}
        self.unmade: dict[str, str] = {}

    def make(self, spark: Any) -> None:
        for name, table in TABLES.items():
            try:
                table.make(Maker(spark, str(self.paths[name])))
            except AlluviumError as error:  # one table that cannot be made is one test that fails
                self.unmade[name] = str(error)

    def ask(self) -> None:
        self.told = ask_readers(
            self._told_root,
            [t.job(name, str(self.paths[name])) for name, t in TABLES.items() if name not in self.unmade],
        )

    def theirs(self, name: str, reader: str, what: str) -> pa.Table:
        found = pa.ipc.open_file(self._told_root / name / reader / f"{what}.arrow").read_all()
        return as_ours(found, alluvium.open(str(self.paths[name])).schema.names) if what == "feed" else found

    def ours(self, name: str, what: str) -> pa.Table:
        if what == "feed":
            # Its times are those of the commits' own words, ours (and delta-spark's) those of their files.
            return (
                alluvium.open(str(self.paths[name])).changes(TABLES[name].feed or 0).drop_columns("_commit_timestamp")
            )
        if what == "where":
            return alluvium.open(str(self.paths[name])).to_arrow(where=condition(name))
        return alluvium.open(str(self.paths[name]), version=int(what)).to_arrow()


@pytest.fixture(scope="module")
def read(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Read:
    found = Read(tmp_path_factory.mktemp("open"))
    before = {key: spark.conf.get(key) for key in QUICK}
    try:
        for key, value in QUICK.items():
            spark.conf.set(key, value)
        found.make(spark)
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    found.ask()
    return found


def condition(name: str) -> str:
    def literal(value: object) -> str:
        if isinstance(value, dict):
            ((kind, text),) = value.items()
            return f"{kind} '{text}'"
        return f"'{value}'" if isinstance(value, str) else str(value)

    return " and ".join(f"`{column}` {operator} {literal(value)}" for column, operator, value in TABLES[name].where)


def plain(data_type: pa.DataType) -> str:
    """A type as text, without the ways that engines have of holding the same values."""
    if pa.types.is_dictionary(data_type):
        return plain(data_type.value_type)
    if pa.types.is_struct(data_type):
        return f"struct<{', '.join(f'{f.name}: {plain(f.type)}' for f in data_type)}>"
    if pa.types.is_map(data_type):
        return f"map<{plain(data_type.key_type)}, {plain(data_type.item_type)}>"
    if pa.types.is_nested(data_type):
        return f"list<{plain(data_type.value_type)}>"
    return re.sub("^large_|_view$", "", str(data_type))


def difference(ours: pa.Table, theirs: pa.Table) -> str | None:
    """What is not the same in the columns, their types, or the rows, whose order is nobody's."""
    types = [[(f.name, plain(f.type)) for f in table.schema] for table in (ours, theirs)]
    if types[0] != types[1]:
        return "types: " + ", ".join(f"{a} | {b}" for a, b in zip(*types, strict=False) if a != b)
    rows = [row_texts(table) for table in (ours, theirs)]
    if rows[0] != rows[1]:
        unlike = next((f"{a} | {b}" for a, b in zip(*rows, strict=False) if a != b), "")
        return f"rows: {len(rows[0])} | {len(rows[1])}: {unlike}"
    return None


def as_ours(feed: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Its change feed has partition columns behind the others, and versions without a sign."""
    version = feed.column("_commit_version").cast(pa.int64())
    return feed.select([*columns, "_change_type"]).append_column("_commit_version", version)


def findings(read: Read, name: str, reader: str) -> dict[str, str]:
    """By version, and for `where`: what the reader said, or what it got otherwise than we."""
    assert read.unmade.get(name) is None
    found = {}
    for what, answer in read.told[name][reader].items():
        if what == "sql":
            continue
        said = answer.get("refused") or difference(read.ours(name, what), read.theirs(name, reader, what))
        if said is not None:
            found[what] = said
    return found


def known(name: str, reader: str) -> list[Verdict]:
    return [v for v in (*REFUSED, *WRONG) if v.reader == reader and name in v.tables]


@pytest.mark.parametrize(("name", "reader"), ASKED)
def test_the_same_rows_in_every_version(read: Read, name: str, reader: str) -> None:
    found = findings(read, name, reader)
    patterns = [verdict.said for verdict in known(name, reader)]
    unknown = {what: said for what, said in found.items() if not any(re.search(p, said) for p in patterns)}
    assert unknown == {}
    idle = [p for p in patterns if not any(re.search(p, said) for said in found.values())]
    assert not idle, "it reads them now: take the verdict back"


def test_verdicts_are_of_tables_and_readers_that_there_are() -> None:
    verdicts = (*REFUSED, *WRONG)
    assert {v.reader for v in verdicts} <= set(READERS)
    assert {name for v in verdicts for name in v.tables} <= set(TABLES)
    # Everything is read by somebody, or not because of what nobody knows.
    unread = [name for name in TABLES if all(known(name, reader) for reader in READERS)]
    assert unread == []


def test_duckdb_reads_variants(read: Read) -> None:
    """Arrow has no type for what it reads, so it is asked for JSON."""
    theirs = read.theirs("variants", "duckdb", "sql").to_pylist()
    found = {row["id"]: json.loads(row["v"]) for row in theirs}
    # To it a variant that is null and no variant are the same.
    expected = {
        1: {"a": 1, "b": [True, None, "ü"], "c": {"d": 1.5}},
        2: "text",
        3: None,
        4: None,
        5: [1, 2.25, 12345678901],
    }
    assert found == expected


@pytest.mark.parametrize(
    ("name", "version", "domains"),
    [("transactions", 5, {}), ("domains_and_transactions", 17, {"some.app": '{"answer":42}'})],
)
def test_transactions_and_domains(read: Read, name: str, version: int, domains: dict[str, str]) -> None:
    assert read.told[name]["said"] == {"deltalake": version, "duckdb": version, "domains": domains}
