"""The error of a text that is no statement: ours, in the form of Spark's."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import ParseException

from alluvium.errors import InvalidRequest

#: Of a long line this much is shown on each side of the place.
_SHOWN_CHARACTERS = 500
_SHOWN_LINES = 50


class SqlSyntaxError(InvalidRequest, ParseException):
    """The text is no statement; a ParseException, too, as in Spark.

    Attributes:
        statement: The whole text.
        line: The line of the place, from 1.
        position: The character of the line, from 0, as Spark counts.
        expected: What could stand there instead.
    """

    default_code = "sql-syntax"

    def __init__(
        self,
        message: str,
        *,
        statement: str = "",
        line: int = 1,
        position: int = 0,
        expected: Sequence[str] = (),
        **where: object,
    ) -> None:
        super().__init__(message, **where)  # type: ignore[arg-type]
        self.statement = statement
        self.line = line
        self.position = position
        self.expected = tuple(expected)
        # What PySpark's own methods answer from: getCondition, getSqlState, getMessageParameters.
        self._errorClass = "PARSE_SYNTAX_ERROR"
        self._messageParameters = {"error": self.message.splitlines()[0], "hint": str(self.hint or "")}

    def getSqlState(self) -> str:
        """The SQLSTATE of a syntax error, 42601."""
        return "42601"

    def getMessage(self) -> str:
        """The whole text of the error, as Spark's `getMessage`."""
        return self.message


def syntax_error(
    statement: str,
    at: int,
    near: str,
    problem: str,
    *,
    expected: Sequence[str] = (),
    hint: str | None = None,
) -> SqlSyntaxError:
    """An error that shows the statement with its place marked.

    Args:
        statement: The whole text.
        at: The character where it ends to make sense.
        near: The text there; empty at the end of the statement.
        problem: What is wrong, or was expected.
        expected: The words that could stand there.
        hint: How to mend it.
    """
    line, position = _line_and_position(statement, at)
    place = f"'{near[:80]}'" if near else "end of input"
    message = (
        f"[PARSE_SYNTAX_ERROR] Syntax error at or near {place}: {problem}. SQLSTATE: 42601 "
        f"(line {line}, pos {position})\n\n== SQL ==\n{_marked(statement, line, position)}"
    )
    return SqlSyntaxError(message, statement=statement, line=line, position=position, expected=expected, hint=hint)


def _line_and_position(text: str, at: int) -> tuple[int, int]:
    """Lines end with a line feed alone, as ANTLR counts them."""
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1)


def _marked(text: str, line: int, position: int) -> str:
    """The text with a mark under the place. Of a long text only what lies around it."""
    lines = text.split("\n")
    above, at_fault, below = lines[: line - 1], lines[line - 1], lines[line:]
    cut = max(0, position - _SHOWN_CHARACTERS)
    shown = at_fault[cut : position + _SHOWN_CHARACTERS]
    prefix = "..." if cut else ""
    mark = "-" * (position - cut + len(prefix)) + "^^^"
    return "\n".join([*above[-_SHOWN_LINES:], prefix + shown, mark, *below[:_SHOWN_LINES]])
