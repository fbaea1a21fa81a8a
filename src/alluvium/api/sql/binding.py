"""Values of a statement's parameters, put into the plan that Spark's parser made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from alluvium.api.sql.call import Arguments
from alluvium.api.sql.text.lexer import scan_tokens
from alluvium.spark.jvm.gateway import Java, JavaObject, java_of
from alluvium.spark.sessions.session import capabilities

_SUBSTITUTES_SINCE = (4, 1)


def bound(spark: SparkSession, plan: JavaObject, args: Arguments, text: str) -> JavaObject:
    """The plan with its parameters' values, by Spark's own rule.

    Args:
        spark: The session.
        plan: As it was parsed.
        args: By name, or by position.
        text: What was parsed.
    """
    java = java_of(spark)
    analysis = java.jvm.org.apache.spark.sql.catalyst.analysis
    values = list(args.values()) if isinstance(args, Mapping) else list(args)
    literals = _constants(spark, [_literal(value) for value in values])
    pattern = java.jvm.org.apache.spark.sql.catalyst.trees.TreePattern.UNRESOLVED_WITH()
    if bool(plan.containsPattern(pattern)):
        # The rule waits until the queries behind WITH stand in the plan; the analyzer, which puts them there, is not
        # asked before it is known whose statement this is.
        return _within(java, plan, _known(java, args, literals, text), pattern)
    if isinstance(args, Mapping):
        query = analysis.NameParameterizedQuery(plan, java.seq(list(args)), java.seq(literals))
    else:
        query = analysis.PosParameterizedQuery(plan, java.seq(literals))
    rule = getattr(getattr(analysis, "BindParameters$"), "MODULE$")
    return rule.apply(query)


def parsed_with(spark: SparkSession, text: str, args: Arguments) -> JavaObject | None:
    """The plan of a statement with its parameters' values put in, as Spark parses it from 4.1 on: they may stand where
    the grammar wants literals. None: it does not parse, or Spark is older.

    Args:
        spark: The session.
        text: The statement.
        args: By name, or by position.
    """
    if capabilities(spark).version < _SUBSTITUTES_SINCE:
        return None
    java = java_of(spark)
    parsers = java.jvm.org.apache.spark.sql.catalyst.parser
    if isinstance(args, Mapping):
        known = java.jvm.java.util.HashMap()
        for name, literal in zip(args, _constants(spark, [_literal(v) for v in args.values()]), strict=True):
            known.put(name, literal)
        context = parsers.NamedParameterContext(java.python_utils.toScalaMap(known))
    else:
        context = parsers.PositionalParameterContext(java.seq(_constants(spark, [_literal(v) for v in args])))
    try:
        return spark._jsparkSession.sessionState().sqlParser().parsePlanWithParameters(text, context)
    except (PySparkException, Py4JJavaError):
        return None


def _known(java: Java, args: Arguments, literals: list[JavaObject], text: str) -> JavaObject:
    """A Scala map, hence a partial function, from parameters to values; one without a name goes by its place."""
    analysis = java.jvm.org.apache.spark.sql.catalyst.analysis
    known = java.jvm.java.util.HashMap()
    if isinstance(args, Mapping):
        parameters = [analysis.NamedParameter(name) for name in args]
    else:
        marks = [token.start for token in scan_tokens(text, 0) if token.text == "?"]
        parameters = [analysis.PosParameter(start) for start in marks]
    for parameter, literal in zip(parameters, literals, strict=False):
        known.put(parameter, literal)
    return java.python_utils.toScalaMap(known)


def _within(java: Java, node: JavaObject, known: JavaObject, pattern: JavaObject) -> JavaObject:
    """The node with values in its expressions, and in the queries behind WITH, which are none of its children."""
    if not bool(node.containsPattern(pattern)):
        return node.transformAllExpressionsWithSubqueries(known)
    if str(node.nodeName()) == "UnresolvedWith":
        relations = node.cteRelations()
        pairs = [_pair(java, relations.apply(n), known, pattern) for n in range(relations.size())]
        child = _within(java, node.child(), known, pattern)
        return node.copy(child, java.seq(pairs), node.allowRecursion())
    below = node.children()
    children = [_within(java, below.apply(n), known, pattern) for n in range(below.size())]
    return node.withNewChildren(java.seq(children)).transformExpressions(known)


def _pair(java: Java, pair: JavaObject, known: JavaObject, pattern: JavaObject) -> JavaObject:
    """A name and its query; from Spark 4.1 on how often it may call itself, too."""
    query = _within(java, pair._2(), known, pattern)
    more = [pair.productElement(n) for n in range(2, pair.productArity())]
    return pair.copy(pair._1(), query, *more)


def _literal(value: object) -> Column:
    """A value as a column; of a dict a map, which `lit` does not make."""
    if isinstance(value, Mapping):
        return sf.create_map(*(_literal(part) for entry in value.items() for part in entry))
    if isinstance(value, (list, tuple)) and any(isinstance(item, Mapping) for item in value):
        return sf.array(*map(_literal, value))
    return sf.lit(value)


def _constants(spark: SparkSession, values: Sequence[Column]) -> list[JavaObject]:
    """Values as Catalyst has them; what is more than a literal, as arrays and maps are, the rule wants resolved."""
    found = [spark._jsparkSession.expression(value._jc) for value in values]
    if all(str(expression.nodeName()) == "Literal" for expression in found):
        return found
    named = [value.alias(f"v{n}") for n, value in enumerate(values)]
    resolved = spark.range(1).select(*named)._jdf.queryExecution().analyzed().expressions()
    return [resolved.apply(n).child() for n in range(len(values))]
