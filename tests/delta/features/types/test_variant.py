"""variantType. Specification: "Variant Data Type"."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from delta_values import make_config

from alluvium.api.delta.alter import new_columns
from alluvium.api.views.schema import Schema
from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.description.evolve import add_feature
from alluvium.delta.description.evolve_columns import add_columns
from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.features.types.variant import FEATURE, is_used
from alluvium.delta.statistics.stats import AddStatistics, format_stats
from alluvium.delta.terms.spec import FILES, Protocol
from alluvium.delta.write.write import plan_write
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.schema.spark_json import parse_schema
from alluvium.schema.types import LONG, VARIANT, Array, Field, Map, Struct

SCHEMA = Struct((Field("id", LONG), Field("v", VARIANT), Field("s", Struct((Field("v", VARIANT),)))))


def protocol(*names: str) -> Protocol:
    return Protocol(min_reader_version=3, min_writer_version=7, reader_features=names, writer_features=names)


@pytest.mark.parametrize("name", ["variantType", "variantType-preview"])
def test_read_and_written(name: str) -> None:
    """readers "must recognize and tolerate a `variant` data type in a Delta schema." """
    config = make_config(SCHEMA, protocol=protocol(name))
    ensure_readable(config)
    ensure_writable(config)


def test_a_new_table_lists_the_feature() -> None:
    """ "The feature `variantType` must exist in the table `protocol`'s `readerFeatures` and `writerFeatures`." """
    config = table_config(NewTable(SCHEMA))
    assert config.protocol.reader_features == ("variantType",)
    assert "variantType" in (config.protocol.writer_features or ())


def test_an_existing_table_gets_it_by_request_only() -> None:
    """As in the reference: older readers lose the table by it."""
    config = table_config(NewTable(Struct((Field("id", LONG),))))
    columns = new_columns({"v": "variant"})
    with pytest.raises(InvalidRequest) as caught:
        add_columns(config, columns)
    assert caught.value.code == "feature-not-enabled"
    changed = add_columns(add_feature(config, "variantType").config, columns).config
    assert changed.schema.find("v") == Field("v", VARIANT)


def test_statistics_to_write_are_null_counts_alone() -> None:
    """ "A Variant column supports the `nullCount` statistic." Bounds only "if the table also enables the Variant
    shredding feature".
    """
    leaves = plan_write(table_config(NewTable(SCHEMA)), "url").stats_columns
    footer = FileFooter(3, {leaf.path: ColumnStats(leaf.type, None, None, 1) for leaf in leaves})
    stats = json.loads(format_stats([footer])[0].as_py())
    assert stats["nullCount"] == {"id": 1, "v": 1, "s": {"v": 1}}
    assert "v" not in stats.get("minValues", {}) and "v" not in stats.get("maxValues", {})


def test_a_variant_is_not_generated() -> None:
    """ "The Variant data type is not allowed to be the result type of a generated column expression." """
    schema = Struct((Field("id", LONG), Field("v", VARIANT, True, {"delta.generationExpression": "id"})))
    with pytest.raises(InvalidRequest) as caught:
        table_config(NewTable(schema))
    assert caught.value.code == "invalid-expression"


def test_the_schema_of_the_specification() -> None:
    """ "Example JSON-Encoded Delta Table Schema with Variant types" """
    text = """{"type": "struct", "fields": [
        {"name": "raw_data", "type": "variant", "nullable": true, "metadata": {}},
        {"name": "variant_array", "type": {"type": "array", "elementType": "variant", "containsNull": false},
         "nullable": false, "metadata": {}}]}"""
    schema = parse_schema(text)
    assert schema.fields[0].type == VARIANT
    assert schema.fields[1].type == Array(VARIANT, False)


def test_arrow_has_the_two_binaries() -> None:
    """readers "must use the correct physical schema (struct-of-binary, with fields `value` and `metadata`)", and may
    "[Alternate] Expose the raw physical struct-of-binary"
    """
    arrow = Schema(SCHEMA).to_arrow().field("v").type
    assert {f.name: f.type for f in arrow} == {"metadata": pa.binary(), "value": pa.binary()}


def test_no_table_is_partitioned_by_a_variant() -> None:
    """ "Variant is not a comparable data type, so it cannot be included in a partition column." """
    with pytest.raises(CorruptTable) as caught:
        make_config(SCHEMA, partition_by=["v"], protocol=protocol("variantType"))
    assert (caught.value.code, caught.value.column) == ("invalid-partition-column", "v")
    assert make_config(SCHEMA, partition_by=["id"], protocol=protocol("variantType")).partition_columns == ("id",)


@pytest.mark.parametrize(
    "data_type", [VARIANT, Array(VARIANT), Map(LONG, VARIANT), Struct((Field("x", VARIANT),))], ids=str
)
def test_used_at_any_depth(data_type: object) -> None:
    assert is_used(make_config(Struct((Field("c", data_type),))))  # type: ignore[arg-type]
    assert not is_used(make_config())
    assert FEATURE.name == "variantType"


def statistics(*stats: object, parsed: pa.Array | None = None) -> AddStatistics:
    texts = [None if s is None else json.dumps(s) for s in stats]
    columns = {name: pa.nulls(len(stats), FILES.field(name).type) for name in FILES.names if name != "stats"} | {
        "stats": pa.array(texts, pa.string())
    }
    if parsed is not None:
        columns["stats_parsed"] = parsed
    return AddStatistics(pa.table(columns), SCHEMA, ())


def test_bounds_of_variants_are_not_misread() -> None:
    """ "the `minValues` and `maxValues` stats for a Variant column are binary-encoded Variant values": of paths in it,
    so no bound of the whole. "A Variant column supports the `nullCount` statistic."
    """
    z85 = "0rJlc5f$EczEEx[cTw04cUW9st(>6d00icd1U*?]0000000000"
    bounds = {"v": z85, "s": {"v": {"metadata": "0rSr50S#>uv/", "value": "0S&u501fz*"}}}
    found = statistics(
        {"numRecords": 3, "minValues": bounds, "maxValues": bounds, "nullCount": {"v": 2, "s": {"v": 0}}}
    )
    for path, nulls in ((("v",), 2), (("s", "v"), 0)):
        low, high, count = found.lower(path), found.upper(path), found.null_count(path)
        assert low is not None
        assert high is not None
        assert count is not None
        assert (low.null_count, high.null_count, count.to_pylist()) == (1, 1, [nulls])


@pytest.mark.parametrize("bound", ["text", b"\x00", {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}], ids=str)
def test_parsed_bounds_of_variants_are_not_misread(bound: object) -> None:
    """ "In Parquet, the `minValues` and `maxValues` stats for a Variant column are Parquet Variant columns" """
    parsed = pa.array([{"numRecords": 1, "minValues": {"v": bound}, "maxValues": {"v": bound}, "nullCount": {"v": 0}}])
    found = statistics(None, parsed=parsed)
    low, count = found.lower(("v",)), found.null_count(("v",))
    assert low is not None
    assert count is not None
    assert (low.null_count, count.to_pylist()) == (1, [0])
