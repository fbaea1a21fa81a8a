from __future__ import annotations

import pytest

from alluvium.delta.streams.options import DEFAULT_FILES, parse_stream_options
from alluvium.errors import InvalidRequest


def test_silence() -> None:
    options = parse_stream_options({}, None)
    assert (options.max_files, options.max_bytes, options.fails_on_loss) == (DEFAULT_FILES, None, True)


@pytest.mark.parametrize(("text", "size"), [("1g", 1 << 30), ("512 KB", 512 << 10), ("10", 10), ("3b", 3)])
def test_sizes(text: str, size: int) -> None:
    options = parse_stream_options({"maxBytesPerTrigger": text}, None)
    assert (options.max_bytes, options.max_files) == (size, None)


def test_versions_by_number() -> None:
    options = parse_stream_options({"skipVersions": "3, 7-9"}, None)
    assert [v for v in range(12) if options.skips(v)] == [3, 7, 8, 9]


def test_latest() -> None:
    assert parse_stream_options({"startingVersion": "Latest"}, None).starting_version == "latest"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("maxFilesPerTrigger", "0"),
        ("maxFilesPerTrigger", "x"),
        ("maxFilesPerTrigger", "-1"),
        ("maxBytesPerTrigger", "0"),
        ("maxBytesPerTrigger", "1 parsec"),
        ("startingVersion", "-1"),
        ("startingVersion", "abc"),
        ("ignoreDeletes", "maybe"),
        ("failOnDataLoss", ""),
        ("excludeRegex", "("),
        # In Java the letters that both have; here it would be "a", "&" and "b".
        ("excludeRegex", "p=[a&&b]"),
        ("excludeRegex", "p=[[a]b]"),
        ("skipVersions", "9-7"),
        ("skipVersions", "3,"),
    ],
)
def test_what_means_nothing(name: str, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_stream_options({name: text}, None)
    assert caught.value.code == "invalid-option"
    assert name in caught.value.message


def test_patterns_are_javas() -> None:
    """Digits and letters are those of ASCII, and so are their cases."""
    found = {
        text: parse_stream_options({"excludeRegex": text}, None).exclude for text in (r"\w", r"\d", "(?i)é", r"\s")
    }
    others = {r"\w": "é", r"\d": "\u0663", "(?i)é": "É", r"\s": "\u00a0"}
    assert all(pattern is not None and not pattern.search(others[text]) for text, pattern in found.items())


def test_two_beginnings() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_stream_options({"startingVersion": "1", "startingTimestamp": "2020-01-01"}, 0)
    assert caught.value.code == "version-and-timestamp"
