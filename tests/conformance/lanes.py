"""How each lane reads a table: the same few verbs over the public names of `alluvium`, whatever stands behind them.

A verb that the API does not have yet raises `Missing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

import alluvium

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Version = int | str | None


class Missing(Exception):
    """The lane has no such verb (yet)."""


class Lane(Protocol):
    """Reads one table. `at` names a version by `version=` or `timestamp=`, or the latest by neither."""

    name: str

    def rows(self, at: dict[str, Any]) -> pa.Table: ...

    def count(self, at: dict[str, Any]) -> int: ...

    def state(self, at: dict[str, Any]) -> State | None: ...

    def matching(self, at: dict[str, Any], predicate: str) -> tuple[int, int | None]: ...

    def changes(self, start: Version, end: Version) -> pa.Table: ...

    def row_ids(self) -> pa.Table: ...

    def schema(self) -> list[tuple[str, str, bool]]: ...

    def snapshot(self, key: str) -> dict[str, Any]: ...


class State(Protocol):
    """What can be known of a version without its rows."""

    version: int

    def paths(self) -> list[str]: ...


class _Opened:
    def __init__(self, table: Any) -> None:
        self.version = table.version
        self._table = table

    def paths(self) -> list[str]:
        return list(self._table.files().column("path").to_pylist())


class OpenLane:
    """Without Spark: `alluvium.open`."""

    name = "open"

    def __init__(self, url: str) -> None:
        self._url = url
        self._tables: dict[tuple[Any, ...], Any] = {}

    def _open(self, at: dict[str, Any]) -> Any:
        key = tuple(sorted(at.items()))
        if key not in self._tables:
            self._tables[key] = alluvium.open(self._url, **at)
        return self._tables[key]

    def rows(self, at: dict[str, Any]) -> pa.Table:
        return self._open(at).to_arrow()

    def count(self, at: dict[str, Any]) -> int:
        return sum(batch.num_rows for batch in self._open(at).to_batches())

    def state(self, at: dict[str, Any]) -> State:
        return _Opened(self._open(at))

    def matching(self, at: dict[str, Any], predicate: str) -> tuple[int, int | None]:
        """Rows that satisfy the predicate, and files kept for it."""
        table = self._open(at)
        return table.to_arrow(where=predicate).num_rows, table.files(where=predicate).num_rows

    def changes(self, start: Version, end: Version) -> pa.Table:
        table = self._open({})
        if not hasattr(table, "changes"):
            raise Missing("changes")
        found = table.changes(start, end)
        return found.read_all() if isinstance(found, pa.RecordBatchReader) else found

    def row_ids(self) -> pa.Table:
        return self._open({}).to_arrow(columns=["*", "_row_id", "_row_commit_version"])

    def schema(self) -> list[tuple[str, str, bool]]:
        return [(f.name, f.dataType.simpleString(), f.nullable) for f in self._open({}).schema.to_spark().fields]

    def snapshot(self, key: str) -> dict[str, Any]:
        return dict(getattr(self._open({}), key))


def _collected(df: DataFrame) -> pa.Table:
    if "variant" in df.schema.simpleString():
        # `toArrow` fails on nulls among variants in structs, arrays and maps, whoever read them: it casts to a type
        # whose members are NOT NULL. These are the batches that it would have cast.
        if hasattr(df, "_jdf"):
            return pa.Table.from_batches(df._collect_as_arrow(empty_list_if_zero_records=False))
        client = df.sparkSession.client
        answers = client.to_table_as_iterator(df._plan.to_proto(client), {})
        return pa.concat_tables([answer for answer in answers if isinstance(answer, pa.Table)])
    return df.toArrow()


class ConnectLane:
    """Over Spark Connect: `alluvium.read`, and `where=` beside a filter that follows."""

    name = "connect"

    def __init__(self, url: str, session: SparkSession) -> None:
        self._url = url
        self._session = session

    def _read(self, at: dict[str, Any]) -> DataFrame:
        return alluvium.read(self._session, self._url, **at)

    def rows(self, at: dict[str, Any]) -> pa.Table:
        return _collected(self._read(at))

    def count(self, at: dict[str, Any]) -> int:
        return self._read(at).count()

    def state(self, at: dict[str, Any]) -> None:
        return None

    def matching(self, at: dict[str, Any], predicate: str) -> tuple[int, int | None]:
        later = self._read(at).where(predicate)
        asked = alluvium.read(self._session, self._url, where=predicate, **at)
        kept = {scan.files for frame in (later, asked) for scan in alluvium.explain(frame)}
        if len(kept) > 1:
            raise AssertionError(f"{predicate}: where= and where() keep {kept} files")
        return later.count(), kept.pop()

    def changes(self, start: Version, end: Version) -> pa.Table:
        return alluvium.changes(self._session, self._url, start, end).toArrow()

    def row_ids(self) -> pa.Table:
        return alluvium.read(self._session, self._url, rowIds=True).toArrow()

    def schema(self) -> list[tuple[str, str, bool]]:
        frame = self._read({})
        # A projection is analysed by the server; the frame itself says what we say.
        told, found = frame.schema, frame.select("*").schema
        if told != found:
            raise AssertionError(f"the frame says {told}, the server {found}")
        return [(f.name, f.dataType.simpleString(), f.nullable) for f in found.fields]

    def snapshot(self, key: str) -> dict[str, Any]:
        raise Missing(key)


class SparkLane:
    """With Spark: `alluvium.read`. The state of a table is not asked here: it is the same code as `open`'s."""

    name = "spark"

    def __init__(self, url: str, session: SparkSession) -> None:
        self._url = url
        self._session = session

    def _read(self, at: dict[str, Any]) -> DataFrame:
        return alluvium.read(self._session, self._url, **at)

    def rows(self, at: dict[str, Any]) -> pa.Table:
        return _collected(self._read(at))

    def count(self, at: dict[str, Any]) -> int:
        return self._read(at).count()

    def state(self, at: dict[str, Any]) -> None:
        return None

    def matching(self, at: dict[str, Any], predicate: str) -> tuple[int, int | None]:
        return self._read(at).where(predicate).count(), None

    def changes(self, start: Version, end: Version) -> pa.Table:
        if not hasattr(alluvium, "changes"):
            raise Missing("changes")
        return alluvium.changes(self._session, self._url, start, end).toArrow()

    def row_ids(self) -> pa.Table:
        return alluvium.read(self._session, self._url, rowIds=True).toArrow()

    def schema(self) -> list[tuple[str, str, bool]]:
        return [(f.name, f.dataType.simpleString(), f.nullable) for f in self._read({}).schema.fields]

    def snapshot(self, key: str) -> dict[str, Any]:
        raise Missing(key)
