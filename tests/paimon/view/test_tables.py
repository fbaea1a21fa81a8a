"""Tables about a Paimon table under the names that Delta's have."""

from __future__ import annotations

from pathlib import Path

import pytest
from paimon_tables import write_readings

import alluvium
from alluvium.api.paimon.paimon_view import PaimonView
from alluvium.errors import InvalidRequest
from alluvium.paimon.schema.table_schema import TableSchema


@pytest.fixture
def t(tmp_path: Path) -> PaimonView:
    write_readings(tmp_path / "t")
    found = alluvium.open(str(tmp_path / "t"))
    assert isinstance(found, PaimonView)
    return found


def test_metadata_are_the_schema_and_its_tables(t: PaimonView) -> None:
    schema = TableSchema.parse(t.metadata.format())
    assert t.metadata == schema and schema == t.metadata and isinstance(t.metadata, TableSchema)
    assert t.metadata.primary_keys == ("sensor",)
    assert t.metadata("files").equals(t.files())
    assert t.metadata("commits").equals(t.history().to_arrow())
    assert t.metadata("partitions").equals(t.system("partitions"))


def test_columns(t: PaimonView) -> None:
    found = t.metadata("columns").select(["column", "type", "nullable", "id", "key_index"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("sensor", "STRING NOT NULL", False, 0, 0),
        ("place", "STRING", True, 1, None),
        ("value", "DOUBLE", True, 2, None),
    ]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("features", "options"), ("transactions", "snapshots"), ("tags", r"system\(.tags"), ("fils", "files")],
)
def test_what_paimon_has_under_other_names(t: PaimonView, name: str, hint: str) -> None:
    with pytest.raises(InvalidRequest, match=hint) as caught:
        t.metadata(name)
    assert caught.value.code == "unknown-metadata-table"
