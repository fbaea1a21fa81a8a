"""Files of a table as another table names them where they lie. Pure.

Specification, "Add File and Remove File": "`path`: A relative path to a data file from the root of the table or an
absolute path to a file that should be added to the table. The path is a URI".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.columns import string_column
from alluvium.delta.features.rows.deletion_vectors import INLINE, has_vector, vector_address, vectors_of
from alluvium.delta.terms.spec import DELETION_VECTOR, DeletionVector
from alluvium.storage.paths import Url, encode_uri_path, split_url

#: From the address of a file of vectors to the `storageType` and `pathOrInlineDv` of its descriptors.
Placed: TypeAlias = Callable[[str], tuple[str, str]]

_WITH_SCHEME = r"^[A-Za-z][A-Za-z0-9+.\-]*:/"


def absolute_paths(paths: pa.ChunkedArray, root: str, seen_from: str) -> pa.ChunkedArray:
    """Paths of one table's log for the log of another.

    Args:
        paths: As in the log: escaped.
        root: URL of the table that they are of.
        seen_from: URL of the other; files that lie in its own folder get relative paths.
    """
    parts = split_url(root)
    authority = encode_uri_path(str(Url(parts.scheme, parts.authority, ""))).rstrip("/")
    # Scalars made of columns, for to make one of Python's texts pyarrow loads pandas.
    top, here, nothing = string_column([authority, directory_uri(root), ""])
    from_top = pc.binary_join_element_wise(top, paths, nothing)
    below = pc.binary_join_element_wise(here, paths, nothing)
    placed = pc.if_else(pc.starts_with(paths, "/"), from_top, below)
    addresses = pc.if_else(pc.match_substring_regex(paths, _WITH_SCHEME), paths, placed)
    own = directory_uri(seen_from)
    relative = pc.utf8_slice_codeunits(addresses, len(own))
    return pc.if_else(pc.starts_with(addresses, own), relative, addresses)


def directory_uri(url: str) -> str:
    """A directory's address as logs have it, with the slash at its end."""
    return encode_uri_path(url.rstrip("/")) + "/"


def absolute_vectors(files: pa.Table, root: str) -> pa.StructArray:
    """The descriptors of files' deletion vectors, those in files of vectors by their absolute paths.

    Raises:
        CorruptTable: A descriptor names no file.
    """
    return moved_vectors(files, root, lambda address: ("p", encode_uri_path(address)))


def moved_vectors(files: pa.Table, root: str, place: Placed) -> pa.StructArray:
    """The descriptors of files' deletion vectors, once the files of vectors are elsewhere.

    Args:
        files: Schema `FILES`.
        root: URL of the table that they are of.
        place: From the address of a file of vectors to the `storageType` and `pathOrInlineDv` that name it.

    Raises:
        CorruptTable: A descriptor names no file.
    """
    vectors = vectors_of(files)
    is_there = has_vector(vectors) if len(vectors) else pa.array([], pa.bool_())
    if not pc.any(is_there).as_py():
        return pa.nulls(len(vectors), DELETION_VECTOR)
    members = dict(zip((f.name for f in DELETION_VECTOR), vectors.flatten(), strict=True))
    names = vector_names(vectors)
    placed = [place(vector_file(name, root)) for name in names.dictionary.to_pylist()]
    in_log = names.indices.is_null()
    for column, values in (("storageType", [p[0] for p in placed]), ("pathOrInlineDv", [p[1] for p in placed])):
        elsewhere = string_column(values).take(names.indices)
        members[column] = pc.if_else(in_log, members[column], elsewhere)
    return pa.StructArray.from_arrays(list(members.values()), fields=list(DELETION_VECTOR), mask=pc.invert(is_there))


def vector_names(vectors: pa.StructArray) -> pa.DictionaryArray:
    """The files of vectors that descriptors name, `storageType` and `pathOrInlineDv` as one text; null for none."""
    members = dict(zip((f.name for f in vectors.type), vectors.flatten(), strict=True))
    is_stored = pc.and_(has_vector(vectors), pc.not_equal(members["storageType"], INLINE))
    names = pc.binary_join_element_wise(members["storageType"], members["pathOrInlineDv"], "")
    return pc.if_else(is_stored, names, pa.scalar(None, pa.string())).dictionary_encode()


def vector_file(name: str, root: str) -> str:
    """The address of a file of vectors by its name, as `vector_names` gives it."""
    vector = DeletionVector(storage_type=name[:1], path_or_inline_dv=name[1:], size_in_bytes=0, cardinality=0)
    return vector_address(vector, root)
