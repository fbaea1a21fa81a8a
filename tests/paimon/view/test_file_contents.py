"""What plans tell of the contents of data files, out of schemas and manifests."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from paimon_rows import append, open_target

from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.schema import DataField, SchemaChange, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.view.file_contents import held_columns
from alluvium.paimon.view.scan import plan_scan
from alluvium.plan.scan import ScanPart
from alluvium.storage.open import open_store


def create(url: str, kinds: dict[str, Any], *keys: str, **options: str) -> None:
    fields = [DataField(0, name, parse_type(kind)) for name, kind in kinds.items()]
    PaimonTable.create(url, fields, primary_keys=keys, options={"file.format": "orc", **options})


def parts(url: str) -> tuple[ScanPart, ...]:
    return plan_scan(load_snapshot(open_store(url))).parts


def earliest(url: str) -> list[dt.date | None]:
    return [part.earliest_date for part in parts(url)]


def test_the_earliest_of_all_dates_that_are_read(tmp_path: Path) -> None:
    create(url := str(tmp_path / "t"), {"k": "INT", "a": "DATE", "b": "DATE"})
    store = open_store(url)
    append(open_target(store), [{"k": 1, "a": dt.date(2020, 1, 1), "b": None}])
    assert earliest(url) == [dt.date(2020, 1, 1)]
    append(open_target(store), [{"k": 2, "a": dt.date(2024, 1, 1), "b": dt.date(1, 1, 1)}, {"k": 3}])
    assert earliest(url) == [dt.date(1, 1, 1)]
    # Where a column is read no more, its dates count no more; files of another schema count for themselves.
    PaimonTable.forPath(url).alter([SchemaChange.drop_column("b"), SchemaChange.rename_column("a", "b")])
    append(open_target(store), [{"k": 4, "b": dt.date(1970, 1, 1)}])
    assert earliest(url) == [dt.date(2020, 1, 1), dt.date(1970, 1, 1)]
    PaimonTable.forPath(url).alter([SchemaChange.drop_column("b")])
    assert earliest(url) == [None, None]


def test_dates_of_nulls_alone(tmp_path: Path) -> None:
    create(url := str(tmp_path / "t"), {"k": "INT", "a": "DATE"})
    append(open_target(open_store(url)), [{"k": 1}, {"k": 2}])
    assert earliest(url) == [dt.date.max]


@pytest.mark.parametrize("mode", ["none", "counts"])
def test_dates_that_nobody_has_looked_at(tmp_path: Path, mode: str) -> None:
    create(url := str(tmp_path / "t"), {"k": "INT", "a": "DATE"}, **{"fields.a.stats-mode": mode})
    append(open_target(open_store(url)), [{"k": 1, "a": dt.date(2020, 1, 1)}])
    assert earliest(url) == [None]


def test_dates_within(tmp_path: Path) -> None:
    create(url := str(tmp_path / "t"), {"a": "DATE", "n": {"type": "MAP", "key": "INT", "value": "DATE"}})
    append(open_target(open_store(url)), [{"a": dt.date(2020, 1, 1), "n": None}])
    assert earliest(url) == [None]


def test_columns_that_files_hold(tmp_path: Path) -> None:
    create(url := str(tmp_path / "t"), {"k": "INT NOT NULL", "z": "TIMESTAMP(3)", "s": "STRING"}, "k", bucket="1")
    schema = TableSchema.parse(Path(f"{url}/schema/schema-0").read_bytes())
    held = held_columns(schema, None)
    assert held is not None and held.names == ("_KEY_k", "_SEQUENCE_NUMBER", "_VALUE_KIND", "k", "z", "s")
    create(url := str(tmp_path / "u"), {"k": "INT", "z": "TIMESTAMP(3)"})
    append(open_target(open_store(url)), [{"k": 1}])
    PaimonTable.forPath(url).alter([SchemaChange.drop_column("z")])
    (part,) = parts(url)
    assert part.held is not None and part.held.names == ("k", "z") and part.read_schema.names == ("k",)
    schema = TableSchema.parse(Path(f"{url}/schema/schema-0").read_bytes())
    assert held_columns(schema, ["z"]).names == ("z",)  # type: ignore[union-attr]
