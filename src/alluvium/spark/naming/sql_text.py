"""SQL text of ours, with names out of tables in it.

Spark's parser puts values in place of `${env:X}`, `${system:X}` and `${spark:X}` anywhere in a text, within quotes as
well (`spark.sql.variable.substitute`, on by default), so that a column of that name would be read as something else,
and tell the environment. Names that stand in a `Column` never meet the parser; those that stand in a text are written
here so that nothing is left to put a value in place of.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from alluvium.errors import UnsupportedFeature
from alluvium.expr.sql.sql_tokens import SUBSTITUTION, Token, UnreadableText, read_tokens
from alluvium.spark.naming.names import quote, quote_text


def sql_column(text: str) -> Column:
    """The column of an SQL text, in which `${...}` is a part of names and texts like any other.

    Args:
        text: An expression; ` as name` may follow it.

    Raises:
        UnsupportedFeature: `"unsupported-name"`: such a name stands where Spark takes nothing but the name itself, as
            in a type.
    """
    if SUBSTITUTION not in text:
        return sf.expr(text)
    try:
        tokens = list(read_tokens(text))
    except UnreadableText as error:
        raise _refused(text, str(error)) from None
    if len(tokens) > 2 and tokens[-2].folded == "as" and tokens[-1].is_name:
        return sf.expr(_written(tokens[:-2], text)).alias(tokens[-1].name)
    return sf.expr(_written(tokens, text))


def select_texts(frame: DataFrame, texts: Sequence[str]) -> DataFrame:
    """The columns of some SQL texts, as `sql_column` reads them."""
    if any(SUBSTITUTION in text for text in texts):
        return frame.select(*(sql_column(text) for text in texts))
    # Of each function that Python calls by itself, PySpark tells the JVM where that was, in a dozen requests.
    return frame.selectExpr(*texts)


def _refused(text: str, problem: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"a name with {SUBSTITUTION} cannot be used here ({problem}): {text[:200]}",
        code="unsupported-name",
        features=("names",),
        hint="rename the column",
    )


def _written(tokens: Sequence[Token], text: str) -> str:
    arguments = {before.name for before, arrow in pairwise(tokens) if arrow.text == "->"}
    found: list[str] = []
    position = 0
    while position < len(tokens):
        end = _end_of_name(tokens, position)
        chain = tokens[position:end]
        if not any(SUBSTITUTION in token.text for token in chain):
            found += [token.text for token in chain]
        elif tokens[position].kind == "text":
            found.append(_apart(tokens[position].canonical))
        elif not _may_be_written(tokens, position, end):
            raise _refused(text, "Spark takes nothing but the name itself")
        else:
            found.append(_path([token.name for token in chain[::2]], chain[0].name in arguments))
        position = end
    return " ".join(found)


def _end_of_name(tokens: Sequence[Token], start: int) -> int:
    """Behind the dotted name that begins at a token, or behind this token."""
    end = start + 1
    while tokens[start].is_name and end + 1 < len(tokens) and tokens[end].text == "." and tokens[end + 1].is_name:
        end += 2
    return end


def _may_be_written(tokens: Sequence[Token], start: int, end: int) -> bool:
    """Whether a chain is a column or a field of an argument, rather than a function, or part of a type or a value."""
    before = tokens[start - 1].text if start else ""
    after = tokens[end].text if end < len(tokens) else ""
    return tokens[start].is_name and before != "." and after not in (":", "(")


def _path(names: Sequence[str], is_value: bool) -> str:
    """A dotted name. `identifier()` finds a column, but no argument of a lambda: its fields are taken by text."""
    if not is_value:
        path = ".".join(quote(name) for name in names)
        return f"identifier({quote_text(path)})"
    return quote(names[0]) + "".join(f"[{quote_text(name)}]" for name in names[1:])


def _apart(text: str) -> str:
    """A text in two halves, which Spark joins when it has put values in their place."""
    return text.replace(SUBSTITUTION, "$' '{")
