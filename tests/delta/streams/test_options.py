from __future__ import annotations

import pytest

from alluvium.delta.streams.options import DEFAULT_FILES, FLAGS, VALUES, StreamOptions, parse_stream_options
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


#: Each option with values, and what is different then from options that say nothing.
EACH: list[tuple[str, str, dict[str, object]]] = [
    ("ignoreDeletes", "true", {"ignore_deletes": True}), ("ignoreDeletes", " FALSE ", {}), ("ignoreChanges", "True", {"ignore_changes": True}),
    ("ignoreFileDeletion", "true", {"ignore_deletes": True, "ignore_changes": True}), ("ignoreFileDeletion", "false", {}),
    ("skipChangeCommits", "true", {"skip_changes": True}), ("readChangeFeed", "true", {"changes": True}), ("readChangeData", "true", {"changes": True}),
    ("withEventTimeOrder", "true", {"in_event_order": True}), ("failOnDataLoss", "false", {"fails_on_loss": False}), ("failOnDataLoss", "true", {}),
    ("startingVersion", "0", {"starting_version": 0}), ("startingVersion", " 7 ", {"starting_version": 7}), ("maxFilesPerTrigger", " 1 ", {"max_files": 1}),
    ("maxFilesPerTrigger", "5000", {"max_files": 5000}), ("skipVersions", "3", {"skip_versions": ((3, 3),)}),
    ("skipVersions", " 3-3 ,5 , 07-10 ", {"skip_versions": ((3, 3), (5, 5), (7, 10))}),
    *(("maxBytesPerTrigger", f"3{unit}", {"max_bytes": 3 << power, "max_files": None})
      for power, units in ((0, ("", "b", "B")), (10, ("k", "kb", " KB")), (20, ("m", "mb")), (30, ("g", "Gb")), (40, ("t", "tb")), (50, ("p", "pb")))
      for unit in units),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "changed"), EACH, ids=[f"{name}={text}" for name, text, _ in EACH])
def test_each_option_alone(name: str, text: str, changed: dict[str, object]) -> None:
    assert parse_stream_options({name: text}, None) == StreamOptions(**changed)  # type: ignore[arg-type]


def test_options_together() -> None:
    both = parse_stream_options({"maxFilesPerTrigger": "2", "maxBytesPerTrigger": "1k"}, None)
    assert (both.max_files, both.max_bytes) == (2, 1024)
    timed = parse_stream_options({"startingTimestamp": "2020-01-01"}, 5)
    assert (timed.starting_ms, timed.starting_version, timed.names_start) == (5, None, True)
    assert (
        parse_stream_options({"startingVersion": "0"}, None).names_start
        and not parse_stream_options({}, None).names_start
    )
    feed = parse_stream_options({"readChangeFeed": "false", "readChangeData": "true"}, None)
    assert feed.changes
    ignored = parse_stream_options({"ignoreFileDeletion": "false", "ignoreDeletes": "true"}, None)
    assert ignored.ignore_deletes and not ignored.ignore_changes


def test_patterns_tell_options_apart() -> None:
    long = "x" * 300
    texts = {parse_stream_options({"excludeRegex": f"{long}{end}"}, None).text for end in "ab"}
    assert len(texts) == 2
    found = parse_stream_options({"excludeRegex": "a.c"}, None).exclude
    assert found is not None and found.search("xabcx") and not found.search("ac")


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("text", ["", "1", "yes", "truee"])
def test_flags_are_true_or_false(name: str, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_stream_options({name: text}, None)
    assert caught.value.code == "invalid-option" and repr(name) in caught.value.message


@pytest.mark.parametrize("text", ["+1", "1.0", "1_0", "٣", " "])
@pytest.mark.parametrize("name", ["startingVersion", "maxFilesPerTrigger", "maxBytesPerTrigger", "skipVersions"])
def test_numbers_are_digits(name: str, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_stream_options({name: text}, None)
    assert caught.value.code == "invalid-option" and f"the option {name!r} must be" in caught.value.message


def test_names_are_those_of_delta_spark() -> None:
    assert set(FLAGS) == {"ignoreDeletes", "ignoreChanges", "ignoreFileDeletion", "skipChangeCommits", "readChangeFeed", "readChangeData",
                          "withEventTimeOrder", "failOnDataLoss"}  # fmt: skip
    assert set(VALUES) == {
        "startingVersion",
        "startingTimestamp",
        "maxFilesPerTrigger",
        "maxBytesPerTrigger",
        "excludeRegex",
        "skipVersions",
    }
