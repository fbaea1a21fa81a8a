"""DELETE, UPDATE and MERGE over Spark Connect, of tables by their paths: read here, carried out by `DeltaTable`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.delta.delta_merge import DeltaMergeBuilder
from alluvium.api.delta.delta_table import DeltaTable
from alluvium.api.sql.connect.reads import TableRead
from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.lexer import Token, TokenKind
from alluvium.api.sql.text.names import read_column_list
from alluvium.api.sql.text.strings import name_value
from alluvium.api.sql.text.terms import Settings, SqlText
from alluvium.errors import UnsupportedFeature
from alluvium.plan.changes import Committed
from alluvium.plan.merging import Action, When
from alluvium.spark.naming.names import quote

_NAMES = (TokenKind.WORD, TokenKind.BACKQUOTED)


@dataclass(frozen=True, slots=True)
class Clause:
    """A WHEN clause; `values` None: a star, or a deletion."""

    when: When
    action: Action
    condition: str | None
    values: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class RowChange:
    """What a statement says beside its table.

    Attributes:
        verb: `"DELETE"`, `"UPDATE"` or `"MERGE"`.
        alias: Of the table.
        condition: Which rows.
        values: Of an UPDATE: column to value.
        source: Of a MERGE: what stands behind USING, but for its name.
        source_alias: Its name.
        clauses: Of a MERGE.
        evolves: Whether it is one WITH SCHEMA EVOLUTION.
    """

    verb: str
    alias: str | None = None
    condition: str | None = None
    values: Mapping[str, str] | None = None
    source: str = ""
    source_alias: str | None = None
    clauses: tuple[Clause, ...] = ()
    evolves: bool = False


def parse_change(text: str, target: TableRead, settings: Settings) -> RowChange | None:
    """Parses a DELETE, an UPDATE or a MERGE.

    Args:
        text: The statement.
        target: The table, which stands in it.
        settings: The session's.

    Returns:
        None: it is none of them.

    Raises:
        SqlSyntaxError: It is none that Spark would take.
        UnsupportedFeature: It has parameters (`no-jvm-for-sql`).
    """
    reader = _Reader(Cursor(text, settings), target)
    cursor = reader.cursor
    if cursor.take("DELETE", "FROM"):
        return reader.delete()
    if cursor.take("UPDATE"):
        return reader.update()
    if not cursor.take("MERGE"):
        return None
    evolves = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    return reader.merge(evolves)


@dataclass(frozen=True, slots=True)
class _Reader:
    cursor: Cursor
    target: TableRead

    def delete(self) -> RowChange:
        alias = self._table()
        return RowChange("DELETE", alias, self._where())

    def update(self) -> RowChange:
        alias = self._table()
        self.cursor.expect("SET")
        return RowChange("UPDATE", alias, values=self._assignments("WHERE"), condition=self._where())

    def merge(self, evolves: bool) -> RowChange:
        alias = self._table()
        self.cursor.expect("USING")
        source, name = self._source()
        self.cursor.expect("ON")
        condition = self._text("a condition", "WHEN")
        clauses = []
        while self.cursor.take("WHEN"):
            clauses.append(self._clause())
        self.cursor.expect_end()
        return RowChange("MERGE", alias, condition, None, source, name, tuple(clauses), evolves)

    def _table(self) -> str | None:
        """Steps over the table: its name in the statement."""
        if self.cursor.peek().start != self.target.start:
            self.cursor.fail("the table")
        while self.cursor.peek().start < self.target.end:
            self.cursor.advance()
        if self.cursor.take("AS"):
            return self._name()
        return None if self._ends("WHERE", "SET", "USING") else self._name()

    def _ends(self, *words: str) -> bool:
        return self.cursor.at_end() or any(self.cursor.sees(word) for word in words)

    def _name(self) -> str:
        token = self.cursor.peek()
        if token.kind not in _NAMES:
            self.cursor.fail("a name")
        return _name_of(self.cursor.advance())

    def _where(self) -> str | None:
        if self.cursor.at_end():
            return None
        self.cursor.expect("WHERE")
        found = self._text("a condition")
        self.cursor.expect_end()
        return found

    def _source(self) -> tuple[str, str | None]:
        """What stands before ON: rows, and their name: the one that is given, else the table's own."""
        cursor, stop = self.cursor, self._next("ON")
        outer = [index for index in cursor.outer_tokens() if index < stop]
        last = cursor.peek(outer[-1] - cursor.at) if outer else None
        if last is None or last.kind not in _NAMES:
            return _plain(cursor.sql_until(stop, "a table or a query")), None
        end = stop
        if len(outer) > 1 and not cursor.is_at(outer[-2], "."):
            end = outer[-2] if cursor.is_at(outer[-2], "AS") else outer[-1]
        rows = _plain(cursor.sql_until(end, "a table or a query"))
        while cursor.at < stop:
            cursor.advance()
        return rows, _name_of(last)

    def _clause(self) -> Clause:
        when = When.NOT_MATCHED if self.cursor.take("NOT") else When.MATCHED
        self.cursor.expect("MATCHED")
        if when is When.NOT_MATCHED and self.cursor.take("BY"):
            if self.cursor.take("SOURCE"):
                when = When.NOT_MATCHED_BY_SOURCE
            else:
                self.cursor.expect("TARGET")
        condition = self._text("a condition", "THEN") if self.cursor.take("AND") else None
        self.cursor.expect("THEN")
        if when is When.NOT_MATCHED:
            return Clause(when, Action.INSERT, condition, self._inserted())
        if self.cursor.take("DELETE"):
            return Clause(when, Action.DELETE, condition, None)
        self.cursor.expect("UPDATE", "SET")
        if when is When.MATCHED and self.cursor.take("*"):
            return Clause(when, Action.UPDATE, condition, None)
        return Clause(when, Action.UPDATE, condition, self._assignments("WHEN"))

    def _inserted(self) -> Mapping[str, str] | None:
        """Columns to their values; None: a star."""
        cursor = self.cursor
        cursor.expect("INSERT")
        if cursor.take("*"):
            return None
        columns = [".".join(map(quote, path)) for path in read_column_list(cursor)]
        cursor.expect("VALUES")
        closing = cursor.closing()
        cursor.expect("(")
        values = self._list(closing)
        cursor.expect(")")
        if len(values) != len(columns):
            raise cursor.refused(f"{len(columns)} columns are named, and {len(values)} values are given")
        return dict(zip(columns, values, strict=True))

    def _assignments(self, before: str) -> Mapping[str, str]:
        """`column = value, ...` up to a word, or the end."""
        stop, found = self._next(before), dict[str, str]()
        while True:
            equals = next((i for i in self.cursor.outer_tokens() if i < stop and self.cursor.is_at(i, "=")), None)
            if equals is None:
                self.cursor.fail("column = value")
            column = _plain(self.cursor.sql_until(equals, "a column"))
            if column in found:
                raise self.cursor.refused(f"{column} is set twice")
            self.cursor.expect("=")
            comma = next((i for i in self.cursor.outer_tokens() if i < stop and self.cursor.is_at(i, ",")), stop)
            found[column] = _plain(self.cursor.sql_until(comma, "a value"))
            if not self.cursor.take(","):
                return found

    def _list(self, stop: int) -> list[str]:
        """Expressions between commas up to an index."""
        found = list[str]()
        depth = 0
        index = self.cursor.at
        while index < stop:
            text = self.cursor.peek(index - self.cursor.at).text
            depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
            if text == "," and depth == 0:
                found.append(_plain(self.cursor.sql_until(index, "a value")))
                self.cursor.advance()
            index += 1
        return [*found, _plain(self.cursor.sql_until(stop, "a value"))]

    def _text(self, what: str, *before: str) -> str:
        return _plain(self.cursor.sql_until(self._next(*before), what))

    def _next(self, *words: str) -> int:
        """The index of the first of some words that stands neither in brackets nor in a CASE; behind the end if none
        does.
        """
        cases = 0
        for index in self.cursor.outer_tokens():
            if cases == 0 and any(self.cursor.is_at(index, word) for word in words):
                return index
            cases += self.cursor.is_at(index, "CASE")
            cases -= self.cursor.is_at(index, "END") and cases > 0
        return self.cursor.stop()


def _name_of(token: Token) -> str:
    return token.text if token.kind is TokenKind.WORD else name_value(token.text)


def _plain(found: SqlText) -> str:
    if found.parameters:
        raise UnsupportedFeature(
            f"{found.parameters[0]}: to bind it needs the driver's JVM, which a session of Spark Connect has not",
            code="no-jvm-for-sql",
            hint="write the value there, or use DeltaTable.forPath(spark, path)",
        )
    return found.text


def carry_out(
    spark: SparkSession, access: TableAccess, given: RowChange, rows: Callable[[str], DataFrame]
) -> DataFrame:
    """Carries a statement out.

    Args:
        spark: The session.
        access: The table.
        given: The statement.
        rows: From what stands behind USING to its rows.

    Returns:
        One row: `num_affected_rows`, and of a MERGE what became of them.
    """
    table = DeltaTable(spark, access, given.alias)
    if given.verb == "MERGE":
        done = _merged(table, given, rows).execute()
        assert isinstance(done, DataFrame)
        return done
    if given.verb == "DELETE":
        committed, counted = table.delete(given.condition), "numDeletedRows"
    else:
        committed, counted = table.update(given.condition, given.values), "numUpdatedRows"
    assert isinstance(committed, Committed)
    count = int(committed.metrics.get(counted, 0))
    return spark.range(1).selectExpr(f"cast({count} as bigint) as num_affected_rows")


def _merged(table: DeltaTable, given: RowChange, rows: Callable[[str], DataFrame]) -> DeltaMergeBuilder:
    source = rows(given.source)
    source = source if given.source_alias is None else source.alias(given.source_alias)
    merge = table.merge(source, given.condition or "true")
    merge = merge.withSchemaEvolution() if given.evolves else merge
    for clause in given.clauses:
        merge = _with(merge, clause)
    return merge


def _with(merge: DeltaMergeBuilder, clause: Clause) -> DeltaMergeBuilder:
    condition, values = clause.condition, clause.values
    if clause.when is When.NOT_MATCHED:
        if values is None:
            return merge.whenNotMatchedInsertAll(condition)
        return merge.whenNotMatchedInsert(condition, values)
    if clause.when is When.NOT_MATCHED_BY_SOURCE:
        if clause.action is Action.DELETE:
            return merge.whenNotMatchedBySourceDelete(condition)
        return merge.whenNotMatchedBySourceUpdate(condition, values)
    if clause.action is Action.DELETE:
        return merge.whenMatchedDelete(condition)
    return merge.whenMatchedUpdateAll(condition) if values is None else merge.whenMatchedUpdate(condition, values)
