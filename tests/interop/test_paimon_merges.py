"""Paimon Java writes keyed rows of every kind in several commits; we merge them to the rows that it reads."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.errors import InvalidRequest
from alluvium.paimon import PaimonTable
from conformance.rows import difference

pytestmark = NEEDS_PAIMON

COLUMNS = {"a": "INT", "ga": "INT", "b": "STRING", "gb": "INT", "c": "DOUBLE", "d": "DECIMAL(10, 2)"}
ANY = ("+I", "+I", "+U", "-D")
INSERTS = ("+I",)
GROUPS = {"merge-engine": "partial-update", "fields.ga.sequence-group": "a", "fields.gb.sequence-group": "b"}
AGGREGATION = {"merge-engine": "aggregation"}
SCENARIOS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "deduplicate": ({}, (*ANY, "-U")),
    "sequence": ({"sequence.field": "a,c"}, ANY),
    "descending": ({"sequence.field": "a", "sequence.field.sort-order": "descending"}, ANY),
    "ignore-delete": ({"ignore-delete": "true"}, ANY),
    "partial": ({"merge-engine": "partial-update"}, INSERTS),
    "removing": ({"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}, ANY),
    "groups": (GROUPS, ANY),
    "groups-removing": ({**GROUPS, "partial-update.remove-record-on-sequence-group": "gb"}, ANY),
    "groups-sum": ({**GROUPS, "fields.a.aggregate-function": "sum"}, ANY),
    "groups-first": ({**GROUPS, "fields.a.aggregate-function": "first_non_null_value"}, INSERTS),
    "sums": ({**AGGREGATION, "fields.default-aggregate-function": "sum", "fields.b.aggregate-function": "last_value"}, ANY),
    "sums-removing": (
        {**AGGREGATION, "fields.default-aggregate-function": "sum", "fields.b.aggregate-function": "last_value",
         "aggregation.remove-record-on-delete": "true"},
        ANY,
    ),
    "choices": (
        {**AGGREGATION, "fields.a.aggregate-function": "min", "fields.ga.aggregate-function": "max",
         "fields.b.aggregate-function": "listagg", "fields.gb.aggregate-function": "first_value",
         "fields.c.aggregate-function": "first_non_null_value", "fields.d.aggregate-function": "product"},
        INSERTS,
    ),
    "firsts-removing": (
        {**AGGREGATION, "fields.default-aggregate-function": "first_value", "fields.c.aggregate-function": "max",
         "fields.b.aggregate-function": "first_non_null_value", "fields.d.aggregate-function": "first_non_null_value",
         "aggregation.remove-record-on-delete": "true"},
        ANY,
    ),
    "groups-firsts-removing": (
        {**GROUPS, "fields.a.aggregate-function": "first_value", "fields.b.aggregate-function": "first_non_null_value",
         "fields.a.ignore-retract": "true", "fields.b.ignore-retract": "true",
         "partial-update.remove-record-on-sequence-group": "gb"},
        ANY,
    ),
}  # fmt: skip
#: Options that are set after the rows were written: `ignore-delete` then is a matter of reading alone.
LATER: dict[str, dict[str, str]] = {
    "deduplicate": {}, "partial-update": {}, "aggregation": {"fields.default-aggregate-function": "last_non_null_value",
                                                           "fields.a.aggregate-function": "sum"},
    "groups": {**GROUPS, "fields.a.aggregate-function": "sum"},
    "groups-first": {**GROUPS, "fields.a.aggregate-function": "first_value", "fields.b.aggregate-function": "first_non_null_value"},
}  # fmt: skip
#: Numbers that leave their type: Java's wrap.
LARGE = {"i": ("INT", 2**31 - 5), "l": ("BIGINT", 2**63 - 5), "y": ("TINYINT", 120), "h": ("SMALLINT", 32_760)}


def some_rows(seed: int, most: str = "99999999.99") -> list[list[Any]]:
    """Rows with decimals up to one."""
    pick = random.Random(seed)
    values: dict[str, list[Any]] = {
        "INT": [1, 2, 3, 4, None], "STRING": ["a", "b", None], "DOUBLE": [0.5, 2.0, None],
        "DECIMAL(10, 2)": ["1.10", most, None],
    }  # fmt: skip
    return [[pick.randrange(3), *(pick.choice(values[kind]) for kind in COLUMNS.values())] for _ in range(4)]


@pytest.mark.parametrize("name", SCENARIOS)
def test_merges_are_those_of_java(name: str, tmp_path: Path) -> None:
    options, kinds = SCENARIOS[name]
    ensure_alike(tmp_path, options, kinds)


def test_rows_are_the_same_when_they_were_compacted(spark, tmp_path: Path) -> None:
    """Some of their files, and then all of them: Java reads of ours what it read before."""
    jobs, before = [], {}
    for name, (options, kinds) in SCENARIOS.items():
        root = tmp_path / name
        root.mkdir()
        ensure_alike(root, options, kinds, most="2.00")
        url = str(root / "db.db" / "t")
        before[name] = pq.ParquetFile(root / "rows.parquet").read()
        table = PaimonTable.forPath(url)
        table.compact(compact_strategy="minor", spark=spark)
        assert difference(before[name], alluvium.open(url).to_arrow()) is None, name
        table.compact(spark=spark)
        assert difference(before[name], alluvium.open(url).to_arrow()) is None, name
        jobs.append({"table": url, "steps": [{"read": {"out": f"{url}.after"}}]})
    paimon(tmp_path, *jobs)
    for name, rows in before.items():
        assert difference(rows, pq.ParquetFile(f"{tmp_path / name / 'db.db' / 't'}.after").read()) is None, name


def test_sums_of_more_digits_than_their_column_has(spark, tmp_path: Path) -> None:
    """Java writes them down all the same. Spark would make nulls of them: they are left where they are."""
    ensure_alike(tmp_path, *SCENARIOS["sums"])
    url = str(tmp_path / "db.db" / "t")
    before = alluvium.open(url)
    with pytest.raises(InvalidRequest) as caught:
        PaimonTable.forPath(url).compact(spark=spark)
    assert (caught.value.code, caught.value.column) == ("invalid-data", "d")
    assert alluvium.open(url).version == before.version


@pytest.mark.parametrize("name", LATER)
def test_deletions_that_are_ignored_later(name: str, tmp_path: Path) -> None:
    options = {"merge-engine": name, **LATER[name]}
    change = {"action": "setOption", "key": "ignore-delete", "value": "true"}
    ensure_alike(tmp_path, options, ANY, {"alter": [change]})


def test_whole_numbers_wrap(tmp_path: Path) -> None:
    table, out = tmp_path / "db.db" / "t", tmp_path / "rows.parquet"
    fields = [{"name": "k", "type": "INT NOT NULL"}]
    settings = {"bucket": "1", "write-only": "true", **AGGREGATION}
    for function in ("sum", "product"):
        for name, (kind, _) in LARGE.items():
            fields.append({"name": f"{function}_{name}", "type": kind})
            settings[f"fields.{function}_{name}.aggregate-function"] = function
    create = {"fields": fields, "partitionKeys": [], "primaryKeys": ["k"], "options": settings}
    row = [1, *[value for _ in range(2) for _, value in LARGE.values()]]
    steps: list[dict[str, Any]] = [{"create": create}, *[{"write": {"rows": [row]}}] * 3]
    paimon(tmp_path, {"table": str(table), "steps": [*steps, {"read": {"out": str(out)}}]})
    ours = alluvium.open(str(table)).to_arrow()
    assert difference(pq.ParquetFile(out).read(), ours) is None
    assert ours["sum_i"].to_pylist() == [3 * (2**31 - 5) - 2**32]


def one_a_key(rows: list[list[Any]]) -> list[list[Any]]:
    """Rows that no writer merges, which would refuse what only readers ignore."""
    return list({row[0]: row for row in rows}.values())


def ensure_alike(
    root: Path, options: dict[str, str], kinds: tuple[str, ...], *later: dict[str, Any], most: str = "99999999.99"
) -> None:
    """Java reads the rows that it wrote in several commits as we do."""
    table, out = root / "db.db" / "t", root / "rows.parquet"
    fields = [{"name": "k", "type": "INT NOT NULL"}, *({"name": n, "type": kind} for n, kind in COLUMNS.items())]
    settings = {"bucket": "1", "write-only": "true", **options}
    create = {"fields": fields, "partitionKeys": [], "primaryKeys": ["k"], "options": settings}
    steps: list[dict[str, Any]] = [{"create": create}]
    for commit in range(6):
        pick = random.Random(commit)
        rows = some_rows(commit, most)
        rows = one_a_key(rows) if later else rows
        steps.append({"write": {"rows": rows, "kinds": [pick.choice(kinds) for _ in rows]}})
    steps += [*later, {"read": {"out": str(out)}}]
    paimon(root, {"table": str(table), "steps": steps})
    assert difference(pq.ParquetFile(out).read(), alluvium.open(str(table)).to_arrow()) is None
