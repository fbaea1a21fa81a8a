"""The front of `spark.sql` over Spark Connect: what can be done without the driver's JVM is done, the rest refused.

A query has frames in the place of the tables that it names by path; they travel with it. Statements that only Delta
knows, and INSERT, are carried out by the verbs that Python calls. What names no table of ours is the server's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.delta_access import names_are_the_servers
from alluvium.api.reader import changes, read
from alluvium.api.sql.call import Arguments
from alluvium.api.sql.connect.insert import Insert, insert, parse_insert
from alluvium.api.sql.connect.reads import (
    FORMATS,
    Read,
    TableRead,
    frame_names,
    may_name_ours,
    reads_in,
    replaced,
)
from alluvium.api.sql.connect.row_changes import RowChange, parse_change
from alluvium.api.sql.connect.row_changes import carry_out as carry_out_change
from alluvium.api.sql.connect.views import create_view, parse_view
from alluvium.api.sql.front import carry_out
from alluvium.api.sql.grammar.parameters import bind_parameters
from alluvium.api.sql.grammar.parse import parse_statement
from alluvium.api.sql.kinds import Kind, head_of
from alluvium.api.sql.text.lexer import TokenKind, scan_tokens
from alluvium.api.sql.text.names import split_name
from alluvium.api.sql.text.terms import Parameter, PathLiteral, Settings, TableName
from alluvium.api.sql.upkeep.targets import table_access
from alluvium.errors import InvalidRequest, UnsupportedFeature

Original = Callable[..., DataFrame]
#: What the server says of a format that it has no class for, or that is no data source of SQL.
_NO_CLASS = re.compile(
    r"\[(?:DATA_SOURCE_NOT_FOUND|UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY)\].*?\b(delta|paimon)\b", re.I | re.S
)
#: What a server without Delta makes of a statement that only Delta knows: `DESCRIBE HISTORY t` is a table to it.
_UNKNOWN_STATEMENT = frozenset(("PARSE_SYNTAX_ERROR", "TABLE_OR_VIEW_NOT_FOUND", "_LEGACY_ERROR_TEMP_0035"))
#: Statements that only Delta knows, and that need no more than the server's jobs.
_WITHOUT_JVM = frozenset(
    (
        "AddFeature",
        "ClusterBy",
        "ComputeStatistics",
        "DescribeDetail",
        "DescribeHistory",
        "DropConstraint",
        "DropFeature",
        "FsckRepair",
        "Generate",
        "Optimize",
        "Reorg",
        "Restore",
        "Vacuum",
    )
)
#: What may stand behind the queries of a WITH, too.
_ROW_CHANGES = frozenset(("INSERT", "MERGE", "UPDATE", "DELETE"))
#: What of a table of ours is always so, for each query reads its log anew.
_ASK_NOTHING = frozenset(("REFRESH",))
#: Enough to tell `CREATE TABLE name (columns) USING delta` in most cases; what is not seen, the server refuses.
_HEAD_WORDS = 400


@dataclass(frozen=True)
class _Statement:
    """A statement on its way to the server.

    Attributes:
        original: PySpark's own `sql`.
        spark: The session.
        args: Values of its parameters.
        frames: What stands for `{name}` in the text.
        settings: The session's, of texts.
    """

    original: Original
    spark: SparkSession
    args: Arguments | None
    frames: Mapping[str, Any]
    settings: Settings

    def path_of(self, table: TableRead) -> str:
        """Its path, into which PySpark would put what stands for `{name}` in it."""
        return table.path.format(**self.frames).replace("``", "`") if self.frames else table.path

    def by_server(self, text: str) -> DataFrame:
        with _told_by_server(text):
            return self.original(self.spark, text, self.args, **self.frames)


def sql(
    original: Original, spark: SparkSession, text: str, args: Arguments | None, frames: Mapping[str, Any]
) -> DataFrame:
    """Carries out a statement of a Connect session.

    Args:
        original: PySpark's own `sql`.
        spark: The session.
        text: The statement.
        args: Values of its parameters.
        frames: What stands for `{name}` in the text.

    Raises:
        UnsupportedFeature: It needs the driver's JVM (`no-jvm-for-sql`).
        AlluviumError: As the verb that the statement calls.
    """
    head = head_of(text)
    if head.kind is not Kind.DELTA_ONLY and not may_name_ours(text):
        # Settings are round trips, which a statement of the server's need not pay.
        with _told_by_server(text):
            return original(spark, text, args, **frames)
    asked = _Statement(original, spark, args, frames, _settings(spark))
    if head.kind is Kind.DELTA_ONLY:
        return _delta_only(asked, text)
    found, words = reads_in(text, asked.settings), _words(text)
    if _makes_ours(words):
        raise _refusal(text)
    if not found:
        return asked.by_server(text)
    target = next((r for r in found if isinstance(r, TableRead) and r.is_target), None)
    if target is None or _asks_for_columns(words) or words[0] in _ASK_NOTHING:
        return _query(asked, text, found)
    given = parse_insert(text, target, asked.settings)
    if given is not None:
        return _inserted(asked, target, given)
    change = None if words[0] not in _ROW_CHANGES else parse_change(text, target, asked.settings)
    if change is None:
        raise _refusal(text)
    return _changed(asked, target, change)


def _asks_for_columns(words: tuple[str, ...]) -> bool:
    """Whether a statement tells no more of a table than of a frame."""
    if words[0] in ("DESCRIBE", "DESC"):
        return not {"EXTENDED", "FORMATTED", "PARTITION"} & {*words[:4]}
    return words[:2] == ("SHOW", "COLUMNS")


def _words(text: str) -> tuple[str, ...]:
    """The first words, in capitals; what is no statement has one that is empty."""
    found = list[str]()
    for token in scan_tokens(text):
        if token.kind is TokenKind.END or len(found) == _HEAD_WORDS:
            break
        found.append(token.word or token.text)
    return (*found, "")


def _makes_ours(words: tuple[str, ...]) -> bool:
    """Whether a table of a format of ours is made under a name: its entry would have no table behind it."""
    using = next((n for n, word in enumerate(words) if word == "USING"), None)
    is_table = words[0] in ("CREATE", "REPLACE") and "TABLE" in words[:4] and not {"TEMPORARY", "TEMP"} & {*words[:4]}
    return is_table and using is not None and words[using + 1].strip("`").lower() in FORMATS


def _query(asked: _Statement, text: str, found: tuple[Read, ...]) -> DataFrame:
    """A statement of the server's over tables of ours."""
    spark, args = asked.spark, asked.args
    view = parse_view(text, asked.settings)
    if view is not None:
        return create_view(spark, view, sql(asked.original, spark, view.query, args, asked.frames))
    names = frame_names(found)
    pieces = [(one, f"{{{name}}}") for one, name in zip(found, names, strict=True)]
    # A table that stands in several places is read once: a statement sees one version of it.
    frames = {name: _rows(asked, one) for name, one in dict(zip(names, found, strict=True)).items()}
    # PySpark formats a text only where frames come with it: the braces of one without stood for themselves.
    template = replaced(text, pieces, str if asked.frames else _escaped)
    left = replace(asked, args=_left(args, found), frames={**asked.frames, **frames})
    return left.by_server(template)


def _left(args: Arguments | None, found: tuple[Read, ...]) -> Arguments | None:
    """The values of the parameters that are still in the text: those without names go by their places."""
    if args is None or isinstance(args, Mapping):
        return args
    used = {p.position for one in found for p in one.values() if isinstance(p, Parameter)}
    return [value for position, value in enumerate(args) if position not in used]


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _rows(asked: _Statement, one: Read) -> DataFrame:
    values = [_value(value, asked.args) for value in one.values()]
    if isinstance(one, TableRead):
        with counterparts("query", one.format):
            return read(asked.spark, asked.path_of(one), *values)  # type: ignore[arg-type]  # checked there
    name = one.function.lower()
    if not 2 <= len(values) <= 3 or not isinstance(values[0], str):
        raise InvalidRequest(
            f"{name} takes a table and one or two points in its history",
            code="invalid-argument",
            hint=f"{name}('...', start[, end])",
        )
    by_path = name.endswith("_by_path")
    target = PathLiteral(values[0]) if by_path else TableName(split_name(values[0], asked.settings))
    with counterparts("changes"):
        access = table_access(asked.spark, target)
        assert access is not None  # over Connect a path is nobody else's
        return changes(asked.spark, access.url, *values[1:])  # type: ignore[arg-type]  # checked there


def _value(value: object, args: Arguments | None) -> object:
    """A value of the text, or one that is given beside it."""
    if not isinstance(value, Parameter):
        return value
    try:
        return args[value.name if isinstance(args, Mapping) else value.position]  # type: ignore[index]
    except (KeyError, IndexError, TypeError):
        raise InvalidRequest(f"no value is given for {value}", code="unbound-parameter", hint="args=...") from None


def _delta_only(asked: _Statement, text: str) -> DataFrame:
    statement = parse_statement(text, asked.settings)
    given = None if statement is None else bind_parameters(statement, asked.args or {}, asked.settings)
    target = getattr(given, "target", None)
    is_done = type(given).__name__ in _WITHOUT_JVM
    if isinstance(target, PathLiteral) or (isinstance(target, TableName) and target.parts[0].lower() in FORMATS):
        done = carry_out(asked.spark, given) if is_done and given is not None else None
        if done is None:
            raise _refusal(text)
        return done
    # The server may have a Delta of its own, and know the name.
    refusal = names_are_the_servers(target.parts) if isinstance(target, TableName) and is_done else _refusal(text)
    with _told_by_server(text, refusal):
        return asked.original(asked.spark, text, asked.args, **asked.frames)


def _inserted(asked: _Statement, target: TableRead, given: Insert) -> DataFrame:
    if target.format != "delta" or target.as_of is not None:
        raise _refusal("INSERT")
    with counterparts("query"):
        access = table_access(asked.spark, PathLiteral(asked.path_of(target)))
        assert access is not None  # a path is nobody else's
        rows = sql(asked.original, asked.spark, given.query, asked.args, asked.frames)
        return insert(asked.spark, access, given, rows)


def _changed(asked: _Statement, target: TableRead, change: RowChange) -> DataFrame:
    if target.format != "delta" or target.as_of is not None:
        raise _refusal(change.verb)
    with counterparts("merge" if change.verb == "MERGE" else "query"):
        access = table_access(asked.spark, PathLiteral(asked.path_of(target)))
        assert access is not None  # a path is nobody else's

        def rows(source: str) -> DataFrame:
            return sql(asked.original, asked.spark, f"SELECT * FROM {source}", asked.args, asked.frames)

        return carry_out_change(asked.spark, access, change, rows)


def _refusal(text: str) -> UnsupportedFeature:
    words = _words(text)
    told = next((word for word in words if word in _ROW_CHANGES), words[0] if words[0].isalpha() else "the statement")
    return UnsupportedFeature(
        f"{told} on a table of ours needs the driver's JVM, which a session of Spark Connect has not",
        code="no-jvm-for-sql",
        hint="run it on a classic session; over Spark Connect there are queries, INSERT, DELETE, UPDATE and MERGE of "
        "delta.`/path`, VACUUM, RESTORE and the like, alluvium.write(df, url) and alluvium.alter(url)",
    )


@contextmanager
def _told_by_server(text: str, refusal: UnsupportedFeature | None = None) -> Iterator[None]:
    """Within it, errors of the server that there is no such format, or with a refusal no such statement, say more."""
    try:
        yield
    except PySparkException as error:
        is_unknown = refusal is not None and (error.getCondition() or "") in _UNKNOWN_STATEMENT
        if not is_unknown and _NO_CLASS.search(str(error)) is None:
            raise
        raise refusal or _refusal(text) from None


def _settings(spark: SparkSession) -> Settings:
    def is_on(name: str) -> bool:
        return str(spark.conf.get(name, "false")).lower() == "true"

    quoted = is_on("spark.sql.ansi.enabled") and is_on("spark.sql.ansi.doubleQuotedIdentifiers")
    return Settings(is_on("spark.sql.parser.escapedStringLiterals"), quoted)
