"""One form of a file's path for all that compare paths: replay, conflict rules, row ids, change feeds."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.columns import string_column

#: What a path has that may be spelled in several ways: escapes, and parts that lead nowhere.
_SPELLED = r"%|//|(?:^|/)\.\.?/|^(?i:file):"
_LOCAL = re.compile("file:", re.IGNORECASE)


def canonical_paths(paths: pa.Array) -> pa.Array:
    """Paths so that two spellings of one file are equal: unescaped, without parts that lead nowhere or up again.

    Local ones are without a scheme.

    "The path is a URI as specified by RFC 2396 [...] which needs to be decoded to get the data file path."
    """
    special = pc.match_substring_regex(paths, _SPELLED)
    if not pc.any(special).as_py():
        return paths
    odd = paths.filter(special)
    # Directories are few and file names hold escapes rarely, so that nearly nothing is decoded one by one.
    directories = _decoded(pc.replace_substring_regex(odd, "[^/]*$", ""))
    names = pc.replace_substring_regex(odd, "(?s)^.*/", "")
    if pc.any(pc.match_substring(names, "%")).as_py():
        names = _decoded(names)
    return pc.replace_with_mask(paths, special, pc.binary_join_element_wise(directories, names, ""))


def _decoded(texts: pa.Array) -> pa.Array:
    encoded = texts.dictionary_encode()
    return string_column([_decode(text) for text in encoded.dictionary.to_pylist()]).take(encoded.indices)


def _decode(text: str) -> str:
    # Escapes that are no UTF-8 become text of their own: any does for a comparison.
    decoded = unquote(text, errors="surrogateescape").encode("utf-8", "backslashreplace").decode()
    decoded = _LOCAL.sub("file:", decoded, count=1) if _LOCAL.match(decoded) else decoded
    for prefix in ("file:///", "file://localhost/", "file:/", "//"):
        if decoded.startswith(prefix):
            return _plain("/" + decoded[len(prefix) :].lstrip("/"))
    scheme = decoded.find("://")
    # Behind the host, which no `..` leads out of.
    place = 0 if scheme < 0 else decoded.find("/", scheme + 3)
    return decoded if place < 0 else decoded[:place] + _plain(decoded[place:])


def _plain(path: str) -> str:
    """Without parts that lead nowhere or up again. Of a folder, which ends in `/`, or a whole path."""
    parts: list[str] = []
    *folders, name = path.split("/")
    # In one pass: a log may name a path of any length.
    for part in folders:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join([*([""] if path.startswith("/") else []), *parts, name])
