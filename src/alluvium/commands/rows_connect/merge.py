"""MERGE over Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as sf

from alluvium.commands.merge import merge
from alluvium.commands.merge.merge_source import ORDERED
from alluvium.commands.merge.merging import Merge, Planned
from alluvium.commands.rows_connect.merge_rows import ServerMergeRows
from alluvium.commands.rows_connect.merge_source import ServerSource, copy_of, keep_server_source
from alluvium.expr import tree
from alluvium.expr.tree import Expression, column_paths, conjunction, conjuncts, is_understood, within
from alluvium.plan.merging import When, merge_parameters
from alluvium.plan.ports import RowTable
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct


@dataclass(frozen=True, slots=True)
class ServerMerge(Merge):
    """One attempt at a merge whose expressions the server resolves."""

    def plan(self, version: RowTable) -> Planned:
        assert isinstance(self.rows, ServerMergeRows)
        rows = self.rows.checked_over(version.schema)
        assert rows.on is not None
        name, known = self.request.name[-1], rows.on.known
        lonely = bool(self.request.of(When.NOT_MATCHED_BY_SOURCE))
        keys = [] if lonely else list(_keys(known, name, rows))
        figures = self.noted(lambda: rows.source.measure_keys(keys))
        clauses = [(c.when, c.action, rows.condition_text(c)) for c in self.request.clauses]
        return self.planned(version, rows, merge_parameters(rows.on.shown, clauses), figures, _own_terms(known, name))


def _own_terms(known: Expression, name: str) -> Expression | None:
    """The terms of a condition that speak of the table's columns alone."""
    terms = tuple(
        within(term, name)
        for term in conjuncts(known)
        if is_understood(term) and (paths := column_paths(term)) and all(path[0] == name for path in paths)
    )
    return conjunction(terms)


def _keys(known: Expression, name: str, rows: ServerMergeRows) -> Iterator[tuple[Field, Column]]:
    """Where the condition demands that a column of the table equals one of the source: the column, and that."""
    source, schema = rows.source, rows.target.schema
    assert isinstance(source, ServerSource)
    for term in conjuncts(known):
        if not isinstance(term, tree.Compare) or term.op != "=":
            continue
        for own, other in ((term.left, term.right), (term.right, term.left)):
            if not isinstance(own, tree.Column) or not isinstance(other, tree.Column):
                continue
            column = _column(schema, own, name)
            place = _place(source, other)
            is_bounded = own.type in ORDERED or isinstance(own.type, t.Decimal)
            if column is not None and place is not None and is_bounded and own.type == other.type:
                yield column, sf.col(copy_of(place))


def _column(schema: Struct, found: tree.Column, name: str) -> Field | None:
    is_own = len(found.path) == 2 and found.path[0] == name and found.char_length is None
    return schema.find(found.path[1]) if is_own else None


def _place(source: ServerSource, found: tree.Column) -> int | None:
    if len(found.path) != 2 or found.path[0] != source.name:
        return None
    return next((n for n, f in enumerate(source.fields) if f.name == found.path[1]), None)


LANE = merge.Lane(keep_server_source, ServerMergeRows, ServerMerge)
merge_rows = partial(merge.merge_rows, lane=LANE)
explain_rows = partial(merge.explain_rows, lane=LANE)
