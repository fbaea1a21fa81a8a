"""Paimon's data types and fields: immutable values that cannot be out of range.

Specification: "DataField". Unlike the house's own types they keep lengths and precisions, carry nullability in the
type, and give every field of a row an id, because files are read by id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from alluvium.errors import InvalidRequest

NeutralValue: TypeAlias = "None | bool | int | str | list[NeutralValue] | dict[str, NeutralValue]"

#: Longest CHAR, VARCHAR, BINARY, VARBINARY; such VARCHARs are STRING, such VARBINARYs BYTES.
MAX_LENGTH = 2**31 - 1
MAX_DECIMAL_PRECISION = 38
MAX_TIME_PRECISION = 9
#: Ids from here on belong to Paimon's own columns.
SYSTEM_FIELD_ID_START = (2**31 - 1) // 2

CHARACTER = frozenset({"CHAR", "VARCHAR"})
BINARY = frozenset({"BINARY", "VARBINARY"})
INTEGRAL = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT"})
NUMERIC = INTEGRAL | {"DECIMAL", "FLOAT", "DOUBLE"}
TIMESTAMPS = frozenset({"TIMESTAMP_WITHOUT_TIME_ZONE", "TIMESTAMP_WITH_LOCAL_TIME_ZONE"})
DATETIME = TIMESTAMPS | {"DATE", "TIME_WITHOUT_TIME_ZONE"}
CONSTRUCTED = frozenset({"ARRAY", "VECTOR", "MULTISET", "MAP", "ROW"})
SIZED = CHARACTER | BINARY
ROOTS = SIZED | NUMERIC | DATETIME | CONSTRUCTED | {"BOOLEAN", "VARIANT", "BLOB", "GEOMETRY", "GEOGRAPHY"}
_VECTOR_ELEMENTS = (NUMERIC - {"DECIMAL"}) | {"BOOLEAN"}
EDGE_ALGORITHMS = frozenset({"spherical", "vincenty", "thomas", "andoyer", "karney"})

_SQL_NAMES = {
    "INTEGER": "INT",
    "TIME_WITHOUT_TIME_ZONE": "TIME",
    "TIMESTAMP_WITHOUT_TIME_ZONE": "TIMESTAMP",
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": "TIMESTAMP",
}


@dataclass(frozen=True, slots=True)
class DataType:
    """A type: its root, and what the root takes. `str()` is the SQL form.

    Attributes:
        root: Paimon's type root: `INTEGER`, `VARCHAR`, `TIMESTAMP_WITH_LOCAL_TIME_ZONE`, `ROW`, ...
        nullable: Whether null is a value.
        length: Of CHAR, VARCHAR, BINARY, VARBINARY (characters or bytes) and VECTOR (elements).
        precision: Of DECIMAL (digits), TIME and the timestamps (digits of a second's fraction).
        scale: Of DECIMAL.
        element: Of ARRAY, VECTOR, MULTISET.
        key: Of MAP.
        value: Of MAP.
        fields: Of ROW.
        crs: Coordinate reference system of GEOMETRY and GEOGRAPHY.
        algorithm: How edges run, of GEOGRAPHY.

    Raises:
        InvalidRequest: `"invalid-type"`: no such type, or out of its range.
    """

    root: str
    nullable: bool = True
    length: int = 0
    precision: int = 0
    scale: int = 0
    element: DataType | None = None
    key: DataType | None = None
    value: DataType | None = None
    fields: tuple[DataField, ...] = ()
    crs: str = ""
    algorithm: str = ""

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem is not None:
            raise InvalidRequest(problem, code="invalid-type")

    @property
    def shape(self) -> DataType:
        """The type without its own nullability, for comparisons."""
        return self.with_nullable(True)

    def with_nullable(self, nullable: bool) -> DataType:
        return self if self.nullable == nullable else replace(self, nullable=nullable)

    def children(self) -> tuple[DataType, ...]:
        """The types directly inside of this one."""
        inner = tuple(t for t in (self.element, self.key, self.value) if t is not None)
        return (*inner, *(f.type for f in self.fields))

    def __str__(self) -> str:
        return _sql_name(self) + ("" if self.nullable else " NOT NULL")

    def as_dict(self) -> dict[str, NeutralValue]:
        """`root`, `nullable`, and what the root takes."""
        neutral: dict[str, NeutralValue] = {"root": self.root, "nullable": self.nullable}
        if self.root in SIZED or self.root == "VECTOR":
            neutral["length"] = self.length
        if self.root == "DECIMAL" or self.root in DATETIME - {"DATE"}:
            neutral["precision"] = self.precision
        if self.root == "DECIMAL":
            neutral["scale"] = self.scale
        for name, inner in (("element", self.element), ("key", self.key), ("value", self.value)):
            if inner is not None:
                neutral[name] = inner.as_dict()
        if self.root == "ROW":
            neutral["fields"] = [f.as_dict() for f in self.fields]
        return neutral


@dataclass(frozen=True, slots=True)
class DataField:
    """A column, or a field of a row type.

    Attributes:
        id: Stays the same through renames, and is never used again.
        name: As written; names differ by case, too.
        type: Its type, nullability included.
        description: The column's comment.
        default: Text of the value that writers put where a row brings none.
    """

    id: int
    name: str
    type: DataType
    description: str | None = None
    default: str | None = None

    def __str__(self) -> str:
        text = f"`{self.name.replace('`', '``')}` {self.type}"
        if self.description:
            text += f" COMMENT '{self.description.replace(chr(39), chr(39) * 2)}'"
        return text if self.default is None else f"{text} DEFAULT {self.default}"

    def as_dict(self) -> dict[str, NeutralValue]:
        return {
            "id": self.id,
            "name": self.name,
            "type": self.type.as_dict(),
            "description": self.description,
            "default": self.default,
        }


def field_ids(fields: Sequence[DataField]) -> Iterator[int]:
    """The ids of the fields and of all in them."""
    for f in fields:
        yield f.id
        yield from _ids_within(f.type)


def _ids_within(data_type: DataType) -> Iterator[int]:
    yield from field_ids(data_type.fields)
    for inner in (data_type.element, data_type.key, data_type.value):
        if inner is not None:
            yield from _ids_within(inner)


def highest_field_id(fields: Sequence[DataField]) -> int:
    """The highest id in use, -1 where there is none; ids of Paimon's own columns do not count."""
    return max((i for i in field_ids(fields) if i < SYSTEM_FIELD_ID_START), default=-1)


def duplicates(names: Sequence[str]) -> list[str]:
    """What stands more than once, in order."""
    return sorted({name for name in names if names.count(name) > 1}, key=names.index)


def _problem(t: DataType) -> str | None:
    if t.root not in ROOTS:
        return f"there is no type {t.root!r}"
    if (t.root in SIZED or t.root == "VECTOR") and not 1 <= t.length <= MAX_LENGTH:
        return f"the length of {t.root} must be between 1 and {MAX_LENGTH}, not {t.length}"
    if t.root == "DECIMAL":
        return _decimal_problem(t)
    if t.root in DATETIME - {"DATE"} and not 0 <= t.precision <= MAX_TIME_PRECISION:
        return f"the precision of {_SQL_NAMES[t.root]} must be between 0 and {MAX_TIME_PRECISION}, not {t.precision}"
    if t.root in CONSTRUCTED:
        return _constructed_problem(t)
    if t.root == "GEOGRAPHY" and t.algorithm not in EDGE_ALGORITHMS:
        return f"GEOGRAPHY knows no edges {t.algorithm!r}, only {', '.join(sorted(EDGE_ALGORITHMS))}"
    return None


def _decimal_problem(t: DataType) -> str | None:
    if not 1 <= t.precision <= MAX_DECIMAL_PRECISION:
        return f"the precision of DECIMAL must be between 1 and {MAX_DECIMAL_PRECISION}, not {t.precision}"
    if not 0 <= t.scale <= t.precision:
        return f"the scale of DECIMAL must be between 0 and its precision {t.precision}, not {t.scale}"
    return None


def _constructed_problem(t: DataType) -> str | None:
    if t.root == "MAP":
        return None if t.key is not None and t.value is not None else "a MAP needs a key and a value"
    if t.root != "ROW":
        if t.element is None:
            return f"{t.root} needs an element"
        if t.root == "VECTOR" and t.element.root not in _VECTOR_ELEMENTS:
            return f"a VECTOR cannot hold {t.element}"
        return None
    names = [f.name for f in t.fields]
    if any(not name.strip() for name in names):
        return "a field of a ROW has no name"
    if twice := duplicates(names):
        return f"a ROW has two fields {twice[0]!r}"
    return None


def _sql_name(t: DataType) -> str:
    name = _SQL_NAMES.get(t.root, t.root)
    if t.root in ("VARCHAR", "VARBINARY") and t.length == MAX_LENGTH:
        return "STRING" if t.root == "VARCHAR" else "BYTES"
    if t.root in SIZED:
        return f"{name}({t.length})"
    if t.root == "DECIMAL":
        return f"DECIMAL({t.precision}, {t.scale})"
    if t.root in DATETIME - {"DATE"}:
        zone = " WITH LOCAL TIME ZONE" if t.root == "TIMESTAMP_WITH_LOCAL_TIME_ZONE" else ""
        return f"{name}({t.precision}){zone}"
    if t.root == "VECTOR":
        return f"VECTOR<{t.element}, {t.length}>"
    if t.root in ("ARRAY", "MULTISET"):
        return f"{t.root}<{t.element}>"
    if t.root == "MAP":
        return f"MAP<{t.key}, {t.value}>"
    if t.root == "ROW":
        return f"ROW<{', '.join(str(f) for f in t.fields)}>"
    if t.root == "GEOMETRY":
        return f"GEOMETRY({t.crs})"
    return f"GEOGRAPHY({t.crs}, {t.algorithm})" if t.root == "GEOGRAPHY" else name
