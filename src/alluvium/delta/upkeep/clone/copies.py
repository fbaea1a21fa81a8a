"""Which files a deep clone copies, where they go, and what of them is there since an earlier clone. Pure.

All that one clone copies goes into a folder of its own: whoever clones at the same time, or loses the race for the
commit and clears away, touches no file of another. Below it a file has the path that it has in the source, so that the
next clone knows it again, by path, size and time. What lies outside of the source's folder, as the files of a source
that is a shallow clone do, gets a place by its address.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.columns import string_column
from alluvium.codecs.z85 import format_z85
from alluvium.delta.features.rows.deletion_vectors import vectors_of
from alluvium.delta.terms.spec import FILES
from alluvium.delta.upkeep.clone.addresses import absolute_paths, moved_vectors, vector_file, vector_names
from alluvium.delta.view.snapshot import Snapshot
from alluvium.storage.paths import decode_uri_paths, relative_to

_WITH_SCHEME = r"^[A-Za-z][A-Za-z0-9+.\-]*:/"
#: The folder of a clone.
_FOLDER = r"^copy-[0-9a-f]{32}/"
#: The same before the name of a file of vectors: its prefix and its number, the 20 letters of which may begin with a
#: slash, or the number alone, before which there is none.
_PREFIX = r"(?s)^u?copy-[0-9a-f]{32}(?:/(.+.{20})|(.{20}))$"

#: A file to copy. `origin`: its path in the source, or an address; `place`: where it goes, relative to the clone, both
#: decoded; `size`: bytes, null where the log does not say.
COPIED = pa.schema(
    [
        pa.field("origin", pa.string(), nullable=False),
        pa.field("place", pa.string(), nullable=False),
        pa.field("size", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Copies:
    """What a deep clone consists of.

    Attributes:
        files: The clone's files (`FILES`).
        is_new: For each file whether it is to be copied.
        data: Data files to copy (`COPIED`).
        vectors: Files of vectors to copy (`COPIED`).
        folder: That of all copies, relative to the clone.
    """

    files: pa.Table
    is_new: pa.ChunkedArray
    data: pa.Table
    vectors: pa.Table
    folder: str


def plan_copies(source: Snapshot, files: pa.Table, existing: Snapshot | None) -> Copies:
    """What it takes to have files of a table elsewhere.

    Args:
        source: The table.
        files: Its live files, `FILES`.
        existing: The table that gets them, where there is one.

    Raises:
        CorruptTable: A path is malformed, or a vector names no file.
    """
    root, folder = source.store.url, f"copy-{uuid.uuid4().hex}"
    there = existing.files if existing is not None else FILES.empty_table()
    origins = absolute_paths(files.column("path"), root, root)
    places = _places(origins)
    known = pc.replace_substring_regex(there.column("path"), _FOLDER, "")
    found = pc.index_in(_identities(places, files), value_set=_identities(known, there))
    fresh = pc.binary_join_element_wise(string_column([folder])[0], places, "/")
    data = pa.table([decode_uri_paths(origins), decode_uri_paths(fresh), files.column("size")], schema=COPIED)
    vectors = _Vectors(root, folder, _known_vectors(there))
    moved = {
        "path": pc.coalesce(there.column("path").take(found), fresh),
        "deletionVector": moved_vectors(files, root, lambda address: ("u", vectors.name(address))),
    }
    for name, values in moved.items():
        place = FILES.get_field_index(name)
        files = files.set_column(place, FILES.field(place), values)
    is_new = found.is_null()
    return Copies(files, is_new, data.filter(is_new), vectors.copies(source), folder)


def _identities(places: pa.ChunkedArray, files: pa.Table) -> pa.ChunkedArray:
    texts = [files.column(name).cast(pa.string()) for name in ("size", "modificationTime")]
    return pc.binary_join_element_wise(places, *texts, "\0")


def _places(origins: pa.ChunkedArray) -> pa.ChunkedArray:
    """Where files go below the folder of all copies, escaped as their origins are."""
    outside = pc.match_substring_regex(origins, _WITH_SCHEME)
    if not pc.any(outside).as_py():
        return origins
    directories = pc.replace_substring_regex(origins, r"[^/]*$", "").combine_chunks().dictionary_encode()
    names = pc.replace_substring_regex(origins, r"(?s)^.*/", "")
    made = [f"from-{uuid.uuid5(uuid.NAMESPACE_URL, one).hex}/" for one in directories.dictionary.to_pylist()]
    placed = pc.binary_join_element_wise(string_column(made).take(directories.indices), names, "")
    return pc.if_else(outside, placed, origins)


def _known_vectors(there: pa.Table) -> dict[str, str]:
    """Files of vectors that are there, by the names that they have in the source."""
    names = vector_names(vectors_of(there)).dictionary
    first = pc.replace_substring_regex(names, _PREFIX, r"u\1\2")
    is_own = pc.starts_with(names, "u")
    return dict(zip(first.filter(is_own).to_pylist(), names.filter(is_own).to_pylist(), strict=True))


@dataclass(frozen=True, slots=True)
class _Vectors:
    """Names of files of vectors in a clone.

    Attributes:
        root: URL of the source.
        folder: Of all copies.
        known: Those that are there.
    """

    root: str
    folder: str
    known: dict[str, str]

    def name(self, address: str) -> str:
        """`pathOrInlineDv` of descriptors that name the copy: "`<random prefix - optional><base85 encoded uuid>`"."""
        prefix, encoded = self._own_name(address)
        known = self.known.get(f"u{prefix}{encoded}")
        if known is not None:
            return known[1:]
        return f"{self.folder}/{prefix}{encoded}" if prefix else self.folder + encoded

    def copies(self, source: Snapshot) -> pa.Table:
        """The files to copy."""
        origins, places = [], []
        for stored in vector_names(vectors_of(source.files)).dictionary.to_pylist():
            address = vector_file(stored, self.root)
            name = self.name(address)
            if f"u{name}" not in self.known.values():
                origins.append(address)
                places.append(vector_file(f"u{name}", ""))
        return pa.table([origins, places, pa.nulls(len(origins), pa.int64())], schema=COPIED)

    def _own_name(self, address: str) -> tuple[str, str]:
        """Prefix and number as they are below the source, if it is called as writers call them; else by its address."""
        inside = relative_to(self.root, address)
        prefix, _, name = ("" if inside is None else inside).rpartition("/")
        try:
            number = uuid.UUID(name.removeprefix("deletion_vector_").removesuffix(".bin"))
        except ValueError:
            number = None
        if number is None or name != f"deletion_vector_{number}.bin":
            return "", format_z85(uuid.uuid5(uuid.NAMESPACE_URL, address).bytes)
        return prefix, format_z85(number.bytes)
