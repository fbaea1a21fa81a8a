"""URLs and paths as pure text: split, join, resolve; the URI escapes of Delta's `path` fields.

Three spellings must be kept apart:

- a *path string* is literal: Hadoop's `Path.toString`, `Store` paths, what users type;
- a *URI path* is escaped (`a%20b`): Delta's `add.path`, which is Java's `new Path(p).toUri().toString()`;
- a *Hive-escaped* directory name (`b=x%3Ay`) is a path string whose `%3A` are three characters of the name;
  see `codecs.partition_path`. In a URI path it reads `b=x%253Ay`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import CorruptTable, InvalidRequest

#: A scheme needs the slash behind its colon here, so that a file called `12:30.parquet` stays a file.
_SCHEME_AND_SLASH = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):/")
_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/]*))?(.*)", re.DOTALL)
_SLASHES = re.compile(r"/{2,}")

#: What `java.net.URI` escapes in a path: controls, the space, the ASCII characters that RFC 2396 leaves out of `pchar`
#: (but for `/` and `;`), and all that `Character.isSpaceChar` or `isISOControl` holds for. Checked against OpenJDK 17
#: for each code point. The second form is the same class for RE2.
_TO_ESCAPE = re.compile('[\x00-\x20"#%<>?\\[\\\\\\]^`{|}\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]')
_TO_ESCAPE_RE2 = (
    r'[\x00-\x20"#%<>?\[\\\]^`{|}\x{7f}-\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]'
)
_MALFORMED_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Url:
    """A literal address, `scheme://authority/path`.

    Attributes:
        scheme: In lower case; empty for a plain path.
        authority: Host, bucket, or `container@account`; may be empty.
        path: Without `//`, `.` parts and a slash at the end; `/` alone or empty is the root.
    """

    scheme: str
    authority: str
    path: str

    def __str__(self) -> str:
        path = "" if self.authority and self.path == "/" else self.path
        return (f"{self.scheme}:" if self.scheme else "") + (f"//{self.authority}" if self.authority else "") + path


def split_url(text: str) -> Url:
    """Splits a URL or plain path. Nothing is percent-decoded, and `?` and `#` are characters of the path, as in Hadoop.

    Like Hadoop's `Path` it drops doubled slashes, `.` and resolvable `..` parts and the slash at the end.

    Raises:
        InvalidRequest: The text is empty or holds a NUL.
    """
    if not text or "\0" in text:
        raise InvalidRequest(f"{text!r} is no path", code="invalid-path", path=text, hint="give a path or a URL")
    match = _URL.fullmatch(text)
    if match is None:  # every part of the pattern is optional
        raise InvalidRequest(f"{text!r} is no URL", code="invalid-path", path=text)
    scheme, authority, path = match[1], match[2], match[3]
    if scheme is None:
        # `//a/b` without a scheme is a local path with a doubled slash, not a host.
        return Url("", "", _normalize(text))
    return Url(scheme.lower(), authority or "", _normalize(path))


def is_near(url: str) -> bool:
    """Whether requests to a URL are answered at once: local disk and memory, where waiting in threads gains nothing."""
    return split_url(url).scheme in ("", "file", "memory")


def _normalize(path: str) -> str:
    path = _SLASHES.sub("/", path)
    return posixpath.normpath(path) if path else ""


def join(*parts: str) -> str:
    """Joins path parts by single slashes; empty parts vanish. The first may be a URL."""
    kept = [part for part in parts if part]
    if not kept:
        return ""
    first, rest = kept[0], [part.strip("/") for part in kept[1:]]
    return "/".join([first.rstrip("/"), *rest]) if rest else first


def ensure_relative(path: str) -> str:
    """The path without `.` and empty parts, if it stays below its root.

    Raises:
        InvalidRequest: It is absolute, has a `..` part, or holds a NUL (code `"path-escapes-root"`, `"invalid-path"`).
    """
    if "\0" in path:
        raise InvalidRequest(f"{path!r} holds a NUL character", code="invalid-path", path=path)
    if path.startswith("/"):
        raise InvalidRequest(f"the path {path!r} is not relative", code="path-escapes-root", path=path)
    if "/." not in path and "//" not in path and not path.startswith(".") and not path.endswith("/"):
        return path
    parts = path.split("/")
    if ".." in parts:
        raise InvalidRequest(
            f"the path {path!r} leads out of its table", code="path-escapes-root", path=path, hint="remove the .. parts"
        )
    return "/".join(part for part in parts if part not in ("", "."))


def is_absolute(path: str) -> bool:
    """Whether the path has a scheme (`s3a://b/x`, `file:/x`) or begins with a slash."""
    return path.startswith("/") or _SCHEME_AND_SLASH.match(path) is not None


def resolve(root_url: str, path: str) -> str:
    """The literal address of a data file that a table names.

    Args:
        root_url: The table's root.
        path: Decoded path: relative to the root, absolute with a scheme, or absolute on the root's own file system.

    Raises:
        InvalidRequest: A relative path leads out of the root.
    """
    if _SCHEME_AND_SLASH.match(path):
        return str(split_url(path))
    if path.startswith("/"):
        root = split_url(root_url)
        return str(Url(root.scheme, root.authority, _normalize(path)))
    return join(root_url, ensure_relative(path))


def relative_to(root_url: str, url: str) -> str | None:
    """The path of `url` below `root_url`, both in canonical form; None if it lies elsewhere."""
    prefix = root_url if root_url.endswith("/") else root_url + "/"
    return url[len(prefix) :] if url.startswith(prefix) else None


def split_file(url: str) -> tuple[str, str]:
    """The directory of a file's address, and the file's name.

    Raises:
        InvalidRequest: The address has no file name.
    """
    directory, _, name = url.rpartition("/")
    if not name or not directory:
        raise InvalidRequest(f"{url!r} names no file", code="invalid-path", path=url)
    # `file:/x` and `/x` lie in the root, whose slash belongs to it.
    return (directory + "/" if directory.endswith(":") else directory), name


def encode_uri_path(path: str) -> str:
    """Escapes a path string exactly as Java's `new Path(path).toUri().toString()` does.

    Delta: "`path`: A relative path to a data file from the root of the table or an absolute path to a file that should
    be added to the table. The path is a URI as specified by RFC 2396 URI Generic Syntax, which needs to be decoded to
    get the data file path." Letters beyond ASCII stay as they are (Java's "other" category): delta-spark's VACUUM
    compares the texts of the log with those that Java makes of a listing, and deletes live files that are spelled
    otherwise.
    """
    return _TO_ESCAPE.sub(_escape, path)


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def decode_uri_path(path: str) -> str:
    """The path string that a URI path stands for; `+` stands for itself.

    Characters that should have been escaped are taken as they are, since that is what their writer meant.

    Raises:
        CorruptTable: An escape is cut off, not hexadecimal, or not UTF-8 (code `"malformed-path"`).
    """
    if "%" not in path:
        return path
    if _MALFORMED_ESCAPE.search(path) is not None:
        raise _malformed(path)
    try:
        return unquote_to_bytes(path).decode()
    except UnicodeError:
        raise _malformed(path) from None


def _malformed(path: str) -> CorruptTable:
    return CorruptTable(
        f"the path {path!r} is not a well-formed URI path",
        code="malformed-path",
        path=path,
        hint="a % in a file name is written %25 in the log, letters beyond ASCII as UTF-8",
    )


def encode_uri_paths(paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """`encode_uri_path` for a column of strings; nulls stay."""
    return _map_paths(paths, pc.match_substring_regex(paths, _TO_ESCAPE_RE2), encode_uri_path)


def decode_uri_paths(paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """`decode_uri_path` for a column of strings; nulls stay.

    Raises:
        CorruptTable: As `decode_uri_path`.
    """
    return _map_paths(paths, pc.match_substring(paths, "%"), decode_uri_path)


def _map_paths(
    paths: pa.Array | pa.ChunkedArray, affected: pa.Array | pa.ChunkedArray, change: Callable[[str], str]
) -> pa.Array | pa.ChunkedArray:
    """Applies `change` to directories and names apart: files share directories, and names are rarely affected."""
    if not pc.any(affected).as_py():
        return paths
    halves = pc.extract_regex(paths, r"(?s)^(?P<directory>(?:.*/)?)(?P<name>[^/]*)$")
    directories = _map_unique(pc.struct_field(halves, "directory"), change)
    names = pc.struct_field(halves, "name")
    if pc.any(pc.match_substring_regex(names, _TO_ESCAPE_RE2)).as_py():
        names = _map_unique(names, change)
    return pc.cast(pc.binary_join_element_wise(directories, names, ""), paths.type)


def _map_unique(values: pa.Array | pa.ChunkedArray, change: Callable[[str], str]) -> pa.Array | pa.ChunkedArray:
    unique = pc.unique(values)
    changed = pa.array([None if value is None else change(value) for value in unique.to_pylist()], values.type)
    return pc.take(changed, pc.index_in(values, value_set=unique))
