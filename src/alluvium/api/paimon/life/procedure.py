"""What a procedure is, and a call of one: names, types and values of its arguments, as Java has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

from alluvium.api.paimon.life.times import millis_of
from alluvium.api.paimon.paimon_table import PaimonTable
from alluvium.errors import InvalidRequest, suggest

#: What an argument was given as.
Value = str | int | bool | None
Rows = Sequence[Sequence[object]]
#: A type of an argument or a result, as Spark calls it.
STRING, INT, LONG, BOOLEAN = "string", "int", "bigint", "boolean"
_BITS = {INT: 32, LONG: 64}
#: A whole number as text, which command lines have alone.
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")


@dataclass(frozen=True)
class Given:
    """A call with all its arguments.

    Attributes:
        url: Where the table is, or the warehouse.
        values: By the name of the argument; None: it was left out.
        time_zone: In which times are read.
        branch: Of the table; None: the main one.
        storage_options: Credentials and settings of the object store.
        target: Where a table is to be, of which an argument says so.
        database: All tables of it are meant, and the URL is the warehouse's.
    """

    url: str
    values: Mapping[str, Value]
    time_zone: str
    branch: str | None = None
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    target: str | None = None
    database: str | None = None

    @cached_property
    def table(self) -> PaimonTable:
        """The table, with the options that the call gives.

        Raises:
            NotFound: There is none.
            InvalidRequest: The options are no options.
        """
        table = PaimonTable.forPath(self.url, self.storage_options, self.branch)
        return table.with_options(self.options()) if self.options() else table

    def options(self) -> dict[str, str]:
        """`"key=value,key=value"`.

        Raises:
            InvalidRequest: It is none (`"invalid-option"`).
        """
        text = self.text("options") if "options" in self.values else None
        pairs = [] if text is None else [pair.partition("=") for pair in text.split(",") if pair.strip()]
        wrong = next((pair for pair in pairs if not pair[0].strip() or not pair[1]), None)
        if wrong is not None:
            raise InvalidRequest(
                f"{''.join(wrong)!r} is no option", code="invalid-option", url=self.url, hint="options => 'key=value'"
            )
        return {key.strip(): value.strip() for key, _, value in pairs}

    def text(self, name: str) -> str | None:
        """A text; a blank one is none, as in Java."""
        value = self.values[name]
        return None if value is None or not str(value).strip() else str(value)

    def needed(self, name: str) -> str:
        """A text that must be there.

        Raises:
            InvalidRequest: It is blank (`"missing-argument"`).
        """
        found = self.text(name)
        if found is None:
            raise InvalidRequest(f"the argument {name} is blank", code="missing-argument", url=self.url)
        return found

    def number(self, name: str) -> int | None:
        """A whole number."""
        value = self.values[name]
        return None if value is None else int(value)

    def flag(self, name: str) -> bool:
        """True, where it was given so."""
        return bool(self.values[name])

    def time_ms(self, name: str) -> int | None:
        """A time as milliseconds since 1970 UTC."""
        found = self.text(name)
        return None if found is None else millis_of(found, name, self.time_zone)


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure.

    Attributes:
        parameters: Name to type, in order; those that may be left out end with `?`.
        result: Name and type of the columns of its rows.
        run: Gives the rows.
        subject: The parameter that names the table; None: it is about a whole warehouse.
        target: A parameter that names a table that need not be there; None: there is no such.
        takes_databases: Whether `database.*` in the place of the table means all tables of a database.
    """

    parameters: Mapping[str, str]
    result: Sequence[tuple[str, str]]
    run: Callable[[Given], Rows]
    subject: str | None = "table"
    target: str | None = None
    takes_databases: bool = False


#: How the tables of a database are named, all of them.
_ALL_TABLES = ".*"


def database_in(procedure: Procedure, values: Mapping[str, Value]) -> str | None:
    """The name of the database of which a call means all tables; None: it means a table."""
    if procedure.subject is None or not procedure.takes_databases:
        return None
    subject = str(values[procedure.subject])
    return subject.removesuffix(_ALL_TABLES) if subject.endswith(_ALL_TABLES) else None


#: The result of those that say that they are done.
DONE = (("result", BOOLEAN),)


def done(act: Callable[[Given], object]) -> Callable[[Given], Rows]:
    """A procedure that says no more than that."""

    def run(given: Given) -> Rows:
        act(given)
        return ((True,),)

    return run


def names(text: str) -> list[str]:
    """`"a, b"`, taken apart."""
    return [name.strip() for name in text.split(",") if name.strip()]


def chosen(given: Given) -> str | None:
    """The condition of those that take `partitions` or `where`.

    Raises:
        InvalidRequest: Both were given (`"contradicting-options"`), or it is no partition (`"invalid-partition"`).
    """
    partitions, where = given.text("partitions"), given.text("where")
    if partitions is not None and where is not None:
        raise InvalidRequest("partitions and where exclude each other", code="contradicting-options")
    return where if partitions is None else _condition(partitions, given)


def _condition(partitions: str, given: Given) -> str:
    """`"day=1,hour=2;day=2,hour=3"` as a condition."""
    schema = given.table.schema
    texts = [text for text in partitions.split(";") if text.strip()]
    whole = []
    for text in texts or [partitions]:
        pairs = [pair.partition("=") for pair in text.split(",")]
        found = {key.strip(): _quoted(value.strip()) for key, equals, value in pairs if equals}
        if len(found) < len(pairs) or not set(found) <= set(schema.partition_keys):
            raise InvalidRequest(
                f"{text!r} is no partition of the table",
                code="invalid-partition",
                hint=f"partition keys: {', '.join(schema.partition_keys) or 'none'}",
            )
        whole.append("(" + " and ".join(f"`{key}` = {value}" for key, value in found.items()) + ")")
    return " or ".join(whole)


def _quoted(value: str) -> str:
    """A value as text of SQL; it may have its quotes already."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def bind_arguments(
    name: str, procedure: Procedure, positional: Sequence[Value], named: Mapping[str, Value]
) -> dict[str, Value]:
    """The arguments of a call by their names, of the parameters' types.

    Raises:
        InvalidRequest: One is unknown (`"unknown-argument"`), given twice, missing (`"missing-argument"`) or of another
            type (`"invalid-argument"`).
    """
    kinds = {key.rstrip("?"): kind for key, kind in procedure.parameters.items()}
    names = list(kinds)
    if len(positional) > len(names):
        raise InvalidRequest(f"{name} takes {len(names)} arguments, not {len(positional)}", code="unknown-argument")
    by_folded = {key.lower(): key for key in names}
    found: dict[str, Value] = dict(zip(names, positional, strict=False))
    for key, value in named.items():
        own = by_folded.get(key.lower())
        if own is None:
            raise InvalidRequest(f"{name} has no argument {key}", code="unknown-argument", hint=suggest(key, names))
        if own in found:
            raise InvalidRequest(f"the argument {own} of {name} is given twice", code="unknown-argument")
        found[own] = value
    missing = [key for key in procedure.parameters if not key.endswith("?") and found.get(key) is None]
    if missing:
        raise InvalidRequest(
            f"{name} needs the argument {missing[0]}",
            code="missing-argument",
            hint=f"CALL sys.{name}({', '.join(f'{m} => ...' for m in missing)})",
        )
    return {key: _typed(name, key, found.get(key), kind) for key, kind in kinds.items()}


def _typed(name: str, key: str, value: Value, kind: str) -> Value:
    if value is None:
        return None
    try:
        if kind == STRING:
            return _text(value)
        if kind == BOOLEAN:
            return {"true": True, "false": False}[_text(value).lower()]
        return _whole(value, _BITS[kind])
    except (ValueError, KeyError):
        raise InvalidRequest(
            f"the argument {key} of {name} is {value!r}, and no {kind}", code="invalid-argument"
        ) from None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int, float, Decimal)):
        raise ValueError
    return str(value)


def _whole(value: object, bits: int) -> int:
    """A whole number as it was given: of another one nobody knows what was meant."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError
    if isinstance(value, str) and _WHOLE.fullmatch(value) is None:
        raise ValueError
    found = int(value)
    if not -(1 << bits - 1) <= found < 1 << bits - 1:
        raise ValueError
    return found
