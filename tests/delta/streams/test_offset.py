"""Offsets are those of delta-spark, seen in its checkpoints."""

from __future__ import annotations

import pytest

from alluvium.delta.streams.offset import BEFORE, CHANGED, PASSED, Offset, format_offset, parse_offset
from alluvium.errors import InvalidRequest

TEXT = '{"sourceVersion":1,"reservoirId":"t","reservoirVersion":4,"index":1,"isStartingVersion":true}'


def test_the_text_is_delta_sparks() -> None:
    assert format_offset(Offset("t", 4, 1, in_snapshot=True)) == TEXT
    assert parse_offset(TEXT, "t") == Offset("t", 4, 1, in_snapshot=True)


def test_marks_of_a_changed_schema_are_before_the_files() -> None:
    def marked(index: int) -> str:
        text = TEXT.replace('"sourceVersion":1', '"sourceVersion":3').replace('"index":1', f'"index":{index}')
        return text.replace('Version":true', 'Version":false')

    found = [parse_offset(marked(index), "t") for index in (-100, -20, -19)]
    assert [offset.index for offset in found] == [BEFORE, CHANGED, PASSED]
    assert sorted(found, key=lambda offset: offset.place) == found
    assert [offset.first for offset in found] == [0, 0, 0]
    assert [format_offset(offset) for offset in found[1:]] == [marked(-20), marked(-19)]


@pytest.mark.parametrize(
    ("text", "table_id", "code"),
    [
        ("{}", "t", "invalid-offset"),
        ("7", "t", "invalid-offset"),
        (TEXT.replace('"sourceVersion":1', '"sourceVersion":4'), "t", "invalid-offset"),
        (TEXT, "u", "different-table"),
    ],
)
def test_what_is_no_offset_of_this_table(text: str, table_id: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_offset(text, table_id)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "offset",
    [
        Offset("t", 4),
        Offset("t", 0, 7),
        Offset("t", 4, in_snapshot=True),
        Offset("t", 4, CHANGED),
        Offset("t", 4, PASSED),
    ],
)
def test_offsets_come_back(offset: Offset) -> None:
    assert parse_offset(format_offset(offset), "t") == offset
    assert offset.is_mark == (offset.index in (CHANGED, PASSED))
    assert f'"sourceVersion":{3 if offset.is_mark else 1},' in format_offset(offset)


def test_places_rise_with_versions_and_files() -> None:
    rising = [Offset("t", v, index) for v in (3, 4) for index in (BEFORE, CHANGED, PASSED, 0, 1, 2)]
    places = [offset.place for offset in rising]
    assert places == sorted(set(places))
    assert [offset.first for offset in rising[:6]] == [0, 0, 0, 1, 2, 3]
    # Of the same place whether its files are those that were live or those that came.
    assert Offset("t", 4, 1).place == Offset("t", 4, 1, in_snapshot=True).place


def test_what_is_said_of_another_form_or_table() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_offset(TEXT.replace('"sourceVersion":1', '"sourceVersion":2'), "t")
    assert caught.value.code == "invalid-offset" and "form 2 " in caught.value.message
    with pytest.raises(InvalidRequest) as caught:
        parse_offset(TEXT, "other")
    assert "of id t," in caught.value.message and "of id other" in caught.value.message
    with pytest.raises(InvalidRequest) as caught:
        parse_offset("[]", "t")
    assert "'[]' is no offset" in caught.value.message
    # Only in the third form that number stands for what is before all files.
    assert parse_offset(TEXT.replace('"index":1', '"index":-100'), "t").index == -100
