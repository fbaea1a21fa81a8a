"""A Spark `FileIndex` in Python: Spark asks it for files while it plans, with the filters of the query."""

from __future__ import annotations

import functools
import hashlib
import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Concatenate, ParamSpec, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from alluvium.expr.tree import Expression, Literal, Unknown, conjunction, walk
from alluvium.plan.ports import FollowedSource, ScanSource
from alluvium.plan.scan import ScanPart, ScanPlan
from alluvium.schema.types import BOOLEAN, Field, Struct
from alluvium.spark.jvm.callbacks import know_caller
from alluvium.spark.jvm.failures import CarriedError, remember, watch_elsewhere
from alluvium.spark.jvm.filters import meaning_of, parse_condition
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.jvm.identity import identified
from alluvium.spark.naming.names import LogicalPaths, logical_paths, to_logical
from alluvium.spark.naming.types import to_spark
from alluvium.spark.scan.deleted_rows import add_deleted_rows
from alluvium.spark.scan.files import address, directories_elsewhere, make_file_statuses
from alluvium.spark.scan.native_lane.bulk import partition_directories, rows_that_pass
from alluvium.spark.scan.native_lane.followed import Followed
from alluvium.spark.scan.rows import FileGroups, group_files, make_rows
from alluvium.spark.sessions.session import java_schema
from alluvium.storage.paths import encode_uri_paths
from alluvium.storage.places import same_place

log = logging.getLogger("alluvium")

_FILE_INDEX = "org.apache.spark.sql.execution.datasources.FileIndex"
#: Answers kept an index: a query asks twice at most, and a loop over a few filters is common.
_KEPT_ANSWERS = 4

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def _called(method: Callable[Concatenate[PlannedFiles, Arguments], Result]) -> Callable[..., Result]:
    """A method that Spark calls, from threads of its own, too."""

    @functools.wraps(method)
    def answer(self: PlannedFiles, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        know_caller(self._java)
        return method(self, *args, **kwargs)

    return answer


# Spark's plan gives an index back as a Java proxy, of which Python sees the text only.
_INDEXES: dict[str, weakref.WeakSet[PlannedFiles]] = {}
# Whoever is collected forgets itself, in whatever thread that happens.
_INDEXES_LOCK = threading.RLock()


def planned_files(text: str) -> PlannedFiles | None:
    """The index that prints as `text` (see `PlannedFiles.toString`), while it is alive."""
    with _INDEXES_LOCK:
        return next(iter(_INDEXES.get(text, ())), None)


def remember_index(index: PlannedFiles) -> None:
    """Lets `planned_files` find an index while it is alive, beside those that are equal to it."""
    text = index.toString()
    weakref.finalize(index, _forget_index, text).atexit = False
    with _INDEXES_LOCK:
        alike = _INDEXES.get(text) or weakref.WeakSet()
        alike.add(index)
        _INDEXES[text] = alike


def _forget_index(text: str) -> None:
    with _INDEXES_LOCK:
        if not _INDEXES.get(text):
            _INDEXES.pop(text, None)


class PlannedFiles:
    """The files of one table version that are read in one way, as Spark's `FileIndex`.

    They may be of several parts of the plan (`read_alike`): with deleted rows and without, say. Of a table that is
    followed (with which of its frame's relations this is) they are those of the version that each query reads.
    Spark's optimizer compares relations (for its cache, and to read a table once that a query names twice) by
    `equals`; two indexes are equal where the sources' `identity` and the parts are.
    """

    def __init__(
        self,
        spark: SparkSession,
        source: ScanSource,
        root: str,
        parts: tuple[ScanPart, ...],
        data: Struct,
        constants: Struct,
        deleted_rows: Field | None = None,
        followed: tuple[Followed, int] | None = None,
    ) -> None:
        self._spark = spark
        self._java = java_of(spark)
        self._source = source
        self._root = root
        self._parts = parts
        self._followed = followed
        self._constants = constants
        self._deleted_rows = deleted_rows
        self._all_constants = Struct((*constants.fields, deleted_rows)) if deleted_rows else constants
        self._schema = Struct((*data.fields, *self._all_constants.fields))
        self._logical: LogicalPaths = logical_paths(parts[0])
        self._java_constants = java_schema(spark, to_spark(self._all_constants))
        self.part_keys = tuple(part.key for part in parts)
        self.file_format = parts[0].file_format
        self._digest = hashlib.sha256("\0".join((*source.identity, *self.part_keys)).encode()).digest()
        known = sum(int(pc.sum(part.files["size"]).as_py() or 0) for part in parts)
        self._size_bytes = known if parts[0].is_complete else source.size_bytes
        self._answers: OrderedDict[tuple[str, ...], JavaObject] = OrderedDict()
        # Spark plans broadcasts and subqueries in threads of its own.
        self._lock = threading.RLock()
        remember_index(self)

    @property
    def _same(self) -> dict[str, object]:
        """What Spark asks for some twenty times a query, and gets the same each time: by the names of its methods."""
        # Spark writes the rows of an INSERT into files of a relation that has one path, and an INSERT OVERWRITE deletes
        # all that lies there, the log too. It refuses to where there are more; what else it asks paths for, it asks of
        # any of them.
        return {
            "rootPaths": self._java.python_utils.toSeq(self._java.copies(2, self._java.hadoop_path(self._root))),
            # The columns that are one value a file.
            "partitionSchema": self._java_constants,
            # Not measured.
            "metadataOpsTimeNs": self._java.none,
            # A default method of Spark 4.3's trait; a proxy must answer these, too.
            "isTimeTravel": False,
            # It gives nothing. A pinned version does not change, one that is followed is looked at by each query.
            "refresh": False,
        }

    @property
    def source(self) -> ScanSource:
        """The table version; of a table that is followed that of this thread's query or statement."""
        return self._source if self._followed is None else self._followed[0].source()

    @property
    def made_of(self) -> ScanSource:
        """The table version that the frame was made on."""
        return self._source

    def follows(self, url: str) -> bool:
        """Whether each query reads the newest version of a table."""
        return self._followed is not None and bool(same_place(self._followed[0].place, url))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that a frame shows of this relation."""
        return tuple(column.name for column in self._parts[0].output)

    @property
    def internal_columns(self) -> frozenset[str]:
        """Columns of the relation by which rows are left out that are deleted."""
        return frozenset(() if self._deleted_rows is None else (self._deleted_rows.name,))

    def plan(self, filters: list[JavaObject]) -> tuple[ScanSource, ScanPlan]:
        """The table version, and of its plan for filters of Catalyst the parts that are read by this."""
        source = self.source
        plan = source.plan_scan(self.predicate(filters) or self._everything)
        return source, replace(plan, parts=tuple(self._own(source, plan)))

    def predicate(self, filters: list[JavaObject]) -> Expression | None:
        """What filters of Catalyst say of the table's columns, as far as it is understood; None: there are none."""
        return conjunction(tuple(self._parsed(filters)))

    def _parsed(self, filters: list[JavaObject]) -> list[Expression]:
        return [to_logical(parse_condition(self._java, f, self._schema), self._logical) for f in filters]

    @property
    def _everything(self) -> Expression | None:
        """The predicate of a query without filters."""
        return None if self._parts[0].is_complete else Literal(True, BOOLEAN)

    def _answer(self, compute: Callable[[], Result]) -> Result:
        try:
            return compute()
        except CarriedError:
            raise
        except Exception as error:  # noqa: BLE001 - all of them must cross the JVM
            raise remember(error) from None

    # The names below are those of the Scala trait; the others of its methods are answered in the JVM (`_same`).

    @_called
    def listFiles(self, partition_filters: JavaObject, data_filters: JavaObject) -> JavaObject:
        """The files that may hold rows for which all filters are true, by partition values."""
        return self._answer(lambda: self._list_files(items(partition_filters), items(data_filters)))

    @_called
    def inputFiles(self) -> JavaObject:
        """Addresses of all files, escaped as `DataFrame.inputFiles` gives them."""
        return self._answer(self._input_files)

    @_called
    def sizeInBytes(self) -> int:
        """Total size of the files, for the choice of joins."""
        return self._answer(self._current_size)

    def toString(self) -> str:
        """A text that is equal for equal indexes."""
        return f"PlannedFiles({self._digest.hex()})"

    def for_spark(self) -> JavaObject:
        """The index as Spark gets it: it is compared inside of the JVM, by the digest."""
        number = int.from_bytes(self._digest[:4], "big", signed=True)
        return identified(self._java, self, _FILE_INDEX, self.toString(), number, self._same)

    def _current_size(self) -> int:
        return self._size_bytes if self._followed is None else self._followed[0].size_bytes

    def _read_now(self) -> ScanSource:
        """The table version whose files are asked for."""
        return self._source if self._followed is None else self._followed[0].source_for(self._followed[1])

    def _input_files(self) -> JavaObject:
        # A table of an unknown number of files in one call: Java splits what Python joined.
        files = pa.concat_tables([part.files for part in self._asked(self._read_now(), self._everything)])
        addresses = encode_uri_paths(address(self._root, files["path"]).cast(pa.string()))
        if not len(addresses):
            return self._java.gateway.new_array(self._java.jvm.java.lang.String, 0)
        return self._java.pattern.compile("\n").split("\n".join(addresses.to_pylist()))

    def _list_files(self, partition_filters: list[JavaObject], data_filters: list[JavaObject]) -> JavaObject:
        filters = [*partition_filters, *data_filters]
        source = self._read_now()
        key = (*source.identity, str(len(partition_filters)), *meaning_of(self._java, filters))
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        parsed = self._parsed(filters)
        answer = self._plan(source, partition_filters, parsed)
        # Two functions of a user may print alike: only filters that we understand are known by their text.
        if not any(isinstance(node, Unknown) for f in parsed[: len(partition_filters)] for node in walk(f)):
            with self._lock:
                self._answers[key] = answer
                while len(self._answers) > _KEPT_ANSWERS:
                    self._answers.popitem(last=False)
        return answer

    def _plan(self, source: ScanSource, partition_filters: list[JavaObject], parsed: list[Expression]) -> JavaObject:
        parts = self._asked(source, conjunction(tuple(parsed)) or self._everything)
        hidden = self._deleted_rows
        if hidden is None:
            files = pa.concat_tables([part.files for part in parts])
        else:
            # Masks are read only for files that the filters leave, and then stand in the rows of constants.
            visible = [f for f in partition_filters if hidden.name not in columns_of(f)]
            partition_filters = [f for f in partition_filters if hidden.name in columns_of(f)]
            loaded = [part.load_masks(self._left(part.files, visible)) for part in parts]
            files = add_deleted_rows(pa.concat_tables(loaded), hidden.name)
        groups, rows = self._exact(group_files(files, self._all_constants), self._all_constants, partition_filters)
        if not len(groups):
            return self._java.seq([])
        watch_elsewhere(self._root, directories_elsewhere(self._root, groups.files["path"]))
        statuses = make_file_statuses(self._java, self._root, groups.files)
        return partition_directories(self._java, rows, statuses, groups.starts, groups.ends)

    def _left(self, files: pa.Table, partition_filters: list[JavaObject]) -> pa.Table:
        """The files that meet all of the filters."""
        if not partition_filters:
            return files
        return self._exact(group_files(files, self._constants), self._constants, partition_filters)[0].files

    def _exact(
        self, groups: FileGroups, constants: Struct, partition_filters: list[JavaObject]
    ) -> tuple[FileGroups, JavaObject]:
        """The groups that meet all of the filters, and their rows of constants."""
        if not len(groups):
            return groups, None
        rows = make_rows(self._spark, self._java, groups, constants)
        kept = list(range(len(groups)))
        for f in partition_filters:
            kept_by_filter = set(rows_that_pass(self._java, self._predicate(f, constants), rows, len(groups)))
            kept = [index for index in kept if index in kept_by_filter]
        if len(kept) < len(groups):
            groups = _take(groups, kept)
            rows = make_rows(self._spark, self._java, groups, constants)
        return groups, rows

    def _predicate(self, partition_filter: JavaObject, constants: Struct) -> JavaObject:
        """The filter as a function of a row of constants.

        Spark drops filters on partition columns from the plan once it has handed them to the index
        (`FileSourceStrategy`: `filterSet -- partitionKeyFilters`), so that each must be met exactly, whether or not we
        understand it.
        """
        references = {a.name(): a for a in items(partition_filter.references().toSeq())}
        # Binding goes by the attributes' ids: columns that the filter does not name get attributes of their own.
        schema = java_schema(self._spark, to_spark(constants))
        fresh = items(self._java.data_type_utils.toAttributes(schema))
        attributes = [references.get(a.name(), a) for a in fresh]
        return self._java.interpreted_predicate(self._java.bind(partition_filter, attributes))

    def _asked(self, source: ScanSource, where: Expression | None) -> list[ScanPart]:
        """The parts with the files that a predicate leaves."""
        if where is None and source is self._source:
            return list(self._parts)
        own = self._own(source, source.plan_scan(where))
        if self._followed is not None:
            return own or [replace(self._parts[0], files=self._parts[0].files.slice(0, 0))]
        known = {part.key: part for part in own}
        parts = [known.get(part.key) or replace(part, files=part.files.slice(0, 0)) for part in self._parts]
        counts = (sum(part.files.num_rows for part in some) for some in (parts, self._parts))
        log.debug("%s: %d of %d files for %s", self._root, *counts, where)
        return parts

    def _own(self, source: ScanSource, plan: ScanPlan) -> list[ScanPart]:
        """The parts of a plan that this relation reads, if they have any files."""
        if self._followed is not None:
            followed, kind = self._followed
            return followed.parts(cast(FollowedSource, source), plan, kind)
        return [part for part in plan.parts if part.key in self.part_keys]

    class Java:
        """What py4j looks for."""

        implements: ClassVar[list[str]] = [_FILE_INDEX]


def items(sequence: JavaObject) -> list[JavaObject]:
    """The members of a short Scala sequence."""
    return [sequence.apply(index) for index in range(sequence.size())]


def columns_of(expression: JavaObject) -> set[str]:
    """Names of the columns that an expression is made of."""
    return {str(a.name()) for a in items(expression.references().toSeq())}


def _take(groups: FileGroups, kept: list[int]) -> FileGroups:
    pieces = [groups.files.slice(groups.starts[i], groups.ends[i] - groups.starts[i]) for i in kept]
    files = pa.concat_tables(pieces) if pieces else groups.files.slice(0, 0)
    starts: list[int] = []
    ends: list[int] = []
    for piece in pieces:
        starts.append(ends[-1] if ends else 0)
        ends.append(starts[-1] + piece.num_rows)
    return FileGroups(files, starts, ends, groups.constants.take(pa.array(kept, pa.int64())))
