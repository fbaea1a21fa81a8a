"""Entries of the catalog with parts of them changed: they are Scala's case classes."""

from __future__ import annotations

from collections.abc import Mapping

from alluvium.spark.jvm.gateway import Java, JavaObject


def changed(java: Java, entry: JavaObject, values: Mapping[str, JavaObject]) -> JavaObject:
    """A copy of a case class with other values in some of its fields.

    By reflection: how many fields there are differs from one version of Spark to the next.
    """
    names = str(entry.productElementNames().mkString(",")).split(",")
    parts = entry.productIterator().toArray(java.jvm.scala.reflect.ClassTag.AnyRef())
    for name, value in values.items():
        parts[names.index(name)] = value
    copy = next(method for method in entry.getClass().getMethods() if str(method.getName()) == "copy")
    return copy.invoke(entry, parts)
