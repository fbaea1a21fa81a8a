"""Types as SQL text, as they stand in schema files: `DECIMAL(10, 2) NOT NULL`, `INT ARRAY`, `VECTOR<FLOAT, 3>`.

ARRAY<...>, MAP<...> and ROW<...> are not read here: schema files spell those as JSON objects.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from alluvium.errors import InvalidRequest
from alluvium.paimon.schema.types import MAX_LENGTH, DataType

#: Types nest at most this deep: recursion stays bounded on untrusted input.
MAX_DEPTH = 100
#: Characters of a type that errors show.
_SHOWN = 200
_TOKEN = re.compile(r"""\s*(?:(?P<quoted>'(?:[^']|'')*'|`(?:[^`]|``)*`)|(?P<mark>[<>(),.])|(?P<word>[^\s<>(),.]+))""")
_DEFAULT_CRS = "OGC:CRS84"
_DEFAULT_ALGORITHM = "spherical"


@functools.lru_cache(maxsize=1024)
def parse_type_text(text: str) -> DataType:
    """A type from its text; words in any case, blanks anywhere between them. Types are values: equal texts share one.

    Raises:
        InvalidRequest: `"invalid-type"`: it is none, or out of its range.
    """
    reader = _Reader(text, _tokens(text))
    parsed = reader.read_type(0)
    if (rest := reader.peek()) is not None:
        raise reader.error(f"{rest!r} is not expected there")
    return parsed


def _tokens(text: str) -> list[str]:
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidRequest(f"{text[:_SHOWN]!r} is no type", code="invalid-type")
        found.append(match[0].strip())
        at = match.end()
    return found


@dataclass(slots=True)
class _Reader:
    """Reads tokens from left to right."""

    text: str
    tokens: list[str]
    at: int = field(default=0)

    def error(self, why: str) -> InvalidRequest:
        return InvalidRequest(f"{self.text[:_SHOWN]!r} is no type: {why}", code="invalid-type")

    def peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self) -> str:
        token = self.peek()
        if token is None:
            raise self.error("it ends too early")
        self.at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Takes these words if they come next."""
        coming = [token.upper() for token in self.tokens[self.at : self.at + len(words)]]
        if coming != list(words):
            return False
        self.at += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise self.error(f"{' '.join(words)} is missing")

    def read_number(self) -> int:
        token = self.take()
        if not (token.isascii() and token.isdigit() and len(token) <= 10 and int(token) <= MAX_LENGTH):
            raise self.error(f"{token!r} is no number")
        return int(token)

    def read_nullability(self) -> bool:
        if self.accept("NOT", "NULL"):
            return False
        self.accept("NULL")
        return True

    def read_type(self, depth: int) -> DataType:
        if depth > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} levels of nesting")
        read = _BY_NAME.get(self.take().upper())
        if read is None:
            raise self.error("nobody knows the name")
        parsed = read(self, depth).with_nullable(self.read_nullability())
        for root in ("ARRAY", "MULTISET"):
            if self.accept(root):
                return DataType(root, self.read_nullability(), element=parsed)
        return parsed

    def read_length(self, default: int = 1) -> int:
        if not self.accept("("):
            return default
        length = self.read_number()
        self.expect(")")
        return length

    def read_parameter(self) -> str:
        token = self.take()
        return token[1:-1].replace(token[0] * 2, token[0]) if token[0] in "'`" else token


def _plain(root: str) -> Callable[[_Reader, int], DataType]:
    return lambda reader, depth: DataType(root)


def _sized(root: str) -> Callable[[_Reader, int], DataType]:
    return lambda reader, depth: DataType(root, length=reader.read_length())


def _longest(root: str) -> Callable[[_Reader, int], DataType]:
    return lambda reader, depth: DataType(root, length=MAX_LENGTH)


def _decimal(reader: _Reader, depth: int) -> DataType:
    precision, scale = 10, 0
    if reader.accept("("):
        precision = reader.read_number()
        if reader.accept(","):
            scale = reader.read_number()
        reader.expect(")")
    return DataType("DECIMAL", precision=precision, scale=scale)


def _double(reader: _Reader, depth: int) -> DataType:
    reader.accept("PRECISION")
    return DataType("DOUBLE")


def _time(reader: _Reader, depth: int) -> DataType:
    precision = reader.read_length(0)
    reader.accept("WITHOUT", "TIME", "ZONE")
    return DataType("TIME_WITHOUT_TIME_ZONE", precision=precision)


def _timestamp(reader: _Reader, depth: int) -> DataType:
    precision = reader.read_length(6)
    if reader.accept("WITH", "LOCAL", "TIME", "ZONE"):
        return DataType("TIMESTAMP_WITH_LOCAL_TIME_ZONE", precision=precision)
    reader.accept("WITHOUT", "TIME", "ZONE")
    return DataType("TIMESTAMP_WITHOUT_TIME_ZONE", precision=precision)


def _timestamp_ltz(reader: _Reader, depth: int) -> DataType:
    return DataType("TIMESTAMP_WITH_LOCAL_TIME_ZONE", precision=reader.read_length(6))


def _vector(reader: _Reader, depth: int) -> DataType:
    reader.expect("<")
    element = reader.read_type(depth + 1)
    reader.expect(",")
    length = reader.read_number()
    reader.expect(">")
    return DataType("VECTOR", length=length, element=element)


def _geometry(reader: _Reader, depth: int) -> DataType:
    crs = _DEFAULT_CRS
    if reader.accept("("):
        crs = reader.read_parameter()
        reader.expect(")")
    return DataType("GEOMETRY", crs=crs)


def _geography(reader: _Reader, depth: int) -> DataType:
    crs, algorithm = _DEFAULT_CRS, _DEFAULT_ALGORITHM
    if reader.accept("("):
        crs = reader.read_parameter()
        if reader.accept(","):
            algorithm = reader.read_parameter().lower()
        reader.expect(")")
    return DataType("GEOGRAPHY", crs=crs, algorithm=algorithm)


_BY_NAME: Mapping[str, Callable[[_Reader, int], DataType]] = {
    **{
        name: _plain(name)
        for name in ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DATE", "VARIANT", "BLOB")
    },
    **{name: _sized(name) for name in ("CHAR", "VARCHAR", "BINARY", "VARBINARY")},
    "INT": _plain("INTEGER"),
    "STRING": _longest("VARCHAR"),
    "BYTES": _longest("VARBINARY"),
    "DECIMAL": _decimal,
    "NUMERIC": _decimal,
    "DEC": _decimal,
    "DOUBLE": _double,
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_LTZ": _timestamp_ltz,
    "VECTOR": _vector,
    "GEOMETRY": _geometry,
    "GEOGRAPHY": _geography,
}
