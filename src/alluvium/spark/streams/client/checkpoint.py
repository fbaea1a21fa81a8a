"""The checkpoint of a query, in Spark's form: a query without state goes on with it, wherever it ran before.

`metadata` has the query's id, `offsets/N` how far batch N reaches, written before it runs, and `commits/N` stands when
it is done.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

import msgspec

from alluvium.errors import DECODE_ERRORS, CorruptTable, InvalidRequest, NotFound
from alluvium.storage.store import PutOutcome, Store

_FORM = b"v1"
#: How Spark writes an offset that it does not know: there is none yet.
_NONE = "-"
#: How many batches it tells of: Spark's `spark.sql.streaming.minBatchesToRetain`.
_RETAINED = 100


class _Metadata(msgspec.Struct, frozen=True):
    id: str


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    batch_watermark_ms: int
    batch_timestamp_ms: int
    conf: dict[str, str]


class _Commit(msgspec.Struct, frozen=True, rename="camel"):
    next_batch_watermark_ms: int = 0


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that is there.

    Attributes:
        store: Its objects.
        query: The query's id.
    """

    store: Store
    query: str

    @property
    def place(self) -> str:
        """Where the query keeps what it knows of its source."""
        return f"{self.store.uri('').rstrip('/')}/sources/0"

    def last(self) -> tuple[int, bool]:
        """The last batch that was begun, -1: none was; and whether it is done."""
        begun, done = self._numbers("offsets"), self._numbers("commits")
        last = max(begun, default=-1)
        return last, last in done

    def offset(self, number: int) -> str | None:
        """How far a batch reaches; None: before all.

        Raises:
            CorruptTable: It cannot be read (`"damaged-checkpoint"`), or it is of a query with several sources.
        """
        if number < 0:
            return None
        path = f"offsets/{number}"
        try:
            lines = self.store.get(path).decode().splitlines()
        except NotFound:
            raise self._damaged(path, "it is missing") from None
        if len(lines) < 3 or lines[0].strip().encode() != _FORM:
            raise self._damaged(path, "it is of another form")
        if len(lines) > 3:
            raise self._damaged(path, "it is that of a query with several sources")
        return None if lines[2] == _NONE else lines[2]

    def begin(self, number: int, offset: str) -> None:
        """Writes down how far a batch reaches.

        Raises:
            InvalidRequest: Another query runs with this checkpoint (`"checkpoint-taken"`).
        """
        head = msgspec.json.encode(_Head(0, int(time.time() * 1000), {})).decode()
        data = f"{_FORM.decode()}\n{head}\n{offset}".encode()
        outcome = self.store.put_if_absent(f"offsets/{number}", data)
        if outcome is PutOutcome.EXISTS or (
            outcome is PutOutcome.UNKNOWN and self.store.get(f"offsets/{number}") != data
        ):
            raise self.taken()

    def taken(self) -> InvalidRequest:
        """What a query is told where another one runs."""
        return InvalidRequest(
            f"another query runs with the checkpoint {self.store.url}",
            code="checkpoint-taken",
            path=self.store.url,
            hint="stop it first, or give each query a checkpointLocation of its own",
        )

    def done(self, number: int) -> None:
        """Writes down that a batch is done, and forgets one of long ago: a query that runs for years stays small."""
        self.store.put(f"commits/{number}", _FORM + b"\n" + msgspec.json.encode(_Commit()))
        if number >= _RETAINED:
            self.store.delete_all([f"{folder}/{number - _RETAINED}" for folder in ("offsets", "commits")])

    def _numbers(self, folder: str) -> set[int]:
        names = self.store.list_names(folder, "")
        return {int(name) for name in names if name.isascii() and name.isdigit()}

    def _damaged(self, path: str, problem: str) -> CorruptTable:
        return CorruptTable(
            f"the checkpoint {self.store.url} cannot be gone on with: of {path}, {problem}",
            code="damaged-checkpoint",
            path=path,
            hint="begin with a new checkpoint, or run the query on a classic session",
        )


def open_checkpoint(store: Store) -> Checkpoint:
    """The checkpoint at a place, made where there is none.

    Raises:
        CorruptTable: What is there is none.
    """
    for _ in range(2):
        try:
            found = msgspec.json.decode(store.get("metadata"), type=_Metadata)
        except NotFound:
            store.put_if_absent("metadata", msgspec.json.encode(_Metadata(str(uuid.uuid4()))))
        except DECODE_ERRORS as error:
            raise CorruptTable(
                f"{store.url} is no checkpoint of a query: {error}", code="damaged-checkpoint", path="metadata"
            ) from None
        else:
            if next(iter(store.list_tree("state")), None) is not None:
                raise InvalidRequest(
                    f"the checkpoint {store.url} is of a query that keeps state",
                    code="stateful-stream",
                    path=store.url,
                    hint="run it on a classic session, or give another checkpointLocation",
                )
            return Checkpoint(store, found.id)
    raise NotFound("the checkpoint could not be made", code="not-found", path=store.url)
