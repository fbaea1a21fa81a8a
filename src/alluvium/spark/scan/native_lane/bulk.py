"""Loops that run inside the JVM: one `PartitionDirectory` for each of n groups in a fixed number of round trips.

A loop from Python costs 0.5 ms a group. The JVM has no loops to lend over py4j, but `java.lang.invoke` composes method
handles, makes the composition an `IntFunction`, and `Arrays.setAll` runs it for each index. That takes some 10 ms,
however many groups there are: a few of them are looped over all the same. How to debug it: docs/method-handles.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway

from alluvium.spark.jvm.gateway import Java, JavaObject
from alluvium.spark.jvm.method_handles import classes, handle_array, objects

#: So many groups take as long one by one.
_FEW = 16

#: Of type `(int) -> X`.
IndexHandle: TypeAlias = JavaObject


@dataclass(frozen=True, slots=True)
class Handles:
    """Method handles and classes of one gateway, looked up once."""

    handles: JavaObject
    proxies: JavaObject
    lookup: JavaObject
    method_type: JavaObject
    int_class: JavaObject
    object_class: JavaObject
    int_function: JavaObject
    int_array: JavaObject
    copy_range: JavaObject
    make_directory: JavaObject
    row_class: JavaObject
    statuses_class: JavaObject
    evaluate: JavaObject


_known: WeakKeyDictionary[JavaGateway, Handles] = WeakKeyDictionary()


def handles_of(java: Java) -> Handles:
    """The handles of a gateway."""
    found = _known.get(java.gateway)
    if found is None:
        found = _known[java.gateway] = _look_up(java)
    return found


def _look_up(java: Java) -> Handles:
    invoke, for_name = java.jvm.java.lang.invoke, java.jvm.java.lang.Class.forName
    sources = "org.apache.spark.sql.execution.datasources"
    catalyst = "org.apache.spark.sql.catalyst"
    lookup, method_type = invoke.MethodHandles.publicLookup(), invoke.MethodType.methodType
    int_class = java.jvm.java.lang.Integer.TYPE
    object_array = for_name("[Ljava.lang.Object;")
    statuses, row = for_name("[Lorg.apache.hadoop.fs.FileStatus;"), for_name(f"{catalyst}.InternalRow")
    directory = for_name(f"{sources}.PartitionDirectory")
    predicate = for_name(f"{catalyst}.expressions.InterpretedPredicate")
    object_class = for_name("java.lang.Object")
    copy_type = method_type(object_array, classes(java, [object_array, int_class, int_class]))
    return Handles(
        handles=invoke.MethodHandles,
        proxies=invoke.MethodHandleProxies,
        lookup=lookup,
        method_type=method_type,
        int_class=int_class,
        object_class=object_class,
        int_function=for_name("java.util.function.IntFunction"),
        int_array=for_name("[I"),
        copy_range=lookup.findStatic(for_name("java.util.Arrays"), "copyOfRange", copy_type),
        make_directory=lookup.findStatic(directory, "apply", method_type(directory, classes(java, [row, statuses]))),
        row_class=row,
        statuses_class=statuses,
        evaluate=lookup.findVirtual(
            predicate, "eval", method_type(java.jvm.java.lang.Boolean.TYPE, classes(java, [row]))
        ),
    )


def _element(java: Java, h: Handles, array: JavaObject, array_class: JavaObject) -> IndexHandle:
    """`i -> array[i]`"""
    return h.handles.insertArguments(h.handles.arrayElementGetter(array_class), 0, objects(java, [array]))


def _both(java: Java, h: Handles, target: JavaObject, first: IndexHandle, second: IndexHandle) -> IndexHandle:
    """`i -> target(first(i), second(i))`"""
    pair = h.handles.filterArguments(target, 0, handle_array(java, [first, second]))
    same = java.gateway.new_array(java.jvm.int, 2)
    kind = h.method_type(pair.type().returnType(), classes(java, [h.int_class]))
    return h.handles.permuteArguments(pair, kind, same)


def _ints(java: Java, values: Sequence[int]) -> JavaObject:
    """A Java `int[]` in a few round trips: the bytes travel once, an `IntBuffer` reads them."""
    data = b"".join(value.to_bytes(4, "big") for value in values)
    array = java.gateway.new_array(java.jvm.int, len(values))
    java.jvm.java.nio.ByteBuffer.wrap(data).asIntBuffer().get(array)
    return array


def _run(java: Java, h: Handles, count: int, function: IndexHandle) -> JavaObject:
    """The function's results for 0 until count, as a Java `Object[]`."""
    boxed = h.handles.explicitCastArguments(function, h.method_type(h.object_class, classes(java, [h.int_class])))
    results = java.gateway.new_array(java.jvm.java.lang.Object, count)
    java.arrays.setAll(results, h.proxies.asInterfaceInstance(h.int_function, boxed))
    return results


def partition_directories(
    java: Java, rows: JavaObject, statuses: JavaObject, starts: Sequence[int], ends: Sequence[int]
) -> JavaObject:
    """A Scala `Seq[PartitionDirectory]`: row i with the files from `starts[i]` until `ends[i]`.

    Args:
        java: The gateway's classes.
        rows: A Java `InternalRow[]`.
        statuses: A Java `FileStatus[]`.
        starts: First file of each row.
        ends: One past the last file of each row.
    """
    if len(starts) == 1 and ends[0] == len(statuses):
        return java.seq([java.partition_directory.apply(rows[0], statuses)])
    if len(starts) <= _FEW:
        few = [_slice(java, statuses, start, end) for start, end in zip(starts, ends, strict=True)]
        return java.seq([java.partition_directory.apply(rows[n], some) for n, some in enumerate(few)])
    h = handles_of(java)
    int_elements = [_element(java, h, _ints(java, values), h.int_array) for values in (starts, ends)]
    bound = h.handles.insertArguments(h.copy_range, 0, objects(java, [statuses]))
    slices = _both(java, h, bound, *int_elements)
    slices = slices.asType(h.method_type(h.statuses_class, classes(java, [h.int_class])))
    directories = _both(java, h, h.make_directory, _element(java, h, rows, rows.getClass()), slices)
    return java.python_utils.toSeq(java.arrays.asList(_run(java, h, len(starts), directories)))


def _slice(java: Java, statuses: JavaObject, start: int, end: int) -> JavaObject:
    some = java.gateway.new_array(java.file_status, end - start)
    java.system.arraycopy(statuses, start, some, 0, end - start)
    return some


def rows_that_pass(java: Java, predicate: JavaObject, rows: JavaObject, count: int) -> list[int]:
    """Indexes of the rows for which an `InterpretedPredicate` is true."""
    if count <= _FEW:
        return [index for index in range(count) if predicate.eval(rows[index])]
    h = handles_of(java)
    test = h.handles.insertArguments(h.evaluate, 0, objects(java, [predicate]))
    one = h.handles.filterArguments(test, 0, handle_array(java, [_element(java, h, rows, rows.getClass())]))
    # `[true, false, ...]`: one text instead of a round trip a row.
    text = str(java.arrays.toString(_run(java, h, count, one)))
    return [index for index, word in enumerate(text[1:-1].split(", ")) if word == "true"] if count else []
