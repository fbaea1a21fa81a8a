"""The files of a folder, and the partitions that their folders name.

Files stay columns: what Python loops over are folders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.partition_path import escape_path_name, unescape_path_name
from alluvium.delta.log.names import LOG_DIRECTORY
from alluvium.delta.upkeep.convert.sink_log import ALL_COUNT, counted_files
from alluvium.errors import InvalidRequest, NotFound
from alluvium.storage.store import LISTED, Store

_NAME, _DIRECTORY = r"(?s)^.*/", r"[^/]*$"
_COMMIT = rf"(^|/){LOG_DIRECTORY}/[0-9]{{20}}\.(json|checkpoint\..*)$"
_IN_LOG = rf"(^|/){LOG_DIRECTORY}(/|$)"


@dataclass(frozen=True, slots=True)
class Folders:
    """Files, and what their folders say.

    Attributes:
        files: Schema `LISTED`, sorted by path.
        folder: Of each file the number of its folder.
        names: Columns that the folders name, outermost first.
        values: Of each column a value a folder, as its name has it: escaped, `__HIVE_DEFAULT_PARTITION__` for null.
    """

    files: pa.Table
    folder: pa.Array
    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


def list_folders(
    store: Store, names: Sequence[str] | None, within: Sequence[str] | None = None, by_sink_log: bool = True
) -> Folders:
    """What is in a folder, without what is hidden: names that begin with `_` or `.`, as engines pass over them.

    Args:
        store: The folder.
        names: The partition columns that are expected; None: those of the first file.
        within: Folders below it, in and below which alone files count; None: all count.
        by_sink_log: Whether only those count that the log of a streaming query names, where one wrote there.

    Raises:
        NotFound: There are no files (`no-parquet-files`), or some that the log of a streaming query names are gone
            (`missing-file`).
        CorruptTable: That log is damaged (`damaged-sink-log`).
        InvalidRequest: Folders name other columns (`partition-folders`), there is a table in it (`table-inside`), or it
            is one of another format (`not-convertible`).
    """
    listed = _listed(store, names)
    files = _within(_counted(store, listed) if by_sink_log else listed, within)
    if not files.num_rows:
        raise NotFound(
            "there are no Parquet files",
            code="no-parquet-files",
            url=store.url,
            hint="files whose names begin with _ or . do not count",
        )
    directories = pc.replace_substring_regex(files.column("path").combine_chunks(), _DIRECTORY, "").dictionary_encode()
    parts = [_parts(directory) for directory in directories.dictionary.to_pylist()]
    expected = tuple(names) if names is not None else tuple(unescape_path_name(name) for name, _ in parts[0])
    for number, found in enumerate(parts):
        _ensure_named(expected, found, files, directories.indices, number)
    values = tuple(tuple(found[i][1] for found in parts) for i in range(len(expected)))
    return Folders(files, directories.indices, expected, values)


def _listed(store: Store, names: Sequence[str] | None) -> pa.Table:
    listed = pa.Table.from_batches(store.list_columns("", _hides(names)), LISTED)
    listed = listed.filter(pc.invert(listed.column("is_directory")))
    commits = listed.column("path").filter(pc.match_substring_regex(listed.column("path"), _COMMIT)).to_pylist()
    if commits:
        # Files that a table has removed lie beside those that it has: they would come back.
        place = commits[0].rpartition(f"{LOG_DIRECTORY}/")[0].rstrip("/")
        raise InvalidRequest(
            f"there is a Delta table in the folder: {place or '.'}",
            code="table-inside",
            url=store.url,
            path=place or None,
            hint="read it and write its rows into a table of their own",
        )
    _ensure_files_alone(store, listed.column("path"))
    hidden = pc.match_substring_regex(pc.replace_substring_regex(listed.column("path"), _NAME, ""), "^[_.]")
    hidden = pc.or_(hidden, pc.match_substring_regex(listed.column("path"), _IN_LOG))
    return listed.filter(pc.invert(hidden)).sort_by("path")


def _ensure_files_alone(store: Store, paths: pa.ChunkedArray) -> None:
    """Refuses the folder of a table of another format: files of its older versions lie beside those of the newest."""
    marks = (
        ("Hudi", "hoodie.properties" in store.list_names(".hoodie"), "read it with Hudi"),
        ("Iceberg", _any(paths, r"^metadata/[^/]*\.metadata\.json$"), f"iceberg.`{store.url}`, or read it"),
        ("Paimon", _any(paths, r"^schema/schema-[0-9]+$"), f"paimon.`{store.url}`, or read it"),
    )
    for name, is_there, way in marks:
        if is_there:
            raise InvalidRequest(
                f"it is the folder of a table of {name}, whose files are not all of its rows",
                code="not-convertible",
                url=store.url,
                hint=f"{way} and write its rows into a table of their own",
            )


def _any(paths: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(paths, pattern), min_count=0).as_py())


def _counted(store: Store, files: pa.Table) -> pa.Table:
    """Those of some files that count."""
    counted = counted_files(store)
    if counted is None:
        return files
    missing = counted.filter(pc.invert(pc.is_in(counted, value_set=files.column("path").combine_chunks())))
    if len(missing):
        raise NotFound(
            f"the streaming query that wrote the folder names {len(missing)} files that are gone: {missing[0]}",
            code="missing-file",
            url=store.url,
            path=missing[0].as_py(),
            hint=f"Spark cannot read the folder without them either; {ALL_COUNT}",
        )
    return files.filter(pc.is_in(files.column("path"), value_set=counted))


def _within(files: pa.Table, folders: Sequence[str] | None) -> pa.Table:
    """Those of some files that lie in some folders, or further down."""
    if folders is None:
        return files
    directories = pc.replace_substring_regex(files.column("path").combine_chunks(), _DIRECTORY, "").dictionary_encode()
    wanted = {f"{folder}/" for folder in folders}
    parts = [directory.split("/")[:-1] for directory in directories.dictionary.to_pylist()]
    kept = [any("/".join(one[: n + 1]) + "/" in wanted for n in range(len(one))) for one in parts]
    return files.filter(pa.array(kept, pa.bool_()).take(directories.indices))


def _hides(names: Sequence[str] | None) -> Callable[[str], bool]:
    """Of folders: as Spark does, those of partition columns are not hidden, whatever they begin with."""
    known = None if names is None else tuple(f"{n}=" for name in names for n in (name, escape_path_name(name)))

    def is_hidden(name: str) -> bool:
        if name == LOG_DIRECTORY or not name.startswith(("_", ".")):
            return False
        return not (name.startswith(known) if known is not None else name.startswith("_") and "=" in name)

    return is_hidden


def _parts(directory: str) -> tuple[tuple[str, str], ...]:
    """The `name=value` parts nearest to the files; other folders above and below them mean nothing, as in Spark."""
    found: list[tuple[str, str]] = []
    for part in reversed(directory.rstrip("/").split("/")):
        name, equals, value = part.partition("=")
        if equals:
            found.append((name, value))
        elif found:
            break
    return tuple(reversed(found))


def _ensure_named(
    expected: Sequence[str], found: Sequence[tuple[str, str]], files: pa.Table, folder: pa.Array, number: int
) -> None:
    """Refuses a folder that names other columns, or no value."""
    names = [unescape_path_name(name) for name, _ in found]
    problem = None
    if len(names) != len(expected):
        problem = (
            f"expected {len(expected)} partition columns ({_shown(expected)}), "
            f"but the folders of a file name {len(names)} ({_shown(names)})"
        )
    elif other := [(e, n) for e, n in zip(expected, names, strict=True) if e.lower() != n.lower()]:
        problem = f"expected the partition column {other[0][0]!r}, but the folder of a file names {other[0][1]!r}"
    elif empty := [n for n, (_, value) in zip(names, found, strict=True) if not value or not n]:
        problem = f"the folder of a file has no value of the partition column {empty[0]!r}"
    if problem is None:
        return
    first = pc.index(folder, pa.scalar(number, folder.type)).as_py()
    raise InvalidRequest(
        problem,
        code="partition-folders",
        path=files.column("path")[first].as_py(),
        hint="name the columns of the folders, outermost first: PARTITIONED BY (day date, shop int)",
    )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
