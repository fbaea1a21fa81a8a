"""Offsets are those of delta-spark, seen in its checkpoints."""

from __future__ import annotations

import pytest

from alluvium.delta.streams.offset import BEFORE, Offset, format_offset, parse_offset
from alluvium.errors import InvalidRequest

TEXT = '{"sourceVersion":1,"reservoirId":"t","reservoirVersion":4,"index":1,"isStartingVersion":true}'


def test_the_text_is_delta_sparks() -> None:
    assert format_offset(Offset("t", 4, 1, in_snapshot=True)) == TEXT
    assert parse_offset(TEXT, "t") == Offset("t", 4, 1, in_snapshot=True)


@pytest.mark.parametrize("index", [-20, -19, -100])
def test_marks_of_a_changed_schema_are_before_the_files(index: int) -> None:
    text = TEXT.replace('"sourceVersion":1', '"sourceVersion":3').replace('"index":1', f'"index":{index}')
    assert parse_offset(text, "t").index == BEFORE


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
