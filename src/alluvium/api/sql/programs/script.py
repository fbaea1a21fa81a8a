"""SQL scripts, `BEGIN ... END`: Spark runs them, and when the turn of a statement comes that may be about a table of
ours, it is carried out by us.

Spark resolves a statement when it is its turn, with the script's variables as they are then. In the place of each such
statement a node is put for which Spark, while it resolves it, asks for the plan that stands for a name: it asks Python.
That answers with Spark's own statement where it is about somebody else's table, and with a command that does nothing
where we have carried it out. What fails is thrown as an error of Spark's, so that the script's handlers see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.sql.binding import bound
from alluvium.api.sql.call import Call
from alluvium.errors import UnsupportedFeature
from alluvium.spark.jvm import failures
from alluvium.spark.jvm.callbacks import know_caller
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.jvm.thrown import thrown

_OURS = "alluvium"


#: Fields of a script's nodes that hold statements: one, several, or one that may be missing. Nodes are copied by their
#: fields, for their children are not all of them, and their `withNewChildren` loses handlers and confuses ELSE.
_ONE, _SEVERAL, _OPTIONAL = ("body",), ("collection", "handlers", "conditionalBodies"), ("elseBody",)


def run(call: Call) -> DataFrame | None:
    """Carries out a script; the answer is that of its last query.

    Raises:
        UnsupportedFeature: The script may be about tables of ours, and has parameters without names.
    """
    script = _Script(call)
    body = script.rebuilt(call.plan)
    if not script.steps:
        return None
    args = call.args or {}
    if not isinstance(args, Mapping):
        raise UnsupportedFeature(
            "a script takes no parameters by position",
            code="unsupported-statement",
            hint="give them names: spark.sql('begin ... :n ... end', {'n': 1})",
        )
    failures.install()
    java, session = call.java, call.spark._jsparkSession
    values = java.jvm.java.util.HashMap()
    for name, value in args.items():
        values.put(name, session.expression(sf.lit(value)._jc))
    run_script = java.jvm.org.apache.spark.sql.scripting.SqlScriptingExecution.executeSqlScript
    plan = run_script(session, body, java.python_utils.toScalaMap(values))
    return DataFrame(java.dataset.ofRows(session, plan), call.spark)


@dataclass
class _Script:
    """A script that is put together anew.

    Attributes:
        call: The whole statement.
        steps: Those of its statements that Python is asked for.
    """

    call: Call
    steps: list[_Step] = field(default_factory=list)

    def rebuilt(self, node: JavaObject) -> JavaObject:
        """A node of the script with our steps in it, at any depth."""
        if str(node.nodeName()) == "SingleStatement":
            return self._statement(node)
        names = str(node.productElementNames().mkString(",")).split(",")
        if not {*_ONE, *_SEVERAL, *_OPTIONAL} & {*names}:
            return node
        return node.copy(*(self._part(name, node.productElement(n)) for n, name in enumerate(names)))

    def _part(self, name: str, value: Any) -> Any:
        if name in _ONE:
            return self.rebuilt(value)
        if name in _SEVERAL:
            return self.call.java.seq([self.rebuilt(value.apply(n)) for n in range(value.size())])
        if name in _OPTIONAL and value.isDefined():
            return self.call.java.option.apply(self.rebuilt(value.get()))
        return value

    def _statement(self, node: JavaObject) -> JavaObject:
        plan, java = node.parsedPlan(), self.call.java
        assert self.call.front is not None, "the front makes the call"
        if not self.call.front.knows(plan):
            return node
        if isinstance(self.call.args, Mapping) and self.call.args:
            plan = bound(self.call.spark, plan, self.call.args, self.call.text)
        step = _Step(self.call, plan)
        self.steps.append(step)
        analysis = java.jvm.org.apache.spark.sql.catalyst.analysis
        name = self.call.spark._jsparkSession.expression(sf.lit(_OURS)._jc)
        # A new statement is told by the thread where it stands in the script.
        origin = java.jvm.org.apache.spark.sql.catalyst.trees.CurrentOrigin
        before = origin.get()
        origin.set(node.origin())
        try:
            return node.copy(analysis.PlanWithUnresolvedIdentifier(name, java.seq([]), step))
        finally:
            origin.set(before)


class _Step:
    """Called by Spark when a statement's turn comes."""

    def __init__(self, call: Call, plan: JavaObject) -> None:
        self._call = call
        self._plan = plan

    def apply(self, name: JavaObject, children: JavaObject) -> JavaObject:
        """Carries the statement out, or gives it to Spark."""
        java = self._call.java
        know_caller(java)
        assert self._call.front is not None, "the front makes the call"
        try:
            with counterparts("sql"):
                done = self._call.front.part(self._plan, self._call.text)
        except failures.CarriedError:
            raise
        except Exception as error:  # noqa: BLE001 - all of them must cross the JVM
            raise thrown(java, error) from None
        if done is None:
            return self._plan
        return java.jvm.org.apache.spark.sql.catalyst.plans.logical.NoopCommand(_OURS, java.seq([_OURS]))

    def toString(self) -> str:
        """For plans that are shown."""
        return "Alluvium's statement"

    def hashCode(self) -> int:
        """For plans that are compared."""
        return id(self._plan) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        """No two steps are the same."""
        return other is self

    class Java:
        """What py4j looks for."""

        implements: ClassVar[list[str]] = ["scala.Function2"]
