"""Texts that are no value of their option are refused before a table has them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, open_target

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.terms.option_values import ensure_may_be_given, wrong_values
from alluvium.storage.open import open_store

SCHEMA = pa.schema([("k", pa.int64()), ("p", pa.string())])


@pytest.mark.parametrize(
    ("key", "text", "allowed"),
    [
        ("write-only", "perhaps", "true or false"),
        ("deletion-vectors.enabled", "maybe", "true or false"),
        ("ignore-delete", "x", "true or false"),
        ("first-row.ignore-delete", "x", "true or false"),
        ("bucket", "abc", "whole number"),
        ("bucket", "99999999999", "2147483647"),
        ("bucket", "1_0", "whole number"),
        ("merge-engine", "foo", "partial-update"),
        ("changelog-producer", "x", "full-compaction"),
        ("target-file-size", "-1 mb", "128 mb"),
        ("num-levels", "1", "from 2"),
        ("num-sorted-run.compaction-trigger", "0", "from 1"),
        ("dynamic-bucket.max-buckets", "0", "from 1, or -1"),
        ("postpone.default-bucket-num", "0", "from 1"),
        ("snapshot.time-retained", "-1 h", "12 h"),
        ("tag.automatic-creation", "foo", "process-time"),
        ("record-level.expire-time", "soon", "12 h"),
        ("file.compression", "foo", "snappy"),
        ("metadata.stats-mode", "truncate(0)", "truncate(16)"),
        ("fields.k.ignore-retract", "x", "true or false"),
        ("fields.k.stats-mode", "x", "truncate(16)"),
        ("compaction.size-ratio", "x", "whole number"),
        ("source.split.target-size", "x", "128 mb"),
        ("lookup-wait", "x", "true or false"),
    ],
)
def test_refused(tmp_path: Path, key: str, text: str, allowed: str) -> None:
    store = open_store(str(tmp_path / "t"))
    with pytest.raises(InvalidRequest) as caught:
        PaimonTable.create(store.url, SCHEMA, ["p"], ["k", "p"], {key: text})
    assert caught.value.code == "invalid-table-option"
    assert key in caught.value.message and repr(text) in caught.value.message and allowed in caught.value.message
    assert not list(store.list_tree(""))
    table = PaimonTable.create(store.url, SCHEMA, ["p"], ["k", "p"])
    with pytest.raises(InvalidRequest) as caught:
        table.alter([SchemaChange.set_option(key, text)])
    assert caught.value.code == "invalid-table-option" and allowed in caught.value.message
    assert store.list_names("schema", "schema-") == ["schema-0"]


def test_what_a_table_has_already_is_left_alone(tmp_path: Path) -> None:
    """Java looks at an option when it needs it: such tables are there."""
    store = open_store(str(tmp_path / "t"))
    table = PaimonTable.create(store.url, SCHEMA, ["p"], ["k", "p"])
    document = json.loads(store.get("schema/schema-0"))
    document["options"]["snapshot.time-retained"] = "some"
    store.put("schema/schema-0", json.dumps(document).encode())
    table.alter([SchemaChange.set_option("snapshot.num-retained.min", "3")])
    table.alter([SchemaChange.set_option("snapshot.time-retained", "3 h")])


def test_values_as_java_has_them() -> None:
    values = {
        "write-only": "TRUE", "merge-engine": "PARTIAL_UPDATE", "bucket": "+4", "target-file-size": "1024 KiBiBytes",
        "snapshot.time-retained": "7d", "file.compression": "LZ4", "metadata.stats-mode": "TRUNCATE(8)",
        "dynamic-bucket.max-buckets": "-1", "dynamic-bucket.target-row-num": "9000000000", "owner": "?",
        "fields.a.aggregate-function": "sum", "file.format": "ORC", "postpone.target-row-num-per-bucket": "1",
    }  # fmt: skip
    assert list(wrong_values(values)) == []


def test_files_of_a_form_that_others_write_are_not_written(tmp_path: Path) -> None:
    """Java makes such tables, and so may we."""
    PaimonTable.create(url := str(tmp_path / "t"), SCHEMA, ["p"], (), {"file.format": "csv"})
    with pytest.raises(UnsupportedFeature) as caught:
        append(open_target(open_store(url)), [{"k": 1, "p": "a"}])
    assert "csv" in caught.value.message
    assert not open_store(url).list_names("snapshot", "")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"merge-engine": "first-row"}, "immutable-option"),
        ({"data-file.path-directory": "d"}, "immutable-option"),
        ({"row-tracking.enabled": "true"}, "immutable-option"),
        ({"deletion-vectors.enabled": "true"}, "deletion-vectors-change"),
        ({"bucket": "3"}, "bucket-change"),
        ({"target-file-size": "much"}, "invalid-table-option"),
    ],
)
def test_options_of_a_call_that_files_depend_on(given: dict[str, str], code: str) -> None:
    options = {"bucket": "2"}
    with pytest.raises(InvalidRequest) as caught:
        ensure_may_be_given(options, {"target-file-size": "1 mb", **given})
    assert caught.value.code == code
    ensure_may_be_given(options, {"bucket": "2", "target-file-size": "1 mb", "num-sorted-run.compaction-trigger": "2"})


@pytest.mark.parametrize("given", [{"branch": "b"}, {"scan.snapshot-id": "1"}, {"merge-engine": "aggregation"}])
def test_options_on_top_of_a_table_are_those_of_a_call(tmp_path: Path, given: dict[str, str]) -> None:
    table = PaimonTable.create(str(tmp_path / "t"), SCHEMA, primary_keys=["k"])
    with pytest.raises(InvalidRequest) as caught:
        table.with_options(given)
    assert caught.value.code in ("invalid-option", "immutable-option")
    assert table.with_options({"snapshot.num-retained.max": "3"}) is not table
