"""Packages and classes of the JVM by their names, each of which is asked for once a gateway.

py4j asks the JVM what each part of `jvm.java.util.HashMap` is. That `java` is a package the JVM says when it has looked
for a class of that name in every package that PySpark imports, in each of Spark's 300 archives: 3 ms, where the class
by its whole name takes 0.1.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JVMView

#: Classes whose names begin as those of packages do: those of arrays' items, and one of Spark's.
_LOWER_CASE = frozenset(
    {"boolean", "byte", "char", "double", "float", "int", "long", "short", "org.apache.spark.sql.functions"}
)


class Packages:
    """A package of the JVM, or all of them: attributes are its packages and its classes.

    What is spelt as Java spells packages is one, and nobody is asked. A class that the JVM has not is py4j's
    `JavaPackage`, as it is there.

    Args:
        view: py4j's.
        prefix: The package's name and a dot; nothing: all packages.
    """

    def __init__(self, view: JVMView, prefix: str = "") -> None:
        self._view = view
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        whole = f"{self._prefix}{name}"
        is_class = name[0].isupper() or "$" in name or whole in _LOWER_CASE
        found = getattr(self._view, whole) if is_class else Packages(self._view, f"{whole}.")
        self.__dict__[name] = found
        return found
