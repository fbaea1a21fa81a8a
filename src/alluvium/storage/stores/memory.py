"""Objects in the memory of this process, for tests and for tables that need not last."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from alluvium.storage.failures import not_found
from alluvium.storage.listing import as_columns, without_folders
from alluvium.storage.parallel import map_parallel
from alluvium.storage.paths import Url, ensure_relative, join
from alluvium.storage.store import ObjectInfo, PutOutcome, Store


@dataclass(frozen=True, slots=True)
class _Entry:
    data: bytes
    modified_ms: int
    number: int

    def info(self, path: str) -> ObjectInfo:
        return ObjectInfo(path, len(self.data), self.modified_ms, str(self.number))


@dataclass(slots=True)
class _Bucket:
    """The objects below one authority: directory -> file name -> object."""

    directories: dict[str, dict[str, _Entry]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


_BUCKETS: dict[str, _Bucket] = {}
_BUCKETS_LOCK = threading.Lock()
_NUMBERS = itertools.count(1)


class MemoryStore:
    """A directory in memory. Two stores of overlapping URLs see the same objects, for as long as the process lives.

    Args:
        authority: Names the bucket, the `name` of `memory://name/table`.
        root: Path inside of it.
    """

    def __init__(self, authority: str, root: str) -> None:
        self._url = str(Url("memory", authority, "/" + root.strip("/")))
        self._root = root.strip("/")
        with _BUCKETS_LOCK:
            self._bucket = _BUCKETS.setdefault(authority, _Bucket())

    @property
    def url(self) -> str:
        return self._url

    @property
    def access(self) -> object:
        return None  # there is but one way

    def uri(self, path: str) -> str:
        return join(self._url, ensure_relative(path))

    def get(self, path: str) -> bytes:
        return self._entry(path).data

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self._entry(path).data[start : start + length]

    def head(self, path: str) -> ObjectInfo:
        return self._entry(path).info(path)

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self.get(path))

    def put(self, path: str, data: bytes, durable: bool = True) -> None:
        directory, name = self._place(path)
        with self._bucket.lock:
            self._bucket.directories.setdefault(directory, {})[name] = _entry_of(data)

    def put_new(self, parts: Sequence[tuple[str, bytes]]) -> None:
        map_parallel(lambda part: self.put(*part), parts)

    def put_behind(self, parts: Sequence[tuple[str, bytes]], path: str, data: bytes) -> PutOutcome:
        self.put_new(parts)
        return self.put_if_absent(path, data)

    def put_if_absent(self, path: str, data: bytes, makes_directory: bool = True) -> PutOutcome:
        directory, name = self._place(path)
        with self._bucket.lock:
            entries = self._bucket.directories.setdefault(directory, {})
            if name in entries:
                return PutOutcome.EXISTS
            entries[name] = _entry_of(data)
        return PutOutcome.DONE

    def move(self, source: str, target: str) -> None:
        directory, name = self._place(target)
        entry = self._entry(source)
        with self._bucket.lock:
            self._bucket.directories.setdefault(directory, {})[name] = entry
        self.delete(source)

    def copy_from(self, source: Store, path: str, target: str) -> int:
        data = source.get(path)
        self.put(target, data)
        return len(data)

    def list_from(self, directory: str, start: str = "") -> list[ObjectInfo]:
        prefix = ensure_relative(directory)
        with self._bucket.lock:
            entries = dict(self._bucket.directories.get(join(self._root, prefix), {}))
        return [entries[name].info(join(prefix, name)) for name in sorted(entries) if name >= start]

    def list_names(self, directory: str, start: str = "") -> list[str]:
        return [info.path.rpartition("/")[2] for info in self.list_from(directory, start)]

    def list_tree(self, directory: str) -> Iterator[ObjectInfo]:
        top = join(self._root, ensure_relative(directory))
        skipped = len(self._root) + 1 if self._root else 0
        with self._bucket.lock:
            found = [
                entry.info(join(place, name)[skipped:])
                for place, entries in self._bucket.directories.items()
                if _is_below(place, top)
                for name, entry in entries.items()
            ]
        yield from found

    def list_columns(self, directory: str, skips: Callable[[str], bool]) -> Iterator[pa.RecordBatch]:
        start = len(ensure_relative(directory))
        for batch in as_columns(self.list_tree(directory)):
            yield without_folders(batch, start, skips)

    def delete(self, path: str) -> None:
        directory, name = self._place(path)
        with self._bucket.lock:
            self._bucket.directories.get(directory, {}).pop(name, None)

    def delete_all(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.delete(path)

    def remove_directory(self, directory: str) -> bool:
        return False

    def delete_tree(self, directory: str) -> None:
        top = join(self._root, ensure_relative(directory))
        with self._bucket.lock:
            for place in [place for place in self._bucket.directories if _is_below(place, top)]:
                del self._bucket.directories[place]

    def _place(self, path: str) -> tuple[str, str]:
        directory, _, name = join(self._root, ensure_relative(path)).rpartition("/")
        return directory, name

    def _entry(self, path: str) -> _Entry:
        directory, name = self._place(path)
        with self._bucket.lock:
            entry = self._bucket.directories.get(directory, {}).get(name)
        if entry is None:
            raise not_found(self._url, path)
        return entry


def _is_below(place: str, top: str) -> bool:
    return not top or place == top or place.startswith(top + "/")


def _entry_of(data: bytes) -> _Entry:
    return _Entry(bytes(data), time.time_ns() // 1_000_000, next(_NUMBERS))
