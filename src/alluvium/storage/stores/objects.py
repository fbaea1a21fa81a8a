"""Object stores over HTTP (S3, Google, Azure) through obstore.

Keys are used as they are: obstore percent-encodes them on the wire and decodes what it lists. It refuses control
characters, doubled slashes and dot parts; none of these occurs in the files of a table, since Hive escapes the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError, PreconditionError
from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store

from alluvium.errors import AlluviumError, InvalidRequest
from alluvium.storage.copying import PART_BYTES, Count, read_parts
from alluvium.storage.failures import no_put_if_absent, not_found, storage_error, store_unreachable
from alluvium.storage.listing import as_columns, without_folders
from alluvium.storage.parallel import DEFAULT_WORKERS, map_parallel
from alluvium.storage.paths import ensure_relative, join, relative_to
from alluvium.storage.range_file import open_ranges
from alluvium.storage.store import ObjectInfo, PutOutcome, Store
from alluvium.storage.waiting import ask_store

ResultT = TypeVar("ResultT")
Bucket: TypeAlias = "S3Store | GCSStore | AzureStore | MemoryStore"

#: What obstore raises: its own errors, and these of Python's.
_FAILURES = (BaseError, OSError, ValueError, NotImplementedError)
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
#: Client errors that pass: the request may succeed when repeated.
_PASSING = frozenset({408, 425, 429})
#: "The request can contain a list of up to 1,000 keys" (S3, DeleteObjects).
_DELETED_TOGETHER = 1_000
#: "You can copy an object of up to 5 GB in size in a single atomic action" (S3, CopyObject).
_COPIED_AT_ONCE = 5_000_000_000


class ObjectStore:
    """The keys of a bucket below a prefix.

    Args:
        bucket: obstore's store of the whole bucket.
        prefix: Key of the root, without slashes at its ends.
        url: Canonical URL of the root, as Hadoop spells it (`s3a://bucket/prefix`).
        allow_unsafe_put: Where the bucket has no conditional put, look and then put instead of refusing.
    """

    def __init__(self, bucket: Bucket, prefix: str, url: str, *, allow_unsafe_put: bool = False) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self._url = url
        self._allow_unsafe_put = allow_unsafe_put

    @property
    def url(self) -> str:
        return self._url

    @property
    def access(self) -> object:
        return self._bucket, self._allow_unsafe_put

    def uri(self, path: str) -> str:
        return join(self._url, ensure_relative(path))

    def get(self, path: str) -> bytes:
        try:
            return self._ask(lambda: bytes(obstore.get(self._bucket, self._key(path)).bytes()))
        except _FAILURES as error:
            raise self._failure("read", path, error) from error

    def get_range(self, path: str, start: int, length: int) -> bytes:
        if length <= 0:
            return b""  # HTTP has no empty range
        try:
            return self._ask(
                lambda: bytes(obstore.get_range(self._bucket, self._key(path), start=start, length=length))
            )
        except _FAILURES as error:
            # Behind the end there is nothing to read: 416 on HTTP, an error without a status in memory.
            if _status(error) in (416, None) and self.head(path).size <= start:
                return b""
            raise self._failure("read", path, error) from error

    def head(self, path: str) -> ObjectInfo:
        try:
            found = self._ask(lambda: obstore.head(self._bucket, self._key(path)))
        except _FAILURES as error:
            raise self._failure("look at", path, error) from error
        return _described(path, found)

    def open_input(self, path: str) -> pa.NativeFile:
        return open_ranges(lambda start, length: self.get_range(path, start, length), self.head(path).size)

    def put(self, path: str, data: bytes, durable: bool = True) -> None:
        try:
            self._ask(lambda: obstore.put(self._bucket, self._key(path), data))
        except _FAILURES as error:
            raise self._failure("write", path, error) from error

    def put_new(self, parts: Sequence[tuple[str, bytes]]) -> None:
        map_parallel(lambda part: self.put(*part), parts)

    def put_behind(self, parts: Sequence[tuple[str, bytes]], path: str, data: bytes) -> PutOutcome:
        self.put_new(parts)
        return self.put_if_absent(path, data)

    def put_if_absent(self, path: str, data: bytes, makes_directory: bool = True) -> PutOutcome:
        key = self._key(path)
        try:
            self._ask(lambda: obstore.put(self._bucket, key, data, mode="create", use_multipart=False))
        except (AlreadyExistsError, PreconditionError):
            return self._confirm_exists(path)
        except (NotImplementedError, NotSupportedError) as error:
            return self._put_unsafely(path, data, error)
        except _FAILURES as error:
            status = _status(error)
            if status == 501:  # "A header you provided implies functionality that is not implemented."
                return self._put_unsafely(path, data, error)
            return self._unsettled(path, error, status)
        return PutOutcome.DONE

    def _confirm_exists(self, path: str) -> PutOutcome:
        """S3 also answers 409 where another conditional put is merely under way, and may yet come to nothing."""
        try:
            self._ask(lambda: obstore.head(self._bucket, self._key(path)))
        except _FAILURES:
            return PutOutcome.UNKNOWN
        return PutOutcome.EXISTS

    def _unsettled(self, path: str, error: Exception, status: int | None) -> PutOutcome:
        """UNKNOWN, unless the store said clearly that it wrote nothing: then its refusal is raised."""
        refused = status is not None and 400 <= status < 500 and status not in _PASSING
        if refused or isinstance(error, (ValueError, FileNotFoundError)):
            raise self._failure("write", path, error) from error
        return PutOutcome.UNKNOWN

    def _put_unsafely(self, path: str, data: bytes, cause: Exception) -> PutOutcome:
        if not self._allow_unsafe_put:
            raise no_put_if_absent(self._url, path, "its object store has no conditional put") from cause
        key = self._key(path)
        try:
            self._ask(lambda: obstore.head(self._bucket, key))
        except FileNotFoundError:
            try:
                self._ask(lambda: obstore.put(self._bucket, key, data, use_multipart=False))
            except _FAILURES as error:
                return self._unsettled(path, error, _status(error))
            return PutOutcome.DONE
        except _FAILURES as error:
            raise self._failure("look at", path, error) from error
        return PutOutcome.EXISTS

    def move(self, source: str, target: str) -> None:
        try:
            self._ask(lambda: obstore.rename(self._bucket, self._key(source), self._key(target)))
        except _FAILURES as error:
            raise self._failure("move", source, error) from error

    def copy_from(self, source: Store, path: str, target: str) -> int:
        key, size = self._key(target), source.head(path).size
        if isinstance(source, ObjectStore) and source._bucket == self._bucket and size <= _COPIED_AT_ONCE:
            # What the store says of the object before is what it copies: data files never change.
            origin = source._key(path)
            try:
                self._ask(lambda: obstore.copy(self._bucket, origin, key))
            except _FAILURES as error:
                raise self._failure("copy", target, error) from error
            return size
        if size <= PART_BYTES:
            data = source.get(path)
            self.put(target, data)
            return len(data)
        count = Count()
        try:
            self._ask(lambda: obstore.put(self._bucket, key, read_parts(source, path, count)))
        except _FAILURES as error:
            raise self._failure("write", target, error) from error
        return count.total

    def list_from(self, directory: str, start: str = "") -> list[ObjectInfo]:
        key = self._key(directory)
        try:
            if start:
                # `offset` is exclusive; the name without its last letter sorts before `start`. The listing also goes
                # through the directories below, whose keys are dropped here.
                offset = join(key, start[:-1]) if start[:-1].strip(".") else None  # `.` and `..` are no names
                found = self._ask(lambda: obstore.list(self._bucket, key or None, offset=offset).collect())
            else:
                found = self._ask(lambda: obstore.list_with_delimiter(self._bucket, key or None)["objects"])
        except FileNotFoundError:
            return []
        except _FAILURES as error:
            raise self._failure("list", directory, error) from error
        infos = [self._info(meta) for meta in found]
        prefix = len(ensure_relative(directory)) + 1 if ensure_relative(directory) else 0
        return sorted(
            (info for info in infos if "/" not in info.path[prefix:] and info.path[prefix:] >= start),
            key=lambda info: info.path,
        )

    def list_names(self, directory: str, start: str = "") -> list[str]:
        return [info.path.rpartition("/")[2] for info in self.list_from(directory, start)]

    def list_tree(self, directory: str) -> Iterator[ObjectInfo]:
        try:
            chunks = iter(obstore.list(self._bucket, self._key(directory) or None, chunk_size=1000))
            while (chunk := self._ask(lambda: next(chunks, None))) is not None:
                for meta in chunk:
                    yield self._info(meta)
        except FileNotFoundError:
            return
        except _FAILURES as error:
            raise self._failure("list", directory, error) from error

    def list_columns(self, directory: str, skips: Callable[[str], bool]) -> Iterator[pa.RecordBatch]:
        # A listing gives its pages one after the other, so that several are made side by side, a folder each.
        objects, folders = self._list_directly(ensure_relative(directory), skips)
        while len(folders) == 1:
            more, folders = self._list_directly(folders[0], skips)
            objects += more
        yield from as_columns(objects)
        for start in range(0, len(folders), DEFAULT_WORKERS):
            for found in map_parallel(
                lambda folder: self._list_folder(folder, skips), folders[start : start + DEFAULT_WORKERS]
            ):
                yield from found

    def _list_directly(self, directory: str, skips: Callable[[str], bool]) -> tuple[list[ObjectInfo], list[str]]:
        """What lies in a directory itself: objects, and directories that are not skipped."""
        try:
            found = self._ask(lambda: obstore.list_with_delimiter(self._bucket, self._key(directory) or None))
        except FileNotFoundError:
            return [], []
        except _FAILURES as error:
            raise self._failure("list", directory, error) from error
        below = [(relative_to(self._prefix, key) if self._prefix else key) or key for key in found["common_prefixes"]]
        folders = [path.strip("/") for path in below]
        return [self._info(meta) for meta in found["objects"]], [f for f in folders if not skips(f.rpartition("/")[2])]

    def _list_folder(self, folder: str, skips: Callable[[str], bool]) -> list[pa.RecordBatch]:
        return [without_folders(b, len(folder), skips) for b in as_columns(self.list_tree(folder))]

    def delete(self, path: str) -> None:
        try:
            self._ask(lambda: obstore.delete(self._bucket, self._key(path)))
        except FileNotFoundError:
            return
        except _FAILURES as error:
            raise self._failure("delete", path, error) from error

    def delete_all(self, paths: Sequence[str]) -> None:
        def delete_some(start: int) -> None:
            some = paths[start : start + _DELETED_TOGETHER]
            keys = [self._key(path) for path in some]
            try:
                self._ask(lambda: obstore.delete(self._bucket, keys))
            except FileNotFoundError:
                # Where a store minds a missing object, nobody says which of the others are left.
                for path in some:
                    self.delete(path)
            except _FAILURES as error:
                raise self._failure("delete", some[0], error) from error

        map_parallel(delete_some, range(0, len(paths), _DELETED_TOGETHER))

    def remove_directory(self, directory: str) -> bool:
        return False

    def delete_tree(self, directory: str) -> None:
        keys = [self._key(info.path) for info in self.list_tree(directory)]
        try:
            if keys:
                self._ask(lambda: obstore.delete(self._bucket, keys))
        except FileNotFoundError:
            return
        except _FAILURES as error:
            raise self._failure("delete", directory, error) from error

    def _ask(self, request: Callable[[], ResultT]) -> ResultT:
        return request() if isinstance(self._bucket, MemoryStore) else ask_store(request, self._url)

    def _key(self, path: str) -> str:
        return join(self._prefix, ensure_relative(path))

    def _info(self, meta: obstore.ObjectMeta) -> ObjectInfo:
        key = meta["path"]
        path = (relative_to(self._prefix, key) if self._prefix else key) or key
        return _described(path, meta)

    def _failure(self, what: str, path: str, error: Exception) -> AlluviumError:
        if isinstance(error, FileNotFoundError):
            return not_found(self._url, path)
        if isinstance(error, ValueError):  # obstore: "Could not parse path"
            return InvalidRequest(
                f"the object store cannot hold the path {path!r}: {str(error).partition(chr(10))[0]}",
                code="invalid-path",
                url=self._url,
                path=path,
            )
        status = _status(error)
        if status is None and isinstance(error, BaseError):
            return store_unreachable(what, self._url, path, error)
        hint = "check the credentials and the bucket's permissions" if status in (401, 403) else None
        return storage_error(what, self._url, path, error, hint)


def _described(path: str, meta: obstore.ObjectMeta) -> ObjectInfo:
    modified_ms = round(meta["last_modified"].timestamp() * 1000)
    # Some services leave out the quotes in listings.
    return ObjectInfo(path, meta["size"], modified_ms, (meta["e_tag"] or "").strip('"'))


def _status(error: Exception) -> int | None:
    """The HTTP status that an error tells of, if the store answered at all."""
    match = _STATUS.search(str(error))
    return int(match[1]) if match else None
