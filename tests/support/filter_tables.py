"""Random tables for the fuzzer of filters: names that read as something else, values at the edges, files of few values."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

D = decimal.Decimal
UTC = dt.timezone.utc
FILES = 5
ROWS = 4
#: Never among the columns that conditions name.
ID = "rid"

#: Names that a reader of Catalyst's text may take for something else. Those of the second line need quotes.
PLAIN = [
    "a",
    "b",
    "x",
    "y",
    "t",
    "s",
    "n",
    "r",
    "e",
    "u",
    "id_",
    "key",
    "value",
    "date",
    "timestamp",
    "time",
    "interval",
    "case",
    "when",
    "then",
    "else",
    "end",
    "not",
    "and",
    "or",
    "in",
    "is",
    "like",
    "between",
    "ilike",
    "rlike",
    "true",
    "false",
    "null",
    "cast",
    "if",
    "exists",
    "any",
    "all",
    "distinct",
    "escape",
    "collate",
    "array",
    "struct",
    "map",
    "div",
    "current_date",
    "current_user",
    "session",
    "system",
    "variable",
    "_metadata",
    "file_path",
    "4e",
    "1bd",
    "5L",
    "1d",
    "1e5",
    "2f",
    "10y",
    "7S",
    "0x1F",
    "e1",
    "X1",
    "_1",
    "4ebd",
    "col",
    "lambda",
    "select",
    "from",
    "as",
    "values",
    "row",
    "over",
    "filter",
    "within",
    "trim",
    "extract",
    "position",
    "substring",
    "unknown",
    "outer",
    "input",
]
QUOTED = [
    "a-b", "-", "ü", "Straße", "😀", "it's", 'say "x"', "q`q", "a.b", "b.x", "t.a", "s.x", ".", "col-4ebd-9f", "%", "$x",
    ":x", "@x", "/*", "--", "'", "1", "42", "x'00'", "[0]",
]  # fmt: skip
#: Not allowed where names are those of the files.
MAPPED_ONLY = ["a b", "x = 1", "a, b", "f(x)", "end ", " x", "a\tb", ") OR (a = 5", "a;b", "{a}"]
LONG = "z" * 31


@dataclass(frozen=True)
class Kind:
    """A type: how it is declared, as Arrow has it, and the values of a file."""

    name: str
    ddl: str
    arrow: pa.DataType
    values: Callable[[random.Random, int], list[object]]


def _ints(scale: int) -> Callable[[random.Random, int], list[object]]:
    return lambda r, f: [scale * (f - 1) + r.randrange(scale) for _ in range(ROWS)]


def _floats(r: random.Random, f: int) -> list[object]:
    special = [math.nan, -0.0, 0.0, math.inf, -math.inf, 0.1, 1e300, 5e-324]
    return [r.choice(special) if r.random() < 0.3 else (f - 1) * 10 + r.randrange(20) / 4 for _ in range(ROWS)]


def _float32(r: random.Random, f: int) -> list[object]:
    special = [math.nan, -0.0, math.inf, 16777216.0, 0.1, 3.0e38]
    return [r.choice(special) if r.random() < 0.3 else (f - 1) * 10 + r.randrange(20) / 4 for _ in range(ROWS)]


def _decimals(scale: int, most: int) -> Callable[[random.Random, int], list[object]]:
    step = D(1).scaleb(-scale)
    return lambda r, f: [D((f - 1) * most // 5 + r.randrange(max(most // 5, 1))) * step for _ in range(ROWS)]


_TEXTS = ["", " ", "a", "A", "ab", "a%b", "a_b", "a\\b", "it's", "é", "ß", "\ue000", "😀", LONG + "😀x", LONG + "\ud7ffz", "1", "5",
          "true", "2024-02-29", "null", "a\nb", "`", '"', "x)) = 1) OR (a = 5", "12.5", "b ", "B"]  # fmt: skip


def _texts(r: random.Random, f: int) -> list[object]:
    start = sorted(_TEXTS)[f * 5 : f * 5 + 7]
    return [r.choice(start) + r.choice(["", "", "x", "_"]) for _ in range(ROWS)]


def _short(length: int) -> Callable[[random.Random, int], list[object]]:
    return lambda r, f: ["abcde"[f] + r.choice(["", "b", " ", "c d", "é"])[: length - 1] for _ in range(ROWS)]


_DAYS = [
    dt.date(1, 1, 1),
    dt.date(1500, 2, 28),
    dt.date(1582, 10, 4),
    dt.date(1969, 12, 30),
    dt.date(2024, 2, 28),
    dt.date(9999, 12, 20),
]
_TIMES = [dt.datetime(1, 1, 3), dt.datetime(1899, 12, 31, 23), dt.datetime(1969, 12, 31, 22), dt.datetime(2018, 2, 18, 1),
          dt.datetime(2024, 3, 10, 5, 30), dt.datetime(2024, 11, 3, 4, 30), dt.datetime(9999, 12, 30)]  # fmt: skip
#: In 1930 and 1978 the clocks of some zones are others in the tables of some.
_DISPUTED_TIMES = [_TIMES[2], dt.datetime(1930, 1, 15, 23), dt.datetime(1978, 11, 20, 20, 15)]
DISPUTED_ZONES = ("Europe/Amsterdam", "Asia/Tehran")


def _days(r: random.Random, f: int) -> list[object]:
    return [_DAYS[f + r.random().__gt__(0.8)] + dt.timedelta(r.randrange(4)) for _ in range(ROWS)]


def _local(r: random.Random, f: int) -> list[object]:
    steps = [0, 1, 999, 1000, 1800 * 10**6, 3600 * 10**6, 7200 * 10**6 + 500]
    times = [*_TIMES[:2], r.choice(_DISPUTED_TIMES), *_TIMES[3:]]
    return [
        times[f + (r.random() > 0.6) * 2 * (f < 5)] + dt.timedelta(microseconds=r.choice(steps)) for _ in range(ROWS)
    ]


def _instants(r: random.Random, f: int) -> list[object]:
    return [x.replace(tzinfo=UTC) for x in _local(r, f) if isinstance(x, dt.datetime)]


KINDS = [
    Kind("int", "int", pa.int32(), _ints(10)),
    Kind("int", "bigint", pa.int64(), lambda r, f: [2**53 * (f - 1) + r.randrange(4) for _ in range(ROWS)]),
    Kind("int", "smallint", pa.int16(), _ints(100)),
    Kind("int", "tinyint", pa.int8(), _ints(10)),
    Kind("float", "double", pa.float64(), _floats),
    Kind("float", "float", pa.float32(), _float32),
    Kind("dec", "decimal(9,2)", pa.decimal128(9, 2), _decimals(2, 3000)),
    Kind("dec", "decimal(38,0)", pa.decimal128(38, 0), _decimals(0, 10**37)),
    Kind("dec", "decimal(38,38)", pa.decimal128(38, 38), _decimals(38, 10**38 - 10)),
    Kind("dec", "decimal(20,10)", pa.decimal128(20, 10), _decimals(10, 10**11)),
    Kind("text", "string", pa.string(), _texts),
    Kind("text", "string", pa.string(), _texts),
    Kind("text", "char(4)", pa.string(), _short(4)),
    Kind("text", "varchar(6)", pa.string(), _short(6)),
    Kind("bool", "boolean", pa.bool_(), lambda r, f: [f % 2 == 0 or r.random() < 0.2 for _ in range(ROWS)]),
    Kind("date", "date", pa.date32(), _days),
    Kind("ts", "timestamp", pa.timestamp("us", "UTC"), _instants),
    Kind("ntz", "timestamp_ntz", pa.timestamp("us"), _local),
    Kind("bin", "binary", pa.binary(), lambda r, f: [bytes([f * 50, r.randrange(3)]) for _ in range(ROWS)]),
]


@dataclass(frozen=True)
class Leaf:
    """Something that a condition may name."""

    sql: str
    kind: str
    ddl: str
    values: tuple[object, ...]


@dataclass
class Made:
    """A table that is to be written."""

    seed: int
    declared: dict[str, str]
    partition_by: tuple[str, ...]
    properties: dict[str, str]
    files: list[pa.Table]
    leaves: list[Leaf]
    zone: str
    ansi: bool
    structs: list[str] = field(default_factory=list)

    @property
    def deletes(self) -> bool:
        return self.properties.get("delta.enableDeletionVectors") == "true"


def quoted(*path: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def _names(r: random.Random, count: int, is_mapped: bool) -> list[str]:
    found: dict[str, str] = {ID: ID}
    pools = [PLAIN, PLAIN, QUOTED, *([MAPPED_ONLY] if is_mapped else [])]
    while len(found) <= count:
        name = r.choice(r.choice(pools))
        name = name.upper() if r.random() < 0.1 else name
        found.setdefault(name.casefold(), name)
    return [name for name in found.values() if name != ID]


def _with_nulls(r: random.Random, values: list[object], file: int) -> list[object]:
    chance = r.choice([0.0, 0.0, 0.2, 0.5, 1.0 if file == 3 else 0.1])
    return [None if r.random() < chance else v for v in values]


def make_table(seed: int) -> Made:
    """A table; the same for the same seed."""
    r = random.Random(seed)
    mode = r.choice(["none", "name", "id"])
    names = _names(r, r.randrange(6, 10), mode != "none")
    kinds = {name: r.choice(KINDS) for name in names}
    members = {name: dict(zip(_names(r, 3, mode != "none"), r.choices(KINDS, k=3), strict=True)) for name in names[:1]}
    declared = {ID: "bigint"}
    arrow = [(ID, pa.int64())]
    for name in names:
        if name in members:
            inner = ", ".join(f"{quoted(m)}: {k.ddl}" for m, k in members[name].items())
            declared[name] = f"struct<{inner}>"
            arrow.append((name, pa.struct([(m, k.arrow) for m, k in members[name].items()])))
        else:
            declared[name], _ = kinds[name].ddl, arrow.append((name, kinds[name].arrow))
    can_part = [n for n in names[1:] if kinds[n].ddl != "binary"]
    partition_by = tuple(r.sample(can_part, r.choice([0, 0, 1, 1, 2])))
    values: dict[tuple[str, ...], list[object]] = {}
    files = []
    for f in range(FILES):
        columns: dict[str, list[object]] = {ID: [f * ROWS + n for n in range(ROWS)]}
        for name in names:
            if name in members:
                inside = {m: _with_nulls(r, k.values(r, f), f) for m, k in members[name].items()}
                rows = [dict(zip(inside, row, strict=True)) for row in zip(*inside.values(), strict=True)]
                columns[name] = _with_nulls(r, list(rows), f)
                for m in inside:
                    values.setdefault((name, m), []).extend(inside[m])
                continue
            drawn = _with_nulls(r, kinds[name].values(r, f), f)
            drawn = [drawn[0]] * ROWS if name in partition_by else drawn
            columns[name] = drawn
            values.setdefault((name,), []).extend(drawn)
        files.append(pa.table({n: pa.array(columns[n], a) for n, a in arrow}, pa.schema(arrow)))
    leaves = []
    for path, drawn in values.items():
        kind = kinds[path[0]] if len(path) == 1 else members[path[0]][path[1]]
        leaves.append(Leaf(quoted(*path), kind.name, kind.ddl, tuple(v for v in drawn if v is not None)))
    properties = {"delta.columnMapping.mode": mode}
    stats = r.choice(["all", "all", "few", "none", "chosen"])
    if stats in ("few", "none"):
        properties["delta.dataSkippingNumIndexedCols"] = "3" if stats == "few" else "0"
    elif stats == "chosen":
        properties["delta.dataSkippingStatsColumns"] = ",".join(quoted(n) for n in names[1:3])
    if r.random() < 0.4:
        properties["delta.enableDeletionVectors"] = "true"
    zones = ["UTC", "America/New_York", "America/Sao_Paulo", "Asia/Kolkata", "Europe/Berlin", "+05:30", *DISPUTED_ZONES]
    return Made(seed, declared, partition_by, properties, files, leaves, r.choice(zones), r.random() < 0.6, names[:1])
