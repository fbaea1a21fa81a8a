"""The JVM behind a classic session: references to its classes, each looked up once a gateway.

Every static member of a class is a round trip of 0.1 ms and more, so nothing on a hot path names one; it takes a field
of `Java`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from alluvium.spark.jvm.packages import Packages

#: An object that lives in the JVM. py4j has no types for them.
JavaObject: TypeAlias = Any
#: Stands in no name and no SQL that anybody writes; if it does, texts go one by one.
_BETWEEN = "\x00"


class Statics:
    """A class of the JVM whose static members are looked up once: py4j asks the JVM for each anew, every time."""

    def __init__(self, java_class: JavaObject) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> JavaObject:
        found = getattr(self._java_class, name)
        self.__dict__[name] = found
        return found


@dataclass(frozen=True, slots=True)
class Java:
    """Class references and constants of one gateway."""

    gateway: JavaGateway
    jvm: Packages
    array_list: JavaObject
    hash_map: JavaObject
    map_of: JavaObject
    copies: JavaObject
    current_thread: JavaObject
    array_writable: JavaObject
    arrays: Statics
    array_access: Statics
    byte_array_input: JavaObject
    data_input: JavaObject
    inflater_input: JavaObject
    system: Statics
    pattern: JavaObject
    between: JavaObject
    array_seq: Statics
    file_status: JavaObject
    file_status_class: JavaObject
    hadoop_path: JavaObject
    option: Statics
    none: JavaObject
    python_utils: Statics
    no_items: JavaObject
    no_options: JavaObject
    interpreted_predicate: JavaObject
    bind_references: Statics
    attribute_seq: JavaObject
    data_type_utils: JavaObject
    partition_directory: Statics
    internal_row: JavaObject
    empty_row: JavaObject
    one_empty_row: JavaObject
    parquet_format: JavaObject
    orc_format: JavaObject
    hadoop_relation: JavaObject
    dataset: Statics
    sessions: Statics
    logical_relation: JavaObject
    sql_conf: Statics
    static_invoke: JavaObject
    invoke: JavaObject
    object_type: JavaObject
    integer_type: JavaObject
    task_context_class: JavaObject
    expression_utils: Statics
    functions: Statics
    cast: JavaObject
    type_of_text: JavaObject
    subquery_expression: Statics
    subquery_alias: JavaObject
    alias_identifier: JavaObject
    table_identifier: JavaObject
    unresolved_attribute: JavaObject
    bound_reference: JavaObject
    compute_current_time: Statics
    special_datetime_values: Statics
    observers: JavaObject | None
    folding_rules: tuple[Statics, ...]

    def seq(self, items: list[JavaObject]) -> JavaObject:
        """A Scala `Seq` of a few objects (one round trip each)."""
        if not items:
            return self.no_items
        values = self.array_list()
        for item in items:
            values.add(item)
        return self.python_utils.toSeq(values)

    def texts(self, items: Sequence[str]) -> JavaObject:
        """A Scala `Seq` of texts, however many, in two round trips: Java splits what Python has joined."""
        if not items or any(_BETWEEN in item for item in items):
            return self.seq(list(items))
        return self.array_seq.unsafeWrapArray(self.between.split(_BETWEEN.join(items), -1))

    def bind(self, expression: JavaObject, attributes: list[JavaObject]) -> JavaObject:
        """The expression with each attribute replaced by its position in a row."""
        return self.bind_references.bindReference(expression, self.attribute_seq(self.seq(attributes)), False)

    def stream(self, data: bytes) -> JavaObject:
        """A `DataInput` over bytes, which travel deflated: py4j sends them as base64 text."""
        return self.data_input(self.inflater_input(self.byte_array_input(data)))


_known: WeakKeyDictionary[JavaGateway, Java] = WeakKeyDictionary()


def java_of(spark: SparkSession) -> Java:
    """The classes behind a classic session; starts the gateway's callback server, once."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    found = _known.get(gateway)
    if found is None:
        # The mechanism of `foreachBatch`: without this server the JVM cannot call Python.
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call] # PySpark left it so
        found = _known[gateway] = _look_up(gateway)
    return found


def _look_up(gateway: JavaGateway) -> Java:
    jvm = Packages(gateway.jvm)
    hadoop, sql = jvm.org.apache.hadoop, jvm.org.apache.spark.sql
    catalyst, sources = sql.catalyst, sql.execution.datasources
    option, python_utils = Statics(jvm.scala.Option), Statics(jvm.org.apache.spark.api.python.PythonUtils)
    return Java(
        gateway=gateway,
        jvm=jvm,
        array_list=jvm.java.util.ArrayList,
        hash_map=jvm.java.util.HashMap,
        map_of=jvm.java.util.Map.of,
        copies=jvm.java.util.Collections.nCopies,
        current_thread=jvm.java.lang.Thread.currentThread,
        array_writable=hadoop.io.ArrayWritable,
        arrays=Statics(jvm.java.util.Arrays),
        array_access=Statics(jvm.java.lang.reflect.Array),
        byte_array_input=jvm.java.io.ByteArrayInputStream,
        data_input=jvm.java.io.DataInputStream,
        inflater_input=jvm.java.util.zip.InflaterInputStream,
        system=Statics(jvm.java.lang.System),
        pattern=jvm.java.util.regex.Pattern,
        array_seq=Statics(jvm.scala.collection.immutable.ArraySeq),
        between=jvm.java.util.regex.Pattern.compile(_BETWEEN),
        file_status=hadoop.fs.FileStatus,
        file_status_class=jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileStatus"),
        hadoop_path=hadoop.fs.Path,
        option=option,
        none=option.empty(),
        python_utils=python_utils,
        no_items=python_utils.toSeq(jvm.java.util.ArrayList()),
        no_options=python_utils.toScalaMap(jvm.java.util.HashMap()),
        interpreted_predicate=catalyst.expressions.InterpretedPredicate,
        bind_references=Statics(catalyst.expressions.BindReferences),
        attribute_seq=getattr(catalyst.expressions, "package$AttributeSeq"),
        data_type_utils=catalyst.types.DataTypeUtils,
        partition_directory=Statics(sources.PartitionDirectory),
        internal_row=catalyst.InternalRow,
        empty_row=catalyst.InternalRow.empty(),
        one_empty_row=_array_of(gateway, catalyst.InternalRow, catalyst.InternalRow.empty()),
        parquet_format=sources.parquet.ParquetFileFormat,
        orc_format=sources.orc.OrcFileFormat,
        hadoop_relation=sources.HadoopFsRelation,
        dataset=Statics(sql.classic.Dataset),
        sessions=Statics(sql.classic.SparkSession),
        logical_relation=getattr(getattr(sources, "LogicalRelation$"), "MODULE$"),
        sql_conf=Statics(sql.internal.SQLConf),
        static_invoke=catalyst.expressions.objects.StaticInvoke,
        invoke=catalyst.expressions.objects.Invoke,
        object_type=sql.types.ObjectType,
        integer_type=sql.types.DataType.fromDDL("int"),
        task_context_class=jvm.java.lang.Class.forName("org.apache.spark.TaskContext"),
        expression_utils=Statics(sql.classic.ExpressionUtils),
        functions=Statics(sql.functions),
        cast=catalyst.expressions.Cast,
        type_of_text=sql.types.DataType.fromDDL,
        subquery_expression=Statics(catalyst.expressions.SubqueryExpression),
        subquery_alias=catalyst.plans.logical.SubqueryAlias,
        alias_identifier=catalyst.AliasIdentifier,
        table_identifier=catalyst.TableIdentifier,
        unresolved_attribute=catalyst.analysis.UnresolvedAttribute,
        bound_reference=catalyst.expressions.BoundReference,
        compute_current_time=Statics(catalyst.optimizer.ComputeCurrentTime),
        special_datetime_values=Statics(catalyst.optimizer.SpecialDatetimeValues),
        observers=_observers_field(jvm),
        folding_rules=_folding_rules(catalyst.optimizer),
    )


def _folding_rules(optimizer: JavaObject) -> tuple[Statics, ...]:
    rules = (
        optimizer.NullPropagation,
        optimizer.ConstantFolding,
        optimizer.UnwrapCastInBinaryComparison,
        optimizer.BooleanSimplification,
        optimizer.SimplifyCasts,
    )
    return tuple(map(Statics, rules))


def _array_of(gateway: JavaGateway, of: JavaObject, item: JavaObject) -> JavaObject:
    """A Java array of one object."""
    array = gateway.new_array(of, 1)
    array[0] = item
    return array


def _observers_field(jvm: Packages) -> JavaObject | None:
    """The field in which a session has who waits for what its queries observe; None: its listeners tell them."""
    field = jvm.java.lang.Class.forName("org.apache.spark.sql.classic.SparkSession").getDeclaredField(
        "observationManager"
    )
    # Spark 4.0 makes it when it is first asked for, and it listens: copies of a session have its listeners.
    if not jvm.java.lang.reflect.Modifier.isFinal(field.getModifiers()):
        return None
    field.setAccessible(True)
    return field
