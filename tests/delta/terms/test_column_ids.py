"""Ids and physical names of columns. Specification: "Writer Requirements for Column Mapping"."""

from __future__ import annotations

import re

import msgspec
import pytest
from delta_values import make_metadata

from alluvium.delta.terms.column_ids import MAX_COLUMN_ID, map_columns, stored_schema
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.mapping import COLUMN_ID, MODE, PHYSICAL_NAME
from alluvium.delta.terms.spec import Metadata, Protocol
from alluvium.errors import InvalidRequest
from alluvium.plan.scan import FIELD_ID
from alluvium.schema.spark_json import format_schema, parse_schema
from alluvium.schema.types import INTEGER, LONG, STRING, Array, DataType, Field, Map, Struct
from alluvium.schema.walk import fields_within

LEGACY = Protocol(min_reader_version=2, min_writer_version=5)
SCHEMA = Struct(
    (
        Field("a", LONG),
        Field("s", Struct((Field("x", INTEGER), Field("y", Array(Struct((Field("z", STRING),))))))),
        Field("m", Map(Struct((Field("k", LONG),)), Struct((Field("v", LONG),)))),
    )
)
UNIQUE = re.compile(r"col-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def metadata_of(schema: Struct, mode: str | None = "name", **properties: str) -> Metadata:
    return make_metadata(schema, properties={**({} if mode is None else {MODE: mode}), **properties})


def config_of(metadata: Metadata) -> TableConfig:
    return parse_config(LEGACY, metadata)


def ids_of(metadata: Metadata) -> dict[str, tuple[object, object]]:
    found = fields_within(parse_schema(metadata.schema_string))
    return {".".join(path): (f.metadata.get(COLUMN_ID), f.metadata.get(PHYSICAL_NAME)) for path, f in found}


def with_schema(metadata: Metadata, schema: Struct) -> Metadata:
    return msgspec.structs.replace(metadata, schema_string=format_schema(schema))


@pytest.mark.parametrize("mode", ["name", "id", "NAME"])
def test_every_column_of_a_new_table_gets_an_id_and_a_unique_name(mode: str) -> None:
    """ "every column - nested or leaf - is assigned a unique physical name, and a unique 32-bit integer as an id" """
    made = map_columns(metadata_of(SCHEMA, mode), None)
    ids = ids_of(made)
    assert [number for number, _ in ids.values()] == list(range(1, 9))
    assert len({name for _, name in ids.values()}) == 8
    assert all(UNIQUE.fullmatch(str(name)) for _, name in ids.values())
    assert (made.configuration[MAX_COLUMN_ID], made.configuration[MODE]) == ("8", mode.casefold())
    assert config_of(made).mapping_mode == mode.casefold()


def test_without_the_property_nothing_is_mapped() -> None:
    metadata = metadata_of(SCHEMA, None)
    assert map_columns(metadata, None) is metadata


def test_columns_of_an_existing_table_keep_the_names_that_their_files_have() -> None:
    before = config_of(metadata_of(SCHEMA, None))
    made = map_columns(metadata_of(Struct((*SCHEMA.fields, Field("new", LONG))), "name"), before)
    ids = ids_of(made)
    new = ids.pop("new")
    assert {path.rpartition(".")[2]: name for path, (_, name) in ids.items()} == {n: n for n in "asxyzmkv"}
    assert new[0] == 9 and UNIQUE.fullmatch(str(new[1]))


def test_a_new_column_gets_the_next_id_and_old_ones_keep_theirs() -> None:
    """ "This value must increase monotonically as new columns are introduced" """
    first = map_columns(metadata_of(SCHEMA), None)
    mapped = parse_schema(first.schema_string)
    more = with_schema(first, Struct((*mapped.fields[:1], *mapped.fields[2:], Field("b", LONG))))
    second = map_columns(more, config_of(first))
    assert ids_of(second)["b"][0] == 9
    assert ids_of(second)["a"] == ids_of(first)["a"]
    # The dropped column's ids are gone for good.
    back = with_schema(second, Struct((*parse_schema(second.schema_string).fields, Field("s", STRING))))
    third = map_columns(back, config_of(second))
    assert (ids_of(third)["s"][0], third.configuration[MAX_COLUMN_ID]) == (10, "10")


def test_a_column_that_is_described_anew_is_the_same_column() -> None:
    """A schema out of a DataFrame knows nothing of ids: the same name and type are the same column."""
    first = map_columns(metadata_of(SCHEMA), None)
    plain = map_columns(with_schema(first, SCHEMA), config_of(first))
    assert ids_of(plain) == ids_of(first)
    retyped = Struct((Field("a", STRING), *SCHEMA.fields[1:]))
    other = map_columns(with_schema(first, retyped), config_of(first))
    assert ids_of(other)["a"][0] == 9


@pytest.mark.parametrize(("before", "after"), [("none", "id"), ("name", "id"), ("id", "name"), ("name", "none")])
def test_a_mode_that_would_make_files_unreadable(before: str, after: str) -> None:
    old = metadata_of(SCHEMA, before)
    config = config_of(map_columns(old, None))
    with pytest.raises(InvalidRequest) as caught:
        map_columns(msgspec.structs.replace(config.metadata, configuration={MODE: after}), config)
    assert caught.value.code == "mapping-mode-change"


def test_a_table_that_replaces_another_may_have_any_mode() -> None:
    config = config_of(map_columns(metadata_of(SCHEMA, "name"), None))
    replacing = msgspec.structs.replace(metadata_of(SCHEMA, "id"), id="11111111-1111-1111-1111-111111111111")
    made = map_columns(replacing, config)
    # Ids go on, so that no reader of the history takes one column for another.
    assert min(number for number, _ in ids_of(made).values()) == 9


def test_the_schema_of_the_files() -> None:
    """ "Write data files by using the _physical name_"; "Write the 32 bit integer column identifier as part of the
    `field_id` field" """
    made = map_columns(metadata_of(SCHEMA), None)
    stored = stored_schema(parse_schema(made.schema_string))
    found = [(f.metadata[FIELD_ID], f.name) for _, f in fields_within(stored)]
    assert found == list(ids_of(made).values())
    assert all(set(f.metadata) == {FIELD_ID} for _, f in fields_within(stored))


def plain(*columns: tuple[str, DataType]) -> Struct:
    return Struct(tuple(Field(name, kind) for name, kind in columns))


INNER = plain(("x", INTEGER), ("y", STRING))


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (INTEGER, INTEGER, True), (INTEGER, LONG, False), (Array(INTEGER), Array(LONG), True), (Array(INTEGER), INTEGER, False), (INTEGER, Array(INTEGER), False),
        (INNER, plain(("y", STRING)), True), (INNER, Array(INNER), False), (Map(STRING, LONG), Map(LONG, LONG), True), (Map(STRING, LONG), Array(LONG), False),
    ],
    ids=str,
)  # fmt: skip
def test_which_columns_are_the_same_when_they_are_described_anew(before: DataType, after: DataType, same: bool) -> None:
    """Nested ones by their shape: what stands within them is looked at by itself."""
    first = map_columns(metadata_of(plain(("a", before), ("b", LONG))), None)
    again = map_columns(with_schema(first, plain(("A", after), ("b", LONG))), config_of(first))
    assert (ids_of(again)["A"] == ids_of(first)["a"]) == same
    assert ids_of(again)["b"] == ids_of(first)["b"]
    highest = max(int(str(number)) for number, _ in (*ids_of(first).values(), *ids_of(again).values()))
    assert again.configuration[MAX_COLUMN_ID] == str(highest)


def test_members_that_stay_keep_theirs_at_any_depth() -> None:
    def around(inner: Struct) -> Struct:
        return plain(("s", inner), ("l", Array(Array(inner))), ("m", Map(inner, inner)))

    first = map_columns(metadata_of(around(INNER)), None)
    again = map_columns(with_schema(first, around(plain(("Y", STRING), ("x", LONG), ("new", LONG)))), config_of(first))
    old, now = ids_of(first), ids_of(again)
    places = ("s", "l.element.element", "m.key", "m.value")
    assert all(now[f"{place}.Y"] == old[f"{place}.y"] for place in places)
    fresh = [now[f"{place}.{name}"] for place in places for name in ("x", "new")]
    assert sorted(int(str(number)) for number, _ in fresh) == list(range(len(old) + 1, len(old) + 9))
    assert len({name for _, name in now.values()}) == len(now)


def test_numbers_go_on_behind_whatever_was_said() -> None:
    """Of columns that went stand numbers in files still: those of the property, of the table before, and of the schema."""
    own = {COLUMN_ID: 7, PHYSICAL_NAME: "p"}
    schema = Struct((Field("a", LONG, True, own), Field("b", LONG)))
    for said, before, number in (
        (None, None, 8),
        ("5", None, 8),
        ("12", None, 13),
        ("12", "20", 21),
        ("20", "12", 21),
        ("x", None, 8),
        ("-9", None, 8),
        ("", None, 8),
    ):
        metadata = metadata_of(schema, **({} if said is None else {MAX_COLUMN_ID: said}))
        known = None
        if before is not None:
            known = config_of(
                make_metadata(Struct((Field("a", LONG, True, own),)), properties={MODE: "name", MAX_COLUMN_ID: before})
            )
        made = map_columns(metadata, known)
        assert ids_of(made)["a"] == (7, "p")
        assert (ids_of(made)["b"][0], made.configuration[MAX_COLUMN_ID]) == (number, str(number))


@pytest.mark.parametrize("lacking", [COLUMN_ID, PHYSICAL_NAME])
def test_a_column_that_lacks_one_of_both_gets_both(lacking: str) -> None:
    said = {COLUMN_ID: 7, PHYSICAL_NAME: "p", "comment": "c"}
    column = Field("a", LONG, True, {key: value for key, value in said.items() if key != lacking})
    made = map_columns(metadata_of(Struct((column,))), None)
    number, name = ids_of(made)["a"]
    assert number == (8 if lacking == PHYSICAL_NAME else 1) and UNIQUE.fullmatch(str(name))
    assert parse_schema(made.schema_string).fields[0].metadata["comment"] == "c"


def test_names_of_files_are_kept_where_columns_were_not_mapped_before() -> None:
    """Only of a table that was there: one of another id has no files."""
    schema = plain(("A b", LONG), ("s", INNER))
    before = config_of(metadata_of(schema, None))
    wanted = metadata_of(plain(("a B", LONG), ("s", plain(("X", INTEGER), ("z", LONG)))), "name")
    made = ids_of(map_columns(wanted, before))
    assert (made["a B"], made["s"][1], made["s.X"][1]) == ((1, "A b"), "s", "x")
    assert UNIQUE.fullmatch(str(made["s.z"][1]))
    other = ids_of(map_columns(msgspec.structs.replace(wanted, id="another"), before))
    assert all(UNIQUE.fullmatch(str(name)) for _, name in other.values())
    # And by id no older table is mapped.
    with pytest.raises(InvalidRequest) as caught:
        map_columns(metadata_of(schema, "id"), before)
    assert "from none to id" in caught.value.message
    assert map_columns(metadata_of(schema, " NONE "), before).configuration == {MODE: " NONE "}


@pytest.mark.parametrize("mode", ["nonsense", "", "names"])
def test_modes_that_there_are_not_map_nothing(mode: str) -> None:
    metadata = metadata_of(SCHEMA, mode)
    assert map_columns(metadata, None) is metadata
