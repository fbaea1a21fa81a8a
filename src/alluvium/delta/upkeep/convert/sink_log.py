"""The log of a streaming query of Spark that wrote files into a folder: which of them count.

The query leaves a text a batch in `_spark_metadata`: `v1`, then a file a line. Now and then one, `<batch>.compact`,
stands for all before it. Files that no text names are those of batches and tasks that failed, whose rows are in others
again: Spark's own reader passes over them, and so does the reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pyarrow as pa

from alluvium.codecs.columns import string_column
from alluvium.errors import DECODE_ERRORS, CorruptTable, InvalidRequest
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import Url, decode_uri_path, relative_to, split_file, split_url
from alluvium.storage.places import without_links
from alluvium.storage.store import Store

DIRECTORY = "_spark_metadata"
#: What to do about a log that is of no use.
ALL_COUNT = (
    "where all files that are there count, take _spark_metadata away, or set "
    "spark.databricks.delta.convert.useMetadataLog to false"
)
_BATCH = re.compile(r"(\d+)(\.compact)?", re.ASCII)
_VERSION = b"v1"


class _File(msgspec.Struct, frozen=True):
    path: str
    action: str = "add"


_FILES = msgspec.json.Decoder(_File)


def counted_files(store: Store) -> pa.Array | None:
    """The files that count, relative to the folder; None: no streaming query has written there.

    Raises:
        CorruptTable: A batch is gone, or makes no sense (`damaged-sink-log`).
        InvalidRequest: The log names a file elsewhere (`not-convertible`): the folder was moved, or copied.
    """
    names = store.list_names(DIRECTORY)
    if not names:
        return None
    batches = {int(found[1]): name for name in names if (found := _BATCH.fullmatch(name))}
    compacted = [number for number, name in batches.items() if name.endswith(".compact")]
    needed = range(max(compacted, default=0), max(batches, default=-1) + 1)
    gone = next((number for number in needed if number not in batches), None)
    if gone is not None:
        raise _damaged(store, f"{DIRECTORY}/{gone}", "it is gone")
    files: dict[str, None] = {}
    texts = map_parallel(lambda number: list(_files(store, f"{DIRECTORY}/{batches[number]}")), needed)
    for one in (file for text in texts for file in text):
        if one.action == "delete":
            files.pop(one.path, None)
        else:
            files[one.path] = None
    return string_column(list(_relative(store, files)))


def _files(store: Store, path: str) -> Iterator[_File]:
    version, *lines = store.get(path).split(b"\n")
    if version.strip() != _VERSION:
        raise _damaged(store, path, "it does not begin with v1")
    try:
        yield from (_FILES.decode(line) for line in lines if line.strip())
    except DECODE_ERRORS as error:
        raise _damaged(store, path, str(error)) from None


def _relative(store: Store, addresses: dict[str, None]) -> Iterator[str]:
    roots = tuple(dict.fromkeys((_spelled(split_url(store.url)), _spelled(without_links(store.url)))))
    folders: dict[str, str | None] = {}
    for address in addresses:
        folder, name = split_file(decode_uri_path(address))
        if folder not in folders:
            folders[folder] = _below(roots, folder)
        inside = folders[folder]
        if inside is None:
            raise InvalidRequest(
                f"the log of the streaming query that wrote the folder names files elsewhere: {address}",
                code="not-convertible",
                url=store.url,
                path=address,
                hint=f"the folder was moved; {ALL_COUNT}",
            )
        yield f"{inside}{name}"


def _below(roots: tuple[str, ...], folder: str) -> str | None:
    """A folder, with a slash behind it, below any of the names of another one; empty for that one itself."""
    for url in (split_url(folder), without_links(folder)):
        for root in roots:
            inside = relative_to(root, f"{_spelled(url)}/")
            if inside is not None:
                return inside
    return None


def _spelled(url: Url) -> str:
    """One of the several names of a file system."""
    scheme = {"": "file", "s3a": "s3", "s3n": "s3"}.get(url.scheme, url.scheme)
    return str(Url(scheme, "" if url.authority == "localhost" else url.authority, url.path)).rstrip("/")


def _damaged(store: Store, path: str, problem: str) -> CorruptTable:
    return CorruptTable(
        f"the log of the streaming query that wrote the folder is damaged: {path}: {problem}",
        code="damaged-sink-log",
        url=store.url,
        path=path,
        hint=f"it says which files count, and Spark cannot read the folder without it either; {ALL_COUNT}",
    )
