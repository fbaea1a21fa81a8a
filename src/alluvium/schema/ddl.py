"""Types as Spark SQL writes them (`map<string, array<int>>`), read without Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from alluvium.errors import InvalidRequest, UnsupportedFeature, WrongType, suggest
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Decimal, Field, JsonValue, Map, Primitive, Struct

#: Where Spark keeps the declared type of a column that is a string with a length.
CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"

_NAMES: Mapping[str, DataType] = {
    "boolean": t.BOOLEAN, "tinyint": t.BYTE, "byte": t.BYTE, "smallint": t.SHORT, "short": t.SHORT,
    "int": t.INTEGER, "integer": t.INTEGER, "bigint": t.LONG, "long": t.LONG, "float": t.FLOAT, "real": t.FLOAT,
    "double": t.DOUBLE, "string": t.STRING, "binary": t.BINARY, "date": t.DATE, "timestamp": t.TIMESTAMP,
    "timestamp_ltz": t.TIMESTAMP, "timestamp_ntz": t.TIMESTAMP_NTZ, "void": t.VOID, "null": t.VOID,
    "variant": t.VARIANT,
}  # fmt: skip
#: Delta's feature `geospatial`: known by name alone.
_GEOSPATIAL = ("geometry", "geography")
_DECIMALS = ("decimal", "dec", "numeric")
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(\w+)|(.))", re.DOTALL)
_MAX_DEPTH = 100
#: Lengths and precisions are 32-bit numbers.
_MAX_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Declared:
    """A type as it was declared.

    Attributes:
        type: What tables store.
        metadata: For the field of this type: the declared text where it names a length.
    """

    type: DataType
    metadata: Mapping[str, JsonValue]


def parse_ddl_type(text: str) -> Declared:
    """A type in Spark SQL's spelling; names and keywords in any case.

    Raises:
        InvalidRequest: `"invalid-type"`.
        UnsupportedFeature: `"unsupported-type"`: there is such a type, but not here.
    """
    parser = _Parser(text)
    data_type = parser.type(0)
    parser.end()
    return Declared(data_type, {CHAR_VARCHAR: parser.normal()} if parser.has_length else {})


def parse_fields(text: str) -> tuple[Field, ...]:
    """Columns as SQL declares them: `day date, shop int not null comment 'of it'`.

    Raises:
        InvalidRequest: `"invalid-type"`.
        UnsupportedFeature: `"unsupported-type"`.
    """
    parser = _Parser(text)
    fields = parser.fields()
    parser.end()
    return fields


def parse_column_path(text: str) -> tuple[str, ...]:
    """The parts of a dotted name; a part with dots or backticks of its own stands in backticks.

    Raises:
        InvalidRequest: `"invalid-column-name"`; it is no text (`WrongType`).
    """
    if not isinstance(text, str):
        raise WrongType(f"the name of a column must be text, not {text!r:.80}", hint='"a.b" for a member')
    parts = re.findall(r"(?:`((?:[^`]|``)+)`|([^.`]+))(?:\.|$)", text)
    written = ".".join(f"`{quoted}`" if quoted else plain for quoted, plain in parts)
    if written != text or not parts:
        raise InvalidRequest(f"{text!r} is not a column name", code="invalid-column-name", hint="`a.b`.c for odd names")
    return tuple(quoted.replace("``", "`") or plain for quoted, plain in parts)


def parse_declared_type(text: str) -> DataType:
    """A type as a field's metadata declares it, lengths kept: `char(3)` is a primitive of that name.

    A word that no table's type has is a primitive, too: engines have more types than we, and the metadata tells of
    lengths alone.

    Raises:
        InvalidRequest: `"invalid-type"`.
    """
    parser = _Parser(text, declares=True)
    data_type = parser.type(0)
    parser.end()
    return data_type


class _Parser:
    def __init__(self, text: str, *, declares: bool = False) -> None:
        self._text = text
        self._declares = declares
        self._tokens = [match.group(0).strip() for match in _TOKEN.finditer(text.strip())]
        self._at = 0
        self.has_length = False

    def normal(self) -> str:
        return re.sub(r"\s+", "", self._text).lower()

    def type(self, depth: int) -> DataType:
        word = self._next().lower()
        if depth > _MAX_DEPTH:
            raise self._error("too deeply nested")
        if word in _NAMES:
            if self._declares and self._peek().lower() == "collate":
                self._at += 2
            return _NAMES[word]
        if word in _DECIMALS:
            numbers = self._numbers() if self._peek() == "(" else [10, 0]
            precision, scale = (numbers[0], numbers[1] if len(numbers) > 1 else 0)
            if len(numbers) > 2 or not 0 < precision <= 38 or scale > precision:
                raise self._error("a decimal has at most 38 digits")
            return Decimal(precision, scale)
        if word in ("char", "character", "varchar"):
            numbers = self._numbers()
            if len(numbers) != 1 or numbers[0] < 1:
                raise self._error(f"{word} needs one length")
            self.has_length = True
            kind = "varchar" if word == "varchar" else "char"
            return Primitive(f"{kind}({numbers[0]})") if self._declares else t.STRING
        if word in ("array", "map", "struct"):
            return self._nested(word, depth)
        if self._declares and word.isidentifier():
            self._skip_parameters()
            return Primitive(word)
        if word in _GEOSPATIAL:
            raise UnsupportedFeature(
                f"{self._text!r} is a type of the feature geospatial, which is not implemented",
                code="unsupported-type",
                features=("geospatial",),
                hint="store well-known binary or text",
            )
        raise self._error(f"unknown type {word!r}; {suggest(word, [*_NAMES, 'decimal', 'array', 'map', 'struct'])}")

    def _nested(self, word: str, depth: int) -> DataType:
        self._expect("<")
        if word == "array":
            found: DataType = Array(self.type(depth + 1))
        elif word == "map":
            key = self.type(depth + 1)
            self._expect(",")
            found = Map(key, self.type(depth + 1))
        else:
            found = Struct(() if self._peek() == ">" else self.fields(depth + 1))
        self._expect(">")
        return found

    def fields(self, depth: int = 1) -> tuple[Field, ...]:
        found = [self._field(depth)]
        while self._peek() == ",":
            self._expect(",")
            found.append(self._field(depth))
        return tuple(found)

    def _field(self, depth: int) -> Field:
        name = self._next()
        name = name[1:-1].replace("``", "`") if name.startswith("`") else name
        if self._peek() == ":":
            self._expect(":")
        data_type = self.type(depth)
        nullable = True
        if self._peek().lower() == "not":
            self._next()
            self._expect("null")
            nullable = False
        metadata: dict[str, JsonValue] = {}
        if self._peek().lower() == "comment":
            self._next()
            metadata["comment"] = re.sub(r"\\(.)", r"\1", self._next()[1:-1])
        return Field(name, data_type, nullable, metadata)

    def _skip_parameters(self) -> None:
        if self._peek() == "(":
            while self._next() != ")":
                pass

    def _numbers(self) -> list[int]:
        self._expect("(")
        numbers = []
        while True:
            word = self._next()
            if not word.isdecimal() or len(word) > _MAX_DIGITS:
                raise self._error(f"expected a number, found {word!r}")
            numbers.append(int(word))
            if self._next() != ",":
                break
        if self._tokens[self._at - 1] != ")":
            raise self._error("expected )")
        return numbers

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise self._error("it ends too early")
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        found = self._next()
        if found.lower() != token:
            raise self._error(f"expected {token!r}, found {found!r}")

    def end(self) -> None:
        if self._peek():
            raise self._error(f"{self._peek()!r} is too much")

    def _error(self, problem: str) -> InvalidRequest:
        return InvalidRequest(f"{self._text!r} is not a type: {problem}", code="invalid-type")
