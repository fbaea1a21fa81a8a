"""SQL texts that ask for the time: the same texts with one moment in place of what asks.

Spark computes the time once a query. A statement of several jobs would see several, and rows whose turn comes between
two of them would be lost, or stand there twice.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from alluvium.expr.sql.sql_tokens import Token, UnreadableText, read_tokens, without_comments

#: Functions of no argument that ask for the time; others are made of these.
CLOCKS = frozenset(
    {"current_timestamp", "now", "current_date", "curdate", "localtimestamp", "unix_timestamp", "current_time"}
)
#: Those that Spark calls where the bare name is no column.
_BARE = frozenset({"current_timestamp", "current_date", "localtimestamp", "current_time"})
#: Days from today; as texts they are times where Spark casts a constant text to a time.
_SPECIAL = {"yesterday": -1, "today": 0, "now": 0, "tomorrow": 1}
_SPECIAL_TEXT = re.compile(rf"\s*({'|'.join(_SPECIAL)})\b", re.IGNORECASE)
_TYPES = frozenset({"date", "timestamp", "timestamp_ltz", "timestamp_ntz"})
_MAY_ASK = re.compile("|".join([*CLOCKS, *_SPECIAL]), re.IGNORECASE)
_EPOCH, _EPOCH_UTC = dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
#: Where Spark's own functions are.
_OWN = (["builtin"], ["system", "builtin"])


@dataclass(frozen=True, slots=True)
class Moment:
    """What Spark's clocks say at one time.

    Attributes:
        micros: Microseconds since 1970 UTC.
        days: Days since 1970, of the calendar of the session's zone.
        local_micros: The calendar and the clock of the session's zone, as if they were UTC's.
    """

    micros: int
    days: int
    local_micros: int

    @classmethod
    def of(cls, micros: int, days: int, local: str) -> Moment:
        """The same, with the calendar and the clock as a text of ISO 8601."""
        return cls(micros, days, (dt.datetime.fromisoformat(local) - _EPOCH) // dt.timedelta(microseconds=1))

    @property
    def _local(self) -> dt.datetime:
        return _EPOCH + dt.timedelta(microseconds=self.local_micros)

    def _day(self, name: str) -> str:
        return str(_EPOCH.date() + dt.timedelta(days=self.days + _SPECIAL[name]))

    def literal(self, clock: str, digits: str = "6") -> str:
        """What a clock says, as a literal of SQL.

        Args:
            clock: One of `CLOCKS`.
            digits: Of the fraction of `current_time`.
        """
        if clock == "unix_timestamp":
            return f"{self.micros // 1_000_000}L"
        if clock in ("current_date", "curdate"):
            return f"date'{self._day('today')}'"
        if clock == "localtimestamp":
            return f"timestamp_ntz'{self._local.isoformat(' ', 'microseconds')}'"
        if clock == "current_time":
            time = self._local.time().isoformat("microseconds")
            return f"time'{time[: 9 + int(digits)].rstrip('.')}'"
        # With an offset it is a point in time, whatever `spark.sql.timestampType` says.
        return f"timestamp'{(_EPOCH_UTC + dt.timedelta(microseconds=self.micros)).isoformat(' ', 'microseconds')}'"

    def special(self, kind: str, name: str) -> str:
        """What `timestamp'now'` and its like are, as a literal of SQL.

        Args:
            kind: The word before the text.
            name: The text.
        """
        if kind == "date":
            return f"date'{self._day(name)}'"
        if name == "now":
            return f"{kind}'{self._local.isoformat(' ', 'microseconds')}'"
        return f"{kind}'{self._day(name)} 00:00:00'"


class UnsteadyText(ValueError):
    """A text that asks for the time in a way for which no moment can be written; the message says how."""


def at_moment(
    text: str,
    moment: Callable[[], Moment],
    columns: Container[str] = (),
    is_own: Callable[[str], bool] = lambda name: True,
    *,
    only_literals: bool = False,
) -> str:
    """An expression with one moment in place of whatever asks for the time; others are returned as they are.

    Texts that are times only where Spark casts them, as of `ts < 'now'`, are left: they may be texts.

    Args:
        text: The expression.
        moment: Asked only where it matters.
        columns: Names in lower case, which a bare `current_date` may be.
        is_own: Whether a function of such a name is Spark's own; asked of those that are called.
        only_literals: Whether functions are left: `timestamp'now'` is a time as soon as Spark has read the text.

    Raises:
        UnsteadyText: It cannot be told what asks, or how to write it.
    """
    if not _MAY_ASK.search(text):
        return text
    try:
        plain = without_comments(text)
        tokens = tuple(read_tokens(plain))
    except UnreadableText as error:
        raise UnsteadyText(str(error)) from None
    kept, end = [], 0
    places = _places(plain, tokens)
    functions = () if only_literals else _functions(tokens, columns, is_own)
    for first, last, literal in sorted((*_literals(tokens), *functions), key=lambda asking: asking[0]):
        start = places[first][0]
        kept += [plain[end:start], literal(moment())]
        end = places[last][1]
    return "".join([*kept, plain[end:]]) if kept else text


def _places(text: str, tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Where each token begins and ends; between them are blanks."""
    found, position = [], 0
    for token in tokens:
        start = text.index(token.text, position)
        position = start + len(token.text)
        found.append((start, position))
    return found


#: The first and the last token of what asks, and its literal at a moment.
_Asking = tuple[int, int, Callable[[Moment], str]]


def _literals(tokens: Sequence[Token]) -> Iterator[_Asking]:
    for n, (kind, text) in enumerate(pairwise(tokens)):
        if kind.folded in _TYPES and text.kind == "text" and (special := _special(text)) is not None:
            yield n, n + 1, _special_at(kind.folded, special)


def _functions(tokens: Sequence[Token], columns: Container[str], is_own: Callable[[str], bool]) -> Iterator[_Asking]:
    for n, token in enumerate(tokens):
        name = token.name.lower() if token.is_name else ""
        if name not in CLOCKS or (first := _first_of_name(tokens, n)) is None:
            continue
        after = [t.text for t in tokens[n + 1 : n + 4]]
        if after[:1] == ["("]:
            if (end := _end_of_call(name, after)) is not None and (first < n or is_own(name)):
                yield first, n + end, _clock_at(name, after[1] if end > 2 else "6")
        elif name in _BARE and first == n and after[:1] not in (["."], ["->"]) and name not in columns:
            yield n, n, _clock_at(name)


def _end_of_call(name: str, after: Sequence[str]) -> int | None:
    """How many tokens the arguments of a clock take; None: they are not those of a clock.

    Raises:
        UnsteadyText: They are those of one, and no number.
    """
    if after[1:2] == [")"]:
        return 2
    if name != "current_time":
        return None
    if after[1:2] and after[1] in list("0123456") and after[2:] == [")"]:
        return 3
    raise UnsteadyText(" ".join([name, *after]))


def _clock_at(clock: str, digits: str = "6") -> Callable[[Moment], str]:
    return lambda moment: moment.literal(clock, digits)


def _special_at(kind: str, name: str) -> Callable[[Moment], str]:
    return lambda moment: moment.special(kind, name)


def _first_of_name(tokens: Sequence[Token], last: int) -> int | None:
    """Where the name of a function of Spark begins that ends at a token; None: it is somebody else's, or a field."""
    first = last
    names: list[str] = []
    while first > 1 and tokens[first - 1].text == "." and tokens[first - 2].is_name:
        first -= 2
        names.insert(0, tokens[first].name.lower())
    if names:
        return first if names in _OWN else None
    # A field of what is no name: `f(x).now`.
    return None if first and tokens[first - 1].text == "." else first


def _special(text: Token) -> str | None:
    """The special text that a literal has.

    Raises:
        UnsteadyText: It has a zone of its own.
    """
    content = text.text[1:-1].strip()
    if not _SPECIAL_TEXT.match(content):
        return None
    if content.lower() not in _SPECIAL:
        raise UnsteadyText(f"'{content}'")
    return content.lower()
