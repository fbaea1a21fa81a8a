"""columnMapping. Specification: "Column Mapping", "Reader Requirements for Column Mapping"."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from delta_values import make_config
from mapped_table import MAPPED, Log, by, features, mapped, numbered, renamed

import alluvium
from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.terms.mapping import PHYSICAL_NAME
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.view.scan import plan_scan
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.types import Array, Field, Map, Struct
from alluvium.schema.walk import fields_within
from alluvium.storage.open import open_store

FLAT = Struct((mapped("id", t.LONG, "c1", 1), mapped("the name", t.STRING, "c2", 2)))
ROWS = pa.table({"c1": [1, 2], "c2": ["a", "b"]})
INNER = Struct((mapped("x y", t.LONG, "c5", 5), mapped("z", t.STRING, "c6", 6)))
NESTED = Struct(
    (
        mapped("s", INNER, "c3", 3),
        mapped("l", Array(Struct((mapped("e", t.LONG, "c7", 7),))), "c4", 4),
        mapped("m", Map(t.STRING, Struct((mapped("v", t.LONG, "c9", 9),))), "c8", 8),
    )
)
NESTED_ROWS = pa.table(
    {
        "c3": pa.array([{"c5": 1, "c6": "a"}, None], pa.struct([("c5", pa.int64()), ("c6", pa.string())])),
        "c4": pa.array([[{"c7": 1}, None], None], pa.list_(pa.struct([("c7", pa.int64())]))),
        "c8": pa.array([[("k", {"c9": 1})], []], pa.map_(pa.string(), pa.struct([("c9", pa.int64())]))),
    }
)
NESTED_VALUES = [
    {"s": {"x y": 1, "z": "a"}, "l": [{"e": 1}, None], "m": [("k", {"v": 1})]},
    {"s": None, "l": None, "m": []},
]


def log(tmp_path: Path) -> Log:
    return Log(open_store(str(tmp_path)))


def test_by_name_columns_are_found_by_their_physical_names(tmp_path: Path):
    """ "In `name` mode, readers must resolve columns in the data files by their physical names as given by the column
    metadata property `delta.columnMapping.physicalName` in the Delta schema."
    """
    log(tmp_path).commit(FLAT, MAPPED, by("name"), files=[(ROWS, {}, None)])
    rows = alluvium.open(str(tmp_path)).to_arrow()
    assert rows.to_pydict() == {"id": [1, 2], "the name": ["a", "b"]}
    assert alluvium.open(str(tmp_path)).to_arrow(["the name"], "id = 2").to_pydict() == {"the name": ["b"]}


def test_by_name_numbers_do_not_count(tmp_path: Path):
    """ "Column ids are not used in this mode for resolution purposes." """
    log(tmp_path).commit(FLAT, MAPPED, by("name"), files=[(numbered(ROWS, {"c1": 2, "c2": 1}), {}, None)])
    assert alluvium.open(str(tmp_path)).to_arrow().to_pydict() == {"id": [1, 2], "the name": ["a", "b"]}


def test_columns_that_the_files_lack_are_null(tmp_path: Path):
    """ "For columns that are not found in the files, `null`s need to be returned." A column of the display name is
    another column: it was dropped.
    """
    rows = pa.table({"c1": [1, 2], "the name": ["dropped", "dropped"]})
    log(tmp_path).commit(FLAT, MAPPED, by("name"), files=[(rows, {}, None)])
    table = alluvium.open(str(tmp_path))
    assert table.to_arrow().to_pydict() == {"id": [1, 2], "the name": [None, None]}
    assert table.to_arrow(where="`the name` is null").num_rows == 2


@pytest.mark.parametrize("mode", ["name", "id"])
def test_nested_columns_are_mapped_at_any_depth(tmp_path: Path, mode: str):
    """ "In both modes, every column - nested or leaf - is assigned a unique _physical_ name, and a unique 32-bit
    integer as an id."
    """
    rows = numbered(NESTED_ROWS, {f"c{i}": i for i in range(3, 10)})
    log(tmp_path).commit(NESTED, MAPPED, by(mode), files=[(rows, {}, None)])
    table = alluvium.open(str(tmp_path))
    assert table.to_arrow().to_pylist() == NESTED_VALUES
    assert table.to_arrow(["l"], "s.`x y` = 1").to_pylist() == [{"l": [{"e": 1}, None]}]


def test_by_id_columns_are_found_by_number(tmp_path: Path):
    """ "In `id ` mode, readers must resolve columns by using the `field_id` in the parquet metadata for each file, as
    given by the column metadata property `delta.columnMapping.id` in the Delta schema."
    """
    rows = numbered(pa.table({"other": [1, 2], "c1": ["a", "b"]}), {"other": 1, "c1": 2})
    log(tmp_path).commit(FLAT, MAPPED, by("id"), files=[(rows, {}, None)])
    assert alluvium.open(str(tmp_path)).to_arrow().to_pydict() == {"id": [1, 2], "the name": ["a", "b"]}


def test_by_id_numbers_that_the_file_lacks_are_null(tmp_path: Path):
    """ "For ids that cannot be found in a file, readers must return `null` values for those columns." """
    log(tmp_path).commit(FLAT, MAPPED, by("id"), files=[(numbered(ROWS, {"c1": 1, "c2": 7}), {}, None)])
    assert alluvium.open(str(tmp_path)).to_arrow().to_pydict() == {"id": [1, 2], "the name": [None, None]}


def test_by_id_files_without_numbers_are_refused(tmp_path: Path):
    """ "If a data file does not contain field ids, readers must refuse to read that file or return nulls for each
    column."
    """
    log(tmp_path).commit(FLAT, MAPPED, by("id"), files=[(ROWS, {}, None)])
    with pytest.raises(CorruptTable) as caught:
        alluvium.open(str(tmp_path)).to_arrow()
    assert (caught.value.code, caught.value.path) == ("missing-field-ids", "0-0.parquet")


@pytest.mark.parametrize("mode", ["name", "id"])
def test_partition_values_go_by_physical_names(tmp_path: Path, mode: str):
    """ "Partition values and column level statistics must be resolved by their *physical names* for each `add` entry
    in the transaction log."
    """
    # The data column's physical name is the display name of the partition column.
    schema = Struct((mapped("v", t.LONG, "p", 1), mapped("p", t.LONG, "q", 2)))
    file = numbered(pa.table({"p": [1]}), {"p": 1})
    files = [(file, {"q": "5", "p": "6"}, None), (file, {"q": "7"}, None), (file, {"p": "5"}, None)]
    log(tmp_path).commit(schema, MAPPED, by(mode), ["p"], files)
    table = alluvium.open(str(tmp_path))
    assert table.to_arrow().to_pydict() == {"v": [1, 1, 1], "p": [5, 7, None]}
    assert table.files("p = 5").num_rows == 1


def test_statistics_go_by_physical_names(tmp_path: Path):
    """As above. Bounds under the display name are those of a column that was dropped, and must not skip files."""
    schema = Struct((mapped("n", t.LONG, "c1", 1), mapped("s", Struct((mapped("x", t.LONG, "c3", 3),)), "c2", 2)))
    rows = pa.table({"c1": [5], "c2": pa.array([{"c3": 50}])})
    good = {"numRecords": 1, "minValues": {"c1": 5, "c2": {"c3": 50}}, "maxValues": {"c1": 5, "c2": {"c3": 50}}}
    leak = {"numRecords": 1, "minValues": {"n": 1, "s": {"x": 1}}, "maxValues": {"n": 1, "s": {"x": 1}}}
    log(tmp_path).commit(schema, MAPPED, by("name"), files=[(rows, {}, good), (rows, {}, leak)])
    table = alluvium.open(str(tmp_path))
    for where in ("n = 5", "s.x = 50"):
        assert table.to_arrow(where=where).num_rows == 2
    for where in ("n = 1", "s.x = 1"):
        assert table.files(where).num_rows == 1
        assert table.to_arrow(where=where).num_rows == 0


def test_columns_are_renamed_dropped_and_added_again(tmp_path: Path):
    """ "The physical name of the column is static and can be different than the _display name_ of the column, which is
    changeable."
    """
    found = log(tmp_path)
    stats = {"numRecords": 2, "minValues": {"c1": 1, "c2": "a"}, "maxValues": {"c1": 2, "c2": "b"}}
    found.commit(FLAT, MAPPED, by("name"), files=[(ROWS, {}, stats)])
    found.commit(renamed(FLAT, {"the name": "a.b,;{}()=`"}), properties=by("name"))
    again = Struct((FLAT.fields[0], mapped("the name", t.LONG, "c3", 3)))
    found.commit(again, properties=by("name"), files=[(pa.table({"c1": [3], "c3": [30]}), {}, None)])
    newest = alluvium.open(str(tmp_path))
    assert newest.to_arrow().to_pydict() == {"id": [1, 2, 3], "the name": [None, None, 30]}
    assert newest.to_arrow(where="`the name` = 30").num_rows == 1
    before = alluvium.open(str(tmp_path), version=1)
    assert before.to_arrow().to_pydict() == {"id": [1, 2], "a.b,;{}()=`": ["a", "b"]}
    assert before.to_arrow(where="`a.b,;{}()=``` = 'b'").num_rows == 1
    assert before.files("`a.b,;{}()=``` = 'c'").num_rows == 0
    assert alluvium.open(str(tmp_path), version=0).to_arrow().column_names == ["id", "the name"]


@pytest.mark.parametrize("properties", [by("none"), {}])
def test_without_a_mode_display_names_count(tmp_path: Path, properties: dict[str, str]):
    """ "In `none` mode, or if the table property is not present, readers must read the parquet files by using the
    display names (the `name` field of the column definition) of the columns in the schema."
    """
    rows = pa.table({"id": [1], "the name": ["a"], "c1": [2]})
    log(tmp_path).commit(FLAT, MAPPED, properties, files=[(rows, {}, None)])
    assert alluvium.open(str(tmp_path)).to_arrow().to_pydict() == {"id": [1], "the name": ["a"]}


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(min_reader_version=1, min_writer_version=5),
        Protocol(min_reader_version=1, min_writer_version=7, writer_features=("columnMapping",)),
        features("timestampNtz"),
    ],
)
def test_the_property_alone_has_no_meaning(tmp_path: Path, protocol: Protocol):
    """ "The table property should only be honored if the table's protocol has reader and writer versions and/or table
    features that support the `columnMapping` table feature."
    """
    rows = pa.table({"id": [1], "the name": ["a"]})
    log(tmp_path).commit(FLAT, protocol, by("name"), files=[(rows, {}, None)])
    assert alluvium.open(str(tmp_path)).to_arrow().to_pydict() == {"id": [1], "the name": ["a"]}


@pytest.mark.parametrize(
    "protocol",
    [
        MAPPED,
        Protocol(min_reader_version=2, min_writer_version=7, writer_features=("columnMapping",)),
        features("columnMapping"),
        # Listed for writers alone, which the specification forbids: the files are written with it all the same.
        Protocol(min_reader_version=3, min_writer_version=7, reader_features=(), writer_features=("columnMapping",)),
    ],
)
def test_protocols_that_support_it(tmp_path: Path, protocol: Protocol):
    log(tmp_path).commit(FLAT, protocol, by("name"), files=[(ROWS, {}, None)])
    assert alluvium.open(str(tmp_path)).to_arrow().to_pydict() == {"id": [1, 2], "the name": ["a", "b"]}


@pytest.mark.parametrize(
    ("schema", "mode", "column"),
    [
        (Struct((FLAT.fields[0], Field("x", t.LONG))), "name", "x"),
        (Struct((Field("s", Struct((Field("x", t.LONG),)), True, FLAT.fields[0].metadata),)), "name", "s.x"),
        (Struct((mapped("x", t.LONG, "", 1),)), "name", "x"),
        (Struct((Field("x", t.LONG, True, {"delta.columnMapping.physicalName": "c"}),)), "id", "x"),
        (Struct((mapped("x", t.LONG, "c", 1 << 31),)), "id", "x"),
        (Struct((mapped("a", t.LONG, "c", 1), mapped("b", t.LONG, "C", 2))), "name", "b"),
        (Struct((mapped("a", t.LONG, "c", 1), mapped("b", t.LONG, "d", 1))), "id", "d"),
    ],
)
def test_a_mapping_that_lacks_something_is_reported(schema: Struct, mode: str, column: str):
    with pytest.raises(CorruptTable) as caught:
        make_config(schema, properties=by(mode), protocol=MAPPED)
    assert (caught.value.code, caught.value.column) == ("invalid-column-mapping", column)


def test_an_unknown_mode_is_refused():
    with pytest.raises(UnsupportedFeature) as caught:
        make_config(FLAT, properties=by("ordinal"), protocol=MAPPED)
    assert caught.value.features == ("columnMapping",)


def test_such_tables_are_read_and_written():
    config = make_config(FLAT, properties=by("name"), protocol=MAPPED)
    ensure_readable(config)
    ensure_writable(config)


def test_the_schema_that_readers_see_carries_no_mapping(tmp_path: Path):
    log(tmp_path).commit(NESTED, MAPPED, by("name"), files=[(NESTED_ROWS, {}, None)])
    snapshot = load_snapshot(open_store(str(tmp_path)))
    assert "columnMapping" not in repr(plan_scan(snapshot).schema)
    assert "columnMapping" in repr(snapshot.config.schema)


def test_names_that_other_columns_may_have_are_not_scanned_by_id():
    """Engines push filters down by name; only names that a writer made up are sure to be nobody else's."""
    unique = "col-5f422f40-de70-45b2-88ab-1d5c90e94db"
    inner = Struct((mapped("x", t.LONG, f"{unique}2", 2),))
    made_up = Struct((mapped("a", t.LONG, f"{unique}1", 1), mapped("s", Array(inner), f"{unique}3", 3)))
    assert [f.name for f in scanned(made_up, "id")] == [f"{unique}1", f"{unique}3"]
    converted = Struct((*made_up.fields, mapped("m", Map(t.STRING, inner.fields[0].type), "a", 4)))
    deep = Struct((mapped("a", t.LONG, f"{unique}1", 1), mapped("s", Struct((mapped("x", t.LONG, "x", 4),)), "s", 3)))
    for schema in (converted, deep):
        names = [(f.name, f.metadata["parquet.field.id"]) for _, f in fields_within(Struct(scanned(schema, "id")))]
        assert all(name.endswith(f"#{number}") for name, number in names)
        assert [f.name for f in scanned(schema, "name")] == [f.metadata[PHYSICAL_NAME] for f in schema.fields]


def scanned(schema: Struct, mode: str) -> tuple[Field, ...]:
    store = open_store(f"memory://{uuid.uuid4()}/t")
    Log(store).commit(schema, MAPPED, by(mode))
    return plan_scan(load_snapshot(store)).parts[0].read_schema.fields
