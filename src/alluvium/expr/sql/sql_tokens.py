"""Spark SQL as tokens: what an expression of somebody else's is made of, and how it is written so that nothing but
these tokens can be read in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

Kind = Literal["quoted", "text", "number", "word", "symbol"]

#: What Spark's parser puts settings and the environment in place of, anywhere in a text.
SUBSTITUTION = "${"

# A number ends where no letter, digit, dot or quote follows: of `1.select` and `1E+1select` Spark makes two tokens.
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<comment>--|/\*)
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
      | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[lLsSyYfFdD]|[bB][dD])?(?![\w.`'"])
               |[0-9]+\.(?:[eE][+-]?[0-9]+)?(?:[fFdD]|[bB][dD])?(?![\w.`'"]))
      | (?P<word>[^\W\d]\w*)
      | (?P<symbol><=>|>>>|->|=>|::|<=|>=|<>|!=|==|!<|!>|\|\||<<|>>|[-+*/%=<>!~&|^(),.\[\]:])""",
    re.VERBOSE | re.DOTALL,
)


# Only comments of whose end no lexer has a second opinion: no hint, none within another, no line that goes on.
_COMMENT = re.compile(r"--[^\r\n]*(?<!\\)(?=[\r\n]|\Z)|/\*(?!\+)(?:(?!\*/|/\*).)*\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        kind: What it is.
        text: As it was written.
    """

    kind: Kind
    text: str

    @property
    def name(self) -> str:
        """The identifier that a word or a quoted name stands for."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text

    @property
    def folded(self) -> str:
        """The word in lower case; empty for all that is no word."""
        return self.text.lower() if self.kind == "word" else ""

    @property
    def is_name(self) -> bool:
        return self.kind in ("quoted", "word")

    @property
    def magnitude(self) -> int:
        """About the value of a number; 0 for all that is none."""
        digits = re.match(r"[0-9.]+(?:[eE][+-]?[0-9]+)?", self.text) if self.kind == "number" else None
        # Beyond the range of Spark's own numbers it does not matter by how much.
        return int(min(float(digits[0]), 1e38)) if digits else 0

    @property
    def canonical(self) -> str:
        """The same token, so that it can be read in one way only.

        `"text"` is a name where `spark.sql.ansi.doubleQuotedIdentifiers` is set, `''` within a text is nothing to Spark
        4.0, and the dot of `1.` could be one of a path.
        """
        if self.kind == "number":
            whole, dot, rest = self.text.partition(".")
            # `1.` is a decimal without a fraction, as `1BD`; `1.0` would be one of another scale.
            return self.text if not dot or not whole or rest[:1].isdigit() else whole + (rest or "BD")
        if self.kind != "text" or self.text[0] == "'":
            return self.text
        pieces = [""]
        for found in re.findall(r"\\.|\"\"|.", self.text[1:-1], flags=re.DOTALL):
            if found == "'":
                pieces.append("")
            else:
                pieces[-1] += '"' if found == '""' else found
        quoted = [f"'{piece}'" for piece in pieces]
        if len(quoted) == 1:
            return quoted[0]
        return "concat(" + ", chr(39), ".join(quoted) + ")"


class UnreadableText(ValueError):
    """Text that is not a sequence of tokens; the message says why."""


def read_tokens(text: str) -> Iterator[Token]:
    """The tokens of an SQL text, without the blanks between them.

    Raises:
        UnreadableText: A comment, a raw string with backslashes, or a character that begins no token.
    """
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise UnreadableText(f"character {position + 1} cannot be read")
        found = cast("Kind | Literal['space', 'comment', 'raw']", match.lastgroup)
        if found == "comment":
            # Where they end two lexers may have two opinions.
            raise UnreadableText("it has a comment")
        if found == "raw":
            # r'\' ends where '\' goes on.
            if "\\" in match[0]:
                raise UnreadableText("it has a raw string with a backslash")
            yield Token("text", match[0][1:])
        elif found != "space":
            yield Token(found, match[0])
        position = match.end()


def without_comments(text: str) -> str:
    """An SQL text with a blank in place of each comment, and of the blanks around it; others are returned as they are.

    Raises:
        UnreadableText: A comment may end elsewhere for another reader, or a character begins no token.
    """
    kept, position = [""], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise UnreadableText(f"character {position + 1} cannot be read")
        if match.lastgroup == "comment":
            match = _COMMENT.match(text, position)
            if match is None:
                raise UnreadableText("it has a comment whose end is not plain")
            kept.append("")
        else:
            kept[-1] += match[0]
        position = match.end()
    return text if len(kept) == 1 else " ".join(part.strip() for part in kept if part.strip())


def quote_name(name: str) -> str:
    """An identifier in backticks."""
    return "`" + name.replace("`", "``") + "`"
