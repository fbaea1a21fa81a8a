"""Which statements are ours, told from the first words of their text; a query costs a look at one word.

Whoever asks first takes a statement away from the other: in doubt it is Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from alluvium.api.sql.text.lexer import Token, TokenKind, scan_tokens, skip_blank
from alluvium.api.sql.text.syntax_error import SqlSyntaxError


class Kind(Enum):
    """Who reads a statement."""

    #: Spark alone: queries, and all that says nothing of tables of ours.
    QUERY = "query"
    #: Spark's parser, then a verb of ours, if the statement turns out to be about a table of ours.
    SPARK_PARSED = "parsed by Spark"
    #: The grammar of this folder.
    DELTA_ONLY = "known to Delta only"


@dataclass(frozen=True, slots=True)
class Head:
    """What the first words say.

    Attributes:
        kind: Who reads the statement.
        name: Of one that only Delta knows, its name in the grammar; else empty.
    """

    kind: Kind
    name: str = ""


_QUERY = Head(Kind.QUERY)
_SPARK_PARSED = Head(Kind.SPARK_PARSED)
_WORD = re.compile(r"[A-Za-z_]\w*")
_ROW_CHANGE = re.compile(r"\b(?:INSERT|MERGE|UPDATE|DELETE)\b", re.IGNORECASE)


def kind_of(text: str) -> Kind:
    """Who reads a statement; never raises, and for a query never reads further than it must."""
    return head_of(text).kind


def head_of(text: str) -> Head:
    """What the first words of a statement say; text that is none is left to Spark, which says so."""
    try:
        at = skip_blank(text, 0)
        found = _WORD.match(text, at)
        rule = None if found is None else _FIRST_WORDS.get(found.group().upper())
        if rule is None or isinstance(rule, Head):
            return rule or _QUERY
        return rule(_Words(text, at))
    except SqlSyntaxError:
        return _QUERY


class _Words:
    """The tokens of a head, read as they are asked for."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self._tokens = scan_tokens(text, at)
        self._read: list[Token] = []
        self.at = 0

    def peek(self, ahead: int = 0) -> Token:
        while len(self._read) <= self.at + ahead:
            if self._read and self._read[-1].kind is TokenKind.END:
                return self._read[-1]
            self._read.append(next(self._tokens))
        return self._read[self.at + ahead]

    def take(self, *words: str) -> bool:
        """Steps over these words, if they come next; `(`, `.` and `!` count as words."""
        for i, word in enumerate(words):
            token = self.peek(i)
            if token.word != word and (token.text != word or token.kind is not TokenKind.SYMBOL):
                return False
        self.at += len(words)
        return True

    def take_name(self) -> bool:
        """Steps over a name, or over `IDENTIFIER(...)`."""
        if self.take("IDENTIFIER", "("):
            while not self.take(")"):
                if self.peek().kind is TokenKind.END:
                    return False
                self.at += 1
            return True
        while self.peek().kind in (TokenKind.WORD, TokenKind.BACKQUOTED, TokenKind.DOUBLE_QUOTED):
            self.at += 1
            if not self.take("."):
                return True
        return False

    def rest(self) -> Iterator[Token]:
        while self.peek().kind is not TokenKind.END:
            yield self.peek()
            self.at += 1


# -- rules of first words ---------------------------------------------------------------------------------------------


def _with(words: _Words) -> Head:
    """`WITH a AS (...) MERGE`, `FROM t INSERT INTO`: a row change behind what begins as a query."""
    if _ROW_CHANGE.search(words.text) is None:
        return _QUERY
    depth, before = 0, ""
    for token in words.rest():
        if token.text in ("(", ")") and token.kind is TokenKind.SYMBOL:
            depth += 1 if token.text == "(" else -1
        elif depth == 0 and _begins_row_change(token.word, words.peek(1), before):
            return _SPARK_PARSED
        before = token.text
    return _QUERY


def _begins_row_change(word: str, after: Token, before: str) -> bool:
    return (
        (word == "INSERT" and after.word in ("INTO", "OVERWRITE"))
        # These stand behind the last of the queries in brackets, and nowhere else.
        or (word in ("MERGE", "DELETE", "UPDATE") and before == ")")
    )


def _explain(words: _Words) -> Head:
    """What is explained decides who reads it; Spark alone explains queries."""
    words.take("EXPLAIN")
    if words.peek().word in ("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST"):
        words.at += 1
    inner = words.peek()
    if inner.word == "EXPLAIN" or inner.kind is TokenKind.END:
        return _QUERY
    return _SPARK_PARSED if head_of(words.text[inner.start :]).kind is Kind.SPARK_PARSED else _QUERY


def _create(words: _Words) -> Head:
    """`CREATE TABLE`, of which a CLONE is ours, and temporary views of a format; what else is made is Spark's."""
    words.take("CREATE")
    words.take("OR", "REPLACE")
    words.take("GLOBAL")
    if words.take("TEMPORARY") or words.take("TEMP"):
        return _temporary(words)
    return _table_or_clone(words)


def _temporary(words: _Words) -> Head:
    """`VIEW v [(columns)] USING`, also called a table."""
    named = (words.take("VIEW") or words.take("TABLE")) and words.take_name()
    if not named:
        return _QUERY
    depth = 0
    for token in words.rest():
        if token.kind is TokenKind.SYMBOL and token.text in ("(", ")"):
            depth += 1 if token.text == "(" else -1
        elif depth == 0:
            return _SPARK_PARSED if token.word == "USING" else _QUERY
    return _QUERY


def _replace(words: _Words) -> Head:
    words.take("REPLACE")
    return _table_or_clone(words)


def _table_or_clone(words: _Words) -> Head:
    if words.take("EXTERNAL", "TABLE"):
        return _SPARK_PARSED
    if not words.take("TABLE"):
        return _QUERY
    if not words.take("IF", "NOT", "EXISTS"):
        words.take("IF", "!", "EXISTS")
    # A name that was forgotten, too, so that the message is about the CLONE.
    named = words.take_name()
    if words.take("CLONE") or (named and (words.take("SHALLOW", "CLONE") or words.take("DEEP", "CLONE"))):
        return Head(Kind.DELTA_ONLY, "CLONE")
    return _SPARK_PARSED


def _alter(words: _Words) -> Head:
    if not words.take("ALTER", "TABLE"):
        return _QUERY
    if not words.take_name():
        return _SPARK_PARSED
    if words.take("ADD", "CONSTRAINT"):
        # Spark itself reads keys, and from 4.1 on checks: those are Delta's, as in delta-spark.
        words.at += 1
        return Head(Kind.DELTA_ONLY, "ADD CONSTRAINT") if words.take("CHECK") else _SPARK_PARSED
    for name in ("DROP CONSTRAINT", "ADD FEATURE", "DROP FEATURE", "CLUSTER BY"):
        if words.take(*name.split(" ")):
            return Head(Kind.DELTA_ONLY, name)
    if words.take("ALTER") or words.take("CHANGE"):
        before = words.at
        if words.take("COLUMN") and words.take_name() and words.take("SYNC"):
            return Head(Kind.DELTA_ONLY, "SYNC IDENTITY")
        # Without COLUMN, or of one that is called so: `ALTER COLUMN sync TYPE INT` is Spark's.
        words.at = before
        if words.take_name() and words.take("SYNC", "IDENTITY"):
            return Head(Kind.DELTA_ONLY, "SYNC IDENTITY")
    return _SPARK_PARSED


def _describe(words: _Words) -> Head:
    """`DESCRIBE DETAIL t` and `DESCRIBE HISTORY t`, which Spark takes for a column's description."""
    words.at += 1
    if words.peek().word in ("DETAIL", "HISTORY"):
        words.at += 1
        return _SPARK_PARSED if _describes_table(words) else Head(Kind.DELTA_ONLY, "DESCRIBE")
    after = words.peek(1)
    of_others = words.peek().word in ("FUNCTION", "DATABASE", "SCHEMA", "NAMESPACE", "CATALOG", "QUERY", "PROCEDURE")
    if (of_others and after.kind in (TokenKind.WORD, TokenKind.BACKQUOTED, TokenKind.STRING)) or (
        words.peek().word in ("SELECT", "WITH", "VALUES", "FROM", "MAP", "REDUCE") and after.kind is not TokenKind.END
    ):
        return _QUERY
    return _SPARK_PARSED


def _describes_table(words: _Words) -> bool:
    """Whether a table that is itself called `detail` or `history` is described."""
    if words.peek().kind is TokenKind.END or words.peek().text in (".", ";"):
        return True
    if words.take("PARTITION", "(") or words.take("AS", "JSON"):
        return True
    return words.take_name() and words.take("AS", "JSON")


def _comment(words: _Words) -> Head:
    words.take("COMMENT")
    return _SPARK_PARSED if words.take("ON", "TABLE") or words.take("ON", "COLUMN") else _QUERY


def _drop(words: _Words) -> Head:
    words.take("DROP")
    return _SPARK_PARSED if words.take("TABLE") else _QUERY


def _show(words: _Words) -> Head:
    words.take("SHOW")
    shown = words.peek().word in ("TBLPROPERTIES", "COLUMNS", "PARTITIONS", "TABLES", "TABLE")
    return _SPARK_PARSED if shown or words.take("CREATE", "TABLE") else _QUERY


def _analyze(words: _Words) -> Head:
    """`ANALYZE TABLE t COMPUTE DELTA STATISTICS`; other statistics are Spark's."""
    if words.take("ANALYZE", "TABLE") and words.take_name() and words.take("COMPUTE", "DELTA"):
        return Head(Kind.DELTA_ONLY, "ANALYZE")
    return _SPARK_PARSED


def _execute(words: _Words) -> Head:
    words.take("EXECUTE")
    return _SPARK_PARSED if words.take("IMMEDIATE") else _QUERY


_FIRST_WORDS: dict[str, Head | Callable[[_Words], Head]] = {
    **{
        word: Head(Kind.DELTA_ONLY, word)
        for word in ("VACUUM", "OPTIMIZE", "RESTORE", "CONVERT", "GENERATE", "REORG", "FSCK")
    },
    **dict.fromkeys(
        ("MERGE", "UPDATE", "DELETE", "INSERT", "TRUNCATE", "MSCK", "REPAIR", "LOAD", "CALL", "BEGIN", "CACHE"),
        _SPARK_PARSED,
    ),
    "WITH": _with,
    "FROM": _with,
    "EXECUTE": _execute,
    "ANALYZE": _analyze,
    "EXPLAIN": _explain,
    "CREATE": _create,
    "REPLACE": _replace,
    "ALTER": _alter,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "COMMENT": _comment,
    "DROP": _drop,
    "SHOW": _show,
}
