"""A store whose requests fail on purpose: before they take effect, or after (the response is lost)."""

from __future__ import annotations

import enum
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from alluvium.errors import StorageError
from alluvium.storage.store import ObjectInfo, PutOutcome, Store

ResultT = TypeVar("ResultT")


class When(enum.Enum):
    """BEFORE: the request never arrives. AFTER: it takes effect, and its response is lost."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Fault:
    """One failure to come.

    Attributes:
        at: Which request fails, counted from 1 among those that match.
        when: Before or after it took effect.
        verb: Only requests of this method (`"put_if_absent"`, ...) count; None: all.
        path: Only requests whose path contains this text count; None: all.
        crash: Raise `Crash`, as if the process died there, instead of what a store would answer.
        meanwhile: Called at the moment of the failure: what somebody else does just then.
    """

    at: int
    when: When = When.BEFORE
    verb: str | None = None
    path: str | None = None
    crash: bool = False
    meanwhile: Callable[[], None] | None = None


class Crash(BaseException):
    """The process dies here: nothing of the library may catch it and go on."""


class FaultyStore:
    """Wraps a store and fails the requests that `faults` name. Requests may come from several threads.

    A failed `put_if_absent` answers `PutOutcome.UNKNOWN`, as real stores do; any other request raises
    `StorageError`.

    Attributes:
        requests: All requests so far, as (verb, path).
        failed: How many of them failed.
    """

    def __init__(self, inner: Store, *faults: Fault) -> None:
        self._inner = inner
        self._faults = faults
        self._seen: Counter[int] = Counter()
        self._lock = threading.Lock()
        self.requests: list[tuple[str, str]] = []
        self.failed = 0

    @property
    def url(self) -> str:
        return self._inner.url

    @property
    def access(self) -> object:
        return self  # of its own faults

    def uri(self, path: str) -> str:
        return self._inner.uri(path)

    def count(self, verb: str) -> int:
        """How many requests of this verb there were."""
        return sum(1 for seen, _ in self.requests if seen == verb)

    def get(self, path: str) -> bytes:
        return self._request("get", path, lambda: self._inner.get(path))

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self._request("get_range", path, lambda: self._inner.get_range(path, start, length))

    def head(self, path: str) -> ObjectInfo:
        return self._request("head", path, lambda: self._inner.head(path))

    def open_input(self, path: str) -> pa.NativeFile:
        return self._request("open_input", path, lambda: self._inner.open_input(path))

    def put(self, path: str, data: bytes, durable: bool = True) -> None:
        self._request("put", path, lambda: self._inner.put(path, data, durable))

    def put_new(self, parts: Sequence[tuple[str, bytes]]) -> None:
        for path, data in parts:
            self.put(path, data)

    def put_behind(self, parts: Sequence[tuple[str, bytes]], path: str, data: bytes) -> PutOutcome:
        self.put_new(parts)
        return self.put_if_absent(path, data)

    def put_if_absent(self, path: str, data: bytes, makes_directory: bool = True) -> PutOutcome:
        def put() -> PutOutcome:
            return self._inner.put_if_absent(path, data, makes_directory)

        return self._request("put_if_absent", path, put, lost=PutOutcome.UNKNOWN)

    def move(self, source: str, target: str) -> None:
        self._request("move", source, lambda: self._inner.move(source, target))

    def copy_from(self, source: Store, path: str, target: str) -> int:
        return self._request("copy_from", target, lambda: self._inner.copy_from(source, path, target))

    def list_from(self, directory: str, start: str = "") -> list[ObjectInfo]:
        return self._request("list_from", directory, lambda: self._inner.list_from(directory, start))

    def list_names(self, directory: str, start: str = "") -> list[str]:
        return self._request("list_from", directory, lambda: self._inner.list_names(directory, start))

    def list_tree(self, directory: str) -> Iterator[ObjectInfo]:
        return iter(self._request("list_tree", directory, lambda: list(self._inner.list_tree(directory))))

    def list_columns(self, directory: str, skips: Callable[[str], bool]) -> Iterator[pa.RecordBatch]:
        return iter(self._request("list_columns", directory, lambda: list(self._inner.list_columns(directory, skips))))

    def delete_all(self, paths: Sequence[str]) -> None:
        self._request("delete_all", next(iter(paths), ""), lambda: self._inner.delete_all(paths))

    def remove_directory(self, directory: str) -> bool:
        return self._request("remove_directory", directory, lambda: self._inner.remove_directory(directory))

    def delete(self, path: str) -> None:
        self._request("delete", path, lambda: self._inner.delete(path))

    def delete_tree(self, directory: str) -> None:
        self._request("delete_tree", directory, lambda: self._inner.delete_tree(directory))

    def _request(self, verb: str, path: str, act: Callable[[], ResultT], lost: ResultT | None = None) -> ResultT:
        fault = self._next_fault(verb, path)
        if fault is None:
            return act()
        if fault.when is When.AFTER:
            act()
        if fault.meanwhile is not None:
            fault.meanwhile()
        if fault.crash:
            raise Crash(f"{verb} {path}")
        if lost is not None:
            return lost
        raise StorageError(f"could not {verb} {path!r}: connection lost", code="storage", url=self.url, path=path)

    def _next_fault(self, verb: str, path: str) -> Fault | None:
        hit: Fault | None = None
        with self._lock:
            self.requests.append((verb, path))
            for index, fault in enumerate(self._faults):
                if fault.verb in (None, verb) and (fault.path is None or fault.path in path):
                    self._seen[index] += 1
                    if self._seen[index] == fault.at:
                        hit = hit or fault
            self.failed += hit is not None
        return hit


class Between(FaultyStore):
    """Lets somebody else act before its n-th request."""

    def __init__(self, inner: Store, at: int, act: Callable[[], object]) -> None:
        super().__init__(inner)
        self._left, self._act = at, act

    def _request(self, verb: str, path: str, act: Callable[[], ResultT], lost: ResultT | None = None) -> ResultT:
        with self._lock:
            self._left -= 1
            acts = self._left == 0
        if acts:
            self._act()
        return super()._request(verb, path, act, lost)
