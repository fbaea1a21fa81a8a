"""Objects of Python that are compared inside the JVM."""

from typing import ClassVar

import pytest
from py4j.protocol import Py4JJavaError

from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.jvm.identity import identified

pytestmark = pytest.mark.spark
FUNCTION = "java.util.function.Function"


class Counting:
    """A function that notes what it was called with."""

    def __init__(self):
        self.called = []

    def apply(self, value):
        self.called.append(value)
        return value + 1

    class Java:
        implements: ClassVar[list[str]] = [FUNCTION]


class Failing(Counting):
    def apply(self, value):
        raise ValueError("no such value")


def test_equal_by_text_without_python(spark):
    java = java_of(spark)
    inner = Counting()
    one = identified(java, inner, FUNCTION, "a table", 7)
    other = identified(java, Counting(), FUNCTION, "a table", 7)
    third = identified(java, Counting(), FUNCTION, "another", 7)
    # Neither class has these methods: were they asked for, the calls would fail.
    assert one.equals(other) and other.equals(one) and not one.equals(third)
    assert not one.equals(None)
    assert (one.hashCode(), one.toString()) == (7, "a table")
    assert inner.called == []


def test_all_else_reaches_python(spark):
    java = java_of(spark)
    inner = Counting()
    assert identified(java, inner, FUNCTION, "a table", 7).apply(41) == 42
    assert inner.called == [41]
    with pytest.raises(Py4JJavaError, match="no such value"):
        identified(java, Failing(), FUNCTION, "a table", 7).apply(1)


def test_what_is_the_same_each_time_is_answered_without_python(spark):
    java = java_of(spark)
    inner = Counting()
    other = identified(java, Counting(), FUNCTION, "another", 7)
    # Of `compose`, which is the interface's own, the class knows nothing.
    function = identified(java, inner, FUNCTION, "a table", 7, {"compose": other, "apply": 5})
    assert function.compose(None).equals(other)
    assert function.apply(41) == 5
    assert inner.called == []
