"""The gate for SQL that a table carries: conditions, generation expressions, defaults.

Whoever can write a table's log can put any text there, and an engine will run it. So the text is taken apart into
tokens here, and refused unless it can only compute a value from the row: the functions it calls are known and pure,
each bare word is a column or a known word of the language, and nothing in it can start a query, name a catalog's
function, or end the expression and begin another. It is then written anew out of these tokens, so that an engine
reads what was looked at here. What it means is the engine's business.

Where an engine shows what it understood, that is looked at, too: the expression itself (`spark.values.table_sql`), or
what a server prints of it (`spark.values.server_wall`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from alluvium.errors import InvalidRequest
from alluvium.expr.sql.row_functions import CONSTRUCTS, NILADIC, QUERY_WORDS, TYPED, WORDS
from alluvium.expr.sql.row_growth import oversized_call
from alluvium.expr.sql.sql_tokens import SUBSTITUTION, Token, UnreadableText, quote_name, read_tokens
from alluvium.schema.types import DataType, Struct

# Bounds on untrusted text: Spark's parser recurses.
MAX_CHARACTERS = 50_000
MAX_DEPTH = 100
_MAX_LAMBDAS = 100

_CLOSES = {"(": ")", "[": "]"}
#: In whose parentheses `from` stands before an operand.
_WITH_FROM = frozenset({"extract", "trim", "substring", "substr", "overlay"})


@dataclass(frozen=True, slots=True)
class RowExpression:
    """Text that passed the gate.

    Attributes:
        sql: The text as it was.
        columns: Paths of the columns that it names, in the schema's spelling, in the order of the text.
        canonical: The same expression, written so that it can be read in one way only.
    """

    sql: str
    columns: tuple[tuple[str, ...], ...]
    canonical: str

    @property
    def roots(self) -> frozenset[str]:
        """Names of the top-level columns that it needs."""
        return frozenset(path[0] for path in self.columns)


@dataclass(frozen=True, slots=True)
class _Lambda:
    """What a lambda function names its arguments, and the range of tokens in which they mean something."""

    names: frozenset[str]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Chain:
    """A dotted name: its parts, and the range of its tokens."""

    names: tuple[str, ...]
    start: int
    end: int


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
    if SUBSTITUTION in text:
        raise _refused(f"it has {SUBSTITUTION}, in whose place Spark puts settings and the environment", text)
    try:
        tokens = tuple(read_tokens(text))
    except UnreadableText as error:
        raise _refused(str(error), text) from None
    if not tokens:
        raise _refused("it is empty", text)
    return _Gate(text, tokens, schema, functions).passed()


def _refused(problem: str, text: str) -> InvalidRequest:
    shown = text if len(text) <= 200 else text[:200] + "..."
    return InvalidRequest(
        f"not an expression over a row: {problem}: {shown}",
        code="invalid-expression",
        hint="columns, constants, operators and known functions that depend on nothing but the row are allowed",
    )


class _Gate:
    def __init__(self, text: str, tokens: tuple[Token, ...], schema: Struct, functions: frozenset[str]) -> None:
        self._text = text
        self._tokens = tokens
        self._schema = schema
        self._functions = functions
        #: The word before the parenthesis that each token stands in.
        self._within = _enclosing_words(tokens, text)
        self._lambdas = tuple(_lambdas(tokens, text))

    def passed(self) -> RowExpression:
        for before, token in pairwise(self._tokens):
            if before.kind == "text" and token.text in ("(", "."):
                raise self._refused("it uses a text as a name")
        if (problem := oversized_call(self._tokens)) is not None:
            raise self._refused(problem)
        columns: dict[tuple[str, ...], None] = {}
        written = [token.canonical for token in self._tokens]
        for chain in _chains(self._tokens):
            path = self._column(chain)
            if path is not None:
                columns[path] = None
            if not self._stays_bare(chain):
                for position in range(chain.start, chain.end, 2):
                    written[position] = quote_name(self._tokens[position].name)
        return RowExpression(self._text, tuple(columns), " ".join(written))

    def _refused(self, problem: str) -> InvalidRequest:
        return _refused(problem, self._text)

    def _text_at(self, position: int) -> str:
        return self._tokens[position].text if 0 <= position < len(self._tokens) else ""

    def _word_at(self, position: int) -> str:
        return self._tokens[position].folded if 0 <= position < len(self._tokens) else ""

    def _column(self, chain: _Chain) -> tuple[str, ...] | None:
        """The column that a chain names, if it names one; raises where it may mean what it must not."""
        name, word = chain.names[0], self._word_at(chain.start)
        if self._text_at(chain.end) == "(":
            self._ensure_callable(chain)
            return None
        if self._is_field(chain) or self._is_argument(chain):
            return None
        path = _resolve(chain.names, self._schema)
        if path is not None:
            follower = self._tokens[chain.end] if chain.end < len(self._tokens) else None
            # A column may be called `table`, but `table t` and `values (1)` are queries.
            if word in QUERY_WORDS and follower is not None and follower.kind != "symbol":
                raise self._refused(f"it holds a query or a window ({name})")
            return path
        if word in QUERY_WORDS:
            raise self._refused(f"it holds a query or a window ({name})")
        if word in NILADIC and word not in self._functions:
            raise self._refused(f"it calls {name}, whose value is not the row's own")
        if len(chain.names) > 1 or not (word in NILADIC or self._is_known(word, chain)):
            raise self._refused(f"it names {'.'.join(chain.names)}, which is not a column")
        return None

    def _is_field(self, chain: _Chain) -> bool:
        """Whether a name is one of a field of the value before it: `f(x).name`, or of a variant: `v:name`."""
        before = self._text_at(chain.start - 1)
        if before != ":":
            return before == "."
        is_bare = all(name.isascii() and name.lower() not in QUERY_WORDS for name in chain.names)
        value = self._tokens[chain.start - 2] if chain.start > 1 else None
        if value is None or not (value.is_name or value.text in (")", "]")) or not is_bare:
            raise self._refused(f"it names {chain.names[0]}, which is not a column")
        return True

    def _is_argument(self, chain: _Chain) -> bool:
        name = chain.names[0].lower()
        return any(name in f.names and f.start <= chain.start < f.end for f in self._lambdas)

    def _is_known(self, word: str, chain: _Chain) -> bool:
        """Whether a word is one of the language, where it stands."""
        before = self._word_at(chain.start - 1)
        if word == "from":
            inside = self._within[chain.start] in _WITH_FROM and self._text_at(chain.start - 1) not in ("(", ",")
            return inside or before == "distinct"
        if word in TYPED and chain.end < len(self._tokens) and self._tokens[chain.end].kind == "text":
            return True
        # extract(WORD from ...), f(WORD => ...), struct(... as WORD), ... collate WORD
        is_part = self._text_at(chain.start - 1) == "(" and self._word_at(chain.start - 2) == "extract"
        is_label = self._text_at(chain.end) == "=>" or before in ("as", "collate")
        return word in WORDS or ((is_part or is_label) and word.isascii())

    def _stays_bare(self, chain: _Chain) -> bool:
        if self._text_at(chain.end) == "(":
            return True
        word = self._word_at(chain.start)
        if self._text_at(chain.start - 1) == ":":
            return word.isascii()
        if self._text_at(chain.start - 1) == "." or len(chain.names) > 1 or not word or self._is_argument(chain):
            return False
        # As a column `date` may also be the type.
        if word in WORDS or word in TYPED or word == "from":
            return True
        is_label = self._text_at(chain.end) == "=>" or self._word_at(chain.start - 1) == "as"
        return not is_label and _resolve(chain.names, self._schema) is None

    def _ensure_callable(self, chain: _Chain) -> None:
        tokens = self._tokens[chain.start : chain.end]
        name = "".join(token.text for token in tokens)
        word = name.lower()
        # A name with dots, or in backticks, may be a function of a catalog.
        known = name.isascii() and (word in self._functions or word in CONSTRUCTS)
        is_method = self._text_at(chain.start - 1) in (".", ":")
        if len(tokens) > 1 or tokens[0].kind != "word" or not known or is_method:
            raise self._refused(f"it calls {name}(), which is not known to depend on nothing but its arguments")
        if word == "from" and not self._is_known(word, chain):
            raise self._refused("it holds a query or a window (from)")


def _enclosing_words(tokens: Sequence[Token], text: str) -> list[str]:
    """For each token the word before the innermost bracket around it; raises where brackets do not match."""
    pending: list[tuple[str, str]] = []
    found: list[str] = []
    for position, token in enumerate(tokens):
        found.append(pending[-1][1] if pending else "")
        if token.kind != "symbol":
            continue
        if token.text in _CLOSES:
            pending.append((_CLOSES[token.text], tokens[position - 1].folded if position else ""))
            if len(pending) > MAX_DEPTH:
                raise _refused("it is nested too deeply", text)
        elif token.text in (")", "]") and (not pending or pending.pop()[0] != token.text):
            raise _refused("its brackets do not match", text)
        elif token.text == "," and not pending:
            raise _refused("it is more than one expression", text)
    if pending:
        raise _refused("its brackets do not match", text)
    return found


def _lambdas(tokens: Sequence[Token], text: str) -> Iterator[_Lambda]:
    arrows = [position for position, token in enumerate(tokens) if token.text == "->"]
    if len(arrows) > _MAX_LAMBDAS:
        raise _refused(f"it has {len(arrows)} lambda functions", text)
    for arrow in arrows:
        start = arrow - 1
        if start >= 0 and tokens[start].text == ")":
            while start > 0 and tokens[start].text != "(":
                start -= 1
        names = frozenset(token.name.lower() for token in tokens[max(start, 0) : arrow] if token.is_name)
        if QUERY_WORDS & names:
            raise _refused("a lambda function names an argument like a query", text)
        yield _Lambda(names, max(start, 0), _end_of_argument(tokens, arrow))


def _end_of_argument(tokens: Sequence[Token], start: int) -> int:
    depth = 0
    for position in range(start, len(tokens)):
        symbol = tokens[position].text
        if symbol in _CLOSES:
            depth += 1
        elif symbol in (")", "]"):
            depth -= 1
        if depth < 0 or (depth == 0 and symbol == ","):
            return position
    return len(tokens)


def _chains(tokens: Sequence[Token]) -> Iterator[_Chain]:
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
        yield _Chain(tuple(names), start, position)


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
