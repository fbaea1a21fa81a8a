"""Changes of columns: what the configuration and the history say afterwards, and what is refused.

The parameters are delta-spark's, measured on 4.4.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest

from alluvium.delta.description.change_columns import alter_column, widen
from alluvium.delta.description.create import new_config
from alluvium.delta.description.evolve import Change
from alluvium.delta.description.evolve_columns import NewColumn, add_columns, drop_columns, rename_column
from alluvium.delta.features.registry import BY_NAME
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.spec import Format, Metadata, Protocol
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.edit import Position, find_path
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import (
    BYTE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    VOID,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    Struct,
)

SCHEMA = Struct(
    (
        Field("a", INTEGER),
        Field("b", STRING),
        Field("s", Struct((Field("x", INTEGER), Field("y", Struct((Field("z", INTEGER),)))))),
        Field("arr", Array(Struct((Field("e", INTEGER),)))),
        Field("m", Map(STRING, Struct((Field("v", INTEGER),)))),
        Field("ints", Array(INTEGER)),
    )
)
CONFIG = new_config(SCHEMA, [], {})


def column(name: str, data_type: DataType = INTEGER, position: Position | None = None, **field: object) -> NewColumn:
    path = tuple(name.split("."))
    return NewColumn(path, Field(path[-1], data_type, **field), position)  # type: ignore[arg-type]


def configured(schema: Struct, protocol: Protocol, partition: tuple[str, ...] = (), **properties: str) -> TableConfig:
    metadata = Metadata(
        id="x",
        format=Format(provider="parquet"),
        schema_string=format_schema(schema),
        partition_columns=partition,
        configuration={f"delta.{name.replace('_', '.')}": value for name, value in properties.items()},
    )
    return parse_config(protocol, metadata)


def mapped(data_type: DataType, counter: list[int]) -> DataType:
    """The type with ids and physical names at every depth."""
    if isinstance(data_type, Struct):
        fields = []
        for f in data_type.fields:
            counter[0] += 1
            ids = {"delta.columnMapping.id": counter[0], "delta.columnMapping.physicalName": f"col-{counter[0]}"}
            fields.append(Field(f.name, mapped(f.type, counter), f.nullable, {**f.metadata, **ids}))
        return Struct(tuple(fields))
    if isinstance(data_type, Array):
        return Array(mapped(data_type.element, counter))
    return Map(data_type.key, mapped(data_type.value, counter)) if isinstance(data_type, Map) else data_type


def mapped_config(partition: tuple[str, ...] = (), **properties: str) -> TableConfig:
    schema = mapped(SCHEMA, [0])
    assert isinstance(schema, Struct)
    return configured(
        schema, Protocol(min_reader_version=2, min_writer_version=5), partition, columnMapping_mode="name", **properties
    )


def when_written(feature: str, change: Callable[[], Change]) -> Change | None:
    """The change, where the feature is written; else the proof that it is refused by name."""
    if BY_NAME[feature].writable:
        return change()
    with pytest.raises(UnsupportedFeature) as caught:
        change()
    assert feature in caught.value.features
    return None


@pytest.mark.parametrize(
    ("columns", "where", "names", "shown"),
    [
        ([column("c")], (), ("a", "b", "s", "arr", "m", "ints", "c"),
         [{"column": {"name": "c", "type": "integer", "nullable": True, "metadata": {}}}]),
        ([column("c", metadata={"comment": "hi"}), column("d", STRING, Position("a"))], (),
         ("a", "d", "b", "s", "arr", "m", "ints", "c"),
         [{"column": {"name": "c", "type": "integer", "nullable": True, "metadata": {"comment": "hi"}}},
          {"column": {"name": "d", "type": "string", "nullable": True, "metadata": {}}, "position": "AFTER a"}]),
        ([column("s.y.q", INTEGER, Position())], ("s", "y"), ("q", "z"),
         [{"column": {"name": "s.y.q", "type": "integer", "nullable": True, "metadata": {}}, "position": "FIRST"}]),
        ([column("S.q", INTEGER, Position("X"))], ("s",), ("x", "q", "y"),
         [{"column": {"name": "s.q", "type": "integer", "nullable": True, "metadata": {}}, "position": "AFTER X"}]),
        ([column("arr.element.q")], ("arr", "element"), ("e", "q"),
         [{"column": {"name": "arr.element.q", "type": "integer", "nullable": True, "metadata": {}}}]),
        ([column("m.value.q", Decimal(4, 2))], ("m", "value"), ("v", "q"),
         [{"column": {"name": "m.value.q", "type": "decimal(4,2)", "nullable": True, "metadata": {}}}]),
        ([column("n", Struct((Field("k", LONG),))), column("n.l")], ("n",), ("k", "l"), None),
    ],
)  # fmt: skip
def test_columns_are_added(columns: list[NewColumn], where: tuple, names: tuple, shown: list | None):
    change = add_columns(CONFIG, columns)
    struct = find_path(change.config.schema, where)[1] if where else change.config.schema
    assert isinstance(struct, Struct)
    assert struct.names == names
    assert change.operation.name == "ADD COLUMNS"
    if shown is not None:
        assert json.loads(str(change.operation.parameters["columns"])) == shown
    assert not change.reads
    assert change.config.metadata.id == CONFIG.metadata.id


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ([], "no-columns"),
        ([column("A")], "column-exists"),
        ([column("s.X")], "column-exists"),
        ([column("c"), column("C")], "duplicate-column"),
        ([column("zz.q")], "unknown-column"),
        ([column("a.q")], "not-a-struct"),
        ([column("arr.q")], "not-a-struct"),
        ([column("c", position=Position("zz"))], "unknown-column"),
        ([column("c", nullable=False)], "not-null-column"),
        ([column("c", Struct((Field("n", INTEGER, False),)))], "not-null-column"),
        ([column("c d")], "invalid-column-name"),
        ([column("c", TIMESTAMP_NTZ)], "feature-not-enabled"),
    ],
)
def test_columns_that_cannot_be_added(columns: list[NewColumn], code: str):
    with pytest.raises(InvalidRequest) as caught:
        add_columns(CONFIG, columns)
    assert caught.value.code == code


def test_a_column_without_values_is_added_and_an_array_of_such_is_not():
    assert add_columns(CONFIG, [column("c", VOID)]).config.schema.names[-1] == "c"
    with pytest.raises(InvalidRequest) as caught:
        add_columns(CONFIG, [column("c", Array(VOID))])
    assert caught.value.code == "unsupported-type"


@pytest.mark.parametrize(
    ("path", "arguments", "shown", "position"),
    [
        (("a",), {"comment": "cc"}, {"name": "a", "type": "integer", "nullable": True, "metadata": {"comment": "cc"}}, None),
        (("s", "x"), {"comment": "k"}, {"name": "s.x", "type": "integer", "nullable": True, "metadata": {"comment": "k"}}, None),
        (("A",), {"position": Position("b")}, {"name": "a", "type": "integer", "nullable": True, "metadata": {}}, "AFTER b"),
        (("s", "y"), {"position": Position()}, {"name": "s.y", "type": "struct", "nullable": True, "metadata": {}}, "FIRST"),
        (("arr", "element", "e"), {"comment": "k"}, {"name": "arr.element.e", "type": "integer", "nullable": True, "metadata": {"comment": "k"}}, None),
    ],
)  # fmt: skip
def test_columns_are_commented_and_moved(path: tuple, arguments: dict, shown: dict, position: str | None):
    change = alter_column(CONFIG, path, **arguments)
    assert change.operation.name == "CHANGE COLUMN"
    assert json.loads(str(change.operation.parameters["column"])) == shown
    assert change.operation.parameters.get("position") == position
    found = find_path(change.config.schema, path)[2]
    assert found is not None
    assert found.metadata.get("comment") == arguments.get("comment")


def test_not_null_is_dropped_but_never_made():
    config = configured(Struct((Field("a", INTEGER, False),)), Protocol(min_reader_version=1, min_writer_version=2))
    assert alter_column(config, ("a",), nullable=True).config.schema.fields[0].nullable
    assert not alter_column(config, ("a",), nullable=False).config.schema.fields[0].nullable
    with pytest.raises(InvalidRequest) as caught:
        alter_column(CONFIG, ("a",), nullable=False)
    assert caught.value.code == "not-null-column"


@pytest.mark.parametrize(
    ("path", "new", "code"),
    [
        (("a",), LONG, "no-type-widening"),
        (("a",), STRING, "type-change"),
        (("a",), BYTE, "type-change"),
        (("s",), LONG, "type-change"),
        (("zz",), LONG, "unknown-column"),
    ],
)
def test_types_that_cannot_be_changed(path: tuple, new: DataType, code: str):
    with pytest.raises(InvalidRequest) as caught:
        alter_column(CONFIG, path, new)
    assert caught.value.code == code


WIDENING = configured(
    SCHEMA,
    Protocol(min_reader_version=3, min_writer_version=7, reader_features=("typeWidening",), writer_features=("typeWidening",)),
    enableTypeWidening="true",
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "new", "owner", "entry"),
    [
        (("a",), LONG, ("a",), {"toType": "long", "fromType": "integer"}),
        (("s", "x"), DOUBLE, ("s", "x"), {"toType": "double", "fromType": "integer"}),
        (("arr", "element", "e"), LONG, ("arr", "element", "e"), {"toType": "long", "fromType": "integer"}),
        (("ints", "element"), Decimal(12, 2), ("ints",), {"toType": "decimal(12,2)", "fromType": "integer", "fieldPath": "element"}),
    ],
)  # fmt: skip
def test_a_wider_type_is_recorded_with_the_nearest_field(path: tuple, new: DataType, owner: tuple, entry: dict):
    """ "The value for the key `delta.typeChanges` must be a JSON list of objects" """
    schema = widen(WIDENING, WIDENING.schema, path, new)
    assert find_path(schema, path)[1] == new
    field = find_path(schema, owner)[2]
    assert field is not None
    assert field.metadata["delta.typeChanges"] == [entry]
    change = when_written("typeWidening", lambda: alter_column(WIDENING, path, new))
    assert change is None or change.config.schema == schema


@pytest.mark.parametrize(
    ("path", "new", "params", "names"),
    [
        (("a",), "q", {"oldColumnPath": "a", "newColumnPath": "q"}, ("q", "b", "s", "arr", "m", "ints")),
        (("s", "X"), "q", {"oldColumnPath": "s.x", "newColumnPath": "s.q"}, SCHEMA.names),
        # A name with a dot in backticks, as the reference has it.
        (("s", "x"), "p.q", {"oldColumnPath": "s.x", "newColumnPath": "s.`p.q`"}, SCHEMA.names),
    ],
)
def test_renamed_columns_keep_their_files(path: tuple, new: str, params: dict, names: tuple):
    config = mapped_config()
    change = when_written("columnMapping", lambda: rename_column(config, path, new))
    if change is not None:
        assert change.operation.parameters == params
        assert change.config.schema.names == names
        assert change.config.physical_schema == config.physical_schema


def test_lists_of_columns_and_partitions_follow_a_rename():
    config = mapped_config(("a",), dataSkippingStatsColumns="b,s.x")
    change = when_written("columnMapping", lambda: rename_column(config, ("b",), "B 2"))
    if change is not None:
        assert change.config.metadata.configuration["delta.dataSkippingStatsColumns"] == "`B 2`,s.x"
    change = when_written("columnMapping", lambda: rename_column(config, ("a",), "q"))
    if change is not None:
        assert change.config.partition_columns == ("q",)


@pytest.mark.parametrize(
    ("paths", "shown", "names"),
    [
        ([("a",)], ["a"], ("b", "s", "arr", "m", "ints")),
        ([("a",), ("B",)], ["a", "b"], ("s", "arr", "m", "ints")),
        ([("s", "x")], ["s.x"], SCHEMA.names),
    ],
)
def test_dropped_columns_are_gone_from_the_schema(paths: list, shown: list, names: tuple):
    change = when_written("columnMapping", lambda: drop_columns(mapped_config(), paths))
    if change is not None:
        assert json.loads(str(change.operation.parameters["columns"])) == shown
        assert change.config.schema.names == names


CONSTRAINED = mapped_config(("b",), constraints_c="a > 0 and s.x < 3")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda: rename_column(CONFIG, ("a",), "q"), "no-column-mapping"),
        (lambda: drop_columns(CONFIG, [("a",)]), "no-column-mapping"),
        (lambda: rename_column(mapped_config(), ("a",), "B"), "column-exists"),
        (lambda: rename_column(mapped_config(), ("a",), "A"), "column-exists"),
        (lambda: rename_column(mapped_config(), ("zz",), "q"), "unknown-column"),
        (lambda: rename_column(CONSTRAINED, ("a",), "q"), "column-in-use"),
        (lambda: rename_column(CONSTRAINED, ("s", "x"), "q"), "column-in-use"),
        (lambda: drop_columns(CONSTRAINED, [("s",)]), "column-in-use"),
        # What we do not understand may name any column whose name stands in it.
        (lambda: rename_column(mapped_config((), constraints_c="b rlike 'x'"), ("b",), "q"), "column-in-use"),
        (lambda: rename_column(mapped_config((), constraints_c="B rlike 'x'"), ("b",), "q"), "column-in-use"),
        (lambda: drop_columns(CONSTRAINED, [("b",)]), "partition-column"),
        (lambda: drop_columns(mapped_config(), [("s", "y", "z")]), "last-column"),
        (lambda: drop_columns(mapped_config(), [(n,) for n in SCHEMA.names]), "last-column"),
        (lambda: drop_columns(mapped_config(), [("zz",)]), "unknown-column"),
    ],
)
def test_renames_and_drops_that_are_refused(change: Callable[[], Change], code: str):
    with pytest.raises(InvalidRequest) as caught:
        change()
    assert caught.value.code == code


def test_dropping_nothing_is_a_change_of_nothing():
    config = new_config(SCHEMA, [], {})
    change = drop_columns(config, [("zz",)], if_exists=True)
    assert change.config == config
    assert msgspec.json.decode(str(change.operation.parameters["columns"])) == []


@pytest.mark.parametrize(
    ("text_type", "allowed"), [("varchar(5)", True), ("varchar(3)", True), ("varchar(2)", False), ("char(3)", False)]
)
def test_a_varchar_becomes_no_shorter_varchar(text_type: str, allowed: bool) -> None:
    config = add_columns(CONFIG, [NewColumn(("v",), Field("v", STRING, True, {CHAR_VARCHAR: "varchar(3)"}))]).config
    if allowed:
        changed = alter_column(config, ("v",), STRING, text_type=text_type).config.schema.find("v")
        assert changed is not None
        assert changed.metadata[CHAR_VARCHAR] == text_type
    else:
        with pytest.raises(InvalidRequest) as caught:
            alter_column(config, ("v",), STRING, text_type=text_type)
        assert caught.value.code == "type-change"


@pytest.mark.parametrize(
    ("before", "after", "declared"),
    [
        ("varchar(3)", None, None),
        ("char(3)", None, None),
        ("char(3)", "varchar(3)", "varchar(3)"),
        ("char(3)", "varchar(2)", "refused"),
        ("char(3)", "char(4)", "refused"),
    ],
)
def test_a_text_of_a_length_becomes_a_string_or_a_varchar_that_holds_it(
    before: str, after: str | None, declared: str | None
):
    metadata = {CHAR_VARCHAR: before, "comment": "c"}
    config = add_columns(CONFIG, [NewColumn(("v",), Field("v", STRING, True, metadata))]).config
    if declared == "refused":
        with pytest.raises(InvalidRequest, match="cannot be changed"):
            alter_column(config, ("v",), STRING, text_type=after)
        return
    changed = alter_column(config, ("v",), STRING, text_type=after).config.schema.find("v")
    assert changed is not None
    assert changed.metadata == {"comment": "c", **({} if declared is None else {CHAR_VARCHAR: declared})}
