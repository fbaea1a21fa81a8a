"""The gate for SQL that a table carries: conditions, generation expressions, defaults.

Whoever can write a table's log can put any text there, and an engine will run it. So the text is taken apart into
tokens here, and refused unless it can only compute a value from the row: the functions it calls are known and pure,
and nothing in it can start a query, name a catalog's function, or end the expression and begin another. What it means
is the engine's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from alluvium.errors import InvalidRequest
from alluvium.expr.row_functions import CONSTRUCTS, NILADIC, QUERY_WORDS
from alluvium.schema.types import DataType, Struct

# Bounds on untrusted text: Spark's parser recurses.
MAX_CHARACTERS = 50_000
MAX_DEPTH = 100

# `--` and `/*` begin comments, of which two lexers may have two opinions.
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<comment>--|/\*)
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<word>\w+)
      | (?P<symbol>->|=>|::|[-+*/%=<>!~&|^(),.\[\]:])""",
    re.VERBOSE | re.DOTALL,
)
_CLOSES = {"(": ")", "[": "]"}


@dataclass(frozen=True, slots=True)
class RowExpression:
    """Text that passed the gate.

    Attributes:
        sql: The text as it was.
        columns: Paths of the columns that it names, in the schema's spelling, in the order of the text.
    """

    sql: str
    columns: tuple[tuple[str, ...], ...]

    @property
    def roots(self) -> frozenset[str]:
        """Names of the top-level columns that it needs."""
        return frozenset(path[0] for path in self.columns)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str

    @property
    def name(self) -> str:
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text

    @property
    def is_name(self) -> bool:
        return self.kind == "quoted" or (self.kind == "word" and not self.text[0].isdigit())


def parse_row_expression(text: str, schema: Struct, functions: frozenset[str]) -> RowExpression:
    """Checks that a text is an expression over one row, and nothing else.

    Args:
        text: Spark SQL, from a table's log.
        schema: The columns that it may name.
        functions: Names of the functions that it may call, in lower case.

    Raises:
        InvalidRequest: `"invalid-expression"`: it is not; the message says why.
    """
    if len(text) > MAX_CHARACTERS:
        raise _refused(f"it has {len(text)} characters", text)
    tokens = list(_tokens(text))
    if not tokens:
        raise _refused("it is empty", text)
    _ensure_balanced(tokens, text)
    columns: dict[tuple[str, ...], None] = {}
    for names, start, end in _chains(tokens):
        follower = tokens[end].text if end < len(tokens) else ""
        path = _resolve(names, schema)
        if follower == "(":
            _ensure_callable(tokens[start:end], functions, text)
        elif path is not None:
            columns[path] = None
            _ensure_no_query(names[0], tokens, end, text)
        elif tokens[start].kind == "word" and names[0].casefold() in QUERY_WORDS:
            raise _refused(f"it holds a query or a window ({names[0]})", text)
        elif len(names) == 1 and names[0].casefold() in NILADIC and names[0].casefold() not in functions:
            raise _refused(f"it calls {names[0]}, whose value is not the row's own", text)
    return RowExpression(text, tuple(columns))


def _refused(problem: str, text: str) -> InvalidRequest:
    shown = text if len(text) <= 200 else text[:200] + "..."
    return InvalidRequest(
        f"not an expression over a row: {problem}: {shown}",
        code="invalid-expression",
        hint="columns, constants, operators and known functions that depend on nothing but the row are allowed",
    )


def _tokens(text: str) -> Iterator[_Token]:
    position, before = 0, _Token("space", "")
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise _refused(f"character {position + 1} cannot be read", text)
        token = _Token(match.lastgroup, match[0])
        if token.kind == "comment":
            raise _refused("it has a comment", text)
        # r'\' ends where '\' goes on.
        if token.kind == "text" and "\\" in token.text and before.text.casefold() == "r":
            raise _refused("it has a raw string", text)
        if token.kind != "space":
            yield token
        position, before = match.end(), token


def _ensure_balanced(tokens: Sequence[_Token], text: str) -> None:
    pending: list[str] = []
    for token in tokens:
        if token.kind != "symbol":
            continue
        if token.text in _CLOSES:
            pending.append(_CLOSES[token.text])
            if len(pending) > MAX_DEPTH:
                raise _refused("it is nested too deeply", text)
        elif token.text in (")", "]") and (not pending or pending.pop() != token.text):
            raise _refused("its brackets do not match", text)
        elif token.text == "," and not pending:
            raise _refused("it is more than one expression", text)
    if pending:
        raise _refused("its brackets do not match", text)


def _chains(tokens: Sequence[_Token]) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Each dotted name: its parts, and the range of its tokens."""
    position = 0
    while position < len(tokens):
        if not tokens[position].is_name:
            position += 1
            continue
        start, names = position, [tokens[position].name]
        position += 1
        while position + 1 < len(tokens) and tokens[position].text == "." and tokens[position + 1].is_name:
            names.append(tokens[position + 1].name)
            position += 2
        if start == 0 or tokens[start - 1].text != ".":
            yield tuple(names), start, position


def _ensure_callable(chain: Sequence[_Token], functions: frozenset[str], text: str) -> None:
    name = "".join(token.text for token in chain)
    folded = name.casefold()
    # A name with dots, or in backticks, may be a function of a catalog.
    known = name.isascii() and (folded in functions or folded in CONSTRUCTS)
    if len(chain) > 1 or chain[0].kind != "word" or not known:
        raise _refused(f"it calls {name}(), which is not known to depend on nothing but its arguments", text)


def _ensure_no_query(name: str, tokens: Sequence[_Token], end: int, text: str) -> None:
    """A column may be called `table`, but `table t` and `values (1)` are queries."""
    if name.casefold() in QUERY_WORDS and end < len(tokens) and tokens[end].kind != "symbol":
        raise _refused(f"it holds a query or a window ({name})", text)


def _resolve(names: tuple[str, ...], schema: Struct) -> tuple[str, ...] | None:
    """The longest leading part of the names that is a column, in the schema's spelling."""
    current: DataType = schema
    path: list[str] = []
    for name in names:
        found = current.find(name) if isinstance(current, Struct) else None
        if found is None:
            break
        path.append(found.name)
        current = found.type
    return tuple(path) or None
