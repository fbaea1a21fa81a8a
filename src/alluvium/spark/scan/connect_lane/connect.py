"""The lane of Spark Connect: the server's own readers of Parquet and ORC, by public DataFrame calls alone.

Nothing of ours is on the server, so nobody asks us for files while a query is planned: they are chosen when the client
sends the plan (see `connect_frame`). What is one value a file comes as literals where there are few different ones;
from the folders of the files where these tell it (`connect_folders`); and else from a small table, joined by the
address that Spark shows as `_metadata.file_path` (`connect_constants`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.connect.conf import RuntimeConf

from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.plan.scan import FIELD_ID, ScanPart, ScanPlan
from alluvium.schema.types import Field, Struct
from alluvium.spark.jvm.failures import watch_elsewhere
from alluvium.spark.naming.names import constant_schema, data_schema, nullable_schema
from alluvium.spark.naming.types import to_spark
from alluvium.spark.scan import orc
from alluvium.spark.scan.connect_lane.connect_constants import (
    MAX_RELATIONS,
    is_few,
    is_looked_up,
    with_joined_constants,
    with_literal_constants,
    with_looked_up_constants,
)
from alluvium.spark.scan.connect_lane.connect_folders import folders_above, with_folder_constants
from alluvium.spark.scan.deleted_rows import add_deleted_rows, deleted_rows_field
from alluvium.spark.scan.files import address, directories_elsewhere
from alluvium.spark.scan.merged import ensure_mergeable, merge_frame, merging_parts
from alluvium.spark.scan.readable import ensure_constants, ensure_readable, exact_options
from alluvium.spark.scan.rows import FileGroups, group_files
from alluvium.spark.scan.select import select_columns
from alluvium.storage.paths import split_url

_LISTED_BY_DRIVER = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_READ_BY_ID = "spark.sql.parquet.fieldId.read.enabled"
#: `SparkHadoopUtil.isGlobPath`; options of a reader arrive in lower case, so that `__globPaths__` cannot turn it off.
_GLOB = r"([{}\[\]*?\\])"
#: `HadoopFSUtils.shouldFilterOutPathName`: files that Spark leaves out though they are named.
_HIDDEN = r"/(?:\.[^/]*|_[^/=]*|[^/]*\._COPYING_)$"

_NONE = Struct(())
#: By session, where the server has found a file.
_REACHED: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
#: By session, how many files of a relation the server looks up without a job.
_FEW: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()


def read_plan(spark: SparkSession, plan: ScanPlan) -> DataFrame:
    """The rows of a plan, all of whose files are given.

    Raises:
        UnsupportedFeature: The plan has what this lane cannot do.
        CorruptTable: What says which rows are deleted is damaged, or a file lacks a constant.
        NotFound: It is missing, or a data file is.
    """
    ensure_mergeable(plan)
    for part in plan.parts:
        watch_elsewhere(plan.root, directories_elsewhere(plan.root, part.files["path"]))
    apart = [part for part in plan.parts if part.merge is None]
    frames = [frame for part in apart if part.files.num_rows for frame in _read_part(spark, plan, part)]
    for parts in merging_parts(plan):
        rows = [frame for part in parts if part.files.num_rows for frame in _read_part(spark, plan, part)]
        if rows and parts[0].merge is not None:
            together = reduce(lambda one, other: one.union(other), rows)
            frames.append(merge_frame(together, parts[0], parts[0].merge, plan.schema, plan.partition_columns))
    if not frames:
        return spark.createDataFrame([], to_spark(nullable_schema(plan.schema)))
    return reduce(lambda one, other: one.union(other), frames)


def ensure_settings(conf: RuntimeConf, plan: ScanPlan) -> None:
    """Makes the server find columns by number where the plan does.

    It is a setting of the session that sends the plan: the reader has no such option over Connect. It has no effect on
    schemas that carry no numbers.
    """
    by_id = any(FIELD_ID in f.metadata for part in plan.parts for f in part.read_schema.fields)
    if by_id and str(conf.get(_READ_BY_ID)).lower() != "true":
        conf.set(_READ_BY_ID, "true")


def unreachable(spark: SparkSession, plan: ScanPlan) -> str | None:
    """Why the server's own reader cannot read the plan's files; None if it can, or if there is none.

    A file that is not where others may be is no reason: it is missing. The server is asked once for each table of a
    session: what it has reached it reaches.
    """
    found = next((part.files for part in plan.parts if part.files.num_rows), None)
    if found is None:
        return None
    first = _paths(plan.root, found.slice(0, 1))
    reached = _REACHED.setdefault(spark, set())
    if (table := _place(plan.root, first[0])) in reached:
        return None
    try:
        ask_files(spark.read.schema("probe int").parquet(*first))
        reached.add(table)
    except (PySparkException, NotFound) as error:
        # The same error, once a table of the same root was read (`connect_failures.watch`).
        if isinstance(error, PySparkException) and error.getCondition() != "PATH_NOT_FOUND":
            return _sentence(error)
        here = split_url(address(plan.root, found["path"].slice(0, 1))[0].as_py())
        if here.scheme in ("", "file") and os.path.exists(here.path):
            return f"{here.path} is on this machine's disk, and the server does not find it"
    return None


def ask_files(frame: DataFrame) -> None:
    """PySpark keeps every frame that is asked for its files, and the frame's session, until the process ends
    (`functools.cache`): the function below that is asked.
    """
    ask = type(frame).inputFiles
    getattr(ask, "__wrapped__", ask)(frame)


def _place(root: str, path: str) -> str:
    """The table's root, or the folder of a file that lies elsewhere."""
    prefix = root.rstrip("/") + "/"
    return prefix if path.startswith(prefix) else path.rpartition("/")[0]


def _sentence(error: PySparkException) -> str:
    text = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return re.sub(r"^\([\w.]+\)\s*|\s*SQLSTATE.*$", "", text).strip().rstrip(".")


def _read_part(spark: SparkSession, plan: ScanPlan, part: ScanPart) -> list[DataFrame]:
    # Which side of the masks is read is all the same to this lane.
    ensure_readable(part)
    data, constants = data_schema(part, plan.schema), constant_schema(part, plan.schema)
    ensure_constants(part, constants)
    files, hidden = part.files, None
    if part.is_masked:
        files = part.load_masks(files)
        if part.keeps_masked:
            files = files.filter(files["mask"].is_valid())
        if files["mask"].null_count < files.num_rows:
            hidden = deleted_rows_field((*data.names, *constants.names)).name
            files = add_deleted_rows(files, hidden)
    if not files.num_rows:
        return []
    frames = [*_frames(_Reader(spark, plan.root, part, data), files, constants, hidden)]
    return [select_columns(frame, part, Struct((*data.fields, *constants.fields)), plan.schema) for frame in frames]


def _frames(reader: _Reader, files: pa.Table, constants: Struct, hidden: str | None) -> Iterator[DataFrame]:
    """The rows of files with their constants, one of which may say what rows are hidden, in the first way that can."""
    data = reader.data
    groups = group_files(files, constants)
    if hidden is None and is_few(groups, constants):
        for row, some in _pieces(reader.spark, _runs(groups)):
            relation = reader.relation(some)
            yield with_literal_constants(relation, groups.constants.slice(row, 1), constants)
        return
    addresses = address(reader.root, files["path"])
    above = None if hidden is not None else folders_above(addresses, files, constants)
    if above is not None and len(bases := pc.unique(above)) <= MAX_RELATIONS:
        for base, some in _pieces(reader.spark, [files.filter(pc.equal(above, base)) for base in bases]):
            relation = reader.relation(some, constants, bases[base].as_py())
            yield with_folder_constants(relation, data, constants)
    elif hidden is None and is_looked_up(addresses, files, constants):
        for _, some in _pieces(reader.spark, [files]):
            some_addresses = address(reader.root, some["path"])
            yield with_looked_up_constants(reader.relation(some), data, some_addresses, some, constants)
    else:
        relation, keeps_hidden = reader.relation(files), reader.part.keeps_masked
        yield with_joined_constants(relation, data, addresses, files, constants, hidden, keeps_hidden)


def _runs(groups: FileGroups) -> list[pa.Table]:
    return [groups.files.slice(start, end - start) for start, end in zip(groups.starts, groups.ends, strict=True)]


def _pieces(spark: SparkSession, groups: Sequence[pa.Table]) -> Iterator[tuple[int, pa.Table]]:
    """The files of each relation, and which group they are of.

    The server looks up more than so many files of a relation, 32 unless somebody has set it, by a job with a task a
    file, each time it analyses the plan: half a second for 100 small ones, which a few relations of few files need not
    wait for. Not split where too many.
    """
    if spark not in _FEW:
        _FEW[spark] = max(1, int(str(spark.conf.get(_LISTED_BY_DRIVER))))
    few = _FEW[spark]
    is_split = sum(-(-group.num_rows // few) for group in groups) <= MAX_RELATIONS
    for number, group in enumerate(groups):
        step = few if is_split else group.num_rows
        for first in range(0, group.num_rows, step):
            yield number, group.slice(first, step)


@dataclass(frozen=True, slots=True)
class _Reader:
    """How the server reads the files of a part.

    Attributes:
        root: Of the table.
        data: The columns in the files.
    """

    spark: SparkSession
    root: str
    part: ScanPart
    data: Struct

    def relation(self, files: pa.Table, folders: Struct = _NONE, above: str = "") -> DataFrame:
        """The columns of some files, and those that the partition folders below `above` tell."""
        # Spark reads a file as often as it is named; one that a plan names twice, the join with its constants repeats.
        paths = list(dict.fromkeys(_paths(self.root, files)))
        # Without the metadata of `folders`, as the type char is in it: Spark would pad what is padded by us.
        columns = Struct((*self.data.fields, *(Field(f.name, f.type) for f in folders.fields)))
        reader = self.spark.read.schema(to_spark(columns)).options(**exact_options(self.part))
        if folders.fields:
            reader = reader.option("basePath", above)
        if self.part.file_format != "orc":
            return reader.parquet(*paths)
        rows = reader.format(orc.READER).options(**orc.OPTIONS).load(paths)
        # True for all, and nondeterministic to Spark, which then hands no filter from above to a reader that would
        # skip rows by it (`orc.SETTINGS`): the setting is the session's, which is not ours to change.
        return rows.where(sf.spark_partition_id() >= 0)


def _paths(root: str, files: pa.Table) -> list[str]:
    """The files as `DataFrameReader.parquet` takes them: not escaped as URIs, but as patterns.

    Raises:
        UnsupportedFeature: A name that Spark's file listing would leave out or cannot understand.
    """
    addresses = address(root, files["path"])
    hidden = addresses.filter(pc.match_substring_regex(addresses, _HIDDEN))
    if len(hidden):
        raise _unreadable("Spark leaves out files with such a name", hidden[0].as_py())
    is_pattern = pc.match_substring_regex(addresses, _GLOB)
    if pc.any(is_pattern).as_py():
        # Hadoop makes a path of each name in a pattern, and takes what stands before a colon for a scheme.
        bad = addresses.filter(pc.and_(is_pattern, pc.match_substring_regex(addresses, r"^[^/]*/.*:")))
        if len(bad):
            raise _unreadable("Hadoop cannot match a path with both a colon and one of {}[]*?\\", bad[0].as_py())
        addresses = pc.replace_substring_regex(addresses, _GLOB, r"\\\1")
    return list(addresses.to_pylist())


def _unreadable(problem: str, path: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"a data file cannot be read over Spark Connect: {problem}",
        code="unsupported-scan",
        path=path,
        hint='read(spark, url, lane="python"), or without Spark: alluvium.open(url)',
    )


def cannot_be_seen(root: str, problem: str) -> InvalidRequest:
    """The error for storage that is this machine's alone."""
    return InvalidRequest(
        f"the Spark Connect server cannot see the table's files: {problem}",
        code="unreachable-storage",
        url=root,
        hint="put the table where the server can read it, or send the rows: "
        "spark.createDataFrame(alluvium.open(url).to_arrow(columns, where))",
    )
