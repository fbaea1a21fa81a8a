"""Errors of ours that are raised in Spark's Python workers, told to the caller as what they are.

A worker's exception reaches the driver as the text of its traceback, so the error travels in it as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from alluvium.errors import (
    AlluviumError,
    CorruptTable,
    InvalidRequest,
    NotFound,
    StorageError,
    UnsupportedFeature,
)

#: A traceback shows the line that raised, too, which must not look like what it raised.
_BEGIN, _END = "alluvium-worker-error", "end-of-error"
_CARRIED = re.compile(rf"{_BEGIN} (\{{.*\}}) {_END}")
_KINDS = {kind.__name__: kind for kind in (CorruptTable, InvalidRequest, NotFound, StorageError, UnsupportedFeature)}


class _Told(msgspec.Struct, frozen=True):
    kind: str
    message: str
    where: dict[str, str | int | None]
    features: tuple[str, ...] = ()


class WorkerError(Exception):
    """Stands for an error of ours; its text carries it."""


@contextmanager
def carrying_errors() -> Iterator[None]:
    """Errors of ours within are raised so that `carried_error` finds them in what Spark makes of them."""
    try:
        yield
    except AlluviumError as error:
        names = ("code", "url", "version", "path", "column", "hint")
        where = {name: getattr(error, name) for name in names}
        told = _Told(type(error).__name__, error.message, where, getattr(error, "features", ()))
        raise WorkerError(f"{_BEGIN} {msgspec.json.encode(told).decode()} {_END}") from error


def carried_error(text: str) -> AlluviumError | None:
    """The error that a worker's traceback carries; None: it carries none."""
    found = _CARRIED.search(text)
    if found is None:
        return None
    try:
        told = msgspec.json.decode(found[1], type=_Told)
    except msgspec.DecodeError:
        return None
    if told.kind == UnsupportedFeature.__name__:
        return UnsupportedFeature(told.message, features=told.features, **told.where)
    kind = _KINDS.get(told.kind)
    return None if kind is None else kind(told.message, **told.where)  # type: ignore[arg-type]
