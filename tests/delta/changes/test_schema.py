"""Which schemas go together in one feed."""

from __future__ import annotations

import itertools

import pytest
from delta_values import make_config
from mapped_table import features, mapped

from alluvium.delta.changes.schema import (
    EXTRA_COLUMNS,
    SchemaMode,
    choose_config,
    difference,
    ensure_compatible,
    ensure_recorded,
)
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest
from alluvium.schema.types import DOUBLE, INTEGER, LONG, STRING, Array, DataType, Field, Map, Struct

ON = {"delta.enableChangeDataFeed": "true"}


def nested(inner: Struct) -> Struct:
    return Struct((Field("a", Array(inner)), Field("m", Map(STRING, inner)), Field("s", inner)))


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        (Struct((Field("x", LONG),)), Struct((Field("x", LONG), Field("y", LONG))), None),
        (Struct((Field("x", LONG), Field("y", LONG))), Struct((Field("x", LONG),)), "y"),
        (Struct((Field("X", LONG),)), Struct((Field("x", LONG),)), None),
        (Struct((Field("x", LONG, False),)), Struct((Field("x", LONG),)), None),
        (Struct((Field("x", INTEGER),)), Struct((Field("x", LONG),)), "x"),
        (nested(Struct((Field("x", LONG),))), nested(Struct((Field("x", LONG), Field("y", LONG)))), None),
        (nested(Struct((Field("x", LONG), Field("y", LONG)))), nested(Struct((Field("x", LONG),))), "a.element.y"),
        (Struct((Field("m", Map(LONG, LONG)),)), Struct((Field("m", Map(STRING, LONG)),)), "m.key"),
        (Struct((Field("m", Map(LONG, LONG)),)), Struct((Field("m", Map(LONG, STRING)),)), "m.value"),
        (Struct((Field("s", Struct((Field("x", LONG),))),)), Struct((Field("s", LONG),)), "s"),
    ],
)
def test_compatible_schemas(old: Struct, new: Struct, column: str | None) -> None:
    configs = ((3, make_config(old)),)
    if column is None:
        ensure_compatible(make_config(new), configs, 3, 5)
        return
    with pytest.raises(InvalidRequest) as caught:
        ensure_compatible(make_config(new), configs, 3, 5)
    assert (caught.value.code, caught.value.column, caught.value.version) == ("incompatible-schema", column, 3)


@pytest.mark.parametrize(("kind", "fits"), [(LONG, True), (DOUBLE, True), (STRING, False)])
def test_types_are_widened_where_the_table_says_so(kind: object, fits: bool) -> None:
    old = make_config(Struct((Field("x", INTEGER),)))
    new = make_config(Struct((Field("x", kind),)), protocol=features("typeWidening"))  # type: ignore[arg-type]
    if fits:
        ensure_compatible(new, ((0, old),), 0, 1)
        return
    with pytest.raises(InvalidRequest):
        ensure_compatible(new, ((0, old),), 0, 1)


def test_the_hint_names_the_versions_that_can_be_read() -> None:
    on, off = make_config(properties=ON), make_config()
    ensure_recorded(((1, on), (4, on)), 1, 9)
    with pytest.raises(InvalidRequest) as caught:
        ensure_recorded(((1, on), (4, off)), 1, 9)
    assert caught.value.hint == "ask for changes up to version 3"
    with pytest.raises(InvalidRequest) as caught:
        ensure_recorded(((1, off),), 1, 9)
    assert caught.value.hint is not None
    assert "set it" in caught.value.hint


def test_without_column_mapping_the_latest_columns_are_shown() -> None:
    latest, first = make_config(Struct((Field("x", LONG), Field("y", LONG)))), make_config(Struct((Field("x", LONG),)))
    assert choose_config(latest, ((0, first),), "endVersion") is latest


MAPPED = {"delta.columnMapping.mode": "name"}


def table(name: str, *, is_mapped: bool = False, physical: str | None = None) -> TableConfig:
    if not is_mapped:
        return make_config(Struct((Field(name, LONG),)))
    return make_config(Struct((mapped(name, LONG, physical or name, 1),)), (), MAPPED, features("columnMapping"))


@pytest.mark.parametrize("mode", ["endVersion", "latest"])
@pytest.mark.parametrize("which", [*itertools.product([False, True], repeat=3)])
def test_whose_columns_are_shown(mode: SchemaMode, which: tuple[bool, bool, bool]) -> None:
    """As in delta-spark: those of the range's last version, if columns are mapped at its start, at its end or now."""
    first, last, latest = (table(n, is_mapped=is_mapped) for n, is_mapped in zip("xyz", which, strict=True))
    between = table("w", is_mapped=True)
    chosen = choose_config(latest, ((1, first), (2, between), (3, last)), mode)
    assert chosen is (last if any(which) and mode == "endVersion" else latest)


@pytest.mark.parametrize("name", [*EXTRA_COLUMNS.names, "_CHANGE_TYPE", "_Commit_Version"])
def test_columns_that_the_feed_adds_are_nobody_else_s(name: str) -> None:
    own = table("x")
    for taken in (table(name), table("x", is_mapped=True, physical=name)):
        with pytest.raises(InvalidRequest) as caught:
            choose_config(taken, ((1, taken),), "endVersion")
        assert (caught.value.code, caught.value.column) == ("reserved-column", name.lower())
        # What is not shown may have any.
        assert choose_config(own, ((1, table(name)),), "latest") is own


def test_the_columns_that_the_feed_adds() -> None:
    told = [(f.name, str(f.type), f.nullable) for f in EXTRA_COLUMNS.fields]
    assert told == [
        ("_change_type", "string", True),
        ("_commit_version", "bigint", True),
        ("_commit_timestamp", "timestamp", True),
    ]


@pytest.mark.parametrize(
    ("states", "off", "hint"),
    [
        ({1: True, 4: True}, None, None),
        ({1: True, 4: False}, 4, "ask for changes up to version 3"),
        ({1: True, 4: False, 6: True}, 4, "changes are recorded from version 6 on, and up to version 3"),
        ({1: False, 5: True}, 1, "changes are recorded from version 5 on"),
        ({1: False, 3: False, 5: True, 7: False, 8: True}, 1, "changes are recorded from version 5 on"),
        ({1: True, 3: False, 4: False}, 3, "ask for changes up to version 2"),
        ({1: False}, 1, "set it before the changes that you want to see"),
    ],
)
def test_where_changes_were_recorded(states: dict[int, bool], off: int | None, hint: str | None) -> None:
    configs = [(version, make_config(properties=ON if is_on else {})) for version, is_on in states.items()]
    if off is None:
        ensure_recorded(configs, 1, 9)
        return
    with pytest.raises(InvalidRequest) as caught:
        ensure_recorded(configs, 1, 9)
    assert (caught.value.code, caught.value.version, caught.value.hint) == ("change-feed-disabled", off, hint)
    assert "versions 1 to 9 " in caught.value.message and f"version {off}" in caught.value.message


def test_the_first_version_that_does_not_fit_is_named() -> None:
    wide, narrow = Struct((Field("x", LONG), Field("y", LONG))), Struct((Field("x", LONG),))
    configs = [(version, make_config(schema)) for version, schema in ((2, narrow), (4, wide), (6, wide))]
    with pytest.raises(InvalidRequest) as caught:
        ensure_compatible(make_config(narrow), configs, 2, 9)
    assert (caught.value.version, caught.value.column) == (4, "y")
    assert "versions 2 to 9 " in caught.value.message and "at version 4, " in caught.value.message
    ensure_compatible(make_config(wide), configs, 2, 9)


@pytest.mark.parametrize("widens", [False, True])
def test_differences_in_words(widens: bool) -> None:
    def told(old: Struct, new: Struct, old_physical: Struct | None = None) -> tuple[str, str] | None:
        return difference(old, old_physical or old, new, new, widens)

    def one(name: str, kind: DataType, nullable: bool = True) -> Struct:
        return Struct((Field(name, kind, nullable),))

    assert told(one("x", LONG), one("y", LONG)) == ("x", "it has a column 'x' that was renamed or dropped since")
    # The same name, but of another column; and one that files know in another case.
    assert told(one("x", LONG), one("x", LONG), one("c", LONG)) == (
        "x", "it has a column 'x' that was renamed or dropped since",
    )  # fmt: skip
    assert told(one("x", LONG), one("x", LONG), one("X", LONG)) is None
    assert told(one("x", LONG), one("x", LONG, False)) == ("x", "the column 'x' may be null, later it may not")
    assert told(one("x", LONG, False), one("x", LONG, False)) is None
    assert told(one("x", LONG), one("x", STRING)) == ("x", "the column 'x' is bigint, later string")
    inner = one("i", INTEGER), one("i", LONG)
    found = ("s.i", "the column 's.i' is int, later bigint")
    assert told(one("s", inner[0]), one("s", inner[1])) == (None if widens else found)
    arrays = told(one("a", Array(Array(STRING))), one("a", Array(Array(LONG))))
    assert arrays == ("a.element.element", "the column 'a.element.element' is string, later bigint")
    maps = told(one("m", Map(STRING, STRING)), one("m", Map(LONG, LONG)))
    assert maps == ("m.key", "the column 'm.key' is string, later bigint")
    for old, new in itertools.permutations((Array(LONG), Map(LONG, LONG), inner[1], LONG), 2):
        assert told(one("x", old), one("x", new)) == ("x", f"the column 'x' is {old}, later {new}")
