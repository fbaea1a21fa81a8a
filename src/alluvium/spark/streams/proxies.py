"""What proxies that Structured Streaming calls have in common, and the classes of Spark that they need."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway, JavaPackage

from alluvium.spark.jvm.callbacks import know_caller
from alluvium.spark.jvm.failures import CarriedError, remember
from alluvium.spark.jvm.gateway import Java, JavaObject

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

_STREAMING = "org.apache.spark.sql.execution.streaming"


class Proxy(Protocol):
    """An object that the JVM calls."""

    _java: Java


P = TypeVar("P", bound=Proxy)


def called(method: Callable[Concatenate[P, Arguments], Result]) -> Callable[..., Result]:
    """A method that Spark calls, from threads of its own; its errors reach whoever waits for the query."""

    @functools.wraps(method)
    def answer(self: P, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        know_caller(self._java)
        try:
            return method(self, *args, **kwargs)
        except (CarriedError, InterruptedError):
            raise
        except Exception as error:  # noqa: BLE001 - all of them must cross the JVM
            raise remember(error) from None

    return answer


@dataclass(frozen=True, slots=True)
class StreamClasses:
    """Classes of one gateway that only streams need, looked up once."""

    relation: JavaObject
    offset: JavaObject
    read_limit: JavaObject
    hash_map: JavaObject


_known: WeakKeyDictionary[JavaGateway, StreamClasses] = WeakKeyDictionary()


def classes_of(java: Java) -> StreamClasses:
    """The classes behind a gateway; Spark 4.1 has moved some of them."""
    found = _known.get(java.gateway)
    if found is None:
        found = _known[java.gateway] = StreamClasses(
            relation=_module(java, "StreamingExecutionRelation$"),
            offset=_module(java, "SerializedOffset$"),
            read_limit=java.jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit,
            hash_map=java.jvm.java.util.HashMap,
        )
    return found


def _module(java: Java, name: str) -> JavaObject:
    for package in (f"{_STREAMING}.runtime", _STREAMING):
        place: Any = java.jvm
        for part in (*package.split("."), name):
            place = getattr(place, part)
        if not isinstance(place, JavaPackage):
            return getattr(place, "MODULE$")
    raise AssertionError(f"this Spark has no {name}")
