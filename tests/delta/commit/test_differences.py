"""What is shown of a change of the table's description, name by name."""

from __future__ import annotations

import msgspec
from delta_values import make_config, make_metadata

from alluvium.delta.commit.differences import describe, differences
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.spec import Protocol
from alluvium.schema.types import LONG, STRING, Field, Struct

PLAIN = Struct((Field("id", LONG), Field("s", Struct((Field("x", STRING),)))))
TOLD = Struct(
    (
        Field("id", LONG, True, {"comment": "a number"}),
        Field("s", Struct((Field("x", STRING, True, {"comment": "within", "other": "x"}),))),
    )
)
LISTED = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("appendOnly", "invariants"))


def commented(config: TableConfig, comment: str) -> TableConfig:
    return parse_config(config.protocol, msgspec.structs.replace(config.metadata, description=comment))


def test_a_description_leaves_out_what_is_not_there() -> None:
    assert describe(make_config(PLAIN)) == {"protocol": "1/2", "schema": PLAIN.tree()}


def test_a_description_has_all_that_is_there() -> None:
    config = make_config(TOLD, ["id"], {"a.b": "1", "delta.appendOnly": "true"}, LISTED)
    assert describe(commented(config, "of the table")) == {
        "protocol": "1/7 appendOnly, invariants",
        "schema": TOLD.tree(),
        "partition columns": "id",
        "comment": "of the table",
        "comment of id": "a number",
        "comment of s.x": "within",
        "property a.b": "1",
        "property delta.appendOnly": "true",
    }
    two = parse_config(LISTED, make_metadata(PLAIN, ["id"]))
    assert describe(two)["partition columns"] == "id"


def test_differences_of_two_descriptions() -> None:
    before = commented(make_config(TOLD, ["id"], {"same": "1", "gone": "2", "other": "3"}), "first")
    after = commented(make_config(PLAIN, [], {"same": "1", "new": "4", "other": "5"}, LISTED), "second")
    assert differences(before, after) == {
        "protocol": ("1/2", "1/7 appendOnly, invariants"),
        "partition columns": ("id", None),
        "comment": ("first", "second"),
        "comment of id": ("a number", None),
        "comment of s.x": ("within", None),
        "property gone": ("2", None),
        "property other": ("3", "5"),
        "property new": (None, "4"),
        **({"schema": (TOLD.tree(), PLAIN.tree())} if TOLD.tree() != PLAIN.tree() else {}),
    }
    # First what was there, in its order, then what is new.
    assert list(differences(before, after))[-1] == "property new"
    assert differences(after, after) == {}


def test_of_a_table_to_create_all_is_new() -> None:
    config = make_config(PLAIN, [], {"a": "b"})
    assert differences(None, config) == {
        "protocol": (None, "1/2"), "schema": (None, PLAIN.tree()), "property a": (None, "b")
    }  # fmt: skip
