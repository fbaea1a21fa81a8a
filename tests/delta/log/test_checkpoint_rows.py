"""Rows of checkpoints: values of every type as they were, one action a row, the few before the many."""

from __future__ import annotations

import io
import random

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta_values import make_files, make_metadata, removal_of

from alluvium.delta.log import checkpoint_rows as rows_of
from alluvium.delta.log.checkpoint import (
    CheckpointOptions,
    live_tombstones,
    live_txns,
    write_checkpoint,
)
from alluvium.delta.log.checkpoint_rows import count_rows, described, documents, file_rows, format_rows
from alluvium.delta.log.names import SIDECAR_DIRECTORY, checkpoint_paths
from alluvium.delta.terms.spec import (
    FILES,
    CheckpointMetadata,
    DomainMetadata,
    Metadata,
    Protocol,
    RowIdHighWaterMark,
    Sidecar,
    Txn,
)

from .conftest import LogWriter


def test_actions_of_every_kind() -> None:
    domains = [DomainMetadata(domain="d", configuration="é", removed=n == 1) for n in range(3)]
    txns = [Txn(app_id="a", version=2**62), Txn(app_id="", version=-1, last_updated=5)]
    protocols = [
        Protocol(min_reader_version=3, min_writer_version=7, reader_features=(), writer_features=("x", "y")),
        Protocol(min_reader_version=1, min_writer_version=2),
    ]
    sidecars = [
        Sidecar(path="s", size_in_bytes=1, modification_time=2, tags={"a": None, "b": "c"}),
        Sidecar(path="t", size_in_bytes=3, modification_time=4),
        Sidecar(path="u", size_in_bytes=3, modification_time=4, tags={}),
    ]
    for actions, kind, expected in (
        (domains, rows_of.DOMAIN_METADATA, [{"domain": "d", "configuration": "é", "removed": n == 1} for n in range(3)]),
        (txns, rows_of.TXN, [{"appId": "a", "version": 2**62, "lastUpdated": None}, {"appId": "", "version": -1, "lastUpdated": 5}]),
        (protocols, rows_of.PROTOCOL, [
            {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": ["x", "y"]},
            {"minReaderVersion": 1, "minWriterVersion": 2, "readerFeatures": None, "writerFeatures": None},
        ]),
        (sidecars, rows_of.SIDECAR, [
            {"path": "s", "sizeInBytes": 1, "modificationTime": 2, "tags": [("a", None), ("b", "c")]},
            {"path": "t", "sizeInBytes": 3, "modificationTime": 4, "tags": None},
            {"path": "u", "sizeInBytes": 3, "modificationTime": 4, "tags": []},
        ]),
        ([CheckpointMetadata(version=7, tags={"k": "v"})], rows_of.CHECKPOINT_METADATA, [{"version": 7, "tags": [("k", "v")]}]),
        ([RowIdHighWaterMark(high_water_mark=9)], rows_of.HIGH_WATER_MARK, [{"highWaterMark": 9, "preservedRowIds": None}]),
        ([], rows_of.TXN, []),
    ):  # fmt: skip
        (column,) = documents(actions, kind)  # type: ignore[arg-type]
        column.validate(full=True)
        assert column.type == kind and column.to_pylist() == expected and column.null_count == 0


def metadata(*unknown: tuple[str, bytes]) -> Metadata:
    made = make_metadata(partition_by=["p"], properties={"a": "b"})
    return msgspec.structs.replace(made, name="n", created_time=7, unknown=unknown)


def test_a_description_with_what_we_do_not_know_of_it() -> None:
    """Plain values alone; a name that another has, be it in another case, would hide it."""
    (column,) = described(
        metadata(("x", b'"text"'), ("n", b"7"), ("X", b"8"), ("Name", b'"other"'), ("f", b"1.5"), ("l", b"[1]"), ("z", b"null"),
                 ("big", b"9223372036854775807"), ("small", b"-9223372036854775808"), ("huge", b"9223372036854775808"),
                 ("tiny", b"-9223372036854775809"))
    )  # fmt: skip
    (row,) = column.to_pylist()
    known = {f.name for f in rows_of.METADATA}
    assert {k: v for k, v in row.items() if k not in known} == {
        "x": "text", "n": 7, "f": 1.5, "big": 2**63 - 1, "small": -(2**63)
    }  # fmt: skip
    assert (row["name"], row["createdTime"], row["partitionColumns"]) == ("n", 7, ["p"])
    assert (row["configuration"], row["format"]) == ([("a", "b")], {"provider": "parquet", "options": []})
    (bare,) = described(metadata())
    assert bare.type == rows_of.METADATA


def test_each_row_is_one_action_and_the_few_come_first() -> None:
    files = make_files(*({"path": f"f{n}", "size": n} for n in range(5)))
    chunked = pa.concat_tables([files.slice(0, 2), files.slice(2)])
    found = {
        "remove": file_rows(removal_of(files.slice(0, 2))), "add": file_rows(chunked), "metaData": described(metadata()),
        "txn": documents([Txn(app_id=n, version=1) for n in "ab"], rows_of.TXN),
        "protocol": documents([Protocol(min_reader_version=1, min_writer_version=2)], rows_of.PROTOCOL),
    }  # fmt: skip
    assert count_rows(found) == 11 and [len(chunk) for chunk in found["add"]] == [2, 3]
    table = pq.read_table(io.BytesIO(format_rows(found)))
    order = [next(name for name, value in row.items() if value is not None) for row in table.to_pylist()]
    assert order == ["protocol", "metaData", "txn", "txn", "remove", "remove", *["add"] * 5]
    assert all(sum(value is not None for value in row.values()) == 1 for row in table.to_pylist())
    assert [row["size"] for row in table["add"].to_pylist()[6:]] == list(range(5))
    assert [row["appId"] for row in table["txn"].to_pylist()[2:4]] == ["a", "b"]
    assert file_rows(FILES.empty_table())[0].type == file_rows(files)[0].type
    assert all(f.nullable for f in file_rows(files)[0].type)


def test_paths_of_files_have_bounds_and_nothing_else() -> None:
    """Readers of one file skip row groups by them."""
    files = make_files({"path": "a", "stats": "x"}, {"path": "c"})
    data = format_rows(
        {
            "protocol": documents([Protocol(min_reader_version=1, min_writer_version=2)], rows_of.PROTOCOL),
            "add": file_rows(files),
            "remove": file_rows(removal_of(files.slice(1))),
        }
    )
    group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    bounded = {}
    for n in range(group.num_columns):
        column = group.column(n)
        if column.is_stats_set and column.statistics.has_min_max:
            bounded[column.path_in_schema] = (column.statistics.min, column.statistics.max)
        assert column.compression == "SNAPPY"
    assert bounded == {"add.path": ("a", "c"), "remove.path": ("c", "c")}


# --- what is forgotten ----------------------------------------------------------------------------------------------


def test_tombstones_stay_until_they_have_expired(log: LogWriter) -> None:
    """One without a time counts as removed in 1970."""
    times = [None, 0, 1, 500, 501, 900]
    log.commit(0, [*log.head(), *(log.remove(f"r{n}", at=at) for n, at in enumerate(times))])
    tombstones = log.load().tombstones
    for now_ms, retention_ms in ((1000, 500), (1000, 499), (1000, 1000), (1000, 1001), (5000, 1)):
        found = live_tombstones(tombstones, now_ms, retention_ms)["path"].to_pylist()
        expected = [f"r{n}" for n, at in enumerate(times) if (at or 0) > now_ms - retention_ms]
        assert found == expected


def test_transactions_stay_as_long_as_the_table_says(log: LogWriter) -> None:
    times = {"a": None, "b": 0, "c": 500, "d": 501}
    log.commit(0, [*log.head(), *(Txn(app_id=name, version=1, last_updated=at) for name, at in times.items())])
    state = log.load()
    assert [txn.app_id for txn in live_txns(state, 1000, None)] == list(times)
    for retention_ms in (499, 500, 501, 1000, 1001, 5000):
        expected = [name for name, at in times.items() if at is not None and at > 1000 - retention_ms]
        assert [txn.app_id for txn in live_txns(state, 1000, retention_ms)] == expected


@pytest.mark.parametrize("v2", [False, True])
@pytest.mark.parametrize("count", [1, 4, 5, 8, 9])
def test_how_many_files_a_checkpoint_is_written_in(log: LogWriter, v2: bool, count: int) -> None:
    log.commit(0, [*log.head(), *(log.add(f"f{n}") for n in range(count)), log.remove("r", at=500)])
    state = log.load()
    last = write_checkpoint(log.store, state, CheckpointOptions(600, 1000, v2=v2, max_actions=4))
    parts = -(-(count + 1) // 4)
    sidecars = [info.path for info in log.store.list_tree(SIDECAR_DIRECTORY)]
    if v2:
        # Removed files have a sidecar of their own where they do not fit beside all others.
        assert len(sidecars) == (1 if count + 1 <= 4 else -(-count // 4) + 1) and last.parts is None
        named = [info for info in log.store.list_from("_delta_log") if ".checkpoint." in info.path]
        assert last.size_in_bytes == sum(log.store.head(path).size for path in sidecars) + named[0].size
    else:
        paths = checkpoint_paths(0, parts if parts > 1 else None)
        assert last.parts == (parts if parts > 1 else None) and sidecars == []
        assert last.size_in_bytes == sum(log.store.head(path).size for path in paths)
    # Protocol, description, the removed file.
    assert (last.version, last.num_of_add_files, last.size) == (0, count, count + 3)
    before = sorted(row["path"] for row in state.files.to_pylist())
    log.store.delete("_delta_log/00000000000000000000.json")
    again = log.load()
    assert sorted(again.files["path"].to_pylist()) == before and again.tombstones["path"].to_pylist() == ["r"]


def test_values_of_lists_and_maps_do_not_move() -> None:
    lot = random.Random(4)
    for _ in range(5):
        every = [
            Protocol(
                min_reader_version=3, min_writer_version=7,
                writer_features=lot.choice([None, (), ("a",), ("b", "c")]), reader_features=lot.choice([None, ("d",)]),
            )
            for _ in range(6)
        ]  # fmt: skip
        (column,) = documents(every, rows_of.PROTOCOL)
        column.validate(full=True)
        told = [(row["readerFeatures"], row["writerFeatures"]) for row in column.to_pylist()]
        lists = [(p.reader_features, p.writer_features) for p in every]
        assert told == [tuple(None if v is None else list(v) for v in pair) for pair in lists]


def test_values_that_repeat_have_a_dictionary_and_no_others() -> None:
    """Of all columns those of partitions; for the others it would be built in vain."""
    files = make_files(*({"path": f"f{n}", "partitionValues": {"p": "x"}, "stats": "{}"} for n in range(9)))
    found = {
        "protocol": documents([Protocol(min_reader_version=1, min_writer_version=2)], rows_of.PROTOCOL),
        "metaData": described(metadata()), "add": file_rows(files), "remove": file_rows(removal_of(files)),
    }  # fmt: skip
    group = pq.ParquetFile(io.BytesIO(format_rows(found))).metadata.row_group(0)
    columns = [group.column(n) for n in range(group.num_columns)]
    encoded = {column.path_in_schema for column in columns if "RLE_DICTIONARY" in column.encodings}
    assert encoded == {
        f"{kind}.partitionValues.key_value.{side}" for kind in ("add", "remove") for side in ("key", "value")
    }
