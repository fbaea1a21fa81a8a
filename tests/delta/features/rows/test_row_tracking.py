"""rowTracking. Specification: "Row Tracking"."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta_values import make_config, make_metadata

import alluvium
from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.features.rows.row_ids import is_enabled
from alluvium.delta.features.rows.row_tracking import FEATURE, asked_columns
from alluvium.delta.terms.spec import Action, Add, Protocol, format_actions
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.schema.types import LONG, STRING, Field, Struct

SCHEMA = Struct((Field("id", LONG), Field("p", STRING)))
PROTOCOL = Protocol(min_reader_version=1, min_writer_version=7, writer_features=(FEATURE.name, "domainMetadata"))
ON = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}
ASKED = ["*", "_row_id", "_row_commit_version"]


class Writer:
    """Writes a table of several files in one commit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.actions: list[Action] = []

    def file(self, name: str, partition: str, base: int | None, version: int | None, **columns: list[object]) -> None:
        types = {name: pa.int64() for name in columns}
        table = pa.table({n: pa.array(values, types[n]) for n, values in columns.items()})
        pq.write_table(table, self.root / name)
        self.actions.append(
            Add(
                path=name.replace(" ", "%20"), partition_values={"p": partition}, modification_time=1, data_change=True,
                size=(self.root / name).stat().st_size, base_row_id=base, default_row_commit_version=version,
            )
        )  # fmt: skip

    def commit(self, properties: dict[str, str], protocol: Protocol = PROTOCOL, schema: Struct = SCHEMA) -> str:
        (self.root / "_delta_log").mkdir()
        head = [protocol, make_metadata(schema, ["p"], properties)]
        (self.root / "_delta_log" / f"{0:020d}.json").write_bytes(format_actions([*head, *self.actions]))
        return str(self.root)


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_default_and_materialized_values(writer: Writer) -> None:
    """ "Readers must use the materialized Row ID if the column determined by
    `delta.rowTracking.materializedRowIdColumnName` is present in the data file and the column contains a non `null`
    value for a row. Otherwise, [...] readers must add the index of the row in the file to the `baseRowId`". The same
    for commit versions.
    """
    writer.file("a b.parquet", "x", 10, 3, id=[1, 2, 3])
    writer.file(
        "c.parquet", "y", 20, 5,
        **{"id": [4, 5, 6], "_row-id-col-1": [7, None, None], "_row-commit-version-col-1": [None, 1, None]},
    )  # fmt: skip
    table = alluvium.open(writer.commit(ON))
    assert rows(table.to_arrow(ASKED)) == [
        (1, "x", 10, 3), (2, "x", 11, 3), (3, "x", 12, 3), (4, "y", 7, 5), (5, "y", 21, 1), (6, "y", 22, 5),
    ]  # fmt: skip
    assert rows(table.to_arrow(["_ROW_ID"], where="id > 4")) == [(21,), (22,)]
    # "This column is hidden from readers"
    assert table.to_arrow().column_names == ["id", "p"]
    assert table.to_arrow(ASKED).schema.field("_row_id").type == pa.int64()


def test_positions_are_those_in_the_file(writer: Writer, tmp_path: Path) -> None:
    count = 10_000
    writer.file("a.parquet", "x", 100, 0, id=list(range(count)))
    pq.write_table(pa.table({"id": pa.array(range(count), pa.int64())}), tmp_path / "a.parquet", row_group_size=999)
    table = alluvium.open(writer.commit(ON))
    batches = table.to_batches(["id", "_row_id"], where="id % 7 = 3", batch_size=100)
    assert all(row["_row_id"] == row["id"] + 100 for batch in batches for row in batch.to_pylist())


def test_they_may_stand_in_predicates(writer: Writer) -> None:
    writer.file("a.parquet", "x", 10, 3, id=[1, 2, 3])
    writer.file("b.parquet", "y", 20, 5, id=[4, 5, 6])
    table = alluvium.open(writer.commit(ON))
    assert rows(table.to_arrow(where="_row_id between 12 and 20")) == [(3, "x"), (4, "y")]
    assert rows(table.to_arrow(["_row_id"], where="_ROW_COMMIT_VERSION = 5 and id > 5")) == [(22,)]
    assert rows(table.to_arrow(where="p = 'x' and _row_id <> 11")) == [(1, "x"), (3, "x")]


def test_predicates_without_row_tracking(writer: Writer) -> None:
    writer.file("a.parquet", "x", 10, 3, id=[1])
    table = alluvium.open(writer.commit({}))
    with pytest.raises(InvalidRequest) as raised:
        table.to_arrow(where="_row_id = 10")
    assert raised.value.code == "unknown-column"


def test_without_names_of_materialized_columns(writer: Writer) -> None:
    writer.file("a.parquet", "x", 10, 3, id=[1])
    table = alluvium.open(writer.commit({"delta.enableRowTracking": "true"}))
    assert rows(table.to_arrow(ASKED)) == [(1, "x", 10, 3)]


def test_an_empty_table(writer: Writer) -> None:
    table = alluvium.open(writer.commit(ON)).to_arrow(ASKED)
    assert (table.num_rows, table.column_names) == (0, ["id", "p", "_row_id", "_row_commit_version"])


@pytest.mark.parametrize(
    ("protocol", "properties"),
    [(PROTOCOL, {}), (PROTOCOL, {**ON, "delta.enableRowTracking": "false"}),
     (Protocol(min_reader_version=1, min_writer_version=2), ON)],
)  # fmt: skip
def test_where_it_is_not_enabled_nothing_can_be_relied_upon(
    writer: Writer, protocol: Protocol, properties: dict[str, str]
) -> None:
    """ "However, they cannot yet be relied upon to be present in the table." """
    writer.file("a.parquet", "x", 10, 3, id=[1])
    table = alluvium.open(writer.commit(properties, protocol))
    with pytest.raises(InvalidRequest) as caught:
        table.to_arrow(ASKED)
    assert (caught.value.code, caught.value.column) == ("row-tracking-disabled", "_row_id")
    assert rows(table.to_arrow()) == [(1, "x")]


@pytest.mark.parametrize(("base", "version"), [(None, 1), (1, None)])
def test_a_file_without_them_breaks_the_protocol(writer: Writer, base: int | None, version: int | None) -> None:
    """ "all files that are part of the table version that sets the table property `delta.enableRowTracking` to `true`
    must have `baseRowId` set"
    """
    writer.file("a.parquet", "x", 10, 3, id=[1])
    writer.file("b.parquet", "x", base, version, id=[1])
    table = alluvium.open(writer.commit(ON))
    with pytest.raises(CorruptTable) as caught:
        table.to_arrow(ASKED)
    assert caught.value.path == "b.parquet"
    assert table.to_arrow().num_rows == 2


def test_columns_of_the_table_of_that_name_are_its_own() -> None:
    assert asked_columns(["id", "_ROW_ID", "_row_commit_version"], SCHEMA) == ("_row_id", "_row_commit_version")
    own = Struct((*SCHEMA.fields, Field("_row_id", STRING)))
    assert asked_columns(["_row_id", "_row_commit_version"], own) == ("_row_commit_version",)


def test_such_tables_are_read_and_written() -> None:
    config = make_config(SCHEMA, properties=ON, protocol=PROTOCOL)
    assert is_enabled(config)
    ensure_readable(config)
    ensure_writable(config)
