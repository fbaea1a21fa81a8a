"""Variants through the lane of Spark: the same values as without it, whoever asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest
from variant_table import TEXTS, malformed_column, write_variants

import alluvium
from alluvium.errors import CorruptTable, UnsupportedFeature


@pytest.fixture
def url(tmp_path: Path) -> str:
    write_variants(tmp_path / "t")
    return str(tmp_path / "t")


@pytest.fixture
def settings(spark) -> Iterator[Callable[[str, str], None]]:
    """Sets something in the session until the end of the test."""
    changed: list[str] = []

    def change(key: str, value: str) -> None:
        spark.conf.set(key, value)
        changed.append(key)

    yield change
    for key in changed:
        spark.conf.unset(key)


#: Spark 4.0 reads shredded variants only when told to.
SHREDDED = ("spark.sql.variant.allowReadingShredded", "true")


@pytest.mark.parametrize("by_batches", ["true", "false"])
def test_spark_reads_variants_plain_and_shredded(spark, settings, url: str, by_batches: str) -> None:
    """[Recommended] "Expose and interpret the struct-of-binary as a single Variant field" """
    settings("spark.sql.parquet.enableVectorizedReader", by_batches)
    settings(*SHREDDED)
    df = alluvium.read(spark, url)
    assert [(f.name, f.dataType.simpleString()) for f in df.schema.fields] == [("id", "bigint"), ("v", "variant")]
    assert {row.id: row.text for row in df.selectExpr("id", "to_json(v) text").collect()} == TEXTS
    assert [row.id for row in df.where("v is null").collect()] == [1]
    found = df.where("try_variant_get(v, '$.a', 'int') > 1").selectExpr("id", "try_variant_get(v, '$.a', 'int') a")
    assert [tuple(row) for row in found.collect()] == [(0, 7)]


def test_a_spark_that_does_not_take_shredded_variants(spark, settings, url: str) -> None:
    settings(SHREDDED[0], "false")
    df = alluvium.read(spark, url)
    if pyspark.__version__ >= "4.1":
        assert len(df.collect()) == len(TEXTS)
        return
    with pytest.raises(UnsupportedFeature) as caught:
        df.collect()
    assert caught.value.code == "shredded-variant"
    assert SHREDDED[0] in (caught.value.hint or "")


def test_a_malformed_variant_is_our_own_error(spark, settings, tmp_path: Path) -> None:
    settings(*SHREDDED)
    write_variants(tmp_path, [malformed_column()])
    df = alluvium.read(spark, str(tmp_path))
    with pytest.raises(CorruptTable) as ours:
        alluvium.open(str(tmp_path)).to_arrow()
    for act in (df.collect, df.toArrow):
        with pytest.raises(CorruptTable) as caught:
            act()
        assert caught.value.code == ours.value.code == "malformed-variant"
        assert (caught.value.path or "").endswith("0.parquet")
