"""Expected escapes were printed by Spark 4.3.0 and 4.0.4 (`ExternalCatalogUtils.escapePathName` of each character)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alluvium.codecs.partition_path import (
    DEFAULT_PARTITION,
    escape_path_name,
    format_partition_path,
    parse_partition_path,
    unescape_path_name,
)
from alluvium.errors import InvalidRequest

SPARK_ESCAPES = {chr(code): f"%{code:02X}" for code in range(0x01, 0x20)} | {
    '"': "%22", "#": "%23", "%": "%25", "'": "%27", "*": "%2A", "/": "%2F", ":": "%3A", "=": "%3D", "?": "%3F",
    "[": "%5B", "\\": "%5C", "]": "%5D", "^": "%5E", "{": "%7B", "\x7f": "%7F",
}  # fmt: skip


@pytest.mark.parametrize("code", range(0x180))
def test_each_character_is_escaped_as_spark_does(code: int) -> None:
    character = chr(code)
    expected = SPARK_ESCAPES.get(character, character)
    assert escape_path_name(f"x{character}y") == f"x{expected}y"
    assert escape_path_name(character) == expected
    assert unescape_path_name(expected) == character


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        ("a%2F", "a/"),
        ("a%2f", "a/"),
        ("a%2", "a%2"),
        ("%", "%"),
        ("a%zz", "a%zz"),
        ("a%+1b", "a%+1b"),
        ("%-1x", "%-1x"),
        ("%٠١", "%٠١"),
        ("%C3%A9", "Ã©"),  # codes are characters, not bytes of UTF-8
        ("x%20y", "x y"),
        ("%2525", "%25"),
    ],
)
def test_unescaping_as_spark_does(escaped: str, text: str) -> None:
    assert unescape_path_name(escaped) == text


def test_a_directory_is_parsed_into_names_and_values() -> None:
    assert parse_partition_path("a=1/b=x%20y") == (("a", "b"), ("1", "x y"))
    assert parse_partition_path("a%3Db=c=d/") == (("a=b",), ("c=d",))
    assert parse_partition_path("") == ((), ())
    assert parse_partition_path(f"day=2024-01-01/k={DEFAULT_PARTITION}") == (("day", "k"), ("2024-01-01", None))


def test_null_and_empty_text_share_the_default_partition() -> None:
    assert format_partition_path(["a", "b", "c d"], [None, "", "e f"]) == (
        "a=__HIVE_DEFAULT_PARTITION__/b=__HIVE_DEFAULT_PARTITION__/c d=e f"
    )


@pytest.mark.parametrize("directory", ["a", "a=1/b", "=1", "a=", "a=1//b=2"])
def test_what_is_no_partition_directory_is_refused(directory: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_partition_path(directory)
    assert caught.value.code == "not-a-partition-path"
    assert caught.value.path == directory


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
entries = st.tuples(texts, st.one_of(st.none(), texts.filter(lambda text: text != DEFAULT_PARTITION)))


@given(st.lists(entries, min_size=1))
def test_round_trip(columns: list[tuple[str, str | None]]) -> None:
    names, values = tuple(name for name, _ in columns), tuple(value for _, value in columns)
    directory = format_partition_path(names, values)
    assert directory.count("/") == len(columns) - 1
    assert parse_partition_path(directory) == (names, values)
