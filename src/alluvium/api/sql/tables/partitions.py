"""SHOW PARTITIONS, ALTER TABLE ... DROP PARTITION and TRUNCATE TABLE ... PARTITION of Paimon tables.

Specification: `ShowPartitionsExec` of Spark, `PaimonPartitionManagement`, `PaimonDropPartitionsExec`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from alluvium.api.names.paimon_access import PaimonAccess
from alluvium.api.sql.call import Call, some
from alluvium.api.sql.tables import refused
from alluvium.codecs.partition_path import DEFAULT_PARTITION, escape_path_name
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature, suggest
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.upkeep.removal.drop_partitions import drop_partitions
from alluvium.paimon.view.selection import visible_entries
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.naming.types import to_spark
from alluvium.storage.locating import locating

_PARTITION = StructType([StructField("partition", StringType(), False)])
_PLACE = "place"
#: What an entry of a metastore would be, of which there is none.
_NULL = "null"


def run(call: Call) -> DataFrame | None:
    """Carries out `ALTER TABLE t DROP [IF EXISTS] PARTITION (...)[, PARTITION (...)]`; of Delta tables it is refused.

    All of them go by one commit. Values of some keys alone mean all partitions that have them, be there none.

    Raises:
        NotFound: A partition whose keys are all named is not there (`partition-not-found`), unless `IF EXISTS` is said.
        InvalidRequest: No column by which the table is partitioned (`invalid-partition-column`), or no value of it
            (`invalid-partition`).
        UnsupportedFeature: `PURGE`: files stay for the snapshots before.
    """
    access = call.paimon(call.plan.table())
    if access is None:
        return refused.run(call)
    if call.plan.purge():
        raise UnsupportedFeature(
            "partitions of Paimon tables are not purged: snapshots before still have their files",
            code="unsupported-statement",
            url=access.url,
            features=("PURGE",),
            hint="leave PURGE out; expire_snapshots deletes files",
        )
    parts = call.plan.parts()
    specs = [parts.apply(n).spec() for n in range(parts.size())]
    return _dropped(call, access, specs, is_optional=bool(call.plan.ifExists()))


def truncate(call: Call, access: PaimonAccess) -> DataFrame:
    """Carries out `TRUNCATE TABLE t PARTITION (...)`: as DROP PARTITION, for a partition without files is none.

    Raises:
        NotFound: As of `run`.
        InvalidRequest: Likewise.
    """
    return _dropped(call, access, [call.plan.partitionSpec().spec()], is_optional=False)


def _dropped(call: Call, access: PaimonAccess, specs: Sequence[JavaObject], *, is_optional: bool) -> DataFrame:
    kinds = _kinds(access)
    asked = [_asked(call, spec, kinds) for spec in specs]
    told = [str(spec.toString()) for spec in specs]
    snapshot = access.snapshot()
    with locating(snapshot.store, snapshot.version):
        drop_partitions(snapshot, partial(_chosen, call, access, kinds, asked, [] if is_optional else told))
    return call.nothing()


def show_partitions(call: Call, access: PaimonAccess) -> DataFrame:
    """The partitions that readers see, a row each, as `a=1/b=x`.

    Raises:
        InvalidRequest: As of `run`, or the table is not partitioned (`no-partitions`).
    """
    kinds, pattern = _kinds(access), some(call.plan.pattern())
    if not kinds:
        raise InvalidRequest("the table is not partitioned", code="no-partitions", url=access.url)
    snapshot = access.snapshot()
    with locating(snapshot.store, snapshot.version):
        values = partitions_of(visible_entries(snapshot), snapshot.schema).values
    rows = _frame(call, values, kinds)
    if pattern is not None:
        rows = rows.where(_is_one(_asked(call, pattern.spec(), kinds), kinds))
    texts = rows.select(*(sf.coalesce(sf.col(f"c{n}").cast("string"), sf.lit(_NULL)) for n in range(len(kinds))))
    lines = ["/".join(map(_directory, kinds, row)) for row in texts.collect()]
    return call.rows_of(_PARTITION, [(line,) for line in sorted(lines)])


def _directory(name: str, value: str) -> str:
    return f"{escape_path_name(name)}={escape_path_name(value)}"


def _kinds(access: PaimonAccess) -> Mapping[str, DataType]:
    """The partition keys, in order."""
    schema = access.schema()
    return {name: to_spark(schema)[name].dataType for name in access.partition_columns()}


def _asked(call: Call, spec: JavaObject, kinds: Mapping[str, DataType]) -> Mapping[str, Column]:
    """The values of `PARTITION (...)`, by columns as the table spells them."""
    by_folded = {name.lower(): name for name in kinds}
    found: dict[str, str | None] = {}
    for name, value in dict(call.java.jvm.scala.jdk.javaapi.CollectionConverters.asJava(spec)).items():
        own = by_folded.get(name.lower())
        if own is None:
            raise InvalidRequest(
                f"the table is not partitioned by {name!r}",
                code="invalid-partition-column",
                column=name,
                hint=suggest(name, list(kinds)),
            )
        found[own] = None if value is None or value == DEFAULT_PARTITION else str(value)
    columns = {name: sf.lit(value).try_cast(kinds[name]) for name, value in found.items()}
    _ensure_values(call, found, columns, kinds)
    return columns


def _ensure_values(
    call: Call, texts: Mapping[str, str | None], columns: Mapping[str, Column], kinds: Mapping[str, DataType]
) -> None:
    """A text that is no value of its column must not be taken for null, whatever the session says of casts."""
    row = call.run("select 1").select(*(column.isNull() for column in columns.values())).collect()[0]
    for (name, text), is_null in zip(texts.items(), row, strict=True):
        if is_null and text is not None:
            raise InvalidRequest(
                f"{text!r} is no value of the partition key {name!r}, which is {kinds[name].simpleString()}",
                code="invalid-partition",
                column=name,
            )


def _frame(call: Call, values: pa.Table, kinds: Mapping[str, DataType]) -> DataFrame:
    """Partitions with their places; columns are called by numbers, for any name may be that of a partition key."""
    fields = [StructField(f"c{n}", kind) for n, kind in enumerate(kinds.values())]
    table = pa.table([pa.array(np.arange(values.num_rows)), *values.select(list(kinds)).columns],
                     [_PLACE, *(f.name for f in fields)])  # fmt: skip
    return call.spark.createDataFrame(table, StructType([StructField(_PLACE, LongType()), *fields]))


def _is_one(spec: Mapping[str, Column], kinds: Mapping[str, DataType]) -> Column:
    places = {name: f"c{n}" for n, name in enumerate(kinds)}
    found = sf.lit(True)
    for name, value in spec.items():
        found = found & sf.col(places[name]).eqNullSafe(value)
    return found


def _chosen(
    call: Call,
    access: PaimonAccess,
    kinds: Mapping[str, DataType],
    specs: Sequence[Mapping[str, Column]],
    told: Sequence[str],
    values: pa.Table,
) -> list[int]:
    """The places of the partitions that any of the statement's specs means; those that are told must be there."""
    rows = _frame(call, values, kinds).select(
        _PLACE, *(_is_one(spec, kinds).alias(f"s{n}") for n, spec in enumerate(specs))
    )
    found = [row for row in rows.collect() if any(row[1:])]
    for n, text in enumerate(told):
        if len(specs[n]) == len(kinds) and not any(row[n + 1] for row in found):
            raise NotFound(
                f"there is no partition {text}",
                code="partition-not-found",
                url=access.url,
                hint="SHOW PARTITIONS lists them; DROP IF EXISTS passes over those that are not there",
            )
    return [row[_PLACE] for row in found]
