from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.storage.paths import (
    Url,
    decode_uri_path,
    decode_uri_paths,
    encode_uri_path,
    encode_uri_paths,
    ensure_relative,
    is_absolute,
    is_near,
    join,
    relative_to,
    resolve,
    split_file,
    split_url,
)

#: Code points that `new Path("/x" + c + "y").toUri().toString()` escapes (OpenJDK 17, Hadoop 3.5; all others are kept).
JAVA_ESCAPES = [
    (0x01, 0x20), (0x22, 0x23), (0x25, 0x25), (0x3C, 0x3C), (0x3E, 0x3F), (0x5B, 0x5E), (0x60, 0x60), (0x7B, 0x7D),
    (0x7F, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F),
    (0x3000, 0x3000),
]  # fmt: skip

paths = st.text(st.characters(exclude_categories=["Cs"]))


def test_each_character_is_escaped_as_java_does() -> None:
    for code in range(1, 0x11000):
        if 0xD800 <= code <= 0xDFFF:
            continue
        text = f"x{chr(code)}y"
        escaped = any(first <= code <= last for first, last in JAVA_ESCAPES)
        encoded = encode_uri_path(text)
        assert encoded == ("x" + "".join(f"%{byte:02X}" for byte in chr(code).encode()) + "y" if escaped else text)
        assert decode_uri_path(encoded) == text


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b%20c", "a%20b%2520c"),
        ("a\u00a0b", "a%C2%A0b"),
        ("😀", "😀"),
        ("e\u0301", "e\u0301"),
        ("a/b;c?d#e&f", "a/b;c%3Fd%23e&f"),
        ("t/a=x:y+z", "t/a=x:y+z"),
        ("a\\b", "a%5Cb"),
        ("s3a://b/x%y", "s3a://b/x%25y"),
        ("b=x%3Ay/part-0.parquet", "b=x%253Ay/part-0.parquet"),
    ],
)
def test_paths_as_java_writes_them(path: str, uri: str) -> None:
    assert encode_uri_path(path) == uri
    assert decode_uri_path(uri) == path


def test_decoding_takes_unescaped_characters_as_they_are() -> None:
    assert decode_uri_path("a b%20c é[]") == "a b c é[]"
    assert decode_uri_path("%c3%a9") == "é"


@pytest.mark.parametrize("uri", ["a%", "a%2", "a%zz", "a%E9", "%ff", "%+1"])
def test_malformed_escapes_are_corruption(uri: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        decode_uri_path(uri)
    assert caught.value.code == "malformed-path"
    assert caught.value.path == uri
    with pytest.raises(CorruptTable):
        decode_uri_paths(pa.array(["fine", uri]))


@given(st.lists(st.one_of(st.none(), paths)), st.booleans())
def test_columns_of_paths_agree_with_single_paths(values: list[str | None], chunked: bool) -> None:
    column = pa.array(values, pa.string())
    encoded = encode_uri_paths(pa.chunked_array([column[:1], column[1:]], pa.string()) if chunked else column)
    assert encoded.type == pa.string()
    assert encoded.to_pylist() == [None if value is None else encode_uri_path(value) for value in values]
    decoded = decode_uri_paths(encoded)
    assert decoded.type == pa.string()
    assert decoded.to_pylist() == values


def test_a_column_without_escapes_is_given_back_itself() -> None:
    column = pa.array(["a=1/part-0.parquet", None])
    assert decode_uri_paths(column) is column
    assert encode_uri_paths(column) is column


@pytest.mark.parametrize(
    ("text", "url", "formatted"),
    [
        ("/t/a b", Url("", "", "/t/a b"), "/t/a b"),
        ("//t///a/", Url("", "", "/t/a"), "/t/a"),
        ("rel/./x/../y", Url("", "", "rel/y"), "rel/y"),
        ("file:/t/a%20b", Url("file", "", "/t/a%20b"), "file:/t/a%20b"),
        ("file:///t/x?y#z", Url("file", "", "/t/x?y#z"), "file:/t/x?y#z"),
        ("FILE:/", Url("file", "", "/"), "file:/"),
        ("s3a://b", Url("s3a", "b", ""), "s3a://b"),
        ("s3a://b/", Url("s3a", "b", "/"), "s3a://b"),
        ("s3://b//x y//z/", Url("s3", "b", "/x y/z"), "s3://b/x y/z"),
        ("hdfs://h:8020/x%y", Url("hdfs", "h:8020", "/x%y"), "hdfs://h:8020/x%y"),
        ("abfss://c@a.dfs.core.windows.net/p", Url("abfss", "c@a.dfs.core.windows.net", "/p"), None),
        ("/a:b/c\nd", Url("", "", "/a:b/c\nd"), "/a:b/c\nd"),
        ("./a:b", Url("", "", "a:b"), "a:b"),
    ],
)
def test_urls_are_split_literally(text: str, url: Url, formatted: str | None) -> None:
    assert split_url(text) == url
    assert str(split_url(text)) == (formatted or text)


@pytest.mark.parametrize("text", ["", "a\0b"])
def test_no_path_at_all(text: str) -> None:
    with pytest.raises(InvalidRequest):
        split_url(text)


def test_joining() -> None:
    assert join("file:/t", "a", "b c") == "file:/t/a/b c"
    assert join("file:/", "a") == "file:/a"
    assert join("", "a", "", "b") == "a/b"
    assert join("s3a://b/t/", "/x/") == "s3a://b/t/x"
    assert join("a") == "a"
    assert join("", "") == ""


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("part-0.parquet", "s3a://b/t/part-0.parquet"),
        ("a=1/./p", "s3a://b/t/a=1/p"),
        ("ts=2020-01-01 10:00:00/p", "s3a://b/t/ts=2020-01-01 10:00:00/p"),
        ("10:00.parquet", "s3a://b/t/10:00.parquet"),
        ("x:y.parquet", "s3a://b/t/x:y.parquet"),
        ("/elsewhere/p", "s3a://b/elsewhere/p"),
        ("file:/x/p q", "file:/x/p q"),
        ("file:///x/p", "file:/x/p"),
        ("s3a://other/p%20q", "s3a://other/p%20q"),
        ("..hidden/p..", "s3a://b/t/..hidden/p.."),
    ],
)
def test_data_files_are_resolved_against_the_root(path: str, address: str) -> None:
    assert resolve("s3a://b/t", path) == address


def test_a_rooted_path_belongs_to_the_file_system_of_the_table() -> None:
    assert resolve("file:/t", "/x/p") == "file:/x/p"
    assert resolve("/t", "/x/p") == "/x/p"


@pytest.mark.parametrize("path", ["../x", "a/../b", "a/..", ".."])
def test_relative_paths_may_not_leave_the_root(path: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        resolve("file:/t", path)
    assert caught.value.code == "path-escapes-root"


def test_what_a_store_takes_is_relative() -> None:
    assert ensure_relative("a//b/./c/") == "a/b/c"
    assert ensure_relative("") == ""
    for path in ("/a", "a\0b"):
        with pytest.raises(InvalidRequest):
            ensure_relative(path)


def test_absolute_paths() -> None:
    assert is_absolute("/a")
    assert is_absolute("s3a://b/x")
    assert is_absolute("file:/x")
    assert not is_absolute("a=1/x:/y")
    assert not is_absolute("x:y")


def test_relative_to() -> None:
    assert relative_to("file:/t", "file:/t/a/b") == "a/b"
    assert relative_to("file:/", "file:/a") == "a"
    assert relative_to("file:/t", "file:/table/a") is None


def test_split_file() -> None:
    assert split_file("s3a://b/x/y.parquet") == ("s3a://b/x", "y.parquet")
    assert split_file("file:/y") == ("file:/", "y")
    with pytest.raises(InvalidRequest):
        split_file("y")


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("/t", True), ("t", True), ("file:/t", True), ("FILE:///t", True), ("memory://m/t", True), ("s3a://b/t", False), ("gs://b", False),
        ("hdfs://h/t", False), ("abfss://c@a/t", False), ("unknown:/t", False),
    ],
)  # fmt: skip
def test_what_is_answered_at_once(url: str, near: bool) -> None:
    assert is_near(url) is near


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/a", "path-escapes-root"), ("../a", "path-escapes-root"), ("a/../b", "path-escapes-root"), ("a/..", "path-escapes-root"), ("..", "path-escapes-root"),
        ("a\0b", "invalid-path"), ("/a\0b", "invalid-path"),
    ],
)  # fmt: skip
def test_paths_that_a_store_does_not_take_are_told(path: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        ensure_relative(path)
    assert (caught.value.code, caught.value.path) == (code, path)


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("a/b", "a/b"), ("a/./b", "a/b"), ("./a", "a"), ("a/.", "a"), (".", ""), ("a//b", "a/b"), ("a/", "a"), ("a/.b", "a/.b"), (".b", ".b"), ("..b/c..", "..b/c.."),
        ("a/...", "a/..."), ("a/b.", "a/b."), ("_delta_log/.s3-opt", "_delta_log/.s3-opt"),
    ],
)  # fmt: skip
def test_parts_that_say_nothing_vanish(path: str, kept: str) -> None:
    assert ensure_relative(path) == kept


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("s3a://b/x/y z", ("s3a://b/x", "y z")), ("/y", None), ("file:/y", ("file:/", "y")), ("/x/y", ("/x", "y")), ("s3a://b/x/", None), ("y", None), ("", None),
    ],
)  # fmt: skip
def test_files_of_addresses(url: str, parts: tuple[str, str] | None) -> None:
    if parts is not None:
        assert split_file(url) == parts
        return
    with pytest.raises(InvalidRequest) as caught:
        split_file(url)
    assert (caught.value.code, caught.value.path) == ("invalid-path", url)


@pytest.mark.parametrize("text", ["", "a\0b"])
def test_what_is_no_path_is_told(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        split_url(text)
    assert (caught.value.code, caught.value.path) == ("invalid-path", text)


def test_columns_whose_directories_or_names_alone_are_escaped() -> None:
    for paths_, uris in (
        (["a b/x", "a b/y", None], ["a%20b/x", "a%20b/y", None]),
        (["a/x y", "a/z"], ["a/x%20y", "a/z"]),
        (["x y", "a\nb/c\nd", ""], ["x%20y", "a%0Ab/c%0Ad", ""]),
        (["/a b/", "s3a://b/%"], ["/a%20b/", "s3a://b/%25"]),
    ):
        encoded = encode_uri_paths(pa.array(paths_))
        assert encoded.type == pa.string() and encoded.to_pylist() == uris
        decoded = decode_uri_paths(encoded)
        assert decoded.type == pa.string() and decoded.to_pylist() == paths_
