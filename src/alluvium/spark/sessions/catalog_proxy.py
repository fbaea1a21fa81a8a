"""In front of a session's catalog: what Spark asks it for goes on to it inside the JVM, tables of ours come to Python.

Spark asks its session catalog by an interface, for each name in a statement. A proxy stands there whose handler is put
together of method handles: every call goes on to the catalog that was there, and Python hears of a table only where
that one fails, or answers with a table of a format of ours. So statements about other tables never leave the JVM, and
the catalog's own errors reach Spark as themselves. Decision: `docs/decisions/0022-names-and-the-front-of-sql.md`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from alluvium.errors import UnsupportedFeature
from alluvium.spark.jvm import failures
from alluvium.spark.jvm.callbacks import know_caller
from alluvium.spark.jvm.gateway import Java, JavaObject, java_of
from alluvium.spark.jvm.method_handles import Composer, Handle, classes
from alluvium.spark.jvm.thrown import thrown

_SESSION_CATALOG = "spark_catalog"
#: The setting that names a class to stand where ours is to stand.
_IMPLEMENTATION = "spark.sql.catalog.spark_catalog"
_OBJECT, _OBJECTS, _METHOD = "java.lang.Object", "[Ljava.lang.Object;", "java.lang.reflect.Method"
_THROWABLE, _INVOCATION = "java.lang.Throwable", "java.lang.reflect.InvocationTargetException"
_TABLE = "org.apache.spark.sql.connector.catalog.Table"
#: An interface that no catalog has: a proxy of ours is known by it, and gives the catalog behind it.
_MARK = "java.util.function.Supplier"


@dataclass(frozen=True, slots=True)
class AskedTable:
    """What Spark asks the catalog for.

    Attributes:
        namespace: What stands before the name, `("default",)`.
        name: The table's, or a path where the namespace is that of a format.
        version: Of `VERSION AS OF`.
        timestamp_us: Of `TIMESTAMP AS OF`, microseconds since 1970 UTC.
    """

    namespace: tuple[str, ...]
    name: str
    version: str | None = None
    timestamp_us: int | None = None


#: From what is asked for to a `Table` of the JVM; None: it is no table of ours.
Answer = Callable[[AskedTable], JavaObject | None]
#: From an error of an answer to the condition and the SQL state that scripts know it by; None: it has none of its own.
Told = Callable[[Exception], tuple[str, str] | None]


class _Loader:
    """Called where the wrapped catalog has no table, or one of ours."""

    def __init__(self, java: Java, answer: Answer, told: Told) -> None:
        self._java = java
        self._answer = answer
        self._told = told

    def apply(self, found: JavaObject, arguments: JavaObject) -> JavaObject:
        """A table; what was found, where it is not ours: if that is an error, it will be thrown."""
        know_caller(self._java)
        try:
            answer = self._answer(_asked(arguments, str(self._java.arrays.toString(arguments))))
        except failures.CarriedError:
            raise
        except Exception as error:  # noqa: BLE001 - all of them must cross the JVM
            raise thrown(self._java, error, self._told(error)) from None
        return found if answer is None else answer

    def toString(self) -> str:
        """For debugging in the JVM."""
        return "Alluvium's tables"

    class Java:
        """What py4j looks for."""

        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]


class _Guard:
    """Called before the wrapped catalog makes an entry: one of a format of ours would have no table behind it."""

    def __init__(self, java: Java, providers: tuple[str, ...]) -> None:
        self._java = java
        self._providers = providers

    def apply(self, arguments: JavaObject) -> JavaObject:
        """The arguments, where the entry is of another format."""
        know_caller(self._java)
        last = arguments[len(arguments) - 1]
        # A map of properties, or from 4.1 on all that is said of the table.
        properties = last.properties() if str(last.getClass().getSimpleName()) == "TableInfo" else last
        provider = properties.get("provider")
        if provider is not None and str(provider).lower() in self._providers:
            raise failures.remember(
                UnsupportedFeature(
                    f"the {provider} table {arguments[0].name()} is created inside of a script or another statement, "
                    "where only its entry in the catalog would be made",
                    code="unsupported-statement",
                    hint="run the CREATE TABLE as a statement of its own: spark.sql('CREATE TABLE ...')",
                )
            )
        return arguments

    def toString(self) -> str:
        """For debugging in the JVM."""
        return "Alluvium's guard"

    class Java:
        """What py4j looks for."""

        implements: ClassVar[list[str]] = ["java.util.function.Function"]


#: One part of a name as Spark prints it: in backticks, where it is not of letters, digits and `_`.
_PART = r"(?:\w+|`(?:[^`]|``)*`)"
_PRINTED = rf"{_PART}(?:\.{_PART})*"


#: All arguments printed, where only a name is asked for: alone, or from 4.2 on with a context that tells of no other
#: point in time, and options.
_NAME_ALONE = re.compile(rf"\[({_PRINTED})(?:, TableContext\{{timeTravel=null, .*)?\]", re.DOTALL)


def _asked(arguments: JavaObject, text: str) -> AskedTable:
    """The arguments of whichever `loadTable` was called, and what they print: it mostly says all, in one call."""
    alone = _NAME_ALONE.fullmatch(text)
    if alone is not None:
        *namespace, name = (_unquoted(part) for part in re.findall(_PART, alone[1]))
        return AskedTable(tuple(namespace), name)
    identifier, rest = arguments[0], list(arguments)[1:]
    namespace, name = [str(part) for part in identifier.namespace()], str(identifier.name())
    if len(rest) == 2:  # from 4.2 on: a context, and options
        travel = rest[0].timeTravel()
        if not travel.isPresent():
            return AskedTable(tuple(namespace), name)
        point = travel.get()
        if str(point.getClass().getSimpleName()) == "AsOfVersion":
            return AskedTable(tuple(namespace), name, version=str(point.version()))
        return AskedTable(tuple(namespace), name, timestamp_us=int(point.micros()))
    if rest and isinstance(rest[0], str):
        return AskedTable(tuple(namespace), name, version=rest[0])
    if rest and isinstance(rest[0], int):
        return AskedTable(tuple(namespace), name, timestamp_us=rest[0])
    # Or a set of privileges: rows are to be written.
    return AskedTable(tuple(namespace), name)


def _unquoted(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def put_in_front(spark: SparkSession, answer: Answer, providers: tuple[str, ...], told: Told) -> None:
    """Puts a proxy in front of a classic session's catalog; where there is one of ours, it stays.

    Args:
        spark: The session.
        answer: Asked for each table of these providers, and for each that the catalog does not know.
        providers: Names of formats.
        told: What scripts know errors of an answer by.
    """
    manager = spark._jsparkSession.sessionState().catalogManager()
    java = java_of(spark)
    names_class = spark.conf.get(_IMPLEMENTATION, "builtin") != "builtin"
    inner = _wrapped(java, manager, names_class)
    if _is_ours(java, inner):
        return
    failures.install()
    proxy = _proxy(java, inner, _Loader(java, answer, told), providers)
    if names_class:
        session_field(manager, "catalogs").get(manager).put(_SESSION_CATALOG, proxy)
    else:
        session_field(manager, "defaultSessionCatalog").set(manager, proxy)


def take_away(spark: SparkSession) -> None:
    """Undoes `put_in_front`; where there is no proxy, nothing is done."""
    manager = spark._jsparkSession.sessionState().catalogManager()
    java = java_of(spark)
    field = session_field(manager, "defaultSessionCatalog")
    standing = field.get(manager)
    if _is_ours(java, standing):
        field.set(manager, standing.get())
    catalogs = session_field(manager, "catalogs").get(manager)
    put = catalogs.get(_SESSION_CATALOG)
    if put.isDefined() and _is_ours(java, put.get()):
        catalogs.remove(_SESSION_CATALOG)


def stands_in_front(spark: SparkSession) -> bool:
    """Whether a proxy of ours answers for a classic session."""
    manager = spark._jsparkSession.sessionState().catalogManager()
    java = java_of(spark)
    put = session_field(manager, "catalogs").get(manager).get(_SESSION_CATALOG)
    standing = put.get() if put.isDefined() else session_field(manager, "defaultSessionCatalog").get(manager)
    return _is_ours(java, standing)


def _wrapped(java: Java, manager: JavaObject, names_class: bool) -> JavaObject:
    """The catalog that answers now: the one that the setting names, or the session's own where its class is missing,
    as that of a JAR is which has been left out.
    """
    own = session_field(manager, "defaultSessionCatalog").get(manager)
    if not names_class:
        return own
    put = session_field(manager, "catalogs").get(manager).get(_SESSION_CATALOG)
    if put.isDefined():
        return put.get()
    try:
        return manager.v2SessionCatalog()
    except (PySparkException, Py4JJavaError):
        return own


def session_field(manager: JavaObject, name: str) -> JavaObject:
    """A private field: of the class itself, or from 4.2 on of the one that implements it."""
    owner = manager.getClass()
    while True:
        for field in owner.getDeclaredFields():
            if str(field.getName()) == name:
                field.setAccessible(True)
                return field
        owner = owner.getSuperclass()


def _is_ours(java: Java, catalog: JavaObject) -> bool:
    kind = catalog.getClass()
    is_proxy = bool(java.jvm.java.lang.reflect.Proxy.isProxyClass(kind))
    return is_proxy and any(str(i.getName()) == _MARK for i in kind.getInterfaces())


def _proxy(java: Java, inner: JavaObject, loader: _Loader, providers: tuple[str, ...]) -> JavaObject:
    """An object of all the interfaces that the wrapped catalog has."""
    composer = Composer(java)
    handler = composer.interface(
        "java.lang.reflect.InvocationHandler", _invocations(composer, inner, loader, providers)
    )
    utils = java.jvm.org.apache.spark.util.Utils
    interfaces = [*_interfaces(inner.getClass()), composer.cls(_MARK)]
    return java.jvm.java.lang.reflect.Proxy.newProxyInstance(
        utils.getContextOrSparkClassLoader(), classes(java, interfaces), handler
    )


def _interfaces(kind: JavaObject | None) -> list[JavaObject]:
    found: dict[str, JavaObject] = {}
    while kind is not None:
        found.update({str(i.getName()): i for i in kind.getInterfaces()})
        kind = kind.getSuperclass()
    return list(found.values())


def _invocations(c: Composer, inner: JavaObject, loader: _Loader, providers: tuple[str, ...]) -> Handle:
    """`(proxy, method, arguments) -> answer`, which is the wrapped catalog's but for `loadTable` and the mark."""
    call = c.bind(c.virtual(_METHOD, "invoke", _OBJECT, _OBJECT, _OBJECTS), 1, inner)
    cause = c.virtual(_INVOCATION, "getTargetException", _THROWABLE)
    forward = c.ignore(c.catch(call, _INVOCATION, c.then(cause, c.throw(_OBJECT, _THROWABLE))), 0, _OBJECT)
    as_value = c.then(cause, c.identity.asType(c.type(_OBJECT, _THROWABLE)))
    attempt = c.ignore(c.catch(call, _INVOCATION, as_value), 0, _OBJECT)
    # `(found, proxy, method, arguments)`: found is a table, or the error that there is none.
    asked = c.ignore(_ask(c, loader), 1, _OBJECT, _METHOD)
    kept = c.ignore(c.identity, 1, _OBJECT, _METHOD, _OBJECTS)
    load = c.fold(c.choose(_concerns_us(c, providers), asked, kept), attempt)
    given = c.ignore(c.bind(c.identity, 0, inner), 0, _OBJECT, _METHOD, _OBJECTS)
    create = c.fold(c.ignore(forward, 0, _OBJECT), c.ignore(_checked(c, providers), 0, _OBJECT, _METHOD))
    others = c.choose(_is_called(c, "get"), given, c.choose(_is_called(c, "createTable"), create, forward))
    return c.choose(_is_called(c, "loadTable"), load, others)


def _checked(c: Composer, providers: tuple[str, ...]) -> Handle:
    """`arguments -> something`, thrown where a table of a format of ours is about to be made."""
    held = c.java.array_list()
    held.add(_Guard(c.java, providers))
    apply = c.virtual("java.util.function.Function", "apply", _OBJECT, _OBJECT)
    return c.bind(apply, 0, held.get(0)).asType(c.type(_OBJECT, _OBJECTS))


def _ask(c: Composer, loader: _Loader) -> Handle:
    """`(found, arguments) -> what the loader says`, thrown where it is an error."""
    held = c.java.array_list()
    held.add(loader)
    apply = c.virtual("java.util.function.BiFunction", "apply", _OBJECT, _OBJECT, _OBJECT)
    answer = c.bind(apply, 0, held.get(0)).asType(c.type(_OBJECT, _OBJECT, _OBJECTS))
    throw = c.throw(_OBJECT, _THROWABLE).asType(c.type(_OBJECT, _OBJECT))
    return c.then(answer, c.choose(c.is_instance(_THROWABLE), throw, c.identity))


def _concerns_us(c: Composer, providers: tuple[str, ...]) -> Handle:
    """`found -> whether it is an error, or a table of one of the providers`"""
    properties = c.virtual(_TABLE, "properties", "java.util.Map")
    get = c.bind(c.virtual("java.util.Map", "get", _OBJECT, _OBJECT), 1, "provider")
    provider = c.then(properties, get).asType(c.type("java.lang.String", _OBJECT))
    equals = c.virtual("java.lang.String", "equalsIgnoreCase", "boolean", "java.lang.String")
    tests = [c.then(provider, c.bind(equals, 0, name)) for name in providers]
    of_provider = functools.reduce(c.either, tests)
    return c.either(c.is_instance(_THROWABLE), c.both(c.is_instance(_TABLE), of_provider))


def _is_called(c: Composer, name: str) -> Handle:
    """`(proxy, method) -> whether the method has that name`"""
    equals = c.bind(c.virtual("java.lang.String", "equals", "boolean", _OBJECT), 0, name)
    get_name = c.virtual(_METHOD, "getName", "java.lang.String").asType(c.type(_OBJECT, _METHOD))
    return c.ignore(c.then(get_name, equals), 0, _OBJECT)
