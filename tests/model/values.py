"""Values, conditions and new values: as SQL text that all engines understand, and the same over a row of the model."""

from __future__ import annotations

import operator
import random
import re
from decimal import Decimal
from typing import Any

#: A row by its columns' keys; a condition or an expression as nested lists: what JSON can hold.
Value = Any
Row = dict[str, Value]
Tree = list[Any]

WHOLE = ("byte", "short", "int", "long")
#: From which type to which a column may be widened in place.
WIDER = {"byte": ("short", "int"), "short": ("int",), "int": ("long",)}
_COMPARED = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, ">=": operator.ge}
#: Types whose values have parts: they are null or not, and are neither compared nor counted.
NESTED = ("array<int>", "struct<a:int,b:string>", "map<string,int>")
DECIMAL = "decimal(9,2)"
#: Decimals are texts in the model, as JSON has no such numbers.
_DECIMAL_TEXT = re.compile(r"-?\d+\.\d\d")
TEXTS = ("a", "b", "ab", "", "Z", "é", "x y", "m1", "m2", "q'q", "%")


def quoted(name: str) -> str:
    """As SQL, and all that takes paths of columns, have to say a name: as it is, where that will do."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else f"`{name}`"


def random_value(chance: random.Random, data_type: str) -> Value:
    """A small value, so that conditions meet several rows; now and then none."""
    if chance.random() < 0.15:
        return None
    if data_type in WHOLE:
        return chance.randint(-5, 20)
    if data_type == "double":
        return chance.choice([-1.5, 0.0, 0.25, 3.0, 1e10])
    if data_type == "boolean":
        return chance.random() < 0.5
    if data_type == "date":
        return f"20{chance.randint(10, 26)}-0{chance.randint(1, 9)}-1{chance.randint(0, 9)}"
    if data_type == DECIMAL:
        return chance.choice(["-9999999.99", "-1.50", "0.00", "0.25", "3.00", "10.00", "9999999.99"])
    if data_type == "timestamp":
        # Statistics hold milliseconds, files microseconds; some are before 1970.
        day = chance.choice(["1969-12-31", "2024-02-29", "2024-03-01"])
        return f"{day}T23:59:0{chance.randint(0, 9)}.{chance.choice([0, 1, 999, 1000, 999_999]):06}"
    if data_type in NESTED:
        return _random_parts(chance, data_type)
    return chance.choice(TEXTS)


def _random_parts(chance: random.Random, data_type: str) -> Value:
    whole = [None if chance.random() < 0.2 else chance.randint(-5, 20) for _ in range(chance.randint(0, 2))]
    if data_type == "array<int>":
        return whole
    if data_type == "map<string,int>":
        return dict(zip(("a", "b"), whole, strict=False))
    return {"a": chance.choice([None, 1, 2]), "b": chance.choice([None, *TEXTS])}


def literal(value: Value, data_type: str) -> str:
    """As SQL says it."""
    if value is None:
        return f"cast(null as {data_type.replace('long', 'bigint').replace('short', 'smallint').replace('byte', 'tinyint')})"
    if data_type == "date":
        return f"date'{value}'"
    if data_type == "string":
        return "'" + value.replace("'", "\\'") + "'"
    if data_type == "boolean":
        return str(value).lower()
    if data_type == "timestamp":
        return f"timestamp'{value.replace('T', ' ')}+00:00'"
    if data_type in NESTED:
        return _literal_of_parts(value, data_type)
    return f"cast({value!r} as double)" if data_type == "double" else str(value)


def _literal_of_parts(value: Value, data_type: str) -> str:
    if data_type == "array<int>":
        return f"cast(array({', '.join(literal(v, 'int') for v in value)}) as {data_type})"
    if data_type == "map<string,int>":
        pairs = (f"{literal(k, 'string')}, {literal(v, 'int')}" for k, v in value.items())
        return f"cast(map({', '.join(pairs)}) as {data_type})"
    a, b = literal(value["a"], "int"), literal(value["b"], "string")
    return f"cast(named_struct('a', {a}, 'b', {b}) as {data_type})"


def random_condition(chance: random.Random, types: dict[str, str], depth: int = 1) -> Tree:
    """A condition over some columns (key to type); SQL's own three values hold."""
    if depth and chance.random() < 0.25:
        return [chance.choice(["and", "or"]), *(random_condition(chance, types, depth - 1) for _ in range(2))]
    key = chance.choice(sorted(types))
    kind = chance.choice(["=", "<", ">=", "<>", "null", "in", "not null"])
    if kind in ("null", "not null"):
        return [kind, key]
    wanted = [v for v in (random_value(chance, types[key]) for _ in range(4)) if v is not None]
    if not wanted or types[key] in NESTED:
        return ["null", key]
    return [kind, key, sorted(set(wanted[:3]))] if kind == "in" else [kind, key, wanted[0]]


def condition_sql(tree: Tree, columns: dict[str, tuple[str, str]], prefix: str = "") -> str:
    """`columns`: key to name and type."""
    kind = tree[0]
    if kind in ("and", "or"):
        return f" {kind} ".join(f"({condition_sql(part, columns, prefix)})" for part in tree[1:])
    name, data_type = columns[tree[1]]
    column = prefix + quoted(name)
    if kind in ("null", "not null"):
        return f"{column} is {kind}"
    if kind == "in":
        return f"{column} in ({', '.join(literal(v, data_type) for v in tree[2])})"
    return f"{column} {kind} {literal(tree[2], data_type)}"


def holds(tree: Tree | None, row: Row) -> bool | None:
    """True, false or unknown (None)."""
    if tree is None:
        return True
    kind = tree[0]
    if kind in ("and", "or"):
        parts = [holds(part, row) for part in tree[1:]]
        decides = kind == "or"
        if decides in parts:
            return decides
        return None if None in parts else not decides
    value = row.get(tree[1])
    if kind == "null":
        return value is None
    if kind == "not null":
        return value is not None
    if value is None:
        return None
    if kind == "in":
        return value in tree[2]
    return bool(_COMPARED[kind](_ordered(value), _ordered(tree[2])))


def _ordered(value: Value) -> Value:
    """As it is compared: texts of numbers are none of the texts that columns of texts hold."""
    return Decimal(value) if isinstance(value, str) and _DECIMAL_TEXT.fullmatch(value) else value


def keys_of(tree: Tree) -> set[str]:
    """The columns that a condition names."""
    if tree[0] in ("and", "or"):
        return {key for part in tree[1:] for key in keys_of(part)}
    return {tree[1]}


def random_expression(chance: random.Random, key: str, data_type: str) -> Tree:
    """A new value of a column; it stays small, however often it is applied."""
    if chance.random() < 0.4:
        return ["literal", random_value(chance, data_type)]
    if data_type in WHOLE:
        return ["minus from", key, chance.randint(0, 9)]
    if data_type == "string":
        return ["upper", key]
    return ["same", key]


def expression_sql(tree: Tree, data_type: str, columns: dict[str, tuple[str, str]], prefix: str = "") -> str:
    if tree[0] == "literal":
        return literal(tree[1], data_type)
    column = prefix + quoted(columns[tree[1]][0])
    return {"minus from": f"{tree[-1]} - {column}", "upper": f"upper({column})", "same": column}[tree[0]]


def compute(tree: Tree, row: Row) -> Value:
    if tree[0] == "literal":
        return tree[1]
    value = row.get(tree[1])
    if value is None or tree[0] == "same":
        return value
    return tree[2] - value if tree[0] == "minus from" else value.upper()
