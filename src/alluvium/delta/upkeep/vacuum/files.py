"""Which files VACUUM may take: what is listed, without what somebody needs, what is young and what is hidden. Pure.

Files stay columns from end to end; what Python loops over are names of folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.partition_path import escape_path_name
from alluvium.delta.features.rows.deletion_vectors import INLINE, has_vector, vector_address
from alluvium.delta.log.names import LOG_DIRECTORY
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import DeletionVector
from alluvium.storage.paths import decode_uri_paths, relative_to
from alluvium.storage.store import LISTED

_CHANGE_DATA, _DELTA_INDEX = "_change_data", "_delta_index"
_UNIVERSAL_FORMATS = "delta.universalFormat.enabledFormats"
_ICEBERG_METADATA = "metadata"
#: A path of the log that does not begin at the table's root.
ABSOLUTE = r"^([A-Za-z][A-Za-z0-9+.\-]*:)?/"
#: Spellings that a listing does not have: `./a`, `a//b`, `a/../b`, `a/`.
_ODD = r"(^|/)\.{0,2}(/|$)"
_DIRECTORY = r"[^/]*$"
#: What of a path stands before its name.
NAME = r"(?s)^.*/"
#: A file in the log of a table that lies within the one that is listed.
_INNER_LOG = rf"(?s)^(?P<root>.+?)/{LOG_DIRECTORY}/"


@dataclass(frozen=True, slots=True)
class Needed:
    """The files that have to stay.

    Attributes:
        paths: Relative to the table, decoded, as a listing has them.
        names: Names, without folders, of files that the log names in another way: by an absolute path, which may lead
            back into the table by a link, a mount or another scheme. A listed file of such a name stays.
    """

    paths: pa.Array
    names: pa.Array


def hides(config: TableConfig) -> Callable[[str], bool]:
    """Which names VACUUM passes over, of files and of folders with all below them, as delta-spark does.

    Names that begin with `_` or `.` are hidden, but for change data, indexes, and folders of partition columns.
    """
    physical = config.physical_names
    columns = {*config.partition_columns, *(physical[name] for name in config.partition_columns)}
    folders = tuple(f"{spelled}=" for column in columns for spelled in (column, escape_path_name(column)))
    taken = (_CHANGE_DATA, _DELTA_INDEX, *folders)
    formats = config.metadata.configuration.get(_UNIVERSAL_FORMATS, "").lower()
    has_metadata = "iceberg" in formats

    def is_hidden(name: str) -> bool:
        if has_metadata and name == _ICEBERG_METADATA:
            return True
        return name.startswith(("_", ".")) and not name.startswith(taken)

    return is_hidden


def vector_paths(vectors: pa.StructArray, root: str) -> pa.Array:
    """The files that deletion vectors lie in: relative to the table, or a URL; null where there is none.

    Raises:
        CorruptTable: A descriptor names no file.
    """
    if vectors.null_count == len(vectors):
        return pa.nulls(len(vectors), pa.string())
    members = dict(zip((f.name for f in vectors.type), vectors.flatten(), strict=True))
    names = pc.binary_join_element_wise(members["storageType"], members["pathOrInlineDv"], "")
    is_stored = pc.and_(has_vector(vectors), pc.not_equal(members["storageType"], INLINE))
    encoded = pc.if_else(is_stored, names, pa.scalar(None, pa.string())).dictionary_encode()
    files = [_vector_path(name, root) for name in encoded.dictionary.to_pylist()]
    return pa.array(files, pa.string()).take(encoded.indices)


def _vector_path(name: str, root: str) -> str:
    vector = DeletionVector(storage_type=name[:1], path_or_inline_dv=name[1:], size_in_bytes=0, cardinality=0)
    address = vector_address(vector, root)
    inside = relative_to(root, address)
    return address if inside is None else inside


def stored_paths(paths: pa.Array, root: str) -> pa.Array:
    """Paths of the log as a listing has them, where they lie below the root; others as they are, decoded.

    Raises:
        CorruptTable: A path is malformed.
    """
    decoded = decode_uri_paths(paths)
    is_inside = pc.starts_with(decoded, root.rstrip("/") + "/")
    if not pc.any(is_inside).as_py():
        return decoded
    return pc.if_else(is_inside, pc.utf8_slice_codeunits(decoded, len(root.rstrip("/")) + 1), decoded)


def needed_files(actions: Iterable[pa.RecordBatch], root: str) -> Needed:
    """The files, those of deletion vectors too, that some file actions name.

    Args:
        actions: Batches with `path` and `deletionVector`.
        root: URL of the table.

    Raises:
        CorruptTable: A path or a vector is malformed: nobody knows then what may go.
    """
    named: list[pa.Array] = []
    for batch in actions:
        paths = batch.column("path")
        named.append(stored_paths(paths, root))
        # A writer that does not escape means the path as it stands there.
        named.append(paths.filter(pc.match_substring(paths, "%")))
        named.append(vector_paths(batch.column("deletionVector"), root).drop_null())
    everything = pc.unique(pa.chunked_array(named, pa.string()))
    is_elsewhere = pc.or_(pc.match_substring_regex(everything, ABSOLUTE), pc.match_substring_regex(everything, _ODD))
    names = pc.unique(pc.replace_substring_regex(everything.filter(is_elsewhere).cast(pa.string()), NAME, ""))
    return Needed(everything, names)


def with_unseen(needed: Needed, listed: pa.Table) -> Needed:
    """What has to stay, where files that are not listed by the path that the log has for them go by their names: a
    folder may be a link to where they are listed, and not every disk tells upper case from lower.
    """
    there = pc.is_in(needed.paths, value_set=listed.column("path").combine_chunks())
    unseen = pc.replace_substring_regex(needed.paths.filter(pc.invert(there)).cast(pa.string()), NAME, "")
    return replace(needed, names=pc.unique(pa.chunked_array([needed.names, unseen])))


def without_inner_tables(listed: pa.Table) -> pa.Table:
    """What is listed, without the logs, without the files of tables that lie within the table, and without the
    directories that these are in.

    Args:
        listed: Schema `LISTED`, the logs, too.
    """
    paths = listed.column("path")
    kept = pc.invert(pc.match_substring_regex(paths, f"^{LOG_DIRECTORY}(/|$)"))
    if pc.any(pc.match_substring(paths, f"/{LOG_DIRECTORY}/")).as_py():
        inner = pc.struct_field(pc.extract_regex(paths.filter(kept), _INNER_LOG), "root")
        for root in pc.unique(inner).drop_null().to_pylist():
            parts = root.split("/")
            above = pa.array(["/".join(parts[: n + 1]) for n in range(len(parts))], pa.string())
            is_of_it = pc.or_(pc.starts_with(paths, f"{root}/"), pc.is_in(paths, value_set=above))
            kept = pc.and_(kept, pc.invert(is_of_it))
    return listed.filter(kept)


def choose_files(listed: pa.Table, needed: Needed, cutoff_ms: int, is_hidden: Callable[[str], bool]) -> pa.Table:
    """The files that may go.

    Args:
        listed: Schema `LISTED`, without what lies in hidden folders.
        needed: What has to stay.
        cutoff_ms: Files that are as young as this, or younger, stay: whoever wrote them may not have committed yet.
        is_hidden: Of names.
    """
    is_old = pc.less(listed.column("modified_ms"), cutoff_ms)
    files = listed.filter(pc.and_(is_old, pc.invert(listed.column("is_directory"))))
    files = files.filter(pc.invert(pc.is_in(files.column("path"), value_set=needed.paths)))
    names = pc.replace_substring_regex(files.column("path"), NAME, "")
    kept = pc.or_(pc.is_in(names, value_set=needed.names), _hidden(names, is_hidden))
    return files.filter(pc.invert(kept))


def _hidden(names: pa.ChunkedArray, is_hidden: Callable[[str], bool]) -> pa.ChunkedArray:
    """Which names are hidden: most begin as no hidden name does."""
    is_doubtful = pc.or_(pc.match_substring_regex(names, r"^[_.]"), pc.equal(names, _ICEBERG_METADATA))
    doubtful = pc.unique(names.filter(is_doubtful))
    return pc.is_in(names, value_set=pa.array([n for n in doubtful.to_pylist() if is_hidden(n)], pa.string()))


def empty_directories(listed: pa.Table, needed: Needed) -> tuple[str, ...]:
    """Directories with no file in them or below, the deepest first. One that is not as empty as it looks, since what
    is in it is hidden, cannot be removed.
    """
    is_directory = listed.column("is_directory")
    directories = listed.column("path").filter(is_directory).to_pylist()
    if not directories:
        return ()
    files = listed.column("path").filter(pc.invert(is_directory))
    filled: set[str] = set()
    for paths in (files, needed.paths):
        for folder in pc.unique(folders_of(paths)).to_pylist():
            above = folder.rstrip("/")
            while above and above not in filled:
                filled.add(above)
                above = above.rpartition("/")[0]
    return tuple(sorted((d for d in directories if d not in filled), key=lambda d: (-d.count("/"), d)))


def folders_of(paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The folders that files lie in, with a slash at the end; an empty text at the root."""
    return pc.replace_substring_regex(paths, _DIRECTORY, "")


def newest_of_each(listed: pa.Table) -> pa.Table:
    """Of several rows of one path the youngest: an inventory may name a file twice."""
    if listed.num_rows == len(pc.unique(listed.column("path"))):
        return listed
    groups = listed.group_by("path").aggregate([("size", "max"), ("modified_ms", "max"), ("is_directory", "max")])
    names = ("path", "size_max", "modified_ms_max", "is_directory_max")
    return pa.Table.from_arrays([groups.column(name) for name in names], schema=LISTED)
