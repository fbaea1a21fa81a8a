"""How a table wants its data files."""

from __future__ import annotations

from dataclasses import replace

import pytest
from delta_values import make_config

from alluvium.delta.terms.file_properties import (
    NO_LAYOUT,
    FileLayout,
    FileProperties,
    file_properties,
    wants_auto_compaction,
)
from alluvium.delta.terms.properties import settable_properties
from alluvium.delta.write.write import plan_write
from alluvium.errors import InvalidRequest
from alluvium.plan.write import TARGET_FILE_BYTES
from alluvium.schema.types import LONG, Field, Struct

SCHEMA = Struct((Field("id", LONG),))


def test_a_table_that_says_nothing() -> None:
    assert file_properties({}) == FileProperties(False, TARGET_FILE_BYTES, None, 0)
    assert file_properties({}).random_prefix() == ""
    assert file_properties({"delta.randomPrefixLength": "5"}).prefix_length == 0


@pytest.mark.parametrize(
    ("text", "size"), [("1048576", 1 << 20), ("128mb", 128 << 20), (" 1 GB ", 1 << 30), ("64K", 64 << 10), ("7b", 7)]
)
def test_sizes(text: str, size: int) -> None:
    assert file_properties({"delta.targetFileSize": text}).target_file_bytes == size


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("delta.targetFileSize", "0"),
        ("delta.targetFileSize", "large"),
        ("delta.targetFileSize", "-1mb"),
        ("delta.parquet.compression.codec", "zip"),
        ("delta.randomPrefixLength", "0"),
        ("delta.autoOptimize.optimizeWrite", "yes"),
    ],
)
def test_values_that_make_no_sense_are_refused_when_they_are_set(name: str, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        settable_properties({name: text})
    assert caught.value.code == "invalid-property"


def test_the_plan_follows() -> None:
    properties = {
        "delta.autoOptimize.optimizeWrite": "true",
        "delta.targetFileSize": "1mb",
        "delta.parquet.compression.codec": "ZSTD",
        "delta.randomizeFilePrefixes": "true",
    }
    config = make_config(SCHEMA, properties=properties)
    plan = plan_write(config, "url")
    assert plan.rebalance and plan.target_file_bytes == 1 << 20
    assert dict(plan.options) == {"compression": "zstd"}
    prefix, _, job = plan.directory.partition("/")
    assert len(prefix) == 2 and prefix.isalnum() and len(job) == 36
    assert dict(plan_write(config, "url", options=[("compression", "gzip")]).options) == {"compression": "gzip"}


@pytest.mark.parametrize(
    ("properties", "wanted"),
    [
        ({}, False), ({"delta.autoOptimize.autoCompact": "true"}, True), ({"delta.autoOptimize.autoCompact": "false"}, False),
        ({"delta.autoOptimize.autoCompact": "auto"}, True), ({"delta.autoOptimize.autoCompact": "legacy"}, True),
        ({"delta.autoOptimize": "true"}, True), ({"delta.autoOptimize": "false"}, False),
        ({"delta.autoOptimize": "true", "delta.autoOptimize.autoCompact": "false"}, True),
        ({"delta.autoOptimize": "false", "delta.autoOptimize.autoCompact": "true"}, True),
    ],
    ids=str,
)  # fmt: skip
def test_who_wants_small_files_put_together(properties: dict[str, str], wanted: bool) -> None:
    assert wants_auto_compaction(properties) is wanted


@pytest.mark.parametrize("name", ["delta.autoOptimize", "delta.autoOptimize.autoCompact"])
def test_what_is_no_such_wish(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        wants_auto_compaction({name: "perhaps"})
    assert caught.value.code == "invalid-property"


def test_random_prefixes_where_they_are_asked_for() -> None:
    asked = {"delta.randomizeFilePrefixes": "true"}
    assert file_properties(asked).prefix_length == 2
    assert file_properties({"delta.randomizeFilePrefixes": "false", "delta.randomPrefixLength": "5"}).prefix_length == 0
    long = file_properties({**asked, "delta.randomPrefixLength": "300"})
    prefix = long.random_prefix()
    assert (long.prefix_length, len(prefix), prefix[-1]) == (300, 301, "/")
    letters = prefix[:-1]
    # Letters of both cases and digits, and not always the same.
    assert letters.isalnum() and letters.isascii() and letters != long.random_prefix()[:-1]
    assert any(c.isdigit() for c in letters) and any(c.islower() for c in letters) and any(c.isupper() for c in letters)


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("delta.autoOptimize.optimizeWrite", "TRUE", "optimize_write", True), ("delta.autoOptimize.optimizeWrite", "false", "optimize_write", False),
        ("delta.parquet.compression.codec", "GZIP", "codec", "gzip"), ("delta.targetFileSize", "2kb", "target_file_bytes", 2048),
    ],
)  # fmt: skip
def test_each_property_alone(name: str, text: str, attribute: str, value: object) -> None:
    assert file_properties({name: text}) == replace(FileProperties(), **{attribute: value})  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest) as caught:
        file_properties({name: "nonsense"})
    assert caught.value.code == "invalid-property" and name in caught.value.message
    assert FileLayout(optimize_write=None, bin_bytes=None, most_tasks=None) == NO_LAYOUT
