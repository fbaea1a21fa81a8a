"""Errors leave the doors of Delta's tables as what delta-spark raises in their place, and as ours still."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pyspark import errors as of_spark
from pyspark.errors import PySparkException

from alluvium.api.counterparts import exceptions as of_delta
from alluvium.api.counterparts.conditions import Counterpart, find_counterpart
from alluvium.errors import AlluviumError

T = TypeVar("T")
#: Classes, by ours and the name of theirs; made when the first such error is raised.
_BOTH: dict[tuple[type[AlluviumError], str], type[AlluviumError]] = {}


class _Counterparted(PySparkException):
    """What an error has more that delta-spark has, too: PySpark's getters."""

    _plain: type[AlluviumError]
    _counterpart: Counterpart

    def getSqlState(self) -> str | None:
        """The SQL state of the condition, as delta-spark has it."""
        return self._counterpart.state

    def getMessage(self) -> str:
        """The text, with the condition before it."""
        text = self._plain.__str__(self)  # type: ignore[arg-type]
        return text if self._counterpart.condition is None else f"[{self._counterpart.condition}] {text}"

    def __str__(self) -> str:
        return self.getMessage()

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return _restored, (self._plain, self._counterpart, self.args, self.__dict__)


@contextmanager
def counterparts(door: str, table_format: str = "delta") -> Iterator[None]:
    """What of ours is raised within, and delta-spark has, leaves as both.

    Args:
        door: What was called, as `conditions` names it: a method of DeltaTable, `load`, `save` ...
        table_format: Errors of other formats stay ours.
    """
    try:
        yield
    except AlluviumError as error:
        if table_format.lower() != "delta" or isinstance(error, (_Counterparted, TypeError, ValueError)):
            # Also what delta-spark's Python says of wrong arguments: it has no condition.
            raise
        found = find_counterpart(error, door) or _of_spark(error)
        if found is None:
            raise
        raise as_counterpart(error, found).with_traceback(error.__traceback__) from error.__cause__


def _of_spark(error: AlluviumError) -> Counterpart | None:
    """What Spark itself said, where an error of ours only tells it on: delta-spark leaves that as it is."""
    # `from None` hides what was being handled, which is Spark's; without it that may be anything of the caller's.
    told = error.__cause__ or (error.__context__ if error.__suppress_context__ else None)
    if not isinstance(told, PySparkException) or isinstance(told, AlluviumError):
        return None
    kinds = [c.__name__ for c in type(told).__mro__ if c.__module__ == PySparkException.__module__]
    condition = told.getCondition()
    return None if condition is None else Counterpart(condition, told.getSqlState(), kinds[0])


def condition_of(error: Exception, door: str) -> tuple[str, str] | None:
    """The condition and the SQL state of what delta-spark raises in the place of an error; None: there are not both."""
    found = find_counterpart(error, door) or _of_spark(error) if isinstance(error, AlluviumError) else None
    return None if found is None or found.condition is None or found.state is None else (found.condition, found.state)


def as_counterpart(error: AlluviumError, counterpart: Counterpart) -> AlluviumError:
    """The same error, which is an instance of delta-spark's class, too."""
    return _restored(type(error), counterpart, error.args, dict(error.__dict__))


def raises_counterparts(door: str | None = None) -> Callable[[type[T]], type[T]]:
    """Of a class: its public methods are doors.

    Args:
        door: What they are called for `conditions`; None: each by its own name.
    """

    def decorate(owner: type[T]) -> type[T]:
        for name, member in list(vars(owner).items()):
            if name.startswith("_"):
                continue
            if isinstance(member, classmethod):
                setattr(owner, name, classmethod(_opened(member.__func__, door or name)))
            elif callable(member):
                setattr(owner, name, _opened(member, door or name))
        return owner

    return decorate


def _opened(function: Callable[..., Any], door: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: object, **kwargs: object) -> Any:
        with counterparts(door):
            return function(*args, **kwargs)

    return wrapper


def _restored(
    plain: type[AlluviumError], counterpart: Counterpart, args: tuple[object, ...], state: dict[str, object]
) -> AlluviumError:
    made: Any = _both(plain, counterpart.kind)
    error: Any = made.__new__(made, *args)
    error.__dict__.update(state, _plain=plain, _counterpart=counterpart)
    # PySpark's own attributes, which differ from version to version; an error that is PySpark's already has them empty.
    PySparkException.__init__(error, str(args[0]), counterpart.condition, counterpart.parameters_of(state))
    error.args = args
    found: AlluviumError = error
    return found


def _both(plain: type[AlluviumError], kind: str) -> type[AlluviumError]:
    """A class that is ours and delta-spark's; it goes by our name."""
    known = _BOTH.get((plain, kind))
    if known is None:
        theirs: type[Exception] = getattr(of_delta, kind, None) or getattr(of_spark, kind)
        bases = (_Counterparted, plain) if issubclass(plain, theirs) else (_Counterparted, plain, theirs)
        known = type(plain.__name__, bases, {"__module__": plain.__module__, "__doc__": plain.__doc__})
        _BOTH[(plain, kind)] = known
    return known
