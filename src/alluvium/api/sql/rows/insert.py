"""INSERT: INTO, OVERWRITE and REPLACE WHERE, into one table or from one source into several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.delta.delta_columns import GENERATION, IDENTITY
from alluvium.api.delta.frames.session_options import ensure_dynamic_allowed
from alluvium.api.names.answered import PROVIDERS
from alluvium.api.names.catalog_writer import insert_named
from alluvium.api.names.frame_views import framed_access
from alluvium.api.names.paimon_access import PaimonAccess
from alluvium.api.paimon.merged_schema import MERGE_SETTING
from alluvium.api.sql.call import Call, identified, some, texts
from alluvium.api.sql.rows.default_words import says_default, without_default_words
from alluvium.api.sql.rows.insert_columns import InsertColumns, ensure_known, named_rows, static_condition
from alluvium.api.sql.rows.replace_criteria import ReplaceOn, replace_on
from alluvium.delta.features.columns.column_defaults import KEY as DEFAULT
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.plan.changes import Committed
from alluvium.plan.ports import Target
from alluvium.schema.types import Struct
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.naming.names import quote
from alluvium.spark.sessions.settings import read_flag
from alluvium.spark.statements.conditions import condition_text

#: Told by the parser to the catalog alone.
_PRIVILEGES = "__required_write_privileges__"
#: Nodes of one INSERT.
INSERTS = frozenset(("InsertIntoStatement", "UnresolvedInsert", "OverwriteByExpression"))
_EVOLVES = "spark.databricks.delta.schema.autoMerge.enabled"
_IS_EXACT = "spark.sql.caseSensitive"
_PARTITION_MODE = "spark.sql.sources.partitionOverwriteMode"


@dataclass(frozen=True)
class _Insert:
    """One INSERT, as Spark's parser read it.

    Attributes:
        access: The table.
        query: Where the rows come from.
        columns: Where its columns go.
        overwrites: Whether rows that are there go.
        condition: Which of them go, of `REPLACE WHERE`.
        options: Of the writer.
        replaces_on: What REPLACE ON says.
    """

    access: TableAccess | PaimonAccess
    query: JavaObject
    columns: InsertColumns
    overwrites: bool
    condition: JavaObject | None
    options: Mapping[str, object]
    replaces_on: ReplaceOn | None = None


def run(call: Call) -> DataFrame | None:
    """Carries out an INSERT, or several that share their source, in their order; the answer has no columns."""
    kind = str(call.plan.nodeName())
    if kind == "InsertIntoDir":
        _ensure_only_files(call.plan)
        return None
    nodes = list(_children(call.plan)) if kind == "Union" else [call.plan]
    tables = [_target(call, node) for node in nodes]
    if not any(tables):
        return None
    found = [None if t is None else _read(call, node, t) for node, t in zip(nodes, tables, strict=True)]
    # What can be said against any of them is said before the first has written.
    ready = [None if insert is None else _prepared(call, insert) for insert in found]
    for node, write in zip(nodes, ready, strict=True):
        if write is None:
            # Into somebody else's table, or a directory: Spark carries out such a plan at once, names and all, and so
            # before our tables change.
            call.rows(node)
    is_first = True
    for insert, write in zip(found, ready, strict=True):
        if insert is not None and write is not None:
            # As in the reference, each sees what those before it have written.
            (write if is_first else _prepared(call, insert))()
            is_first = False
    return call.nothing()


def _ensure_only_files(plan: JavaObject) -> None:
    """Leaves it to Spark to write files; a table is more than these.

    Raises:
        UnsupportedFeature: They are to be a table of ours.
    """
    provider = some(plan.provider())
    if provider is not None and str(provider).lower() in PROVIDERS:
        raise UnsupportedFeature(
            f"INSERT OVERWRITE DIRECTORY makes files, not a {provider} table",
            code="unsupported-statement",
            hint="name the table by its path: INSERT OVERWRITE delta.`/path` ...",
        )


def _target(call: Call, node: JavaObject) -> TableAccess | PaimonAccess | None:
    """The table of ours that one is about; None, too, for `INSERT OVERWRITE DIRECTORY`, and for queries."""
    if str(node.nodeName()) not in INSERTS:
        return None
    return call.table(node.table()) or call.paimon(node.table()) or _framed(call, node.table())


def _framed(call: Call, relation: JavaObject) -> TableAccess | None:
    parts = call.parts(relation)
    return None if parts is None else framed_access(call.spark, parts)


def _children(union: JavaObject) -> Iterator[JavaObject]:
    children = union.children()
    return (children.apply(n) for n in range(children.size()))


def _read(call: Call, node: JavaObject, access: TableAccess | PaimonAccess) -> _Insert:
    if str(node.nodeName()) == "OverwriteByExpression":
        # `REPLACE WHERE` before Spark 4.2.
        columns = InsertColumns((), bool(node.isByName()), {}, _evolves(call, access, False))
        return _Insert(access, node.query(), columns, True, node.deleteExpr(), _options(call, node))
    known = str(node.productElementNames().mkString(",")).split(",")
    static, dynamic = _partition(node.partitionSpec())
    evolves = _evolves(call, access, "withSchemaEvolution" in known and bool(node.withSchemaEvolution()))
    columns = InsertColumns(texts(node.userSpecifiedCols()), bool(node.byName()), static, evolves, dynamic)
    if bool(node.ifPartitionNotExists()):
        format_name = "Paimon" if isinstance(access, PaimonAccess) else "Delta"
        raise UnsupportedFeature(
            f"INSERT OVERWRITE ... IF NOT EXISTS is not for {format_name} tables",
            code="unsupported-statement",
            url=access.url,
            hint="leave IF NOT EXISTS out",
        )
    criteria = some(node.replaceCriteriaOpt()) if "replaceCriteriaOpt" in known else None
    options = _options(call, node)
    if criteria is not None and str(criteria.getClass().getSimpleName()) == "InsertReplaceUsing":
        options["replaceUsing"] = ", ".join(
            name if name.isidentifier() else quote(name) for name in texts(criteria.cols())
        )
        return _Insert(access, node.query(), columns, True, None, options)
    if criteria is not None and str(criteria.getClass().getSimpleName()) == "InsertReplaceOn":
        found = replace_on(call, node, criteria, access.url)
        return _Insert(access, node.query(), columns, True, None, options | found.options(), found)
    # Spark 4.2 and later have `REPLACE WHERE` in the same place.
    condition = None if criteria is None else criteria.productElement(0)
    return _Insert(access, node.query(), columns, bool(node.overwrite()), condition, options)


def _partition(spec: JavaObject) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """The columns of `PARTITION (...)`: those with a value, as text, and those without."""
    static: dict[str, str | None] = {}
    dynamic = []
    pairs = spec.toSeq()
    for pair in (pairs.apply(n) for n in range(pairs.size())):
        given = pair._2()
        if given.isDefined():
            value = given.get()
            static[str(pair._1())] = None if value is None else str(value)
        else:
            dynamic.append(str(pair._1()))
    return static, tuple(dynamic)


def _evolves(call: Call, access: TableAccess | PaimonAccess, said: bool) -> bool:
    setting = _EVOLVES if isinstance(access, TableAccess) else MERGE_SETTING
    return said or read_flag(call.spark, setting, False)


def _options(call: Call, node: JavaObject) -> dict[str, object]:
    table = identified(call.spark, node.table(), call.run)
    given = table.productElement(str(table.productElementNames().mkString(",")).split(",").index("options"))
    return {str(k): str(v) for k, v in dict(given.asCaseSensitiveMap()).items() if str(k) != _PRIVILEGES}


def explain(call: Call, mode: JavaObject) -> str | None:
    """What an INSERT would do, with Spark's plan of its rows; None where it is into somebody else's table."""
    access = _target(call, call.plan)
    if access is None:
        return None
    insert = _read(call, call.plan, access)
    rows, options = _planned(call, insert)
    goes = "beside the rows that are there"
    if insert.overwrites:
        replaces_partitions = is_dynamic(call.spark, insert.options, access.url)
        which = "the partitions that they are in" if replaces_partitions else options.get("replaceWhere")
        if "replaceUsing" in options:
            which = f"rows that are equal in {options['replaceUsing']}"
        if insert.replaces_on is not None:
            which = f"rows that a new one meets: {insert.replaces_on.condition}"
        goes = f"in the place of {which or 'all rows'}"
    plan = rows._jdf.queryExecution().explainString(mode)
    return f"INSERT INTO {access.url}: new rows {goes}\n{plan}"


def _prepared(call: Call, insert: _Insert) -> Callable[[], Committed]:
    """The write, with all that can be said of it before; nothing is written yet."""
    rows, options = _planned(call, insert)
    if isinstance(insert.access, PaimonAccess):
        return partial(insert.access.insert, rows, insert.overwrites, options)
    return partial(insert_named, rows, insert.access, insert.overwrites, options)


def _planned(call: Call, insert: _Insert) -> tuple[DataFrame, dict[str, object]]:
    """The rows under the table's columns, and the options of their writer."""
    access, query, options = insert.access, insert.query, dict(insert.options)
    schema, partition_columns = _columns_of(access)
    is_exact = str(call.spark.conf.get(_IS_EXACT)).lower() == "true"
    columns = insert.columns.checked(schema, partition_columns, access.url, is_exact=is_exact)
    if not columns.by_name and says_default(call.text):
        query, columns = without_default_words(call, query, _written_to(access), columns)
    given = call.rows(query)
    if columns.by_name and not columns.evolves:
        ensure_known(given.schema, schema, access.url)
    rows = named_rows(given, columns, schema, access.url)
    if insert.replaces_on is not None:
        rows = insert.replaces_on.named(given, rows, columns, schema)
    if isinstance(access, TableAccess):
        _ensure_required(access, rows.columns)
    if columns.evolves:
        options["mergeSchema"] = "true"
    if insert.overwrites:
        options |= _what_goes(call, insert, columns, schema)
    return rows, options


def _ensure_required(access: TableAccess, given: Sequence[str]) -> None:
    """As in the reference: a column that must not be null, and that nobody else fills in, has to be given.

    Raises:
        InvalidRequest: It is not.
    """
    brought = {name.lower() for name in given}
    for f in access.snapshot().config.schema.fields:
        is_filled = any(key in (DEFAULT, GENERATION) or key.startswith(IDENTITY) for key in f.metadata)
        if not f.nullable and not is_filled and f.name.lower() not in brought:
            raise InvalidRequest(
                f"the column {f.name!r}, which must not be null, is not given",
                code="schema-mismatch",
                url=access.url,
                column=f.name,
                hint="name it behind the table, and give its value",
            )


def _written_to(access: TableAccess | PaimonAccess) -> Target:
    if isinstance(access, PaimonAccess):
        return access.target()
    snapshot = access.snapshot()
    return DeltaTarget(access.store(), snapshot.config, snapshot)


def _columns_of(access: TableAccess | PaimonAccess) -> tuple[Struct, Sequence[str]]:
    if isinstance(access, PaimonAccess):
        return access.schema(), access.partition_columns()
    config = access.snapshot().config
    return config.schema, config.partition_columns


def _what_goes(call: Call, insert: _Insert, columns: InsertColumns, schema: Struct) -> dict[str, object]:
    """The option that says which rows an overwrite replaces, where these are not all, or those of whole partitions."""
    if "replaceUsing" in insert.options or insert.replaces_on is not None:
        return {}
    replaces_partitions = is_dynamic(call.spark, insert.options, insert.access.url)
    if insert.condition is not None:
        condition = call.column(insert.condition)
    elif replaces_partitions:
        # Writers of Delta tables look at the session themselves.
        return {"partitionOverwriteMode": "dynamic"} if isinstance(insert.access, PaimonAccess) else {}
    elif columns.static:
        condition = static_condition(call, columns, schema)
    else:
        return {}
    where = condition_text(call.spark, schema, condition)
    return {} if where is None else {"replaceWhere": where}


def is_dynamic(spark: SparkSession, options: Mapping[str, object], url: str) -> bool:
    """Whether the partitions that the rows are in are replaced, by what the writer's options or the session say.

    Raises:
        InvalidRequest: The session forbids it.
    """
    said = options.get("partitionOverwriteMode") or spark.conf.get(_PARTITION_MODE, "static")
    if str(said).lower() != "dynamic":
        return False
    ensure_dynamic_allowed(spark, url)
    return True
