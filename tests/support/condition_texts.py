"""Conditions of every kind that Spark knows: understood here and not, failing, over nulls, NaN, zones, nested fields.

They are over the columns of `condition_tables`.
"""

from __future__ import annotations

import re

from hypothesis import strategies as st

#: By the column that they are about.
ATOMS: dict[str, tuple[str, ...]] = {
    "i": (
        "i = 1", "i > 2", "i = 30.5", "i <=> null", "i + 1 > 3", "i % 2 = 0", "i between 1 and 3", "i in (1, null)",
        "i not in (1, 2)", "cast(i as string) like '1%'", "abs(i) = 1", "hash(i) % 2 = 0", "bround(i, -1) = 0",
        "nullif(i, 1) is null", "try_divide(10, i) > 1", "i is null", "-i < -2", "i * 2 = 4", "i = '2'", "i > 1.5D",
        "i << 1 = 4", "i = 2147483648", "case when i > 2 then true when i is null then null else false end",
        "i <> 1", "not (i = 1)", "greatest(i, 2) = 2", "i = length(s)",
    ),
    "d": (
        "isnan(d)", "not isnan(d)", "d > 10", "not (d <= 5)", "d = double('NaN')", "d < double('NaN')", "d = -0.0D",
        "d between 10 and 20", "nanvl(d, 1D) = 1D", "round(d) = 2", "d <=> double('NaN')", "d in (1.5D, double('NaN'))",
        "d > double('Infinity')", "d != d", "cast(f as double) > 1", "f > 1", "not (f < 1)", "f = 0.1", "f = float('0.1')",
        "d > f", "-d < -10", "coalesce(d, double('NaN')) > 100", "d is null", "d >= 2 and f < 1",
    ),
    "e": (
        "e = 90071992547409.93", "e = 12345678901234568.00", "e = 1234567890123456.78", "e > 12345678901234.56",
        "e < 90071992547409.93", "e <> 90071992547409.93", "e between 90071992547409.92 and 90071992547409.94",
        "e in (90071992547409.93, 1.00)", "e9 = 1.50", "e9 = 1.505", "cast(e as double) > 9e13", "e + 1 > 2", "e9 is null",
        "e >= 9999999999999999.99",
    ),
    "s": (
        "s like 'a%'", "s like '%b'", "s like 'a_'", "s rlike '^a'", "s ilike 'A%'", "startswith(s, 'a')",
        "endswith(s, 'b')", "contains(s, 'b')", "length(s) = 40", "upper(s) = 'AB'", "s collate utf8_lcase = 'AB'",
        "substring(s, 1, 1) = 'a'", "s > 'b'", "s = repeat('a', 40)", "s = concat('a', 'b')", "s in ('ab', 'zz')",
        "try_cast(s as int) = 1", "trim(s) = 'ab'", "levenshtein(s, 'ab') < 2", "translate(s, 'a', 'z') = 'zb'",
        "s is null", "s <> 'ab'", "s between 'a' and 'b'", "reverse(s) = 'ba'", "s = 'it\\'s'", "s = \"ab\"",
        "regexp_like(s, 'b$')", "s < 'é'", "s > 'z' and s < '\U0010ffff'", "concat(s, 'x') = 'abx'", "s = lower('AB')",
        "locate('b', s) = 2", "s == 'ab'", "s like all ('a%', '%b')", "s like any ('z%', '%b')", "md5(s) is null",
    ),
    "day": (
        "month(day) = 2", "year(day) = 2024", "quarter(day) = 1", "day(day) = 29", "dayofweek(day) = 5",
        "trunc(day, 'MM') = date'2024-02-01'", "date_add(day, 1) = date'2024-03-01'", "cast(day as string) like '2024-02%'",
        "day = '2024-02-29'", "day between '2024-01-01' and '2024-02-29'", "last_day(day) = day", "weekofyear(day) = 9",
        "day > cast('2024-01-31' as date)", "add_months(day, 1) = date'2024-03-29'", "day is null", "day <= date'1582-10-15'",
        "datediff(day, date'2024-02-28') = 1", "day = to_date('2024-02-29')", "day in (date'2024-02-29', date'1970-01-01')",
        "date_format(day, 'yyyy-MM') = '2024-02'", "day < current_date()", "extract(month from day) = 2",
    ),
    "ts": (
        "cast(ts as date) = date'2024-01-02'", "hour(ts) = 20", "date_format(ts, 'yyyy-MM-dd') = '2024-01-02'",
        "ts > '2024-01-01 12:00:00'", "ts = timestamp'2024-01-01 20:30:15.123456'", "minute(ts) = 30",
        "from_utc_timestamp(ts, 'Asia/Tokyo') > timestamp'2024-01-02'", "date_trunc('day', ts) = timestamp'2024-01-02'",
        "unix_timestamp(ts) % 2 = 0", "ts = cast(day as timestamp)", "to_date(ts) = '2024-01-01'", "ts < current_timestamp()",
        "tn = timestamp_ntz'2024-01-01 20:30:15.123456'", "cast(tn as date) = date'2024-01-01'", "hour(tn) = 20",
        "tn > ts", "ts is null", "year(ts) = 2024", "month(ts) = 12", "ts > tn", "day(ts) = 1 and hour(ts) > 12",
        "ts between '2024-01-01' and '2024-01-02'", "date_trunc('hour', ts) = timestamp'2024-01-01 20:00:00'",
        "second(ts) = 15", "ts >= timestamp'2024-01-01 20:30:15.123Z'",
    ),
    "b": ("b", "not b", "b is null", "b = true", "b <> true", "b is not true", "b or i = 1", "b and s like 'a%'"),
    "n": (
        "n.a = 1", "n.s like 'a%'", "n is null", "n.a is null", "n.a > 1 and p = 'a1'", "n.s rlike 'b'", "n.a + n.a = 4",
        "n.a in (1, 5)", "not (n.a <=> 1)", "exists(arr, x -> x > 2)", "size(arr) > 1", "array_contains(arr, 2)",
        "get(arr, 0) = 1", "try_element_at(arr, 1) = 1", "arr is null", "n = named_struct('a', 1, 's', 'ab')",
        "forall(arr, x -> x is not null)", "x'61' = bin", "bin > x'60'", "hex(bin) = '61'",
    ),
    "p": (
        "p = 'a1'", "p rlike '^a'", "p ilike 'A%'", "p is null", "ascii(p) = 97", "p < cast(current_date() as string)",
        "p collate utf8_lcase = 'A1'", "try_cast(p as int) = 1", "p in ('a1', null)", "substring(p, 1, 1) = 'a'",
        "coalesce(p, 'z') = 'z'", "p like 'a_'", "length(p) = 2 and k = 1", "regexp_like(p, '^a')", "p <=> null",
        "case when p = 'a1' then k = 1 else p rlike 'b' end", "if(p = 'a1', true, k = 2)", "p >= repeat('a', 1)",
        "not (p = 'a1')", "not (p rlike '^a')", "p <> 'a1'", "p = concat('a', k)", "upper(p) = 'A1'",
        "p = 'a1' and s rlike 'b'", "p = 'a1' or s rlike 'b'", "initcap(p) = 'A1'", "soundex(p) = soundex('a1')",
        "p = reverse('1a')", "p not in ('a1', 'b1')", "p not in ('a1', null)", "p between 'a' and 'b'",
    ),
    "k": (
        "k = 1", "k = 1.5", "k % 2 = 0", "k in (1, 2)", "hash(k) % 2 = 0", "bit_count(k) = 1", "k is null", "k = '1'",
        "k + i = 3", "month(q) = 4", "q = '2024-04-01'", "date_format(q, 'yyyy') = '2024'", "weekday(q) = 0", "q is null",
        "cast(q as string) like '2024-04%'", "q > day", "k > 0 and q < date'2024-05-01'", "pmod(k, 2) = 1", "k <=> 2",
        "true", "false", "cast(null as boolean)", "1 = 1", "k = k", "typeof(k) = 'int'", "isnull(k) or p = 'b1'",
    ),
}  # fmt: skip

#: For some row of the table Spark fails: of an overflow, a division by zero, a text that is no number.
FAILING = (
    "cast(s as int) = 1", "cast(p as int) = 1", "10 / i > 1", "arr[0] = 1", "floor(d) = 1", "element_at(arr, 3) = 1",
    "cast(s as date) = day", "p = 1", "i + 2147483647 > 0", "k = 1 and cast(p as int) = 1", "k = 9 or cast(p as int) = 1",
    "raise_error('no') is null", "to_date(s) = day", "10 div (k - 1) > 0",
)  # fmt: skip

#: They say something else each time.
RANDOM = ("rand() > 0.5", "uuid() > s", "p = 'a1' or rand() > 2", "monotonically_increasing_id() = 1")

ALL = tuple(text for texts in ATOMS.values() for text in texts)

#: Names of columns that are in the files.
_IN_FILES = re.compile(r"\b(i|d|f|e|e9|s|day|ts|tn|b|n|arr|bin)\b(?!\()")
_QUOTED = re.compile(r"'[^']*'")

#: Over columns of the partition alone.
OF_PARTITION = tuple(t for t in (*ATOMS["p"], *ATOMS["k"]) if not _IN_FILES.search(_QUOTED.sub("", t)))


def combined() -> st.SearchStrategy[str]:
    """Conditions of several parts."""
    return st.recursive(
        st.sampled_from(ALL),
        lambda inner: st.one_of(
            inner.map(lambda a: f"not ({a})"),
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda x: f"({x[0]}) {x[1]} ({x[2]})"),
            inner.map(lambda a: f"({a}) is null"),
            st.tuples(inner, inner, inner).map(lambda x: f"if({x[0]}, {x[1]}, {x[2]})"),
            st.tuples(inner, inner).map(lambda x: f"({x[0]}) <=> ({x[1]})"),
        ),
        max_leaves=4,
    )
