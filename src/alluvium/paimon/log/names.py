"""Where the files of a table are, from its root.

A branch has its own schema, snapshot, tag and changelog files; its manifests and data lie in the main table's
directories.
"""

from __future__ import annotations

import re

from alluvium.errors import InvalidRequest, NotFound
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.storage.store import Store

#: A Java `long` as it would be written: other files are none of a table's.
_NUMBER, _MOST = "0|[1-9][0-9]{0,18}", (1 << 63) - 1
_SENSELESS = re.compile(r"[/\\\x00]|^\.{0,2}$")


def directory(branch: str, kind: str) -> str:
    """The directory of a branch's `schema`, `snapshot`, `tag` or `changelog` files."""
    return kind if branch == MAIN_BRANCH else f"branch/branch-{ensure_name(branch, 'branch')}/{kind}"


def renamed_mark(branch: str) -> str:
    """Stands in the folder of a branch while it gets another name."""
    return f"branch/branch-{ensure_name(branch, 'branch')}/_renamed"


def ensure_name(name: str, what: str) -> str:
    """A name of a tag or branch as it stands in a path.

    Raises:
        InvalidRequest: It would lead elsewhere (`"invalid-name"`).
    """
    if _SENSELESS.search(name):
        raise InvalidRequest(f"{name!r} is no name of a {what}", code="invalid-name")
    return name


def list_numbers(store: Store, folder: str, prefix: str) -> list[int]:
    """The numbers N of the files `<prefix>N`, ascending. Hints (`LATEST`, `EARLIEST`) may be wrong, so files count."""
    # A table may have thousands of snapshots, and each commit asks for them: no call for each. No name has a zero byte.
    names = "\0".join(["", *store.list_names(folder, prefix), ""])
    found = map(int, re.findall(rf"(?<=\0){re.escape(prefix)}({_NUMBER})(?=\0)", names))
    return sorted([number for number in found if number <= _MOST])


def list_names(store: Store, folder: str, prefix: str) -> list[str]:
    """What follows the prefix in the names of files."""
    names = store.list_names(folder, prefix)
    return [name[len(prefix) :] for name in names if name.startswith(prefix)]


def list_branches(store: Store) -> list[str]:
    """The table's branches beside the main one."""
    found = {
        match[1]
        for info in store.list_tree("branch")
        if (match := re.match(r"(?:.*/)?branch-([^/]+)/(?:schema|snapshot|tag)/", info.path))
    }
    return sorted(found)


def read_file(store: Store, path: str, missing: NotFound) -> bytes:
    """A file's bytes; `missing` where there is none."""
    try:
        return store.get(path)
    except NotFound:
        raise missing from None


def is_there(store: Store, path: str) -> bool:
    """Whether a file is there."""
    try:
        store.head(path)
    except NotFound:
        return False
    return True
