"""Which addresses are of one place: links, mounts and spellings give a directory several."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator

from alluvium.storage.paths import Url, split_url

#: What Hadoop reads as a pattern of names; `glob` knows neither the last two nor how Hadoop negates a set.
_OF_HADOOP = re.compile(r"\{[^/]*\}|\[[^/\]]*\]|\\.")


def same_place(one: str, other: str) -> bool | None:
    """Whether two URLs lead to the same directory; None: nobody on this machine can tell."""
    if one == other:
        return True
    first, second = local_path(one), local_path(other)
    if first is None or second is None:
        return None
    try:
        return os.path.samefile(first, second)
    except OSError:
        return None


def without_links(url: str) -> Url:
    """An address on this machine's disk behind its symbolic links; others as they are.

    Args:
        url: It need not exist.
    """
    found, path = split_url(url), local_path(url)
    return found if path is None else Url(found.scheme, found.authority, os.path.realpath(path))


def matches(pattern: str) -> Iterator[str]:
    """Paths on this machine's disk for which a pattern of names of Hadoop may stand; it may be a few more."""
    path = local_path(pattern)
    return iter(()) if path is None else glob.iglob(_OF_HADOOP.sub("*", path))


def local_path(url: str) -> str | None:
    """The absolute path of an address on this machine's disk; None: it is elsewhere, or below an unknown folder."""
    found = split_url(url or "/")
    is_local = found.scheme in ("", "file") and not found.authority and found.path.startswith("/")
    return found.path if is_local else None
