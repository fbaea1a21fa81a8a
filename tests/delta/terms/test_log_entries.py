"""Entries of the log as they are written: what stands first, what is left out, and files by the thousand."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from delta_values import LEGACY, make_files, make_metadata, removal_of

from alluvium.delta.terms.actions import Actions, format_entry, format_file_actions, tombstones_of, total, with_tags
from alluvium.delta.terms.spec import CHANGE_FILES, TOMBSTONES, DomainMetadata, Txn

VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "offset": 0, "sizeInBytes": 5, "cardinality": 1}


def lines(data: bytes) -> list[tuple[str, Any]]:
    assert data.endswith(b"\n")
    return [next(iter(json.loads(line).items())) for line in data.splitlines()]


def test_the_order_of_an_entry() -> None:
    changes = pa.Table.from_pylist(
        [{"path": "c", "partitionValues": [("p", None)], "size": 3, "dataChange": False}], CHANGE_FILES
    )
    actions = Actions(
        protocol=LEGACY, metadata=make_metadata(), added=make_files({"path": "a"}), removed=removal_of(make_files({"path": "r"})),
        txns=(Txn(app_id="t", version=1), Txn(app_id="u", version=2)), domains=(DomainMetadata(domain="d", configuration="{}", removed=False),), change_files=changes,
        info={"tags": {"k": "v"}, "operation": "of features"},
    )  # fmt: skip
    found = lines(format_entry({"timestamp": 5, "operation": "WRITE"}, actions))
    assert [kind for kind, _ in found] == [
        "commitInfo",
        "metaData",
        "protocol",
        "txn",
        "txn",
        "domainMetadata",
        "add",
        "remove",
        "cdc",
    ]
    # What the commit says of itself counts more than what features say of it.
    assert found[0][1] == {"tags": {"k": "v"}, "operation": "WRITE", "timestamp": 5}
    assert [found[n][1]["appId"] for n in (3, 4)] == ["t", "u"]
    assert found[-1][1] == {"path": "c", "partitionValues": {"p": None}, "size": 3, "dataChange": False}
    assert lines(format_entry({}, Actions())) == [("commitInfo", {})]


def test_nothing_is_done_by_default() -> None:
    nothing = Actions()
    assert (
        nothing.protocol,
        nothing.metadata,
        nothing.txns,
        nothing.domains,
        dict(nothing.info),
        nothing.restores,
    ) == (None, None, (), (), {}, False)
    assert nothing.added.num_rows == nothing.removed.num_rows == nothing.change_files.num_rows == 0
    assert nothing.removed.schema == TOMBSTONES and nothing.change_files.schema == CHANGE_FILES


@pytest.mark.parametrize(
    ("info", "tags"),
    [
        ({}, {"a": "1"}),
        ({"tags": {"b": "2"}}, {"b": "2", "a": "1"}),
        ({"tags": {"a": "0"}}, {"a": "1"}),
        ({"tags": "odd", "k": 1}, {"a": "1"}),
    ],
)
def test_tags_beside_those_that_are_there(info: dict[str, Any], tags: dict[str, str]) -> None:
    before = Actions(info=info)
    assert with_tags(before, {"a": "1"}).info == {**info, "tags": tags}
    assert before.info is info


def test_more_files_than_are_written_at_a_time() -> None:
    files = make_files(*({"path": f"f{n}"} for n in range(3)))
    many = pa.concat_tables([files.take(pa.array([n % 3 for n in range(10_001)])), files])
    found = [json.loads(line)["add"]["path"] for line in format_file_actions("add", many)]
    assert found == [f"f{n % 3}" for n in range(10_001)] + ["f0", "f1", "f2"]


def test_what_is_null_is_left_out_of_a_file() -> None:
    row = {
        "path": "a",
        "partitionValues": {"p": None},
        "stats": None,
        "deletionVector": {**VECTOR, "offset": None},
        "tags": [("k", None)],
        "baseRowId": 0,
    }
    (line,) = format_file_actions("add", make_files(row))
    vector = {name: value for name, value in VECTOR.items() if name != "offset"}
    assert json.loads(line) == {"add": {
        "path": "a", "partitionValues": {"p": None}, "size": 1, "modificationTime": 0, "dataChange": True, "tags": {"k": None}, "deletionVector": vector, "baseRowId": 0,
    }}  # fmt: skip
    whole = json.loads(next(format_file_actions("add", make_files({"path": "a", "deletionVector": VECTOR}))))
    assert whole["add"]["deletionVector"] == VECTOR


@pytest.mark.parametrize("data_change", [True, False])
def test_tombstones_of_files(data_change: bool) -> None:
    files = make_files(
        {"path": "a", "size": 9, "partitionValues": {"p": "x"}, "deletionVector": VECTOR, "baseRowId": 4, "defaultRowCommitVersion": 2, "tags": [("k", "v")], "stats": "{}"},
        {"path": "b"},
    )  # fmt: skip
    removed = tombstones_of(files, 123, data_change)
    assert removed.schema == TOMBSTONES
    first, second = removed.to_pylist(maps_as_pydicts="strict")
    shared = {"deletionTimestamp": 123, "dataChange": data_change, "extendedFileMetadata": True}
    assert first == {
        "path": "a", **shared, "partitionValues": {"p": "x"}, "size": 9, "tags": {"k": "v"}, "deletionVector": VECTOR, "baseRowId": 4, "defaultRowCommitVersion": 2,
    }  # fmt: skip
    assert second == {
        "path": "b",
        **shared,
        "partitionValues": {},
        "size": 1,
        "tags": None,
        "deletionVector": None,
        "baseRowId": None,
        "defaultRowCommitVersion": None,
    }
    # What a checkpoint of old does not say of its files is null.
    less = tombstones_of(files.select(["path", "partitionValues", "size"]), 7)
    assert less.to_pylist()[0]["baseRowId"] is None and less["dataChange"].to_pylist() == [True, True]
    assert tombstones_of(files.slice(0, 0), 7).num_rows == 0


def test_sums() -> None:
    assert [total(pa.chunked_array(chunks, pa.int64())) for chunks in ([], [[]], [[1, None], [2]], [[None]])] == [
        0,
        0,
        3,
        0,
    ]
