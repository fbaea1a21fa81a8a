"""REPLACE COLUMNS, and several columns changed at once: what stays, comes and goes, and what is refused."""

from __future__ import annotations

import json

import msgspec
import pytest

from alluvium.delta.description.change_columns import ColumnChange, alter_columns
from alluvium.delta.description.create import new_config
from alluvium.delta.description.evolve import add_constraint, set_properties
from alluvium.delta.description.replace_columns import replace_columns
from alluvium.delta.description.upgrade import configure
from alluvium.delta.features.columns.column_defaults import KEY
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.edit import Position, find_path
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import INTEGER, LONG, STRING, Array, DataType, Field, Map, Struct

INNER = Struct((Field("x", INTEGER), Field("y", INTEGER)))
SCHEMA = Struct((Field("a", INTEGER), Field("b", STRING), Field("s", INNER), Field("p", INTEGER)))


def table(**properties: str) -> TableConfig:
    return new_config(SCHEMA, ["p"], {f"delta.{key}": value for key, value in properties.items()})


PLAIN = table()
MAPPED = table(**{"columnMapping.mode": "name", "enableTypeWidening": "true"})


def fields(**types: DataType) -> list[Field]:
    return [Field(name, kind) for name, kind in types.items()]


def test_columns_are_moved_added_and_commented():
    wanted = [Field("p", INTEGER), Field("B", STRING, metadata={"comment": "c"}), Field("a", INTEGER)]
    wanted += fields(s=Struct((Field("y", INTEGER), Field("x", INTEGER), Field("z", INTEGER))), n=LONG)
    change = replace_columns(PLAIN, wanted)
    assert change.config.schema.names == ("p", "b", "a", "s", "n")
    assert [f.name for f in change.config.schema.fields[3].type.fields] == ["y", "x", "z"]
    assert change.config.schema.find("b").metadata == {"comment": "c"}
    assert change.operation.name == "REPLACE COLUMNS"
    shown = json.loads(str(change.operation.parameters["columns"]))
    assert shown[1] == {"name": "B", "type": "string", "nullable": True, "metadata": {"comment": "c"}}


def test_columns_are_dropped_and_widened_where_the_table_allows_it():
    before = dict(MAPPED.physical_paths)
    change = replace_columns(MAPPED, fields(s=Struct((Field("y", LONG),)), a=INTEGER, p=INTEGER))
    assert change.config.schema.names == ("s", "a", "p")
    assert find_path(change.config.schema, ("s", "y"))[1] == LONG
    assert find_path(change.config.schema, ("s", "y"))[2].metadata["delta.typeChanges"]
    assert {path: before[path] for path in (("a",), ("s", "y"))}.items() <= dict(change.config.physical_paths).items()


def test_a_property_that_lists_columns_follows():
    config = set_properties(MAPPED, {"delta.dataSkippingStatsColumns": "a,b"}).config
    change = replace_columns(config, fields(a=INTEGER, s=INNER, p=INTEGER))
    assert change.config.metadata.configuration["delta.dataSkippingStatsColumns"] == "a"


@pytest.mark.parametrize(
    ("config", "columns", "code"),
    [
        (PLAIN, fields(a=INTEGER, p=INTEGER), "no-column-mapping"),
        (PLAIN, fields(a=LONG, b=STRING, s=INNER, p=INTEGER), "no-type-widening"),
        (MAPPED, fields(a=STRING, b=STRING, s=INNER, p=INTEGER), "type-change"),
        (MAPPED, fields(a=INTEGER, c=STRING, s=INNER, p=INTEGER), "ambiguous-change"),
        (MAPPED, fields(a=INTEGER, b=STRING, s=INNER), "partition-column"),
        (PLAIN, [*fields(b=STRING, s=INNER, p=INTEGER), Field("a", INTEGER, False)], "not-null-column"),
        (PLAIN, [*SCHEMA.fields, Field("n", INTEGER, False)], "not-null-column"),
        (PLAIN, [*SCHEMA.fields, Field("n", Array(Struct((Field("i", LONG, False),))))], "not-null-column"),
        (PLAIN, [*SCHEMA.fields, Field("A", INTEGER)], "duplicate-column"),
        (PLAIN, [*SCHEMA.fields[1:], Field("a", STRING, metadata={CHAR_VARCHAR: "char(3)"})], "type-change"),
    ],
)  # fmt: skip
def test_lists_of_columns_that_are_refused(config: TableConfig, columns: list[Field], code: str):
    with pytest.raises(InvalidRequest) as caught:
        replace_columns(config, columns)
    assert caught.value.code == code


def test_not_null_goes_where_it_is_not_said_again():
    schema = Struct((Field("a", INTEGER, False), Field("v", STRING, metadata={CHAR_VARCHAR: "varchar(3)"})))
    config = configure(
        msgspec.structs.replace(PLAIN.metadata, schema_string=format_schema(schema), partition_columns=())
    )
    longer = Field("v", STRING, metadata={CHAR_VARCHAR: "varchar(5)"})
    replaced = replace_columns(config, [longer, Field("a", INTEGER)]).config.schema
    assert replaced.find("a").nullable
    assert replaced.find("v").metadata == {CHAR_VARCHAR: "varchar(5)"}


def test_identity_columns_stay_where_they_are():
    numbered = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True}
    schema = Struct((Field("a", LONG, metadata=numbered), Field("b", STRING)))
    config = configure(
        msgspec.structs.replace(PLAIN.metadata, schema_string=format_schema(schema), partition_columns=())
    )
    with pytest.raises(InvalidRequest) as caught:
        replace_columns(config, schema.fields)
    assert caught.value.code == "unsupported-change"


def test_several_columns_change_in_one_commit():
    change = alter_columns(
        MAPPED,
        [
            ColumnChange(("a",), data_type=LONG, comment="one"),
            ColumnChange(("S", "x"), position=Position("y")),
            ColumnChange(("b",), position=Position()),
        ],
    )
    assert change.config.schema.names == ("b", "a", "s", "p")
    assert change.config.schema.find("a").type == LONG
    assert change.operation.name == "CHANGE COLUMNS"
    shown = json.loads(str(change.operation.parameters["columns"]))
    assert [entry["name"] for entry in shown] == ["b", "a", "s.x"], "the order of delta-spark's map"
    assert [entry.get("position") for entry in shown] == ["FIRST", None, "AFTER y"]


def test_of_several_changes_none_is_made_where_one_is_refused():
    with pytest.raises(InvalidRequest) as caught:
        alter_columns(PLAIN, [ColumnChange(("a",), comment="one"), ColumnChange(("nope",), comment="two")])
    assert caught.value.code == "unknown-column"


def test_a_comment_goes():
    commented = alter_columns(PLAIN, [ColumnChange(("a",), comment="one")]).config
    change = alter_columns(commented, [ColumnChange(("a",), drops_comment=True)])
    assert change.config.schema.find("a").metadata == {}
    assert json.loads(str(change.operation.parameters["column"]))["metadata"] == {}


def test_no_column_is_changed_twice_at_once():
    for path in (("A",), ("a",)):
        with pytest.raises(InvalidRequest) as caught:
            alter_columns(PLAIN, [ColumnChange(("a",), comment="one"), ColumnChange(path, position=Position())])
        assert caught.value.code == "changed-twice"


def test_defaults_come_and_go():
    config = set_properties(PLAIN, {"delta.feature.allowColumnDefaults": "supported"}).config
    change = alter_columns(config, [ColumnChange(("A",), default="1 + 4")])
    assert change.config.schema.find("a").metadata == {KEY: "1 + 4"}
    assert json.loads(str(change.operation.parameters["column"]))["metadata"] == {KEY: "1 + 4"}
    assert alter_columns(change.config, [ColumnChange(("a",), default="")]).config.schema.find("a").metadata == {}
    assert alter_columns(config, [ColumnChange(("a",), default="")]).config.schema == config.schema


@pytest.mark.parametrize(
    ("config", "path", "default", "code"),
    [
        (PLAIN, ("a",), "5", "feature-not-enabled"),
        (table(**{"feature.allowColumnDefaults": "supported"}), ("s", "x"), "5", "nested-default"),
        (table(**{"feature.allowColumnDefaults": "supported"}), ("a",), "p", "invalid-expression"),
        (table(**{"feature.allowColumnDefaults": "supported"}), ("a",), "(select 1)", "invalid-expression"),
    ],
)
def test_defaults_that_are_refused(config: TableConfig, path: tuple[str, ...], default: str, code: str):
    with pytest.raises(InvalidRequest) as caught:
        alter_columns(config, [ColumnChange(path, default=default)])
    assert caught.value.code == code


def test_what_is_within_arrays_and_maps_has_a_type_alone():
    """The element of an array is no column: it gets wider, but has neither comment nor place."""
    config = new_config(Struct((Field("l", Array(INTEGER)),)), [], {"delta.enableTypeWidening": "true"})
    wider = alter_columns(config, [ColumnChange(("l", "element"), data_type=LONG)])
    assert wider.config.schema.fields[0].type == Array(LONG)
    for change in (
        ColumnChange(("l", "element"), comment="c"),
        ColumnChange(("l", "element"), nullable=True),
        ColumnChange(("L", "element"), position=Position()),
    ):
        with pytest.raises(InvalidRequest) as caught:
            alter_columns(config, [change])
        assert (caught.value.code, caught.value.column) == ("not-a-column", "l.element")


def nested(inner: DataType, *, nullable: bool = True) -> Struct:
    return Struct(
        (
            Field("l", Array(inner, nullable)),
            Field("m", Map(STRING, inner, nullable)),
            Field("k", Map(inner, STRING)),
            Field("s", Struct((Field("v", inner),))),
        )
    )


def refused(config: TableConfig, columns: list[Field] | tuple[Field, ...]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        replace_columns(config, columns)
    return caught.value


def test_members_come_within_everything_that_holds_them():
    before, after = Struct((Field("x", INTEGER),)), Struct((Field("n", LONG), Field("x", INTEGER)))
    config = new_config(nested(before), [], {})
    assert replace_columns(config, nested(after).fields).config.schema == nested(after)
    # What may be null is not made NOT NULL, and the other way round it is.
    for place in range(2):
        columns = list(nested(before).fields)
        columns[place] = nested(before, nullable=False).fields[place]
        error = refused(config, columns)
        assert (error.code, error.column) == ("not-null-column", "lm"[place])
    strict = configure(
        msgspec.structs.replace(config.metadata, schema_string=format_schema(nested(before, nullable=False)))
    )
    assert replace_columns(strict, nested(before).fields).config.schema == nested(before)


@pytest.mark.parametrize(("place", "column"), [(0, "l.element.x"), (1, "m.value.x"), (2, "k.key.x"), (3, "s.v.x")])
def test_what_is_refused_within_is_named_by_its_path(place: int, column: str):
    before = Struct((Field("x", INTEGER), Field("y", INTEGER)))
    config = new_config(nested(before), [], {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"})

    def with_inner(*inner: Field) -> list[Field]:
        columns = list(nested(before).fields)
        columns[place] = nested(Struct(inner)).fields[place]
        return columns

    other = refused(config, with_inner(Field("z", INTEGER), Field("y", INTEGER)))
    assert (other.code, other.column) == ("ambiguous-change", column)
    assert "come ('z') and go ('x')" in other.message
    assert refused(config, with_inner(Field("x", STRING), Field("y", INTEGER))).column == column
    assert refused(config, with_inner(Field("x", INTEGER, False), Field("y", INTEGER))).column == column
    new = refused(config, with_inner(*before.fields, Field("z", INTEGER, False)))
    assert (new.code, new.column) == ("not-null-column", column.replace("x", "z"))
    # Wider, and gone, where the table allows it.
    wider = replace_columns(config, with_inner(Field("X", LONG), Field("Y", INTEGER))).config
    found = find_path(wider.schema, tuple(column.split(".")))
    assert found[1] == LONG and found[2] is not None and "delta.typeChanges" in found[2].metadata
    gone = replace_columns(config, with_inner(Field("y", INTEGER))).config.schema
    assert gone.names == config.schema.names and str(gone).count("x:") == str(config.schema).count("x:") - 1
    plain = new_config(nested(before), [], {})
    assert refused(plain, with_inner(Field("y", INTEGER))).code == "no-column-mapping"


def test_what_is_said_of_a_column_stays_unless_it_is_said_anew():
    schema = Struct(
        (Field("a", INTEGER, metadata={"comment": "one", "own": "x"}), Field("b", INTEGER, metadata={"comment": "two"}))
    )
    config = new_config(schema, [], {"delta.enableTypeWidening": "true"})
    after = replace_columns(
        config, [Field("B", LONG, metadata={"comment": "new", "other": "y"}), Field("a", LONG)]
    ).config.schema
    assert after.names == ("b", "a")
    change = {"delta.typeChanges": [{"toType": "long", "fromType": "integer"}]}
    assert after.fields[0].metadata == {"comment": "new", **change}
    assert after.fields[1].metadata == {"comment": "one", "own": "x", **change}


def test_columns_that_conditions_name_stay_what_they_are():
    config = set_properties(MAPPED, {"delta.feature.checkConstraints": "supported"}).config
    config = add_constraint(config, "c", "s.x > 0").config
    for columns, column in (
        (fields(a=INTEGER, b=STRING, s=Struct((Field("x", LONG), Field("y", INTEGER))), p=INTEGER), "s.x"),
        (fields(a=INTEGER, b=STRING, s=Struct((Field("y", INTEGER),)), p=INTEGER), "s.x"),
        (fields(a=INTEGER, b=STRING, p=INTEGER), "s"),
    ):
        error = refused(config, columns)
        assert (error.code, error.column) == ("column-in-use", column)
    assert replace_columns(config, fields(a=LONG, s=INNER, p=INTEGER)).config.schema.names == ("a", "s", "p")
