"""variantShredding. Specification: "Variant Shredding"."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from delta_values import make_config
from variant_table import SCHEMA, TEXTS, write_variants

import alluvium
from alluvium.cli.app import main
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.features.types.variant_shredding import FEATURE
from alluvium.delta.terms.spec import Protocol
from alluvium.errors import InvalidRequest


@pytest.mark.parametrize("name", ["variantShredding", "variantShredding-preview"])
def test_read_and_written(name: str) -> None:
    """readers "must recognize and tolerate a `variant` data type in a Delta schema." """
    names = ("variantType", name)
    listed = Protocol(min_reader_version=3, min_writer_version=7, reader_features=names, writer_features=names)
    config = make_config(SCHEMA, protocol=listed)
    ensure_readable(config)
    assert FEATURE.is_used(config)
    ensure_writable(config)


def test_the_property_brings_both_features() -> None:
    """ "Writers must ensure the `variantShredding` table feature is present in the table protocol's `writerFeatures`
    and `readerFeatures` when enabling variant shredding"; "`variantShredding` and `variantType` must be present".
    """
    protocol = table_config(NewTable(SCHEMA, properties={"delta.enableVariantShredding": "true"})).protocol
    assert set(protocol.reader_features or ()) == {"variantType", "variantShredding"}
    assert {"variantType", "variantShredding"} <= set(protocol.writer_features or ())


@pytest.fixture
def table(tmp_path: Path) -> str:
    write_variants(tmp_path)
    return str(tmp_path)


def test_files_may_be_shredded_differently(table: str) -> None:
    """ "Tables supporting Variant Shredding may also contain parquet files containing Variants represented in the
    "unshredded" format"; "Different files may contain conflicting shredding schemas."
    """
    found = alluvium.open(table).to_pandas()
    # pandas 3 has NaN for a text that is none.
    texts = found["v"].astype(object).where(found["v"].notna(), None)
    assert dict(zip(found["id"], texts, strict=True)) == TEXTS
    assert alluvium.open(table).to_arrow().schema.field("v").type.field("value").type == pa.binary()


def test_predicates(table: str) -> None:
    t = alluvium.open(table)
    assert t.to_arrow(["id"], where="v is null")["id"].to_pylist() == [1]
    assert t.files("v is null").num_rows == 1
    assert t.to_arrow(["id"], where="v is not null and id >= 10").num_rows == 3
    for where in ("v = 1", "v in (1)", "cast(v as string) = 'x'", "cast(v as boolean)", "v like 'x%'", "v < v"):
        assert t.files(where).num_rows == 4
        with pytest.raises(InvalidRequest) as caught:
            t.to_arrow(where=where)
        assert caught.value.code == "unsupported-expression"


def test_the_command_line_prints_json(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    for how in ("json", "csv", "table"):
        with pytest.raises(SystemExit) as end:
            main(["cat", table, "--format", how])
        assert not end.value.code
        out = capsys.readouterr().out
        if how == "json":
            assert {row["id"]: row["v"] for row in json.loads(out)} == TEXTS
        assert "text" in out
