"""Random conditions over the columns of a random table: what Spark's parser takes, of every kind that can be skipped by."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable

from filter_tables import Leaf, Made

_UNITS = ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE"]
#: Texts that would be a condition if somebody printed them without quotes.
TRICKS = [
    "x)) = 1) OR (a = 5",
    "' OR (a = 5) OR '",
    "a'",
    "--",
    "/*",
    "\\",
    "\\\\'",
    "true",
    ") or true or (",
    "1e5",
    "`",
]


def text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


class Conditions:
    """Draws conditions."""

    def __init__(self, made: Made, r: random.Random) -> None:
        self.made, self.r = made, r
        self.of: dict[str, list[Leaf]] = {}
        for leaf in made.leaves:
            self.of.setdefault(leaf.kind, []).append(leaf)

    # -- constants ----------------------------------------------------------------------------------------------------

    def literal(self, kind: str) -> str:
        """A constant near the values that are there."""
        r = self.r
        known = [v for leaf in self.of.get(kind, []) for v in leaf.values]
        if r.random() < 0.04:
            return "null"
        value = r.choice(known) if known and r.random() < 0.8 else None
        return getattr(self, f"_{kind}")(value)

    def _int(self, value: object) -> str:
        number = (int(str(value)) if value is not None else 0) + self.r.choice([0, 0, 0, 1, -1])
        shown = self.r.choice(["{}", "{}", "{}L", "{}.0", "{}BD", "cast({} as bigint)", "'{}'", "{}D"])
        return shown.format(number)

    def _float(self, value: object) -> str:
        number = float(str(value)) if value is not None else self.r.choice([0.0, -0.0, 0.1, math.nan])
        if math.isnan(number) or math.isinf(number):
            return f"{self.r.choice(['double', 'float'])}('{str(number).replace('inf', 'Infinity')}')"
        return self.r.choice(["{}D", "{}", "float('{}')", "cast({} as float)", "'{}'"]).format(repr(number))

    def _dec(self, value: object) -> str:
        plain = f"{value:f}" if value is not None else "0.5"
        return self.r.choice(
            ["{}", "{}BD", "cast('{}' as decimal(38,10))", "'{}'", "{}D", "cast({} as double)"]
        ).format(plain)

    def _text(self, value: object) -> str:
        if self.r.random() < 0.1:
            return text(self.r.choice(TRICKS))
        shown = text(str(value) if value is not None else "b")
        return self.r.choice([shown, shown, shown, f"rpad({shown}, 4, ' ')", f"concat({shown}, '')", f"upper({shown})"])

    def _bool(self, value: object) -> str:
        return self.r.choice(["true", "false", "'true'"])

    def _date(self, value: object) -> str:
        day = value if isinstance(value, dt.date) else dt.date(2024, 2, 29)
        return self.r.choice(
            ["date'{}'", "'{}'", "to_date('{}')", "timestamp'{} 00:00:00'", "cast('{}' as date)"]
        ).format(day.isoformat())

    def _ts(self, value: object) -> str:
        at = value if isinstance(value, dt.datetime) else dt.datetime(2024, 3, 10, 7, 30)
        shown = at.replace(tzinfo=None).isoformat(" ")
        return self.r.choice(
            ["timestamp'{}Z'", "timestamp'{}'", "'{}'", "timestamp'{} America/New_York'", "to_timestamp('{}')"]
        ).format(shown)

    def _ntz(self, value: object) -> str:
        at = value if isinstance(value, dt.datetime) else dt.datetime(2024, 3, 10, 2, 30)
        return self.r.choice(["timestamp_ntz'{}'", "'{}'", "timestamp'{}'"]).format(
            at.replace(tzinfo=None).isoformat(" ")
        )

    def _bin(self, value: object) -> str:
        return f"X'{value.hex() if isinstance(value, bytes) else '00'}'"

    # -- values -------------------------------------------------------------------------------------------------------

    def column(self, kind: str) -> str | None:
        found = self.of.get(kind)
        return self.r.choice(found).sql if found else None

    def value(self, kind: str, depth: int = 2) -> str:
        """An expression of a kind."""
        r, column = self.r, self.column(kind)
        if column is None:
            return self.derived(kind, depth) if depth and r.random() < 0.7 else self.literal(kind)
        if depth <= 0 or r.random() < 0.5:
            return column
        if r.random() < 0.3:
            return self.derived(kind, depth)
        return r.choice(self._forms(kind))(column, depth - 1)

    def _forms(self, kind: str) -> list[Callable[[str, int], str]]:
        r, v, k = self.r, self.value, self.literal
        shared: list[Callable[[str, int], str]] = [
            lambda c, d: f"coalesce({c}, {k(kind)})",
            lambda c, d: f"nullif({c}, {k(kind)})",
            lambda c, d: f"if({self.condition(d)}, {c}, {v(kind, d)})",
            lambda c, d: f"case when {self.condition(d)} then {c} else {k(kind)} end",
            lambda c, d: f"case {c} when {k(kind)} then {k(kind)} else {c} end",
            lambda c, d: f"greatest({c}, {k(kind)})",
            lambda c, d: f"array({c}, {k(kind)})[0]",
            lambda c, d: f"named_struct('a', {k(kind)}, 'x', {c}).x",
            lambda c, d: f"map(1, {c})[1]",
        ]
        number: list[Callable[[str, int], str]] = [
            lambda c, d: f"{c} {r.choice(['+', '-', '*'])} {k(kind)}",
            lambda c, d: f"({k(kind)} {r.choice(['+', '-', '*'])} {c})",
            lambda c, d: f"({c} % {r.choice(['3', '-2', '7L'])})",
            lambda c, d: f"-{c}", lambda c, d: f"- -{c}", lambda c, d: f"abs({c})",
            lambda c, d: f"({c} - {v(kind, d)})",
            lambda c, d: f"round({c}{r.choice(['', ', 1', ', -1'])})",
            lambda c, d: f"try_add({c}, {k(kind)})", lambda c, d: f"cast({c} as {r.choice(['string', 'double', 'decimal(12,1)', 'int', 'bigint'])})",
        ]  # fmt: skip
        own: dict[str, list[Callable[[str, int], str]]] = {
            "int": [*number, lambda c, d: f"({c} div 3)", lambda c, d: f"({c} & 3)", lambda c, d: f"~{c}", lambda c, d: f"shiftleft({c}, 1)"],
            "float": [*number, lambda c, d: f"floor({c})", lambda c, d: f"ceil({c})", lambda c, d: f"({c} / 2)"],
            "dec": [*number, lambda c, d: f"floor({c})", lambda c, d: f"({c} * cast(3 as decimal(38,10)))", lambda c, d: f"({c} + cast(1 as decimal(38,4)))"],
            "text": [
                lambda c, d: f"upper({c})", lambda c, d: f"lower({c})", lambda c, d: f"trim({c})", lambda c, d: f"rtrim({c})",
                lambda c, d: f"trim(both 'a' from {c})", lambda c, d: f"substring({c}, {r.choice(['1', '0', '2', '-2'])}, {r.choice(['1', '2', '40'])})",
                lambda c, d: f"left({c}, 2)", lambda c, d: f"concat({c}, {k('text')})", lambda c, d: f"({c} || 'x')",
                lambda c, d: f"rpad({c}, 4, ' ')", lambda c, d: f"replace({c}, 'a', {text(r.choice(TRICKS))})",
                lambda c, d: f"coalesce(parse_url({c}, {text(r.choice(TRICKS))}), {c})", lambda c, d: f"regexp_replace({c}, 'a', {text(r.choice(TRICKS))})",
                lambda c, d: f"split({c}, 'b')[0]", lambda c, d: f"repeat({c}, 2)", lambda c, d: f"url_decode(url_encode({c}))",
                lambda c, d: f"overlay({c} placing 'x' from 1)", lambda c, d: f"cast(cast({c} as binary) as string)",
                lambda c, d: f"decode(encode({c}, 'utf-8'), 'utf-8')", lambda c, d: f"btrim({c}, 'a')", lambda c, d: f"translate({c}, 'a', 'b')",
            ],
            "date": [
                lambda c, d: f"date_add({c}, {r.choice(['1', '-1', '30'])})", lambda c, d: f"({c} + interval 1 day)", lambda c, d: f"trunc({c}, '{r.choice(_UNITS[:4])}')",
                lambda c, d: f"last_day({c})", lambda c, d: f"add_months({c}, 1)", lambda c, d: f"({c} - 1)", lambda c, d: f"cast({c} as string)",
            ],
            "ts": [
                lambda c, d: f"date_trunc('{r.choice(_UNITS)}', {c})", lambda c, d: f"({c} + interval 1 hour)", lambda c, d: f"cast({c} as date)",
                lambda c, d: f"cast({c} as timestamp_ntz)", lambda c, d: f"from_utc_timestamp({c}, 'Asia/Tokyo')", lambda c, d: f"date_format({c}, '{r.choice(['yyyy', 'yyyy-MM-dd', 'HH', 'yyyyMMddHH'])}')",
            ],
            "ntz": [lambda c, d: f"date_trunc('{r.choice(_UNITS)}', {c})", lambda c, d: f"cast({c} as timestamp)", lambda c, d: f"cast({c} as date)", lambda c, d: f"({c} - interval '1' day)"],
            "bool": [lambda c, d: f"({self.condition(d)})", lambda c, d: f"not {c}", lambda c, d: f"cast({c} as int)"],
            "bin": [lambda c, d: f"substring({c}, 1, 1)", lambda c, d: f"concat({c}, X'00')"],
        }  # fmt: skip
        return own[kind] * 2 + shared

    def derived(self, kind: str, depth: int) -> str:
        """A value of a kind that comes from another."""
        r, v = self.r, lambda k: self.value(k, depth - 1)
        made: dict[str, list[Callable[[], str]]] = {
            "int": [
                lambda: f"length({v('text')})", lambda: f"{r.choice(['year', 'month', 'day', 'quarter', 'dayofweek', 'weekofyear'])}({v(r.choice(['date', 'ts', 'ntz']))})",
                lambda: f"{r.choice(['hour', 'minute', 'second'])}({v(r.choice(['ts', 'ntz']))})", lambda: f"datediff({v('date')}, date'2024-01-01')",
                lambda: f"cast({v('float')} as int)", lambda: f"try_cast({v('text')} as int)", lambda: f"extract(year from {v('date')})", lambda: f"cast({v('bool')} as int)",
                lambda: f"size(array({v('int')}, 1))", lambda: f"ascii({v('text')})", lambda: f"sign({v('dec')})", lambda: f"position('a' in {v('text')})",
            ],
            "float": [lambda: f"cast({v('int')} as double)", lambda: f"({v('int')} / 4)", lambda: f"cast({v('dec')} as double)", lambda: f"cast({v('float')} as float)", lambda: f"sqrt(abs({v('int')}))"],
            "dec": [lambda: f"cast({v('int')} as decimal(20,2))", lambda: f"cast({v('float')} as decimal(20,2))", lambda: f"cast({v('dec')} as decimal({r.choice(['38,2', '12,0', '38,18'])}))"],
            "text": [lambda: f"cast({v(r.choice(['int', 'date', 'bool', 'dec', 'ts', 'bin']))} as string)", lambda: f"concat_ws(',', {v('text')}, {v('text')})", lambda: f"hex({v('int')})"],
            "date": [lambda: f"to_date({v('ts')})", lambda: f"date({v('ntz')})", lambda: f"try_cast({v('text')} as date)", lambda: f"make_date(2024, 1, {v('int')} % 20 + 1)"],
            "ts": [lambda: f"cast({v('date')} as timestamp)", lambda: f"cast({v('ntz')} as timestamp)", lambda: f"to_timestamp({v('date')})"],
            "ntz": [lambda: f"cast({v('ts')} as timestamp_ntz)", lambda: f"cast({v('date')} as timestamp_ntz)"],
            "bool": [lambda: f"({self.condition(depth - 1)})", lambda: f"try_cast({v('text')} as boolean)", lambda: f"cast({v('int')} as boolean)"],
            "bin": [lambda: f"cast({v('text')} as binary)", lambda: "unhex('00')"],
        }  # fmt: skip
        return r.choice(made[kind])()

    # -- conditions ---------------------------------------------------------------------------------------------------

    def condition(self, depth: int = 3) -> str:
        """Something boolean."""
        r = self.r
        roll = r.random()
        if depth > 0 and roll < 0.28:
            joined = [self.condition(depth - 1) for _ in range(r.choice([2, 2, 3]))]
            return "(" + f" {r.choice(['and', 'or', 'AND', 'OR'])} ".join(joined) + ")"
        if depth > 0 and roll < 0.38:
            return f"{r.choice(['not ', 'NOT ', '! '])}({self.condition(depth - 1)})"
        if depth > 0 and roll < 0.44:
            return r.choice(self._odd())(depth - 1)
        kinds = [k for k in self.of if k != "bool"] or ["int"]
        return self._leaf(r.choice([*kinds, *self.of]), min(depth, 2))

    def _odd(self) -> list[Callable[[int], str]]:
        r, c = self.r, self.condition
        return [
            lambda d: f"case when {c(d)} then {c(d)} else {c(d)} end",
            lambda d: f"if({c(d)}, {c(d)}, {c(d)})",
            lambda d: f"coalesce({c(d)}, {r.choice(['true', 'false'])})",
            lambda d: f"(({c(d)}) = ({c(d)}))", lambda d: f"(({c(d)}) <=> null)",
            lambda d: f"(({c(d)}) is {r.choice(['null', 'not null', 'true', 'not true', 'false', 'not false', 'unknown', 'not unknown'])})",
            lambda d: f"exists(array(1, 2), x -> {c(d)} and x > 1)",
            lambda d: f"forall(array({self.value('int', 1)}, 5), a -> a > {self.literal('int')})",
            lambda d: f"array_contains(array({self.literal('int')}, {self.literal('int')}), {self.value('int', 1)})",
            lambda d: f"(struct({self.value('int', 1)} as x, {self.value('text', 1)} as a) {r.choice(['=', '<', '>='])} struct({self.literal('int')} as x, {self.literal('text')} as a))",
            lambda d: f"cast(named_struct('p', {self.value('int', 1)}, 'q', {self.value('int', 1)}) as struct<q:bigint,p:bigint>).q > {self.literal('int')}",
            self._recast, self._loose, self._loose,
            lambda d: f"assert_true(true) is null and {c(d)}", lambda d: f"nvl2({self.value('text', 1)}, {c(d)}, {c(d)})",
            lambda d: f"(({c(d)}) in (true, {self.value('bool', 1)}))", lambda d: f"equal_null({self.value('int', 1)}, {self.literal('int')})",
        ]  # fmt: skip

    def _loose(self, depth: int) -> str:
        """Operators without parentheses, whose order is the parser's to know."""
        r, b, i, t = self.r, lambda: self.value("bool", 0), lambda: self.value("int", 0), lambda: self.value("text", 0)
        op = lambda: r.choice(["=", "<", ">=", "<=>", "!=", "and", "or"])  # noqa: E731
        k = lambda: self.literal("int")  # noqa: E731
        return r.choice([
            f"{b()} {op()} {b()} {op()} {b()}", f"not {b()} {op()} {b()}", f"{b()} {op()} {b()} is {r.choice(['', 'not '])}null",
            f"{b()} {op()} {b()} {r.choice(['', 'not '])}in (true, false)", f"{b()} {op()} {b()} between false and true",
            f"{i()} = {k()} {op()} {b()}", f"{b()} {op()} {i()} > {k()}", f"{i()} between {k()} and {k()} {op()} {b()}",
            f"{i()} - {i()} - {k()} > {k()}", f"- {i()} % 3 = {k()}", f"{i()} - 7 div 2 * 3 > {k()}", f"{t()} || {i()} + 1 = '11'",
            f"{t()} || 'a' like 'a%' {r.choice(['and', 'or'])} {b()}", f"{i()} = {k()} is not true", f"{b()} is not true {r.choice(['and', 'or'])} {b()}",
            f"not {i()} = {k()} {r.choice(['and', 'or'])} {b()} {r.choice(['and', 'or'])} not {b()}", f"{i()} in ({k()}) {op()} {b()}",
            f"! {b()} {op()} {i()} <=> {k()}", f"{b()} {r.choice(['and', 'or'])} {i()} between {k()} and {k()} {r.choice(['and', 'or'])} {b()}",
            f"{t()} like 'a%' {op()} {b()}", f"case when {b()} then {i()} else {k()} end {r.choice(['=', '<'])} {k()} {r.choice(['and', 'or'])} {b()}",
            f"{i()} + 1 is null", f"{i()} | 3 & {i()} > {k()}", f"{i()} is distinct from {k()} {op()} {b()}",
        ])  # fmt: skip

    def _recast(self, depth: int) -> str:
        """A struct whose members go under each other's names: the cast is by position, and is not printed."""
        r, name = self.r, self.made.structs[0]
        inside = [leaf for leaf in self.made.leaves if leaf.sql.startswith(f"`{name.replace('`', '``')}`.`")]
        members = [leaf.sql.split(".`", 1)[1].rstrip("`") for leaf in inside]
        if len(inside) < 2 or any("`" in m or "." in m for m in members):
            return self.condition(depth)
        turned = members[1:] + members[:1]
        types = ", ".join(
            f"`{m}`: {leaf.ddl.replace('char(4)', 'string').replace('varchar(6)', 'string').replace('varstring', 'string')}"
            for m, leaf in zip(turned, inside, strict=True)
        )
        n = r.randrange(len(inside))
        whole = "`" + name.replace("`", "``") + "`"
        return f"cast({whole} as struct<{types}>).`{turned[n]}` {r.choice(['=', '>', '<='])} {self.literal(inside[n].kind)}"

    def _leaf(self, kind: str, depth: int) -> str:
        r = self.r
        v, k = self.value(kind, depth), self.literal(kind)
        roll = r.random()
        if kind == "bool" and roll < 0.5:
            return r.choice([v, f"{v} = {k}", f"{v} is not true", f"{v} <=> {k}"])
        if kind == "text" and roll < 0.35:
            return self._of_text(v)
        if kind == "float" and roll < 0.15:
            return f"{r.choice(['', 'not '])}isnan({v})"
        forms = [
            lambda: f"{v} {r.choice(['=', '<', '<=', '>', '>=', '!=', '<>', '==', '<=>', '=', '='])} {k}",
            lambda: f"{k} {r.choice(['=', '<', '<=', '>', '>=', '<=>'])} {v}",
            lambda: f"{v} {r.choice(['in', 'not in'])} ({', '.join(self.literal(kind) for _ in range(r.choice([1, 2, 3, 12])))})",
            lambda: f"{v} in ({k}, {self.value(kind, depth - 1)})",
            lambda: f"{v} {r.choice(['between', 'not between'])} {k} and {self.literal(kind)}",
            lambda: f"{v} {r.choice(['is null', 'is not null'])}",
            lambda: f"{v} {r.choice(['=', '<', '>=', '<=>', '!='])} {self.value(kind, depth - 1)}",
            lambda: f"{v} is {r.choice(['', 'not '])}distinct from {k}",
        ]  # fmt: skip
        return r.choice(forms + forms[:1] * 3)()

    def _of_text(self, v: str) -> str:
        r = self.r
        start = r.choice(["a", "ab", "b", "", "it's", "é", "z", "z" * 31, "z" * 31 + "😀", "A", "1", "a#", "%"])
        pattern = r.choice(["%", "_%", "", "%b", "_", "\\%%", "\\_b", "#%%", "#%", "\\\\%", "%x%"])
        asked = text(start + pattern)
        return r.choice([
            f"{v} like {asked}", f"{v} not like {asked}", f"{v} like {asked} escape '#'", f"{v} like {asked} escape '/'", f"{v} ilike {asked}",
            f"{v} rlike {text('^' + start)}", f"startswith({v}, {text(start)})", f"endswith({v}, {text(start)})", f"contains({v}, {text(start)})",
            f"{v} like any ({asked}, 'b%')", f"{v} like all ({asked}, '%')", f"({v} like {asked}) = {r.choice(['true', 'false'])}", f"({v} like {asked}) is null",
            f"{v} collate UTF8_LCASE = {text(start)}", f"startswith({v} collate UTF8_LCASE, {text(start)})", f"collate({v}, 'UNICODE_CI') in ({text(start)}, 'x')",
            f"{v} like concat({text(start)}, '%')", f"{v} = {text(start)} collate UTF8_LCASE", f"lower({v}) like {asked}", f"{v} > {text(start)}",
            f"parse_url({v}, {text(r.choice(TRICKS))}) is null", f"{v} like '{start[:1] if start[:1] != chr(39) else 'a'}#%' escape '#'",
        ])  # fmt: skip
