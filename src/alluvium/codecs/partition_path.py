"""Hive's partition directories, `a=1/b=x%3Ay`, as Spark spells them (`ExternalCatalogUtils`).

The escapes are Hive's own, not those of URIs: a code is one character below 256, not a byte of UTF-8,
and the space and all letters beyond ASCII stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from alluvium.errors import InvalidRequest

#: The directory value of a null. An empty string has no directory name of its own and becomes null, too.
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

#: `}` and NUL are not in Hive's list; the space, `<`, `>` and `|` are on Windows only.
_TO_ESCAPE = re.compile("[\x01-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")


def escape_path_name(text: str) -> str:
    """Escapes a column name or value for use in a directory name, as Spark's `escapePathName`."""
    return _TO_ESCAPE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def unescape_path_name(text: str) -> str:
    """Undoes `escape_path_name`; a `%` without two hexadecimal digits stands for itself, as in Spark."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "%" in text else text


def format_partition_path(names: Sequence[str], values: Sequence[str | None]) -> str:
    """The relative directory of a partition: `name=value` parts, outermost first, joined by `/`.

    Args:
        names: Partition columns.
        values: Their values as text, one a name. None and `""` both give the default partition, as in Spark.
    """
    return "/".join(
        f"{escape_path_name(name)}={escape_path_name(value) if value else DEFAULT_PARTITION}"
        for name, value in zip(names, values, strict=True)
    )


def parse_partition_path(directory: str) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    """Names and values of a relative partition directory; `""` has none of either.

    Args:
        directory: Path string (not URI-escaped), without the file name.

    Raises:
        InvalidRequest: A part is not `name=value` (code `"not-a-partition-path"`).
    """
    names: list[str] = []
    values: list[str | None] = []
    for part in directory.strip("/").split("/") if directory.strip("/") else ():
        # The first `=` divides: those of the name are escaped.
        name, equals, value = part.partition("=")
        if not (name and equals and value):
            raise InvalidRequest(
                f"{part!r} is not the name=value of a partition directory", code="not-a-partition-path", path=directory
            )
        names.append(unescape_path_name(name))
        values.append(None if value == DEFAULT_PARTITION else unescape_path_name(value))
    return tuple(names), tuple(values)
