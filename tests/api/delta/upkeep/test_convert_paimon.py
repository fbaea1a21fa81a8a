"""Paimon's append tables become Delta tables where they lie; no Spark is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, make, new_target, open_target

import alluvium
from alluvium.api.delta.maintenance import convert_table
from alluvium.errors import AlluviumError, InvalidRequest
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema.changes import SchemaChange
from alluvium.paimon.schema.type_json import parse_type
from alluvium.plan.changes import Preview, Replace
from alluvium.storage.open import open_store

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("s", pa.string()), ("t", pa.timestamp("us"))])
DAY = 19_000


def rows(*ids: int, day: int | None = DAY) -> list[dict[str, object]]:
    return [{"id": i, "day": day, "s": f"s{i}", "t": i} for i in ids]


def table(path: Path) -> None:
    store = open_store(str(path))
    append(new_target(store, SCHEMA, ("day",)), rows(1, 2))
    append(open_target(store), rows(3, day=None))


def test_an_append_table(tmp_path: Path) -> None:
    table(tmp_path)
    before = alluvium.open(str(tmp_path)).to_arrow().sort_by("id").to_pylist()
    files = sorted(p for p in tmp_path.rglob("*.parquet"))
    assert alluvium.open(str(tmp_path)).format == "paimon"
    told = convert_table(str(tmp_path), dry_run=True)
    assert isinstance(told, Preview) and len(told.added) == 2
    assert alluvium.open(str(tmp_path)).format == "paimon"
    convert_table(str(tmp_path), "day date")
    t = alluvium.open(str(tmp_path))
    assert (t.format, t.partition_columns, t.schema.names) == ("delta", ("day",), ("id", "day", "s", "t"))
    assert t.to_arrow().sort_by("id").to_pylist() == before
    assert sorted(p for p in tmp_path.rglob("*.parquet") if "_delta_log" not in str(p)) == files
    lines = [json.loads(line) for line in (tmp_path / "_delta_log/00000000000000000000.json").read_text().splitlines()]
    assert lines[0]["commitInfo"]["operationParameters"]["sourceFormat"] == "paimon"
    values = [line["add"]["partitionValues"] for line in lines if "add" in line]
    assert sorted(values, key=str) == [{"day": "2022-01-08"}, {"day": None}]
    assert t.files("id = 3").num_rows == 1
    assert convert_table(str(tmp_path)).attempts == 0


def test_only_what_is_live(tmp_path: Path) -> None:
    table(tmp_path)
    store = open_store(str(tmp_path))
    from_replace = Replace()
    append(open_target(store), rows(9), from_replace)
    convert_table(str(tmp_path))
    assert alluvium.open(str(tmp_path)).to_arrow()["id"].to_pylist() == [9]


def test_columns_added_and_dropped(tmp_path: Path) -> None:
    table(tmp_path)
    paimon = PaimonTable.forPath(str(tmp_path))
    paimon.alter([SchemaChange.add_column("n", parse_type("INT")), SchemaChange.drop_column("t")])
    append(open_target(open_store(str(tmp_path))), [{"id": 5, "day": DAY, "s": "x", "n": 7}])
    before = alluvium.open(str(tmp_path)).to_arrow().sort_by("id").to_pylist()
    convert_table(str(tmp_path))
    assert alluvium.open(str(tmp_path)).to_arrow().sort_by("id").to_pylist() == before


CHANGES = {
    "is called 's'": [SchemaChange.rename_column("s", "text")],
    "had another type": [SchemaChange.update_column_type("s", parse_type("BYTES"))],
    "which was dropped": [SchemaChange.drop_column("s"), SchemaChange.add_column("s", parse_type("STRING"))],
}


@pytest.mark.parametrize("said", CHANGES)
def test_files_that_need_more_than_their_names(tmp_path: Path, said: str) -> None:
    table(tmp_path)
    for change in CHANGES[said]:
        PaimonTable.forPath(str(tmp_path)).alter([change])
    with pytest.raises(InvalidRequest, match=said) as caught:
        convert_table(str(tmp_path))
    assert caught.value.code == "not-convertible"
    assert not (tmp_path / "_delta_log").exists()


def test_other_tables(tmp_path: Path) -> None:
    store = make(str(tmp_path / "orc"), **{"file.format": "orc"})
    append(open_target(store), [{"k": 1, "s": "a", "day": "x"}])
    make(str(tmp_path / "empty"))
    for name, code in (("orc", "not-convertible"), ("empty", "no-parquet-files")):
        with pytest.raises(AlluviumError) as caught:
            convert_table(str(tmp_path / name))
        assert caught.value.code == code
    table(tmp_path / "t")
    with pytest.raises(InvalidRequest, match="other partition columns"):
        convert_table(str(tmp_path / "t"), "day string")
