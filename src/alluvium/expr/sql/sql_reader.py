"""Predicates from text: what users write, and what Spark prints of its own filters. The only sqlglot door.

The structure of AND, OR, NOT and parentheses is read here from the tokens; only the operands between them go through
sqlglot. So an operand that is not understood becomes `Unknown` and leaves the rest intact, long chains and deep
nesting need no deep recursion, and the cost is linear.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import sqlglot.errors
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark

from alluvium.codecs.temporal_text import parse_zone
from alluvium.errors import InvalidRequest, suggest
from alluvium.expr import tree
from alluvium.expr.bind import Binder, number_literal
from alluvium.expr.char_padding import as_text
from alluvium.expr.literals import BARE_NAME, NotUnderstood
from alluvium.expr.sql.condition_tokens import (
    count_commas,
    has_bare_is,
    has_doubled_quote,
    invalid,
    matching,
    split,
    with_calls,
    with_members,
)
from alluvium.schema import types as t
from alluvium.schema.text_lengths import char_length
from alluvium.schema.types import COLLATIONS, DataType, Decimal, Struct

# Bounds on untrusted text. sqlglot reads about 10 us a token, so the longest text takes about a second.
MAX_CHARACTERS = 500_000
MAX_DEPTH = 150


class _Dialect(Spark):
    """Spark SQL without sqlglot's renaming of functions: each call keeps the name and arguments of the text."""

    class Parser(Spark.Parser):  # type: ignore[misc,valid-type]  # to mypy a variable
        FUNCTIONS: ClassVar[dict[str, object]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[object, object]] = {}
        FUNCTION_PARSERS: ClassVar = {
            k: v for k, v in Spark.Parser.FUNCTION_PARSERS.items() if k in ("CAST", "TRY_CAST")
        }
        # CAST and TRY_CAST stay apart
        STRICT_CAST = True


_DIALECT = _Dialect()
_COMPARE: dict[type, str] = {
    exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
}  # fmt: skip
_OPERATORS: dict[type, str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "div", exp.Mod: "%", exp.DPipe: "concat",
}  # fmt: skip
#: Spark's parser applies them to the whole comparison before them, `(a = b) IN (c)`, and sqlglot to its right side; all
#: comparisons are alike to it, and `||` is like `+`. What an engine prints has parentheses but around LIKE.
_LOOSER = (exp.Between, exp.In, exp.Like, exp.ILike, exp.RegexpLike, exp.Is, exp.Not)
_TYPES: dict[str, DataType] = {
    "TINYINT": t.BYTE, "SMALLINT": t.SHORT, "INT": t.INTEGER, "BIGINT": t.LONG, "FLOAT": t.FLOAT, "DOUBLE": t.DOUBLE,
    "BOOLEAN": t.BOOLEAN, "TEXT": t.STRING, "BINARY": t.BINARY, "DATE": t.DATE, "TIMESTAMPTZ": t.TIMESTAMP,
    "TIMESTAMPLTZ": t.TIMESTAMP, "TIMESTAMPNTZ": t.TIMESTAMP_NTZ,
}  # fmt: skip
# Arguments that sqlglot sets on nodes and that do not change the meaning of the text.
_HARMLESS = frozenset({"typed", "safe", "coalesce", "nested", "_type"})
#: As names, Catalyst prints them without quotes.
_CONSTANTS = frozenset({"true", "false", "null"})
_WORD = re.compile(r"\w+")
_AGGREGATES = frozenset({"count", "sum", "avg", "mean", "min", "max", "first", "last", "collect_list", "collect_set"})


def parse_predicate(text: str, schema: Struct, time_zone: str = "UTC", rows: Collection[str] = ()) -> tree.Expression:
    """Parses a predicate that a user wrote as Spark SQL.

    A part that Spark may understand and we do not (a function that is not known here, an array element) becomes
    `Unknown`; whether that will do is the caller's decision.

    Raises:
        InvalidRequest: `"invalid-predicate"`: not SQL, not boolean, types that do not match, or a subquery,
            aggregate or window; `"unknown-column"`.
    """
    reader = _Reader(text, schema, Binder(parse_zone(time_zone), rows=frozenset(rows)))
    return reader.read()


def parse_engine_filter(text: str, schema: Struct, time_zone: str = "UTC") -> tree.Expression:
    """Parses what Spark's Catalyst prints of a filter (`Expression.sql`); never raises.

    Attributes may carry qualifiers. What is not understood, or may be read in two ways, becomes `Unknown`.
    """
    called_so = _CONSTANTS.intersection(name.lower() for name in schema.names)
    if called_so and called_so.intersection(map(str.lower, _WORD.findall(text))):
        return tree.Unknown(text)
    try:
        return _Reader(text, schema, Binder(parse_zone(time_zone), engine=True)).read()
    except InvalidRequest:
        return tree.Unknown(text)


def parse_value(
    text: str, schema: Struct, target: DataType, time_zone: str = "UTC", rows: Collection[str] = ()
) -> tree.Expression:
    """Parses an expression of any type, and casts it; what is not understood becomes `Unknown` as a whole.

    Raises:
        InvalidRequest: As of `parse_predicate`, but for the type.
    """
    binder = Binder(parse_zone(time_zone), rows=frozenset(rows))
    found = _Reader(text, schema, binder, is_condition=False).read()
    if isinstance(found, tree.Column) and _is_nested(found.type) and type(found.type) is type(target):
        # Members go by their names, which is not a cast's business.
        return found
    try:
        return binder.cast(found, target)
    except NotUnderstood:
        return tree.Unknown(text)


def _is_nested(data_type: DataType) -> bool:
    return isinstance(data_type, (t.Struct, t.Array, t.Map))


@dataclass(slots=True)
class _Reader:
    text: str
    schema: Struct
    binder: Binder
    #: Whether the whole must be boolean; operands of AND, OR and NOT must be always.
    is_condition: bool = True

    def read(self) -> tree.Expression:
        if len(self.text) > MAX_CHARACTERS:
            raise invalid(f"is too long ({len(self.text)} characters)", self.text)
        try:
            tokens = with_members(_DIALECT.tokenize(self.text))
        except sqlglot.errors.SqlglotError:
            raise invalid("cannot be read (is a quote missing?)", self.text) from None
        if not tokens:
            raise invalid("is empty", self.text)
        if has_bare_is(tokens):
            raise invalid("has a name that reads as an operator", self.text, "put the name in backticks: `is` = 5")
        try:
            close = matching(tokens, self.text)
            return self._condition(with_calls(tokens, close), close, 0, len(tokens), 0)
        except RecursionError:
            raise invalid("is nested too deeply", self.text) from None

    def _condition(
        self, tokens: Sequence[Token], close: list[int], start: int, end: int, depth: int
    ) -> tree.Expression:
        if depth > MAX_DEPTH:
            raise invalid("is nested too deeply", self.text)
        while start < end and tokens[start].token_type == TokenType.L_PAREN and close[start] == end - 1:
            start, end = start + 1, end - 1
        for kind in (TokenType.OR, TokenType.AND):
            ranges = split(tokens, close, start, end, kind)
            if len(ranges) > 1:
                self.is_condition = True
                operands = [self._condition(tokens, close, a, b, depth + 1) for a, b in ranges]
                return _balanced(operands, tree.Or if kind == TokenType.OR else tree.And)
        negations = 0
        while start < end and tokens[start].token_type == TokenType.NOT:
            start, negations = start + 1, negations + 1
        if negations:
            self.is_condition = True
            child = self._condition(tokens, close, start, end, depth + 1)
            return tree.Not(child) if negations % 2 else child
        if start >= end:
            raise invalid("misses an operand", self.text)
        return self._operand(tokens, start, end)

    def _operand(self, tokens: Sequence[Token], start: int, end: int) -> tree.Expression:
        """A condition without AND, OR, NOT on its outside."""
        sql = self.text[tokens[start].start : tokens[end - 1].end + 1]
        try:
            parsed = _DIALECT.parser().parse_into(exp.Condition, list(tokens[start:end]), self.text)
            if len(parsed) != 1 or parsed[0] is None:
                raise invalid("is more than one expression", sql)
            commas = count_commas(tokens, start, end)
            is_doubled = has_doubled_quote(tokens[start:end], self.text)
            return self._bound(cast(exp.Expression, parsed[0]), sql, commas, is_doubled=is_doubled)
        except RecursionError:
            error = invalid("is nested too deeply", sql)
        except (sqlglot.errors.SqlglotError, ValueError, ArithmeticError):
            # sqlglot converts what looks like a number, as `4ebd` of the bare name `col-4ebd-9f` does.
            error = invalid("cannot be parsed", sql)
        except InvalidRequest as refused:
            error = refused
        if self.binder.engine:
            return tree.Unknown(sql)
        raise error

    def _bound(self, node: exp.Expression, sql: str, commas: int, *, is_doubled: bool) -> tree.Expression:
        try:
            if is_doubled:
                raise NotUnderstood("a quote that is twice within a text")
            if commas and commas != _commas(node):
                raise NotUnderstood("an argument that is a word to sqlglot: of coalesce(a, all) it keeps one")
            found = self._expression(node)
            return self.binder.boolean(found) if self.is_condition else found
        except NotUnderstood:
            return tree.Unknown(sql, None if self.binder.engine else self._check_user_text(node, sql))

    def _check_user_text(self, node: exp.Expression, sql: str) -> frozenset[tuple[str, ...]] | None:
        """Of text that is not understood: refuses what no predicate may have, and columns that do not exist.

        Returns:
            The columns that it names, where that can be told.
        """
        if isinstance(node, exp.Alias) or (node.find(exp.Star) and not node.find(exp.Anonymous)):
            raise invalid("is not a condition", sql)
        if node.find(exp.Query, exp.Subquery, exp.Exists):
            raise invalid("has a subquery", sql, "run the subquery first and compare with its result")
        if node.find(exp.Window):
            raise invalid("has a window function", sql, "filter the DataFrame instead")
        for call in node.find_all(exp.Anonymous):
            if str(call.this).lower() in _AGGREGATES:
                raise invalid(f"has the aggregate {call.this}()", sql, "filter the DataFrame instead")
        # Names that stand for no column: parameters of a lambda, collations.
        if node.find(exp.Lambda, exp.Star, exp.Collate) is not None:
            return None
        try:
            return frozenset(self._column(column).path for column in node.find_all(exp.Column))
        except NotUnderstood:
            return None

    # -- operands -----------------------------------------------------------------------------------------------------

    def _expression(self, node: exp.Expression) -> tree.Expression:
        kind: type = type(node)
        if kind in _COMPARE:
            _ensure_only(node, "this", "expression")
            self._ensure_grouped(node, _LOOSER, (*_LOOSER, *_COMPARE))
            return self.binder.compare(_COMPARE[kind], *self._both(node))
        if kind is exp.NullSafeNEQ:
            _ensure_only(node, "this", "expression")
            return tree.Not(self.binder.compare("<=>", *self._both(node)))
        if kind in _OPERATORS:
            _ensure_only(node, "this", "expression")
            if kind is exp.DPipe:
                self._ensure_grouped(node, (), (exp.Add, exp.Sub))
            return self.binder.call(_OPERATORS[kind], self._both(node))
        if kind is exp.Paren:
            _ensure_only(node, "this")
            return self._expression(node.this)
        if kind in (exp.Column, exp.Dot):
            return self._column(node)
        if kind in (exp.Literal, exp.Null, exp.Boolean, exp.HexString, exp.Neg, exp.Concat):
            return self._constant(node)
        if kind is exp.Cast:
            _ensure_only(node, "this", "to")
            return self.binder.cast(self._expression(node.this), _data_type(node.args["to"]))
        if kind is exp.Anonymous and isinstance(node.this, str):
            _ensure_only(node, "this", "expressions")
            if self.binder.engine and node.this.lower() == "static_invoke":
                return as_text(self._padded_column(node))
            given = tuple(self._expression(a) for a in node.expressions)
            # As Catalyst of Spark 4 prints a BETWEEN.
            if node.this.lower() == "between" and len(given) == 3:
                return self._between(*given)
            return self.binder.call(node.this, given)
        return self._boolean(node, kind)

    def _ensure_grouped(self, node: exp.Expression, left: tuple[type, ...], right: tuple[type, ...]) -> None:
        """Refuses operands of an operator that Spark's parser would group otherwise than sqlglot does."""
        after = node.expression
        if isinstance(node, exp.NullSafeEQ) and isinstance(after, exp.Paren):
            after = after.this  # sqlglot's own parentheses, perhaps
        if not self.binder.engine and (isinstance(node.this, left) or isinstance(after, right)):
            raise NotUnderstood("operators without parentheses")

    def _both(self, node: exp.Expression) -> tuple[tree.Expression, tree.Expression]:
        return self._expression(node.this), self._expression(node.expression)

    def _boolean(self, node: exp.Expression, kind: type) -> tree.Expression:
        binder = self.binder
        if kind in (exp.And, exp.Or):
            _ensure_only(node, "this", "expression")
            left, right = (binder.boolean(x) for x in self._both(node))
            return tree.And(left, right) if kind is exp.And else tree.Or(left, right)
        if kind is exp.Not:
            _ensure_only(node, "this")
            return tree.Not(binder.boolean(self._expression(node.this)))
        if kind is exp.Is:
            return self._is(node)
        if kind is exp.In:
            _ensure_only(node, "this", "expressions", "negate")
            if not node.expressions:
                raise invalid("has an IN without values", self.text)
            values = [self._expression(v) for v in node.expressions]
            return _negated(node, binder.is_in(self._expression(node.this), values))
        if kind is exp.Between:
            _ensure_only(node, "this", "low", "high", "negate")
            child = self._expression(node.this)
            low, high = (self._expression(node.args[x]) for x in ("low", "high"))
            return _negated(node, self._between(child, low, high))
        if kind is exp.Like:
            _ensure_only(node, "this", "expression", "negate")
            return _negated(node, binder.like(*self._both(node)))
        return self._branches(node, kind)

    def _between(self, child: tree.Expression, low: tree.Expression, high: tree.Expression) -> tree.Expression:
        child, low, high = (as_text(x) for x in (child, low, high))
        return tree.And(self.binder.compare(">=", child, low), self.binder.compare("<=", child, high))

    def _is(self, node: exp.Expression) -> tree.Expression:
        _ensure_only(node, "this", "expression", "negate")
        child = self._expression(node.this)
        if isinstance(node.expression, exp.Null):
            return _negated(node, tree.IsNull(child))
        if isinstance(node.expression, exp.Boolean):
            truth = tree.Literal(bool(node.expression.this), t.BOOLEAN)
            return _negated(node, tree.Compare("<=>", self.binder.boolean(child), truth))
        raise NotUnderstood("IS")

    def _branches(self, node: exp.Expression, kind: type) -> tree.Expression:
        if kind is exp.If:
            _ensure_only(node, "this", "true", "false")
            last = node.args.get("false")
            branches: list[tree.Expression] = [self._expression(node.this), self._expression(node.args["true"])]
        elif kind is exp.Case:
            _ensure_only(node, "this", "ifs", "default")
            last, branches = node.args.get("default"), []
            for branch in node.args["ifs"]:
                when = self._expression(branch.this)
                if node.this is not None:
                    when = self.binder.compare("=", self._expression(node.this), when)
                branches += [when, self._expression(branch.args["true"])]
        else:
            raise NotUnderstood(kind.__name__)
        if last is not None:
            branches.append(self._expression(last))
        return self.binder.call("case", tuple(branches))

    def _constant(self, node: exp.Expression) -> tree.Expression:
        if isinstance(node, exp.Null):
            return tree.Literal(None, t.VOID)
        if isinstance(node, exp.Boolean):
            return tree.Literal(bool(node.this), t.BOOLEAN)
        if isinstance(node, exp.HexString):
            digits = str(node.this)
            return tree.Literal(bytes.fromhex("0" * (len(digits) % 2) + digits), t.BINARY)
        if isinstance(node, exp.Literal):
            return tree.Literal(str(node.this), t.STRING) if node.is_string else number_literal(str(node.this))
        if isinstance(node, exp.Concat):  # 'a' 'b'
            if all(isinstance(e, exp.Literal) and e.is_string for e in node.expressions):
                return tree.Literal("".join(str(e.this) for e in node.expressions), t.STRING)
            raise NotUnderstood("concat")
        # The sign belongs to the number: the least integer is the negation of a number that is too great.
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return number_literal(f"-{inner.this}")
        if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal) and not inner.this.is_string:
            return self.binder.cast(number_literal(f"-{inner.this.this}"), _data_type(inner.args["to"]))
        return self.binder.call("negative", (self._expression(inner),))

    def _column(self, node: exp.Expression) -> tree.Column:
        parts = _identifiers(node)
        names = tuple(str(p.this) for p in parts)
        readings = [p for p in map(self._resolve, _suffixes(names, self.binder.engine)) if p is not None]
        if self.binder.engine and len(names) > 1:
            readings = [p for p in readings if len(p.path) > _quoted_fields(parts)]
        if len(readings) == 1 and not self._may_be_within(parts, readings[0]):
            self.binder.ensure_no_row(readings[0], self.schema)
            return readings[0]
        if readings or self.binder.engine:
            raise NotUnderstood(f"the name {'.'.join(names)}")
        known: Struct = self.schema
        for name in names[:-1]:
            found = known.find(name)
            if found is None or not isinstance(found.type, Struct):
                break
            known = found.type
        missing = next((n for n in names if known.find(n) is None), names[0])
        raise InvalidRequest(
            f"unknown column {'.'.join(names)!r}",
            code="unknown-column",
            column=".".join(names),
            hint=suggest(missing, known.names),
        )

    def _may_be_within(self, parts: tuple[exp.Identifier, ...], found: tree.Column) -> bool:
        """Whether what stands before a column in an engine's text may be another column, and no qualifier: the field of
        an array's elements prints as `` items.`unit price` ``, behind what is no struct.
        """
        before = len(parts) - len(found.path) - 1
        # An attribute has no quotes that it does not need, and a field has them always.
        is_quoted = bool(parts[-1].args.get("quoted"))
        return before >= 0 and is_quoted and self.schema.find(str(parts[before].this)) is not None

    def _padded_column(self, node: exp.Expression) -> tree.Column:
        """The column of `static_invoke(CharVarcharCodegenUtils.readSidePadding(c, 5))`: so Spark reads char(5)."""
        call = node.expressions[0].args.get("expression") if node.expressions else None
        if not isinstance(call, exp.Anonymous) or call.this != "readSidePadding" or len(call.expressions) != 2:
            raise NotUnderstood("static_invoke")
        text, length = (self._expression(argument) for argument in call.expressions)
        count = length.value if isinstance(length, tree.Literal) else None
        if not isinstance(text, tree.Column) or not isinstance(count, int):
            raise NotUnderstood("readSidePadding")
        return replace(text, char_length=count)

    def _resolve(self, names: tuple[str, ...]) -> tree.Column | None:
        current: DataType = self.schema
        path: list[str] = []
        for name in names:
            found = current.find(name) if isinstance(current, Struct) else None
            if found is None:
                return None
            if found.metadata.get(COLLATIONS):
                raise NotUnderstood("a collation")  # such text compares by other rules than its bytes
            path.append(found.name)
            current = found.type
        # An engine has padded already what it compares; its columns are those of the files.
        length = None if self.binder.engine or current != t.STRING else char_length(self.schema, tuple(path))
        return tree.Column(tuple(path), current, length)


def _suffixes(names: tuple[str, ...], engine: bool) -> list[tuple[str, ...]]:
    return [names[i:] for i in range(len(names))] if engine else [names]


def _identifiers(node: exp.Expression) -> tuple[exp.Identifier, ...]:
    """The parts of a dotted name."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return (*_identifiers(node.this), node.expression)
    if not isinstance(node, exp.Column):
        raise NotUnderstood("a field of a value")
    parts = [p for p in (node.args.get(x) for x in ("catalog", "db", "table", "this")) if p is not None]
    if not all(isinstance(p, exp.Identifier) for p in parts):
        raise NotUnderstood("a star")
    return tuple(parts)


def _quoted_fields(parts: tuple[exp.Identifier, ...]) -> int:
    """How many of the last names are surely struct fields.

    Catalyst quotes the parts of an attribute where they need it, and a struct field always: in ``a.n.`s` `` the last
    name is a field. Where all parts have quotes that says nothing.
    """
    needless = [bool(p.args.get("quoted")) and BARE_NAME.match(str(p.this)) is not None for p in parts]
    return 0 if all(needless) else needless[::-1].index(False)


def _commas(node: exp.Expression) -> int:
    """How many commas stand between arguments and values of what is understood here."""
    found, pending = 0, [node]
    while pending:
        current = pending.pop()
        if isinstance(current, (exp.Anonymous, exp.In)):
            found += max(len(current.expressions) - 1, 0)
        elif isinstance(current, exp.If) and not isinstance(current.parent, exp.Case):
            found += 1 + (current.args.get("false") is not None)
        pending += [part for part in current.iter_expressions() if type(part) is not exp.Literal]
    return found


def _ensure_only(node: exp.Expression, *names: str) -> None:
    """Refuses a node with arguments that are not known here: they may change its meaning."""
    for name, value in node.args.items():
        if value and name not in names and name not in _HARMLESS:
            raise NotUnderstood(f"{type(node).__name__} with {name}")


def _negated(node: exp.Expression, result: tree.Expression) -> tree.Expression:
    return tree.Not(result) if node.args.get("negate") else result


def _data_type(node: exp.Expression) -> DataType:
    if not isinstance(node, exp.DataType):
        raise NotUnderstood("a type")
    _ensure_only(node, "this", "expressions")
    name = getattr(node.this, "name", str(node.this))
    if name == "DECIMAL":
        numbers = [int(str(p.this.this)) for p in node.expressions]
        precision, scale = (*numbers, *(10, 0)[len(numbers) :])
        if not 0 < precision <= 38 or not 0 <= scale <= precision:
            raise NotUnderstood("a decimal out of range")
        return Decimal(precision, scale)
    if name not in _TYPES:
        raise NotUnderstood(f"the type {name}")
    return _TYPES[name]


def _balanced(nodes: list[tree.Expression], join: type[tree.And] | type[tree.Or]) -> tree.Expression:
    """The nodes joined as a tree of logarithmic depth."""
    while len(nodes) > 1:
        pairs: list[tree.Expression] = [join(a, b) for a, b in zip(nodes[0::2], nodes[1::2], strict=False)]
        nodes = pairs + nodes[len(pairs) * 2 :]
    return nodes[0]
