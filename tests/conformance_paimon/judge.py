"""The judgement of one read: right, refused or wrong."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import alluvium
from alluvium.codecs.variants.variant_text import show_variants
from alluvium.errors import AlluviumError, UnsupportedFeature
from alluvium.paimon.schema.logical import logical_schema
from conformance.rows import difference
from conformance_paimon.cases import Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTCOMES = ("right", "refused", "wrong")
_MODE_OPTION = "incremental-between-scan-mode"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True)
class Verdict:
    """How one read went; `name` is stable, since the ratchet keeps it."""

    lane: str
    case: str
    entry: str
    outcome: str
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.lane} {self.case} {self.entry}"


class Lane(Protocol):
    """How the rows of a read are got."""

    name: str

    def rows(self, url: str, read: dict[str, Any]) -> pa.Table: ...


class OpenLane:
    """Without Spark: `alluvium.open`."""

    name = "open"

    def rows(self, url: str, read: dict[str, Any]) -> pa.Table:
        table: Any = alluvium.open(url, **arguments(read))
        if read.get("system"):
            found = table.system(read["system"])
            return found.select(read["columns"]) if read.get("columns") else found
        mode = read.get("mode")
        if mode in ("delta", "changelog"):
            return table.changes(read["snapshot"] - 1, read["snapshot"], mode=mode)
        if mode == "incremental":
            return table.changes(*read["between"], mode=(read.get("options") or {}).get(_MODE_OPTION, "auto"))
        rows = table.to_arrow(columns=read.get("columns"))
        return show_variants(rows, logical_schema(table.metadata)) if read.get("compare") else rows


class SparkLane:
    """With Spark: `alluvium.read` and `alluvium.changes`."""

    name = "spark"

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def rows(self, url: str, read: dict[str, Any]) -> pa.Table:
        given = arguments(read)
        mode = read.get("mode")
        if mode in ("delta", "changelog"):
            return self._changes(url, (read["snapshot"] - 1, read["snapshot"]), mode, given)
        if mode == "incremental":
            chosen = (read.get("options") or {}).get(_MODE_OPTION, "auto")
            return self._changes(url, read["between"], chosen, given)
        columns = read.get("columns") or []
        # Row ids are columns of a system table.
        system = read.get("system") or ("row_tracking" if {"_ROW_ID", "_SEQUENCE_NUMBER"} & set(columns) else None)
        frame = alluvium.read(self._session, url, system=system, **given)
        if columns:
            frame = frame.select(*(f"`{name}`" for name in columns))
        if read.get("compare"):
            return frame.selectExpr(
                *(f"to_json({f.name}) as {f.name}" if f.dataType.simpleString() == "variant" else f"`{f.name}`"
                  for f in frame.schema.fields)
            ).toArrow()  # fmt: skip
        return frame.toArrow()

    def _changes(self, url: str, between: Any, mode: str, given: dict[str, Any]) -> pa.Table:
        rest = {key: given[key] for key in ("branch", "options") if key in given}
        return alluvium.changes(self._session, url, *between, mode=mode, **rest).toArrow()


def arguments(read: dict[str, Any]) -> dict[str, Any]:
    """What `alluvium.open` is told."""
    given: dict[str, Any] = {}
    if read.get("snapshot") is not None and not read.get("mode"):
        given["version"] = read["snapshot"]
    if read.get("timestamp_millis") is not None:
        given["timestamp"] = _EPOCH + dt.timedelta(milliseconds=read["timestamp_millis"])
    given.update({key: read[key] for key in ("tag", "branch") if read.get(key)})
    options = {key: value for key, value in (read.get("options") or {}).items() if key != _MODE_OPTION}
    return {**given, "options": options} if options else given


def judge(case: Case, url: str, lane: Lane) -> Iterator[Verdict]:
    for read in case.reads:
        yield Verdict(lane.name, case.name, read["id"], *_outcome(case, url, lane, read))


def _outcome(case: Case, url: str, lane: Lane, read: dict[str, Any]) -> tuple[str, str]:
    try:
        rows = lane.rows(url, read)
    except AlluviumError as error:
        if read.get("error") is not None:
            # the corpus' kinds of errors are our codes
            wanted = {"snapshot-expired": ("snapshot-expired",), "tag-not-found": ("tag-not-found",)}
            known = error.code in wanted.get(read["error"], (read["error"],))
            return ("right", "") if known else ("wrong", f"{error.code} instead of {read['error']}")
        refused = isinstance(error, UnsupportedFeature)
        return ("refused" if refused else "wrong"), f"{type(error).__name__} {error.code}: {error}"
    except Exception as error:  # noqa: BLE001 - whatever leaks out of the library is the finding
        return "wrong", f"foreign {type(error).__name__}: {str(error)[:500]}"
    if read.get("error") is not None:
        return "wrong", f"rows came back instead of {read['error']}"
    problem = compare(case.folder / read["expected"], rows, read, lane.name == "spark")
    return ("right", "") if problem is None else ("wrong", problem)


def compare(expected_file: Path, actual: pa.Table, read: dict[str, Any], by_spark: bool) -> str | None:
    """What differs; None if both hold the same rows."""
    expected = pq.ParquetFile(expected_file).read()
    if by_spark:
        expected = _as_spark_has_it(expected)
    for name in read.get("unordered_arrays") or ():
        expected, actual = _sorted_lists(expected, name), _sorted_lists(actual, name)
    if read.get("compare"):
        expected, actual = (_parsed_json(side) for side in (expected, actual))
    for field in expected.schema:
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns" and field.name in actual.column_names:
            kind = actual.schema.field(field.name).type
            if not pa.types.is_timestamp(kind) or (kind.tz is None) != (field.type.tz is None):
                return f"{field.name}: {kind} instead of {field.type}"
            expected, actual = (_numbers(side, field.name) for side in (expected, actual))
    return difference(expected, actual)


def _as_spark_has_it(table: pa.Table) -> pa.Table:
    """Nanoseconds cut to microseconds, times of day as milliseconds."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            cut = table[field.name].cast(pa.timestamp("us", tz=field.type.tz), safe=False)
            table = table.set_column(place, field.name, cut)
        if pa.types.is_time(field.type):
            table = table.set_column(place, field.name, table[field.name].cast(pa.int32()))
    return table


def _numbers(table: pa.Table, name: str) -> pa.Table:
    place = table.schema.get_field_index(name)
    per_unit = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[table.schema.field(name).type.unit]
    return table.set_column(place, name, pc.multiply(table[name].cast(pa.int64()), per_unit))


def _sorted_lists(table: pa.Table, name: str) -> pa.Table:
    if name not in table.column_names:
        return table
    place, field = table.schema.get_field_index(name), table.schema.field(name)
    lists = [None if value is None else sorted(value, key=repr) for value in table[name].to_pylist()]
    return table.set_column(place, field, pa.array(lists, field.type))


def _parsed_json(table: pa.Table) -> pa.Table:
    """Texts of JSON in one spelling."""
    if "v" not in table.column_names:
        return table
    texts = [
        None if value is None else json.dumps(json.loads(value), sort_keys=True) for value in table["v"].to_pylist()
    ]
    return table.set_column(table.schema.get_field_index("v"), "v", pa.array(texts, pa.string()))
