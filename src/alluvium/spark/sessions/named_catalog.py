"""A catalog of our own under a name: what Spark asks it for comes to Python, and answers go back as the JVM's objects.

An object of the catalog's interfaces stands in the session's list of catalogs. Its handler is put together of method
handles: what Python answers is asked of Python, all else has the interface's own default. An answer that is an error is
thrown in the JVM, so that Spark sees its own kinds of errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from pyspark.sql import SparkSession

from alluvium.spark.jvm import failures, gateway
from alluvium.spark.jvm.callbacks import know_caller
from alluvium.spark.jvm.gateway import Java, JavaObject, java_of
from alluvium.spark.jvm.method_handles import Composer, classes
from alluvium.spark.sessions.catalog_proxy import session_field

_OBJECT, _OBJECTS, _METHOD = "java.lang.Object", "[Ljava.lang.Object;", "java.lang.reflect.Method"
_THROWABLE = "java.lang.Throwable"
_PACKAGE = "org.apache.spark.sql.connector.catalog."
_INTERFACES = (f"{_PACKAGE}TableCatalog", f"{_PACKAGE}SupportsNamespaces")
#: From the arguments of a method, as the JVM's objects, to its answer.
Method = Callable[[Sequence[JavaObject]], object]


class _Asked:
    """Called for each method that Python answers."""

    def __init__(self, java: gateway.Java, methods: dict[str, Method]) -> None:
        self._java = java
        self._methods = methods

    def apply(self, name: str, arguments: JavaObject) -> object:
        """The answer; an error to be thrown, where it is one."""
        know_caller(self._java)
        try:
            return self._methods[str(name)](() if arguments is None else list(arguments))
        except failures.CarriedError:
            raise
        except Exception as error:  # noqa: BLE001 - all of them must cross the JVM
            raise failures.remember(error) from None

    def toString(self) -> str:
        """For debugging in the JVM."""
        return "a catalog of Alluvium's"

    class Java:
        """What py4j looks for."""

        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]


def put_catalog(spark: SparkSession, name: str, methods: dict[str, Method]) -> None:
    """Puts a catalog under a name of a classic session, in the place of one that is there.

    Args:
        spark: The session.
        name: The catalog's.
        methods: By the names of the interface's methods; overloads are told apart by their arguments.
    """
    java = java_of(spark)
    failures.install()
    manager = spark._jsparkSession.sessionState().catalogManager()
    session_field(manager, "catalogs").get(manager).put(name, _catalog(java, methods))


def remove_catalog(spark: SparkSession, name: str) -> None:
    """Undoes `put_catalog`."""
    manager = spark._jsparkSession.sessionState().catalogManager()
    session_field(manager, "catalogs").get(manager).remove(name)


def has_catalog(spark: SparkSession, name: str) -> bool:
    """Whether the session has a catalog of that name in its list."""
    manager = spark._jsparkSession.sessionState().catalogManager()
    return bool(session_field(manager, "catalogs").get(manager).contains(name))


def _catalog(java: Java, methods: dict[str, Method]) -> JavaObject:
    c = Composer(java)
    names = java.jvm.java.util.HashSet()
    held = java.array_list()
    own = {"hashCode": lambda _: 1, "equals": lambda _: False, "toString": lambda _: "Alluvium", **methods}
    for name in own:
        names.add(name)
    held.add(_Asked(java, own))
    apply = c.bind(c.virtual("java.util.function.BiFunction", "apply", _OBJECT, _OBJECT, _OBJECT), 0, held.get(0))
    get_name = c.virtual(_METHOD, "getName", "java.lang.String")
    asked = c.filter(apply.asType(c.type(_OBJECT, "java.lang.String", _OBJECTS)), 0, get_name)
    throw = c.throw(_OBJECT, _THROWABLE).asType(c.type(_OBJECT, _OBJECT))
    asked = c.ignore(c.then(asked, c.choose(c.is_instance(_THROWABLE), throw, c.identity)), 0, _OBJECT)
    handler = "java.lang.reflect.InvocationHandler"
    default = c.static(handler, "invokeDefault", _OBJECT, _OBJECT, _METHOD, _OBJECTS)
    contains = c.bind(c.virtual("java.util.Set", "contains", "boolean", _OBJECT), 0, names)
    is_ours = c.ignore(c.then(get_name, contains.asType(c.type("boolean", "java.lang.String"))), 0, _OBJECT)
    loader = java.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    interfaces = classes(java, [loader.loadClass(name) for name in _INTERFACES])
    return java.jvm.java.lang.reflect.Proxy.newProxyInstance(
        loader, interfaces, c.interface(handler, c.choose(is_ours, asked, default))
    )
