"""Which types a column may change to: every pair, not a chosen few.

The table is `DataTypeCasts` of Paimon (its rules) and `CastExecutors` (what is implemented), written down pair by pair.
"""

from __future__ import annotations

import pytest

from alluvium.paimon.schema import parse_type
from alluvium.paimon.schema.casts import can_cast, may_cast
from alluvium.paimon.schema.types import DataType

TYPES: dict[str, object] = {
    "CHAR": "CHAR(3)", "STRING": "STRING", "BOOLEAN": "BOOLEAN", "BINARY": "BINARY(3)", "BYTES": "BYTES",
    "DECIMAL": "DECIMAL(5, 2)", "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INT", "BIGINT": "BIGINT",
    "FLOAT": "FLOAT", "DOUBLE": "DOUBLE", "DATE": "DATE", "TIME": "TIME(3)", "TIMESTAMP": "TIMESTAMP(3)",
    "TIMESTAMP_LTZ": "TIMESTAMP_LTZ(3)", "VARIANT": "VARIANT", "BLOB": "BLOB",
    "ARRAY": {"type": "ARRAY", "element": "INT"}, "MAP": {"type": "MAP", "key": "INT", "value": "INT"},
    "ROW": {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}]}, "MULTISET": "INT MULTISET",
    "VECTOR": "VECTOR<FLOAT, 3>",
}  # fmt: skip

#: From each type to all, in the order of TYPES. i: without loss; e: where explicit casts are allowed, too; a capital
#: letter: it is implemented; ?: implemented, and no rule allows it; a dot: neither.
CASTS = {
    "CHAR": "IIEEEEEEEEEEEEEE..???..",
    "STRING": "EIEEEEEEEEEEEEEE..???..",
    "BOOLEAN": "EEi..EEEEEEE...........",
    "BINARY": "EE.II..................",
    "BYTES": "EE.EI..................",
    "DECIMAL": "EE...IEEEEII..ee.......",
    "TINYINT": "EEE..IIIIIII..ee.......",
    "SMALLINT": "EEE..IEIIIII..ee.......",
    "INT": "EEE..IEEIIII..EE.......",
    "BIGINT": "EEE..IEEEIII..EE.......",
    "FLOAT": "EE...IEEEEII..ee.......",
    "DOUBLE": "EE...IEEEEEI..ee.......",
    "DATE": "eE..........i.EE.......",
    "TIME": "eE...........iEE.......",
    "TIMESTAMP": "eE...eeeEEeeIIII.......",
    "TIMESTAMP_LTZ": "eE...eeeEEeeEEII.......",
    "VARIANT": "ee..............i......",
    "BLOB": "ee...............i.....",
    "ARRAY": "EE................i....",
    "MAP": "EE.................i...",
    "ROW": "EE..................i..",
    "MULTISET": "ee...................i.",
    "VECTOR": "ee....................i",
}


def letter(source: DataType, target: DataType) -> str:
    rule = "i" if may_cast(source, target, False) else "e" if may_cast(source, target, True) else "."
    if not can_cast(source, target):
        return rule
    return "?" if rule == "." else rule.upper()


@pytest.mark.parametrize("name", TYPES)
def test_every_pair(name: str) -> None:
    types = [parse_type(kind) for kind in TYPES.values()]
    source = parse_type(TYPES[name])
    assert "".join(letter(source, target) for target in types) == CASTS[name]


def test_earth_is_cast_to_nothing() -> None:
    for text in ("GEOMETRY", "GEOGRAPHY"):
        place = parse_type(text)
        assert not any(can_cast(place, parse_type(kind)) for kind in (text, *TYPES.values()))


@pytest.mark.parametrize(
    ("source", "target"), [("DATE", "VARCHAR(9)"), ("TIMESTAMP(3)", "VARCHAR(99)"), ("TIME(0)", "CHAR(8)")]
)
def test_times_become_texts_of_any_length_only(source: str, target: str) -> None:
    assert may_cast(parse_type(source), parse_type(target), True)
    assert not can_cast(parse_type(source), parse_type(target))
    assert can_cast(parse_type("INT"), parse_type(target))


def test_nulls_go_where_somebody_answers_for_them() -> None:
    null, never = parse_type("INT"), parse_type("BIGINT NOT NULL")
    assert (may_cast(null, never, False), may_cast(null, never, True)) == (False, True)
    assert may_cast(parse_type("INT NOT NULL"), never, False)
    assert may_cast(parse_type("INT NOT NULL"), parse_type("BIGINT"), False)
    assert not may_cast(null, parse_type("INT NOT NULL"), False)


def test_the_parts_of_a_constructed_type_are_none_of_the_rules_business() -> None:
    """One root is one type to the rules; that its parts differ is for whoever implements the cast."""
    one, other = (parse_type({"type": "ARRAY", "element": kind}) for kind in ("INT", "DATE"))
    assert may_cast(one, other, False)
    assert not can_cast(one, other)
