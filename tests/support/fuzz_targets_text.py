"""Targets of the fuzzer: texts that users and tables bring: types, conditions, statements, times, names in paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from alluvium.api.sql.grammar.parse import parse_statement
from alluvium.codecs.partition_path import parse_partition_path
from alluvium.codecs.temporal_text import parse_date, parse_timestamp, parse_timestamp_ntz, parse_zone
from alluvium.delta.terms.canonical_paths import canonical_paths
from alluvium.errors import AlluviumError
from alluvium.expr.evaluate import evaluate
from alluvium.expr.sql.parse import parse_engine_filter, parse_predicate, parse_value
from alluvium.paimon.schema.type_text import parse_type_text
from alluvium.paimon.terms.durations import ensure_duration
from alluvium.schema import types as t
from alluvium.schema.ddl import parse_column_path, parse_ddl_type, parse_declared_type, parse_fields
from alluvium.schema.types import Decimal, Field, Struct
from alluvium.storage.paths import decode_uri_path, encode_uri_path, ensure_relative, resolve, split_url

Made = tuple[Sequence[bytes], Callable[[bytes], str]]

_SCHEMA = Struct(
    (
        Field("id", t.LONG), Field("s", t.STRING), Field("day", t.DATE), Field("at", t.TIMESTAMP), Field("d", Decimal(10, 2)),
        Field("b", t.BOOLEAN), Field("n", Struct((Field("x", t.INTEGER),))), Field("f", t.DOUBLE),
    )
)  # fmt: skip
_ROWS = pa.table({
    "id": pa.array([1, None, 3], pa.int64()), "s": ["a", "2024-01-01", None], "day": pa.array([19_000, None, 1], pa.date32()),
    "at": pa.array([0, None, 1], pa.timestamp("us", "UTC")), "d": pa.array([None, 1, 2], pa.decimal128(10, 2)),
    "b": [True, False, None], "n": pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int32())])), "f": [0.5, float("nan"), None],
})  # fmt: skip


def _text(data: bytes) -> str:
    """As a file or a caller brings it: always text."""
    return data.decode(errors="replace")


def _codes(*asked: Callable[[], object]) -> str:
    """All are asked, whatever the others say."""
    code = "nothing"
    for ask in asked:
        try:
            ask()
            code = "ok"
        except AlluviumError as error:
            str(error)
            code = code if code == "ok" else error.code
    return code


def _ddl() -> Made:
    def act(data: bytes) -> str:
        text = _text(data)
        return _codes(
            lambda: parse_ddl_type(text), lambda: parse_fields(text), lambda: parse_declared_type(text),
            lambda: parse_column_path(text),
        )  # fmt: skip

    texts = (
        "struct<a: int, `b c`: array<decimal(10,2)> not null comment 'x'>", "day date, shop int not null comment 'of it'",
        "map<string, varchar(3)>", "char(10)", "`a.b`.c", "timestamp_ntz", "interval day to second", "variant",
    )  # fmt: skip
    return [text.encode() for text in texts], act


def _paimon_types() -> Made:
    def act(data: bytes) -> str:
        found = parse_type_text(_text(data))
        assert parse_type_text(str(found)) == found, "a type is another one when it is written and read"
        return "ok"

    texts = (
        "TIMESTAMP(3) WITH LOCAL TIME ZONE", "DECIMAL(10, 2) NOT NULL", "VARCHAR(3)", "TIMESTAMP_LTZ(9)", "CHAR(10)",
        "BINARY(2)", "TIME(0)", "BLOB", "VARIANT", "DOUBLE PRECISION", "TINYINT NULL",
    )  # fmt: skip
    return [text.encode() for text in texts], act


_CONDITIONS = (
    "day >= '2024-01-01' and id in (1, 2)", "s like 'a%' or not (b is null)", "n.x between 1 and 3", "year(day) * 100 + month(day) > 202401",
    "case when id = 1 then s else concat(s, 'x') end <=> 'a'", "cast(s as date) = day", "at > timestamp '2024-01-01 00:00:00'",
    "d * 2 > 1.50", "coalesce(id, 3) % 2 = 0", "length(trim(s)) < 5", "substring(s, 1, 2) = 'a' /* x */", "f > 1e3 and f <> double('NaN')",
    "`id` = 0x1F or s rlike '^a.*$'", "date_add(day, 5) = current_date()", "exists(array(1), x -> x > 1)", "s = r'a' or s = \"b\"",
)  # fmt: skip


def _conditions() -> Made:
    def act(data: bytes) -> str:
        text = _text(data)
        parse_engine_filter(text, _SCHEMA, "Europe/Berlin")
        found = parse_predicate(text, _SCHEMA, "Europe/Berlin", ("n",))
        evaluate(found, _ROWS, "Europe/Berlin").validate(full=True)
        return "ok"

    return [text.encode() for text in _CONDITIONS], act


def _values() -> Made:
    """Expressions of a column; the first byte says of which type."""

    def act(data: bytes) -> str:
        target = _SCHEMA.fields[(data[0] if data else 0) % len(_SCHEMA.fields)].type
        found = parse_value(_text(data[1:]), _SCHEMA, target)
        evaluate(found, _ROWS).validate(full=True)
        return "ok"

    texts = (
        "id + 1",
        "upper(s)",
        "date_trunc('month', at)",
        "to_timestamp(s)",
        "cast(id as decimal(10,2)) / 3",
        "b",
        "n",
        "-f",
    )
    return [bytes([number]) + text.encode() for number, text in enumerate(texts)], act


def _statements() -> Made:
    def act(data: bytes) -> str:
        return "spark's" if parse_statement(_text(data)) is None else "ok"

    texts = (
        "VACUUM t RETAIN 5 HOURS DRY RUN", "OPTIMIZE delta.`/x` WHERE a = 1 ZORDER BY (b, c)", "DESCRIBE HISTORY a.b LIMIT 3",
        "RESTORE TABLE t TO VERSION AS OF 3", "CONVERT TO DELTA parquet.`/x` PARTITIONED BY (p int)", "GENERATE symlink_format_manifest FOR TABLE t",
        "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 1)", "CREATE TABLE t SHALLOW CLONE s VERSION AS OF 1 TBLPROPERTIES ('a' = 'b')",
        "ALTER TABLE t DROP FEATURE x TRUNCATE HISTORY", "ALTER TABLE t CLUSTER BY (a, b.c)", "REORG TABLE t APPLY (PURGE)", "FSCK REPAIR TABLE t",
    )  # fmt: skip
    return [text.encode() for text in texts], act


def _times() -> Made:
    """A zone, a line break, and a time."""

    def act(data: bytes) -> str:
        name, _, text = _text(data).partition("\n")
        parse_date(text)
        parse_timestamp_ntz(text)
        parse_timestamp(text, parse_zone(name))
        return "ok"

    texts = (
        "2024-02-29 23:59:59.999999",
        "-0001-01-01",
        "2024-01-01T00:00:00+18:00",
        "294247-01-10 04:00:54.775807",
        "10:00:00",
        "2024-01-01 00:00 Europe/Paris",
    )
    zones = ("UTC", "Europe/Berlin", "+01:00", "Z", "America/St_Johns", "GMT+5")
    return [f"{zone}\n{text}".encode() for zone, text in zip(zones, texts, strict=True)], act


def _paths() -> Made:
    def act(data: bytes) -> str:
        text = _text(data)
        return _codes(
            lambda: decode_uri_path(text), lambda: canonical_paths(pa.array([text, "x"])), lambda: resolve("/t", text),
            lambda: ensure_relative(text), lambda: parse_partition_path(text), lambda: split_url(text), lambda: encode_uri_path(text),
        )  # fmt: skip

    return [
        b"p=1/part%20a.parquet",
        b"s3://b/k/%C3%A9",
        b"/a/../b",
        b"file:///x/y",
        b"p=__HIVE_DEFAULT_PARTITION__/q=%2F",
    ], act


def _durations() -> Made:
    def act(data: bytes) -> str:
        ensure_duration("x", _text(data))
        return "ok"

    return [b"12 h", b"1d", b"3 min", b"250ms"], act


MAKERS: Mapping[str, Callable[[], Made]] = {
    "ddl": _ddl,
    "paimon-type": _paimon_types,
    "sql-condition": _conditions,
    "sql-value": _values,
    "sql-statement": _statements,
    "time-text": _times,
    "path-text": _paths,
    "paimon-duration": _durations,
}
