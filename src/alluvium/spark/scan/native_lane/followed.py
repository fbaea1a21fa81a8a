"""A table whose frame follows it: each query reads the newest version, through the relations of the first one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace

from pyspark.sql import SparkSession

from alluvium.errors import InvalidRequest
from alluvium.plan.ports import FollowedSource
from alluvium.plan.scan import FIELD_ID, LABEL, ColumnValue, OutputColumn, Physical, ScanPart, ScanPlan
from alluvium.schema.text_lengths import char_lengths
from alluvium.schema.types import COLLATIONS, Array, DataType, Field, Map, Struct
from alluvium.spark.scan.native_lane.query_versions import QueryId, current_query, version_in

#: Queries of which a frame knows what they read: threads may use it at once.
_KEPT_QUERIES = 8
#: What of a column's description changes how it is read.
_READ_BY = (FIELD_ID, LABEL, COLLATIONS)


class Followed:
    """What the relations of one frame have in common.

    Args:
        spark: The session.
        made: The version that the frame was made on.
        kinds: Of each relation the first part.
    """

    def __init__(self, spark: SparkSession, made: FollowedSource, kinds: tuple[ScanPart, ...]) -> None:
        self._spark = spark
        self._kinds = kinds
        self._known: OrderedDict[QueryId, FollowedSource] = OrderedDict()
        self._made = self._newest = made
        self._alone: set[int] = set()
        self._lock = threading.RLock()

    @property
    def place(self) -> str:
        """URL of the table."""
        return self._made.place

    def source(self) -> FollowedSource:
        """The version that the query of this thread reads; where there is none, the newest."""
        query = current_query(self._spark)
        return self._refreshed() if query is None else self._in(query)

    def _in(self, query: QueryId) -> FollowedSource:
        version = version_in(query, self._made, lambda: self._refreshed().version)
        with self._lock:
            known = self._known.get(query)
        if known is not None and known.version == version:
            return known
        # Looked for anew by each frame: a table that was made anew may have the same number of versions.
        newest = self._refreshed()
        found = newest if newest.version == version else newest.at(version)
        with self._lock:
            self._known[query] = found
            self._known.move_to_end(query)
            while len(self._known) > _KEPT_QUERIES:
                self._known.popitem(last=False)
        return found

    def source_for(self, kind: int) -> FollowedSource:
        """The same for one of the relations, which then reads its files.

        RDDs are planned outside of any query. There the relations of a frame, which are all planned once, see what the
        first of them saw.
        """
        query = current_query(self._spark)
        if query is not None:
            return self._in(query)
        with self._lock:
            if not self._alone or kind in self._alone:
                self._refreshed()
                self._alone.clear()
            self._alone.add(kind)
            return self._newest

    @property
    def size_bytes(self) -> int:
        """Of the version of the query; where there is none, of the newest that is known."""
        query = current_query(self._spark)
        return (self._newest if query is None else self._in(query)).size_bytes

    def parts(self, source: FollowedSource, plan: ScanPlan, kind: int) -> list[ScanPart]:
        """The parts of a version's plan that one of the relations reads.

        Raises:
            InvalidRequest: `"table-changed"`: what came since cannot be read by the relations.
        """
        found = []
        for part in plan.parts:
            if part.masks is not None and not part.files.num_rows:
                continue  # room for deleted rows that are yet to come
            fits = next((n for n, made in enumerate(self._kinds) if _still_fits(made, part)), None)
            if fits is None:
                raise self._changed(source, part)
            if fits == kind:
                found.append(part)
        return found

    def _refreshed(self) -> FollowedSource:
        self._newest = newest = self._newest.at(None)
        return newest

    def _changed(self, source: FollowedSource, part: ScanPart) -> InvalidRequest:
        made = {c.name: c for c in self._kinds[0].output}
        now = {c.name: c for c in part.output}
        column = next((n for n, c in made.items() if n not in now or not _is_same_column(c, now[n])), None)
        if column is not None:
            what = f"column {column} is another than it was"
        elif part.is_masked and not any(kind.is_masked for kind in self._kinds):
            what = "rows are deleted by vectors now"
        else:
            what = "its files are read in another way"
        return InvalidRequest(
            f"the table has changed so that this DataFrame cannot show it: {what}",
            code="table-changed",
            url=source.place,
            version=source.version,
            column=column,
            hint="read the table again",
        )


def _still_fits(made: ScanPart, now: ScanPart) -> bool:
    """Whether a relation that was made for one part can read the files of another, of a later version.

    It may have more columns, and fewer deleted rows.
    """
    if now.is_masked and not made.is_masked:
        return False
    constants = {f.name: f.type for f in now.files.schema.field("constants").type}
    if any(constants.get(f.name) != f.type for f in made.files.schema.field("constants").type):
        return False
    columns = {c.name: c for c in now.output}
    if any(c.name not in columns or not _is_same_column(c, columns[c.name]) for c in made.output):
        return False
    if not _holds(now.read_schema, made.read_schema):
        return False
    # All else that says how rows are read.
    same = replace(
        now, key=made.key, files=made.files, masks=made.masks, held=made.held, earliest_date=made.earliest_date,
        is_complete=made.is_complete, output=made.output, read_schema=made.read_schema,
    )  # fmt: skip
    return same == made


def _is_same_column(made: OutputColumn, now: OutputColumn) -> bool:
    # Where there were no nulls, Spark has left out what looks for them.
    may_be_null = made.nullable or not now.nullable
    return may_be_null and _holds(now.type, made.type) and _is_same_value(made.value, now.value)


def _is_same_value(made: ColumnValue, now: ColumnValue) -> bool:
    if isinstance(made, Physical) and isinstance(now, Physical):
        return made.path == now.path and _holds(now.type, made.type)
    return made == now


def _holds(now: DataType, made: DataType) -> bool:
    """Whether values of a type have all that those of another have: structs may have got more members."""
    if isinstance(made, Struct) and isinstance(now, Struct):
        fields = {f.name: f for f in now.fields}
        return all(f.name in fields and _is_same_field(f, fields[f.name]) for f in made.fields)
    if isinstance(made, Array) and isinstance(now, Array):
        return (made.contains_null or not now.contains_null) and _holds(now.element, made.element)
    if isinstance(made, Map) and isinstance(now, Map):
        may_be_null = made.value_contains_null or not now.value_contains_null
        return may_be_null and _holds(now.key, made.key) and _holds(now.value, made.value)
    return now == made


def _is_same_field(made: Field, now: Field) -> bool:
    described = all(made.metadata.get(key) == now.metadata.get(key) for key in _READ_BY)
    # Texts of varchar(n) are read as they are.
    is_padded_alike = char_lengths(made) == char_lengths(now)
    return described and is_padded_alike and (made.nullable or not now.nullable) and _holds(now.type, made.type)
