"""The JVM's threads that call Python: what py4j keeps for one is closed once it has ended.

py4j gives each thread of the JVM that calls back a connection of its own, which is a thread and an open file in this
process and an open file in the JVM, and keeps it for ever. Spark plans and collects in threads that it starts for one
query, so that a long session would run out of files.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import py4j.java_gateway
from py4j.java_gateway import JavaGateway

from alluvium.spark.jvm.gateway import Java, JavaObject


@dataclass(frozen=True, slots=True)
class _Caller:
    """A thread of the JVM that has called, and its connection; both live in the JVM."""

    thread: JavaObject
    connection: JavaObject


#: How many that live on each new one asks after, of the latest and of the oldest: those of a pool do, for a minute, and
#: to ask after all of them would cost a query more round trips the more have been before it.
_ASKED_AFTER = 2

_callers: WeakKeyDictionary[JavaGateway, deque[_Caller]] = WeakKeyDictionary()
#: py4j's own ends in the JVM.
_clients: WeakKeyDictionary[JavaGateway, JavaObject] = WeakKeyDictionary()
_changing = threading.Lock()
_here = threading.local()


def know_caller(java: Java) -> None:
    """Remembers which thread of the JVM this thread answers, and frees what is kept for those that have ended.

    To be called from within a callback; the second time in a thread it does nothing.
    """
    if getattr(_here, "is_known", False):
        return
    _here.is_known = True
    client = java.gateway._gateway_client
    # Without pinned threads (`PYSPARK_PIN_THREAD=false`) connections are not of threads, and py4j reuses them.
    own = client.get_thread_connection() if hasattr(client, "get_thread_connection") else None
    if own is None or own.initiated_from_client:
        return
    python = _clients.get(java.gateway)
    if python is None:
        entry = py4j.java_gateway.JavaObject("GATEWAY_SERVER", client)
        python = _clients[java.gateway] = entry.getCallbackClient()
    caller = _Caller(java.current_thread(), python.getPerThreadConnection())
    with _changing:
        known = _callers.setdefault(java.gateway, deque())
    # The oldest go behind those that have waited for longer, and come before what has just been met.
    oldest, latest = _living(python, known, known.popleft), _living(python, known, known.pop)
    with _changing:
        known.extend((*oldest, *reversed(latest), caller))


def _living(python: JavaObject, known: deque[_Caller], take: Callable[[], _Caller]) -> list[_Caller]:
    """The next few threads that live, taken out; what is kept for those before them, which have ended, is freed."""
    found: list[_Caller] = []
    while len(found) < _ASKED_AFTER:
        with _changing:
            if not known:
                break
            one = take()
        if one.thread.isAlive():
            found.append(one)
        else:
            python.connectionStopped(one.connection)
            one.connection.shutdown()
    return found
