"""The port to bytes in objects. Everything above sees storage through `Store` only."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object.

    Attributes:
        path: Decoded, relative to the store's root.
        size: Bytes.
        modified_ms: When its content last changed, milliseconds since 1970 UTC. Whoever may write there can set it.
        identity: What tells it from another object that had or will have its name: an entity tag, or inode and time of
            a file, to the nanosecond. Links, permissions and owners change nothing of it. Empty where the store knows
            no such thing.
    """

    path: str
    size: int
    modified_ms: int
    identity: str = ""


#: One row an object, as `Store.list_columns` gives them, or a directory, where the store has such: paths are decoded
#: and relative to the root, sizes bytes, times milliseconds since 1970 UTC by the store's clock.
LISTED = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("modified_ms", pa.int64(), nullable=False),
        pa.field("is_directory", pa.bool_(), nullable=False),
    ]
)


class PutOutcome(enum.Enum):
    """What a conditional put came to. UNKNOWN: the store gave no answer that settles it."""

    DONE = "done"
    EXISTS = "exists"
    UNKNOWN = "unknown"


class Store(Protocol):
    """The objects below one root. Paths are relative, decoded, with `/` between parts.

    Errors: `NotFound` for a missing object; other failures of the store itself are `StorageError`s that carry the path.
    """

    @property
    def url(self) -> str:
        """The root in its canonical form, without a slash at the end."""

    @property
    def access(self) -> object:
        """By what the objects are reached, with which credentials: equal for stores that reach them alike."""

    def uri(self, path: str) -> str:
        """The object's address as a Hadoop path string (`file:/t/a b`, `s3a://bucket/t/a b`), not escaped."""

    def get(self, path: str) -> bytes: ...

    def get_range(self, path: str, start: int, length: int) -> bytes: ...

    def head(self, path: str) -> ObjectInfo: ...

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable file for pyarrow's readers."""

    def put(self, path: str, data: bytes, durable: bool = True) -> None:
        """Writes or replaces; a reader sees the old or the new object, never a part.

        Not `durable`: a crash of the machine may undo it, which costs nothing but what the object would have saved.
        """

    def put_new(self, parts: Sequence[tuple[str, bytes]]) -> None:
        """Writes objects, paths and bytes, whose names nobody uses or knows yet. All are durable when it returns; until
        then, and where it fails, any of them may be there, whole or in part.
        """

    def put_behind(self, parts: Sequence[tuple[str, bytes]], path: str, data: bytes) -> PutOutcome:
        """`put_new` of objects, and once these are durable `put_if_absent` of the one that names them; where a disk is
        waited for, in fewer waits.
        """

    def put_if_absent(self, path: str, data: bytes, makes_directory: bool = True) -> PutOutcome:
        """Writes only where nothing is: of two callers at once at most one gets DONE.

        Not `makes_directory`: where the store has directories, and the object's is missing, that is `NotFound` and
        nothing is written: what was deleted as a whole does not come back by a part of it.
        """

    def move(self, source: str, target: str) -> None:
        """Gives an object another name, which nobody else uses; on object stores by a copy within the store.

        Where it fails, the object is under its old name, under the new one, or under both.
        """

    def copy_from(self, source: Store, path: str, target: str) -> int:
        """Copies an object of another store, or of this one; its size. A reader sees the whole object or none.

        Within one bucket the store does it by itself; else the bytes pass through here, a part at a time.
        """

    def list_from(self, directory: str, start: str = "") -> list[ObjectInfo]:
        """The objects directly in `directory` whose file name is >= `start`, sorted by name; [] if it is missing."""

    def list_names(self, directory: str, start: str = "") -> list[str]:
        """The file names of `list_from`, without a look at the files where the store can do without."""

    def list_tree(self, directory: str) -> Iterator[ObjectInfo]:
        """All objects below `directory`, in no particular order."""

    def list_columns(self, directory: str, skips: Callable[[str], bool]) -> Iterator[pa.RecordBatch]:
        """All objects below `directory`, and the directories where the store has such, as columns (`LISTED`).

        Of a tree of millions no Python object is kept for each. A link to a directory is neither followed nor listed.

        Args:
            directory: Where to begin.
            skips: Whether what is below a directory of that name is left out, the directory itself, too. Names of
                objects are not asked about.
        """

    def delete(self, path: str) -> None:
        """Removes the object; a missing one is no error."""

    def delete_all(self, paths: Sequence[str]) -> None:
        """Removes objects, many at a time; missing ones are no error. Where it fails, some may be gone."""

    def remove_directory(self, directory: str) -> bool:
        """Removes a directory if it is empty; whether it did. Stores without directories have nothing to remove."""

    def delete_tree(self, directory: str) -> None:
        """Removes a directory and all in it; a missing one is no error."""


#: Gives the table's objects, or those of a store that a URL names; it is pickled, and called in workers.
OpenStore: TypeAlias = Callable[..., Store]
