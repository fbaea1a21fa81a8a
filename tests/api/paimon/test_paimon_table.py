"""`PaimonTable`: created from PySpark's, Arrow's and Paimon's columns; altered; looked at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, SchemaChange, parse_type

ARROW = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string()), pa.field("day", pa.date32())])


def test_from_arrow(tmp_path: Path) -> None:
    table = PaimonTable.create(str(tmp_path / "t"), ARROW, ["day"], ["day", "id"], {"bucket": "2"}, comment="orders")
    schema = PaimonTable.forPath(table.url).schema
    assert [str(f) for f in schema.fields] == ["`id` BIGINT NOT NULL", "`name` STRING", "`day` DATE NOT NULL"]
    assert (schema.partition_keys, schema.bucket_keys, schema.comment) == (("day",), ("id",), "orders")
    assert (tmp_path / "t/schema/schema-0").read_bytes().rstrip() == schema.format()


def test_from_pyspark_without_a_session(tmp_path: Path) -> None:
    types = pytest.importorskip("pyspark.sql.types")
    struct = types.StructType(
        [
            types.StructField("id", types.LongType(), False),
            types.StructField("tags", types.ArrayType(types.StringType(), False), True, {"comment": "words"}),
            types.StructField("at", types.TimestampType()),
        ]
    )
    schema = PaimonTable.create(str(tmp_path / "t"), struct).schema
    assert [str(f) for f in schema.fields] == [
        "`id` BIGINT NOT NULL", "`tags` ARRAY<STRING NOT NULL> COMMENT 'words'",
        "`at` TIMESTAMP(6) WITH LOCAL TIME ZONE",
    ]  # fmt: skip


def test_from_fields(tmp_path: Path) -> None:
    fields = [DataField(7, "a", parse_type("INT"), default="5"), DataField(7, "b", parse_type("TIME(3)"))]
    schema = PaimonTable.create(str(tmp_path / "t"), fields).schema
    assert [(f.id, f.name, f.default) for f in schema.fields] == [(0, "a", "5"), (1, "b", None)]


def test_alterations(tmp_path: Path) -> None:
    table = PaimonTable.create(str(tmp_path / "t"), ARROW)
    altered = table.alter([SchemaChange.add_column("price", "DECIMAL(10, 2)", after="id")])
    assert altered == table.schema
    assert (altered.id, altered.names) == (1, ("id", "price", "name", "day"))
    assert table.schema_at(0).names == ("id", "name", "day")
    with pytest.raises(InvalidRequest):
        table.alter([SchemaChange.drop_column("zz")])
    with pytest.raises(InvalidRequest):
        table.alter(SchemaChange.drop_column("name"))
    assert table.schema.id == 1


def test_data_forbids_changes_of_options(tmp_path: Path) -> None:
    table = PaimonTable.create(str(tmp_path / "t"), ARROW, primary_keys=["id"], options={"bucket": "2"})
    table.alter([SchemaChange.set_option("bucket", "4")])
    (tmp_path / "t/snapshot").mkdir()
    (tmp_path / "t/snapshot/snapshot-1").write_text("{}")
    with pytest.raises(InvalidRequest) as error:
        table.alter([SchemaChange.set_option("bucket", "-1")])
    assert error.value.code == "bucket-change"


def test_what_cannot_be_created(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    with pytest.raises(InvalidRequest) as error:
        PaimonTable.create(url, ARROW, primary_keys="id")
    assert error.value.code == "invalid-key"
    with pytest.raises(InvalidRequest):
        PaimonTable.create(url, ["id"])
    with pytest.raises(InvalidRequest):
        PaimonTable.create(url, ARROW, primary_keys=["zz"])
    assert not (tmp_path / "t").exists()
    PaimonTable.create(url, ARROW)
    with pytest.raises(InvalidRequest) as error:
        PaimonTable.create(url, ARROW)
    assert error.value.code == "table-exists"


def test_where_no_table_is(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as error:
        PaimonTable.forPath(str(tmp_path))
    assert error.value.code == "not-a-table"
    table = PaimonTable.create(str(tmp_path / "t"), ARROW)
    with pytest.raises(NotFound):
        table.schema_at(1)


def test_the_door_is_light() -> None:
    """Schemas need neither pyspark nor what stands above the wing."""
    code = (
        "import sys, alluvium.paimon as p; assert p.schema.TableSchema; assert 'PaimonTable' in dir(p); "
        "print(sorted({'pyspark', 'sqlglot', 'obstore', 'alluvium.api'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize(
    "verb",
    [lambda t: t.delete(), lambda t: t.update(set={"id": "1"}), lambda t: t.merge(None, "true"), lambda t: t.compact()],
    ids=["delete", "update", "merge", "compact"],
)
def test_rows_of_a_branch_are_not_those_of_the_main_one(tmp_path: Path, verb) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, ARROW).create_branch("b")
    with pytest.raises(UnsupportedFeature) as caught:
        verb(PaimonTable.forPath(url, branch="b"))
    assert caught.value.code == "unsupported-branch"
