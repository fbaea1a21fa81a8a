"""Objects of Python that the JVM compares without asking Python.

Spark's optimizer compares the relations of a query with each other again and again: for a union of ten tables `equals`
is called a hundred times, and each call of a Python object from the JVM is a round trip, with another one for what the
other object is. Here `equals`, `hashCode` and `toString` are answered inside of the JVM by a text and a number that are
given once, and so is whatever else gives the same each time; the rest goes to Python. How to debug it:
docs/method-handles.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway

from alluvium.spark.jvm.gateway import Java, JavaObject, Statics
from alluvium.spark.jvm.method_handles import Composer, Handle, classes

_OBJECT, _OBJECTS, _STRING = "java.lang.Object", "[Ljava.lang.Object;", "java.lang.String"
_METHOD, _THROWABLE, _MAP = "java.lang.reflect.Method", "java.lang.Throwable", "java.util.Map"
_INVOCATION, _HANDLER = "java.lang.reflect.InvocationTargetException", "java.lang.reflect.InvocationHandler"
#: What the handler of a proxy gets, with what is bound before.
_ARGUMENTS = (_OBJECT, _STRING, _OBJECT, _MAP, _OBJECT, _METHOD, _OBJECTS)
_INNER, _TEXT, _HASH, _SAME, _CALLED, _GIVEN = 0, 1, 2, 3, 5, 6


@dataclass(frozen=True, slots=True)
class _Template:
    """What is the same for all objects of a gateway.

    Attributes:
        handle: `(object, text, hash, same, proxy, method, arguments) -> answer`
        handler_class: The interface of a proxy's handler.
        as_interface: From a handle to an object of an interface.
        new_proxy: From a loader, interfaces and a handler to a proxy.
        loader: Spark's class loader.
        interfaces: Arrays of a single interface, by its name.
        no_answers: A map of nothing.
    """

    handle: Handle
    handler_class: JavaObject
    as_interface: JavaObject
    new_proxy: JavaObject
    loader: JavaObject
    interfaces: dict[str, JavaObject]
    no_answers: JavaObject


_known: WeakKeyDictionary[JavaGateway, _Template] = WeakKeyDictionary()


def identified(
    java: Java, inner: object, interface: str, text: str, number: int, answers: Mapping[str, object] | None = None
) -> JavaObject:
    """A proxy of an object of Python that is equal to whatever prints the same text.

    Args:
        java: The gateway's classes.
        inner: The object; its class says by `Java.implements` which interface it has.
        interface: That interface.
        text: What it prints.
        number: Its hash.
        answers: By the names of methods (ten at most) what they give whoever asks: Python does not hear of them.
    """
    found = _known.get(java.gateway)
    if found is None:
        found = _known[java.gateway] = _look_up(java)
    if interface not in found.interfaces:
        loaded = java.jvm.java.lang.Class.forName(interface, True, found.loader)
        found.interfaces[interface] = classes(java, [loaded])
    same = java.map_of(*itertools.chain.from_iterable(answers.items())) if answers else found.no_answers
    handle = found.handle.bindTo(inner).bindTo(text).bindTo(number).bindTo(same)
    return found.new_proxy(found.loader, found.interfaces[interface], found.as_interface(found.handler_class, handle))


def _look_up(java: Java) -> _Template:
    c = Composer(java)
    return _Template(
        _answers(c),
        c.cls(_HANDLER),
        Statics(java.jvm.java.lang.invoke.MethodHandleProxies).asInterfaceInstance,
        Statics(java.jvm.java.lang.reflect.Proxy).newProxyInstance,
        java.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader(),
        {},
        java.map_of(),
    )


def _answers(c: Composer) -> Handle:
    cause = c.virtual(_INVOCATION, "getTargetException", _THROWABLE)
    invoke = c.virtual(_METHOD, "invoke", _OBJECT, _OBJECT, _OBJECTS)
    forward = c.catch(invoke, _INVOCATION, c.then(cause, c.throw(_OBJECT, _THROWABLE)))
    chosen = c.pick(forward, _ARGUMENTS, _CALLED, _INNER, _GIVEN)
    name_of = c.virtual(_METHOD, "getName", _STRING).asType(c.type(_OBJECT, _METHOD))
    knows = c.filter(c.virtual(_MAP, "containsKey", "boolean", _OBJECT), 1, name_of)
    get = c.filter(c.virtual(_MAP, "get", _OBJECT, _OBJECT), 1, name_of)
    chosen = c.choose(c.pick(knows, _ARGUMENTS, _SAME, _CALLED), c.pick(get, _ARGUMENTS, _SAME, _CALLED), chosen)
    own = {
        "equals": c.pick(_prints_alike(c), _ARGUMENTS, _TEXT, _GIVEN),
        "hashCode": c.pick(c.identity, _ARGUMENTS, _HASH),
        "toString": c.pick(c.identity.asType(c.type(_OBJECT, _STRING)), _ARGUMENTS, _TEXT),
    }
    for name, answer in own.items():
        equals = c.bind(c.virtual(_STRING, "equals", "boolean", _OBJECT), 0, name)
        is_called = c.then(name_of, equals)
        chosen = c.choose(c.pick(is_called, _ARGUMENTS, _CALLED), answer, chosen)
    return chosen


def _prints_alike(c: Composer) -> Handle:
    """`(text, arguments) -> whether the first of the arguments prints the text`"""
    printed = c.then(c.element(_OBJECTS, 0), c.static(_STRING, "valueOf", _STRING, _OBJECT))
    equals = c.virtual(_STRING, "equals", "boolean", _OBJECT)
    return c.filter(equals, 1, printed.asType(c.type(_OBJECT, _OBJECTS))).asType(c.type(_OBJECT, _STRING, _OBJECTS))
