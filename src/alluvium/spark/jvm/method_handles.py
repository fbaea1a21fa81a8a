"""Small programs that run inside the JVM: method handles, and how they are put together.

A method handle (`java.lang.invoke`) is a typed reference to a method. Handles can be plugged into each other, so that
a few round trips build a function that never leaves the JVM again. How to debug one: docs/method-handles.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

from alluvium.spark.jvm.gateway import Java, JavaObject

#: A `java.lang.invoke.MethodHandle`.
Handle: TypeAlias = JavaObject


def classes(java: Java, items: Sequence[JavaObject]) -> JavaObject:
    """A Java `Class[]`."""
    return _array(java, java.jvm.java.lang.Class, items)


def objects(java: Java, items: Sequence[JavaObject]) -> JavaObject:
    """A Java `Object[]`."""
    return _array(java, java.jvm.java.lang.Object, items)


def handle_array(java: Java, items: Sequence[Handle]) -> JavaObject:
    """A Java `MethodHandle[]`."""
    return _array(java, java.jvm.java.lang.invoke.MethodHandle, items)


def _array(java: Java, of: JavaObject, items: Sequence[JavaObject]) -> JavaObject:
    array = java.gateway.new_array(of, len(items))
    for index, item in enumerate(items):
        array[index] = item
    return array


class Composer:
    """Puts handles together. Classes are named as Java's `Class.forName` takes them."""

    def __init__(self, java: Java) -> None:
        self.java = java
        self._handles = java.jvm.java.lang.invoke.MethodHandles
        # Of py4j's own class, which called for it: methods that look at their caller need more than a public lookup.
        self._lookup = self._handles.lookup()
        self._for_name = java.jvm.java.lang.Class.forName
        self._known: dict[str, JavaObject] = {"boolean": java.jvm.java.lang.Boolean.TYPE}

    def cls(self, name: str) -> JavaObject:
        """A class by its name."""
        if name not in self._known:
            self._known[name] = self._for_name(name)
        return self._known[name]

    def type(self, result: str, *arguments: str) -> JavaObject:
        """The type of a handle."""
        method_type = self.java.jvm.java.lang.invoke.MethodType.methodType
        return method_type(self.cls(result), classes(self.java, [self.cls(a) for a in arguments]))

    def virtual(self, owner: str, method: str, result: str, *arguments: str) -> Handle:
        """A method of objects: `(owner, arguments...) -> result`."""
        return self._lookup.findVirtual(self.cls(owner), method, self.type(result, *arguments))

    def static(self, owner: str, method: str, result: str, *arguments: str) -> Handle:
        """A method of a class: `(arguments...) -> result`."""
        return self._lookup.findStatic(self.cls(owner), method, self.type(result, *arguments))

    def element(self, array: str, at: int) -> Handle:
        """`array -> array[at]`"""
        return self._handles.insertArguments(
            self._handles.arrayElementGetter(self.cls(array)), 1, objects(self.java, [at])
        )

    def pick(self, target: Handle, arguments: Sequence[str], *places: int) -> Handle:
        """A handle of these arguments, of which those at the places are the target's."""
        order = self.java.gateway.new_array(self.java.jvm.int, len(places))
        for index, place in enumerate(places):
            order[index] = place
        kind = self.type("java.lang.Object", *arguments).changeReturnType(target.type().returnType())
        return self._handles.permuteArguments(target, kind, order)

    def filter(self, target: Handle, at: int, first: Handle) -> Handle:
        """`(..., x, ...) -> target(..., first(x), ...)`, x at that place."""
        return self._handles.filterArguments(target, at, handle_array(self.java, [first]))

    def bind(self, target: Handle, at: int, *values: JavaObject) -> Handle:
        """The handle with the values in the place of its arguments from `at` on."""
        return self._handles.insertArguments(target, at, objects(self.java, values))

    def ignore(self, target: Handle, at: int, *arguments: str) -> Handle:
        """The handle with more arguments, which it does not look at."""
        return self._handles.dropArguments(target, at, classes(self.java, [self.cls(a) for a in arguments]))

    def then(self, target: Handle, after: Handle) -> Handle:
        """`x -> after(target(x))`"""
        return self._handles.filterReturnValue(target, after)

    def choose(self, test: Handle, yes: Handle, no: Handle) -> Handle:
        """`x -> test(x) ? yes(x) : no(x)`"""
        return self._handles.guardWithTest(test, yes, no)

    def fold(self, target: Handle, first: Handle) -> Handle:
        """`x -> target(first(x), x)`"""
        return self._handles.foldArguments(target, first)

    def catch(self, target: Handle, error: str, handler: Handle) -> Handle:
        """The handle; where it throws such an error, what the handler makes of that."""
        return self._handles.catchException(target, self.cls(error), handler)

    def throw(self, result: str, error: str) -> Handle:
        """`error -> throw error`"""
        return self._handles.throwException(self.cls(result), self.cls(error))

    def either(self, one: Handle, other: Handle) -> Handle:
        """`x -> one(x) || other(x)`"""
        return self.choose(one, self._constant(one, True), other)

    def both(self, one: Handle, other: Handle) -> Handle:
        """`x -> one(x) && other(x)`; the other is not asked where the first says no."""
        return self.choose(one, other, self._constant(one, False))

    def _constant(self, like: Handle, value: bool) -> Handle:
        """The same for any arguments of the other handle."""
        return self._handles.dropArguments(
            self._handles.constant(self.cls("boolean"), value), 0, like.type().parameterList()
        )

    def is_instance(self, name: str) -> Handle:
        """`Object -> whether it is one of that class`"""
        return self.bind(
            self.virtual("java.lang.Class", "isInstance", "boolean", "java.lang.Object"), 0, self.cls(name)
        )

    @cached_property
    def identity(self) -> Handle:
        """`Object -> itself`"""
        return self._handles.identity(self.cls("java.lang.Object"))

    def interface(self, name: str, method: Handle) -> JavaObject:
        """An object of an interface that has a single method."""
        return self.java.jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(self.cls(name), method)
