from __future__ import annotations

import json

import msgspec
import pytest

from alluvium.delta.terms.spec import (
    Add,
    Cdc,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    Remove,
    RowIdHighWaterMark,
    Txn,
    format_actions,
    parse_actions,
)
from alluvium.errors import CorruptTable

ADD = (
    b'{"add":{"path":"date=2017-12-10/part-000...c000.gz.parquet","partitionValues":{"date":"2017-12-10"},'
    b'"size":841454,"modificationTime":1512909768000,"dataChange":true,"stats":"{\\"numRecords\\":1}"}}\n'
)


def test_an_add_is_written_as_delta_spark_writes_it() -> None:
    (add,) = parse_actions(ADD)
    assert isinstance(add, Add)
    assert add.modification_time == 1512909768000
    assert format_actions([add]) == ADD


def test_actions_survive_the_way_there_and_back() -> None:
    vector = DeletionVector(storage_type="u", path_or_inline_dv="ab^", offset=4, size_in_bytes=40, cardinality=6)
    actions = [
        CommitInfo({"timestamp": 1, "operation": "WRITE", "anything": [1, {"x": None}]}),
        Protocol(min_reader_version=3, min_writer_version=7, reader_features=("a",), writer_features=("a", "b")),
        Metadata(
            id="i",
            format=Format(provider="parquet"),
            schema_string="{}",
            partition_columns=("p",),
            configuration={"delta.appendOnly": "true"},
            created_time=5,
        ),
        Add(path="a b", partition_values={"p": None}, size=1, modification_time=2, data_change=False, tags={"t": "1"}),
        Remove(path="x", data_change=True, deletion_vector=vector),
        Cdc(path="c", partition_values={}, size=3, data_change=False),
        Txn(app_id="app", version=-(2**63)),
        DomainMetadata(domain="d", configuration="{}", removed=True),
        RowIdHighWaterMark(high_water_mark=1432, preserved_row_ids=True),
    ]
    assert parse_actions(format_actions(actions)) == actions


def test_format_options_are_written_even_when_empty() -> None:
    assert msgspec.json.encode(Format(provider="parquet")) == b'{"provider":"parquet","options":{}}'


def test_unrecognised_fields_and_actions_are_ignored() -> None:
    """ "Clients must ignore such unrecognized fields, and should not produce an error" """
    line = b'{"txn":{"appId":"a","version":1,"future":{"x":[1]}}}\n{"checkpointV9":{"y":1}}\n\n{}\n'
    assert parse_actions(line) == [Txn(app_id="a", version=1)]


def test_a_unique_id_of_a_deletion_vector() -> None:
    """ "If `offset` is `None` then `<storageType><pathOrInlineDv>`. Otherwise [...]@<offset>" """
    vector = DeletionVector(storage_type="u", path_or_inline_dv="ab^", size_in_bytes=40, cardinality=6)
    assert vector.unique_id == "uab^"
    assert msgspec.structs.replace(vector, offset=0).unique_id == "uab^@0"


@pytest.mark.parametrize(
    "line",
    [
        b'{"add":{"path":"x"',
        b'{"add":{"partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}',
        b'{"txn":{"appId":"a","version":9223372036854775808}}',
        b'{"txn":{"appId":"a","version":"1"}}',
        b'{"txn":{"appId":"\xff","version":1}}',
        b"[]",
        b"null",
    ],
)
def test_a_damaged_line_is_named(line: bytes) -> None:
    with pytest.raises(CorruptTable) as caught:
        parse_actions(b'{"txn":{"appId":"a","version":1}}\n\n' + line, path="_delta_log/7.json", version=7)
    assert caught.value.code == "damaged-line"
    assert (caught.value.path, caught.value.version) == ("_delta_log/7.json", 7)
    assert "line 3" in caught.value.message


def test_a_line_without_end_is_no_crash() -> None:
    """An action that nobody knows is passed over; how deep it may be is the parser's to say."""
    line = b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    known = b'{"txn":{"appId":"a","version":1}}\n'
    try:
        actions = parse_actions(known + line, path="_delta_log/7.json", version=7)
    except CorruptTable as error:
        assert error.code == "damaged-line" and "line 2" in error.message
    else:
        assert actions == parse_actions(known, path="_delta_log/7.json", version=7)


def test_commit_info_keeps_everything_and_reads_what_it_can() -> None:
    """ "Implementations are free to store any valid JSON-formatted data via the `commitInfo` action." """
    (info,) = parse_actions(
        b'{"commitInfo":{"timestamp":"no number","operation":"MERGE","operationParameters":{"a":[1]},'
        b'"isBlindAppend":1}}'
    )
    assert isinstance(info, CommitInfo)
    assert info.operation == "MERGE"
    assert info.operation_parameters == {"a": [1]}
    assert info.timestamp is None
    assert info.is_blind_append is None
    assert info.content["timestamp"] == "no number"
    assert parse_actions(b'{"commitInfo":"text"}') == [CommitInfo({})]


def test_metadata_keeps_what_we_do_not_know() -> None:
    """Whoever changes a table writes its metadata anew, and others may have more to say there than we know."""
    known = b'{"id":"t","format":{"provider":"parquet"},"schemaString":"{}","partitionColumns":[],"configuration":{}'
    line = b'{"metaData":' + known + b',"future":{"a":[1,1.50]},"x y":null,"(unknown)":[["id","eA=="]]}}\n'
    (metadata,) = parse_actions(line)
    assert isinstance(metadata, Metadata)
    assert metadata.unknown == (("future", b'{"a":[1,1.50]}'), ("x y", b"null"))
    changed = msgspec.structs.replace(metadata, name="new")
    (written,) = format_actions([changed]).splitlines()
    found = json.loads(written)["metaData"]
    assert (found["id"], found["name"], found["future"], found["x y"]) == ("t", "new", {"a": [1, 1.5]}, None)
    assert parse_actions(written)[0].unknown[:2] == metadata.unknown[:2]
