"""A table with char(n) columns, as writers leave it: texts are not padded, but for those that were given so.

`EXPECTED` is what delta-spark 4.4 on Spark 4.2 was measured to find in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from delta_values import make_metadata

from alluvium.codecs.footers.parquet_footer import read_footer
from alluvium.delta.statistics.stats import format_stats, stats_columns
from alluvium.delta.terms.spec import Action, Add, Protocol, format_actions
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.types import Array, Field, Map, Struct


def _text(name: str, declared: str, data_type: t.DataType = t.STRING) -> Field:
    return Field(name, data_type, True, {CHAR_VARCHAR: declared})


SCHEMA = Struct(
    (
        Field("id", t.INTEGER),
        _text("c", "char(5)"),
        _text("d", "char(3)"),
        _text("v", "varchar(3)"),
        Field("t", t.STRING),
        _text("s", "struct<c:char(3),x:int>", Struct((Field("c", t.STRING), Field("x", t.INTEGER)))),
        _text("ar", "array<char(2)>", Array(t.STRING)),
        _text("mp", "map<char(2),char(3)>", Map(t.STRING, t.STRING)),
        _text("p", "char(4)"),
    )
)
Row = dict[str, object]


def _row(number: int, *values: object) -> Row:
    return dict(zip(SCHEMA.names, (number, *values), strict=True))


ROWS: list[Row] = [
    _row(1, "a", "a", "a", "a", {"c": "a", "x": 1}, ["a", None, ""], [("a", "b")], "x"),
    _row(2, "ä", "a", "a ", "a", {"c": None, "x": 1}, None, None, "y"),
    _row(3, None, "a", None, "a", None, None, None, None),
    _row(4, "a\t", "a", "a", "a    ", {"c": "abc", "x": 1}, None, None, "x"),
    _row(5, "a    ", "abc", "a", "a  ", {"c": "abc", "x": 1}, None, None, "x   "),
    _row(6, "b", "b", "b", "b", {"c": "b", "x": 1}, None, None, "z"),
    _row(7, "abcde", "abc", "b", "b", {"c": "b", "x": 1}, None, None, "zzzz"),
    _row(8, "", "", "", "", {"c": "", "x": 1}, None, None, "x"),
]
#: What is read of them.
PADDED: list[Row] = [
    _row(1, "a    ", "a  ", "a", "a", {"c": "a  ", "x": 1}, ["a ", None, "  "], [("a ", "b  ")], "x   "),
    _row(2, "ä    ", "a  ", "a ", "a", {"c": None, "x": 1}, None, None, "y   "),
    _row(3, None, "a  ", None, "a", None, None, None, None),
    _row(4, "a\t   ", "a  ", "a", "a    ", {"c": "abc", "x": 1}, None, None, "x   "),
    _row(5, "a    ", "abc", "a", "a  ", {"c": "abc", "x": 1}, None, None, "x   "),
    _row(6, "b    ", "b  ", "b", "b", {"c": "b  ", "x": 1}, None, None, "z   "),
    _row(7, "abcde", "abc", "b", "b", {"c": "b  ", "x": 1}, None, None, "zzzz"),
    _row(8, "     ", "   ", "", "", {"c": "   ", "x": 1}, None, None, "x   "),
]
#: The rows' numbers, by file.
FILES = [[1, 8], [4], [5], [2], [3], [6], [7]]

EXPECTED: Mapping[str, list[int]] = {
    "c = 'a'": [1, 5], "c = 'a  '": [1, 5], "c = 'a      '": [1, 5], "'a' = c": [1, 5], "c = 'ä'": [2],
    "c != 'a'": [2, 4, 6, 7, 8], "not (c = 'a')": [2, 4, 6, 7, 8], "c <=> 'a'": [1, 5], "c <=> null": [3],
    "c is not distinct from 'a'": [1, 5], "c is distinct from 'a'": [2, 3, 4, 6, 7, 8], "equal_null(c, 'a')": [1, 5],
    "c < 'a'": [4, 8], "c < 'a '": [4, 8], "c <= 'a'": [1, 4, 5, 8], "c > 'a'": [2, 6, 7], "'a' < c": [2, 6, 7],
    "c >= 'a'": [1, 2, 5, 6, 7], "c >= 'a      '": [1, 2, 5, 6, 7],
    "c in ('a')": [1, 5], "c in ('a', 'b')": [1, 5, 6], "c in ('a', 'abcdef')": [1, 5], "c in ('ä')": [2],
    "c not in ('a')": [2, 4, 6, 7, 8], "c in ('a', t)": [], "'a' in (c)": [],
    # A null makes the list one of several types, which are cast: nothing is padded then.
    "c in ('a', null)": [], "c in ('abcdefg', 'a', null)": [], "c not in ('a', null)": [],
    "c between 'a' and 'a'": [], "c between 'a' and 'a    '": [1, 4, 5], "p between 'x' and 'y'": [1, 4, 5, 8],
    "c like 'a'": [], "c like 'a%'": [1, 4, 5, 7], "c like 'a    '": [1, 5], "startswith(c, 'a ')": [1, 5],
    "length(c) = 1": [], "length(c) = 5": [1, 2, 4, 5, 6, 7, 8], "cast(c as string) = 'a'": [], "upper(c) = 'A'": [],
    "concat(c, '') = 'a'": [], "trim(c) = 'a'": [1, 5], "coalesce(c, 'a') = 'a'": [3], "nullif(c, 'a') is null": [3],
    "if(c = 'a', true, false)": [1, 5], "case c when 'a' then true else false end": [1, 5],
    "c = d": [1, 6, 8], "d < c": [2, 7], "c >= d": [1, 2, 6, 7, 8], "c in (d)": [1, 6, 8], "c = t": [], "c = s.c": [],
    "d = 'a'": [1, 2, 3, 4], "d = 'a' or c = 'b'": [1, 2, 3, 4, 6],
    "s.c = 'a'": [], "s.c = 'a  '": [1], "s.c in ('a')": [], "s.c like 'a  '": [1], "s.c = 'abc'": [4, 5],
    "v = 'a'": [1, 4, 5], "v = 'a '": [2],
    "p = 'x'": [1, 4, 5, 8], "p = 'x     '": [1, 4, 5, 8], "p in ('x', 'z')": [1, 4, 5, 6, 8], "p in ('x', null)": [],
    "p < 'y'": [1, 4, 5, 8], "p > 'x'": [2, 6, 7], "p != 'x'": [2, 6, 7], "p like 'x'": [], "p like 'x%'": [1, 4, 5, 8],
    "length(p) = 4": [1, 2, 4, 5, 6, 7, 8], "p is null": [3], "p = c": [],
}  # fmt: skip


def make_table(root: Path, schema: Struct = SCHEMA, files: Sequence[Sequence[Row]] | None = None) -> str:
    """The path of a table partitioned by `p`, a file for each list of rows."""
    if files is None:
        files = [[ROWS[number - 1] for number in numbers] for numbers in FILES]
    data = Struct(tuple(f for f in schema.fields if f.name != "p"))
    # Of the older kind: every table of this writer version may have a change data feed.
    protocol = Protocol(min_reader_version=1, min_writer_version=4)
    actions: list[Action] = [protocol, make_metadata(schema, ["p"], {"delta.enableChangeDataFeed": "true"})]
    for number, rows in enumerate(files):
        path = root / f"f{number}.parquet"
        root.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema_to_arrow(data)), path)
        with pa.OSFile(str(path)) as source:
            (stats,) = format_stats([read_footer(source, stats_columns(data, ()))]).to_pylist()
        (partition,) = {row["p"] for row in rows}
        actions.append(
            Add(
                path=path.name,
                partition_values={"p": partition},
                size=path.stat().st_size,
                modification_time=1,
                data_change=True,
                stats=stats,
            )
        )
    (root / "_delta_log").mkdir()
    (root / "_delta_log" / f"{0:020}.json").write_bytes(format_actions(actions))
    return str(root)
