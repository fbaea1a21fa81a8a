"""A place in a statement, and what may come there."""

from __future__ import annotations

from typing import NoReturn

from alluvium.api.sql.text.lexer import Token, TokenKind, scan_tokens
from alluvium.api.sql.text.strings import string_value
from alluvium.api.sql.text.syntax_error import SqlSyntaxError, syntax_error
from alluvium.api.sql.text.terms import Parameter, Settings, SqlText
from alluvium.errors import nearest

# Bounds on untrusted text. A token costs about 1 us; nothing here recurses.
MAX_CHARACTERS = 500_000
MAX_DEPTH = 500

_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_BRACKETS.values())


class Cursor:
    """Walks through the tokens of one statement, and remembers what would have fitted where it stands.

    Args:
        text: The statement.
        settings: The session's.

    Raises:
        SqlSyntaxError: A string, a name or a comment is not closed, or the text is too long.
    """

    def __init__(self, text: str, settings: Settings) -> None:
        if len(text) > MAX_CHARACTERS:
            problem = f"the statement is longer than {MAX_CHARACTERS} characters"
            raise syntax_error(text, MAX_CHARACTERS, "", problem, hint="say less in one statement")
        self.text = text
        self.settings = settings
        self.syntax = ""
        self.at = 0
        self._tokens = tuple(scan_tokens(text))
        marks = (i for i, token in enumerate(self._tokens) if token.text == "?")
        self._positions = {index: position for position, index in enumerate(marks)}
        self._expected: list[str] = []

    # -- looking ------------------------------------------------------------------------------------------------------

    def peek(self, ahead: int = 0) -> Token:
        """The token here, or some tokens on; behind the last one the END."""
        return self._tokens[min(self.at + ahead, len(self._tokens) - 1)]

    def before(self) -> Token:
        """The token that was stepped over last."""
        return self._tokens[self.at - 1]

    def sees(self, *words: str) -> bool:
        """Whether these keywords and symbols come next."""
        return all(_is(self.peek(i), word) for i, word in enumerate(words))

    def at_end(self) -> bool:
        """Whether nothing but semicolons is left."""
        return all(token.text == ";" for token in self._tokens[self.at : -1])

    # -- moving -------------------------------------------------------------------------------------------------------

    def advance(self) -> Token:
        """Steps over the token here, and gives it."""
        token = self.peek()
        self.at += 1
        self._expected = []
        return token

    def take(self, *words: str) -> bool:
        """Steps over these keywords and symbols, if they come next."""
        if not self.sees(*words):
            self.wanted(" ".join(words))
            return False
        for _ in words:
            self.advance()
        return True

    def expect(self, *words: str) -> None:
        """Steps over these keywords and symbols.

        Raises:
            SqlSyntaxError: Something else comes next.
        """
        for word in words:
            if not self.take(word):
                self.fail()

    def expect_end(self) -> None:
        """Takes the end of the statement: nothing but semicolons may be left."""
        if not self.at_end():
            after = self.peek().text == ";"
            self.fail("end of statement", hint="give one statement at a time" if after else None)

    # -- what is wrong ------------------------------------------------------------------------------------------------

    def wanted(self, what: str) -> None:
        """Notes what would have fitted here, for the message."""
        if what not in self._expected:
            self._expected.append(what)

    def fail(self, what: str | None = None, *, hint: str | None = None) -> NoReturn:
        """Refuses the token here, saying what could stand in its place.

        Raises:
            SqlSyntaxError: Always.
        """
        if what is not None:
            self.wanted(what)
        expected = tuple(self._expected)
        said = expected[0] if len(expected) == 1 else f"{', '.join(expected[:-1])} or {expected[-1]}"
        raise self.refused(f"expected {said}", expected=expected, hint=hint or self._guess(expected))

    def refused(
        self, problem: str, *, token: Token | None = None, expected: tuple[str, ...] = (), hint: str | None = None
    ) -> SqlSyntaxError:
        """An error at a token: the one here, if none is given."""
        place = token or self.peek()
        shown = hint or (f"the syntax is {self.syntax}" if self.syntax else None)
        return syntax_error(self.text, place.start, place.text, problem, expected=expected, hint=shown)

    def _guess(self, expected: tuple[str, ...]) -> str | None:
        """A keyword that was misspelt."""
        firsts = [words.split(" ")[0] for words in expected if words.isupper()]
        word = self.peek().word
        close = nearest(word, firsts) if word else None
        return f"did you mean {close}?" if close is not None and close != word else None

    # -- values -------------------------------------------------------------------------------------------------------

    def sees_string(self) -> bool:
        """Whether a string comes next."""
        kind = self.peek().kind
        return kind is TokenKind.STRING or (
            kind is TokenKind.DOUBLE_QUOTED and not self.settings.double_quoted_identifiers
        )

    def string(self) -> str | None:
        """Takes a string, and those right behind it, which belong to it."""
        self.wanted("a string")
        if not self.sees_string():
            return None
        found = []
        while self.sees_string():
            found.append(string_value(self.advance().text, self.settings.escaped_string_literals))
        return "".join(found)

    def parameter(self) -> Parameter | None:
        """Takes a `:name` or a `?`."""
        found = self._parameter_here()
        if found is None:
            return None
        self.advance()
        if found.name is not None:
            self.advance()
        return Parameter(found.name, found.position)

    def integer(self, what: str, at_most: int) -> int | None:
        """Takes a whole number without a sign.

        Raises:
            SqlSyntaxError: It is larger than what it stands for can be.
        """
        self.wanted(what)
        token = self.peek()
        if token.kind is not TokenKind.INTEGER:
            return None
        # Python reads no number of thousands of digits.
        digits = token.text.lstrip("0") or "0"
        if len(digits) > len(str(at_most)) or int(digits) > at_most:
            raise self.refused(f"the number is larger than {at_most}")
        self.advance()
        return int(digits)

    def _parameter_here(self, origin: int = 0) -> Parameter | None:
        """The parameter that begins here, its place counted from `origin`."""
        token, name = self.peek(), self.peek(1)
        if token.text == "?":
            return Parameter(position=self._positions[self.at], start=token.start - origin, end=token.end - origin)
        if token.text == ":" and name.kind is TokenKind.WORD:
            return Parameter(name=name.text, start=token.start - origin, end=name.end - origin)
        return None

    # -- texts that Spark reads ---------------------------------------------------------------------------------------

    def sql_until(self, stop: int, what: str) -> SqlText:
        """Takes all tokens before the one of index `stop`, as they are written.

        Raises:
            SqlSyntaxError: There are none.
        """
        if self.at >= stop:
            self.fail(what)
        first, last, parameters = self.peek().start, self._tokens[stop - 1].end, []
        while self.at < stop:
            found = self._parameter_here(first)
            if found is not None:
                parameters.append(found)
            self.advance()
        return SqlText(self.text[first:last], tuple(parameters))

    def outer_tokens(self) -> list[int]:
        """The indexes of the tokens from here on that stand in no brackets, up to the end of the statement.

        A bracket itself counts as outside, so that callers see it.

        Raises:
            SqlSyntaxError: Brackets do not match, or a semicolon has more behind it.
        """
        found, open_brackets = [], list[int]()
        for index in range(self.at, self.stop()):
            text = self._tokens[index].text
            if text in _CLOSING and not (open_brackets and _BRACKETS[self._tokens[open_brackets.pop()].text] == text):
                raise self.refused("this bracket closes none", token=self._tokens[index])
            if not open_brackets:
                found.append(index)
            if text in _BRACKETS:
                open_brackets.append(index)
                if len(open_brackets) > MAX_DEPTH:
                    raise self.refused("the brackets are nested too deeply", token=self._tokens[index])
        if open_brackets:
            raise self.refused("this bracket is not closed", token=self._tokens[open_brackets[-1]])
        return found

    def closing(self) -> int:
        """The index of the bracket that closes the one here."""
        outer = self.outer_tokens()
        return outer[1]

    def is_at(self, index: int, *words: str) -> bool:
        """Whether these keywords and symbols stand at an index."""
        last = len(self._tokens) - 1
        return all(_is(self._tokens[min(index + i, last)], word) for i, word in enumerate(words))

    def stop(self) -> int:
        """The index behind the last token that is neither a semicolon nor the end.

        Raises:
            SqlSyntaxError: A semicolon before it has more behind it.
        """
        stop = len(self._tokens) - 1
        while stop > self.at and self._tokens[stop - 1].text == ";":
            stop -= 1
        for index in range(self.at, stop):
            if self._tokens[index].text == ";":
                hint = "give one statement at a time"
                raise self.refused("expected end of statement", token=self._tokens[index], hint=hint)
        return stop


def _is(token: Token, word: str) -> bool:
    return token.word == word if word[0].isalpha() else token.kind is TokenKind.SYMBOL and token.text == word
