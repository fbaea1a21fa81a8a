"""Texts that ask for the time, with a moment in place of what asks; without a JVM."""

from __future__ import annotations

import pytest

from alluvium.expr.sql.clocks import Moment, UnsteadyText, at_moment

#: 2026-11-22 23:30:00.000001 UTC, half past midnight in Paris.
MOMENT = Moment(1_795_390_200_000_001, 20_780, 1_795_393_800_000_001)
UTC = "timestamp'2026-11-22 23:30:00.000001+00:00'"


def asked() -> Moment:
    return MOMENT


def nobody() -> Moment:
    raise AssertionError("it does not ask for the time")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ts < current_timestamp()", f"ts < {UTC}"),
        ("ts < CURRENT_TIMESTAMP and d = Current_Date ( )", f"ts < {UTC} and d = date'2026-11-23'"),
        ("now()-interval 1 day<ts", f"{UTC}-interval 1 day<ts"),
        ("`now`() > ts or builtin.now() > ts", f"{UTC} > ts or {UTC} > ts"),
        ("system.builtin.curdate() = d", "date'2026-11-23' = d"),
        ("n = localtimestamp", "n = timestamp_ntz'2026-11-23 00:30:00.000001'"),
        ("s < unix_timestamp()", "s < 1795390200L"),
        ("t < current_time and t < current_time(0) and t < current_time(3)",
         "t < time'00:30:00.000001' and t < time'00:30:00' and t < time'00:30:00.000'"),
        ("d = date'today' or d = DATE 'Yesterday ' or d = date\"now\"",
         "d = date'2026-11-23' or d = date'2026-11-22' or d = date'2026-11-23'"),
        ("ts = timestamp'tomorrow'", "ts = timestamp'2026-11-24 00:00:00'"),
        ("ts < timestamp'now' and n < timestamp_ntz'now'",
         "ts < timestamp'2026-11-23 00:30:00.000001' and n < timestamp_ntz'2026-11-23 00:30:00.000001'"),
        ("d < current_date -- until now()\n and s = 'now()'", "d < date'2026-11-23' and s = 'now()'"),
        ("s = r'now()' and d = current_date", "s = r'now()' and d = date'2026-11-23'"),
        ("s = 'äö😀' and d = current_date()", "s = 'äö😀' and d = date'2026-11-23'"),
    ],
)  # fmt: skip
def test_what_asks_is_written_as_the_moment(text: str, expected: str) -> None:
    assert at_moment(text, asked, {"ts", "d"}) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a = 1", "s = 'now()'", "s = 'today'", "`current_date()` = 1", "t.current_date = 1", "t.now() = 1",
        "unix_timestamp(ts) = 1", "current_date.x = 1", "nowhere = 1", "date'epoch' = d", "x.now.y = 1",
        "exists(a, current_date -> current_date > 1) /* now */ and b", "f(x).current_date = 1", "ts < 'now'",
    ],
)  # fmt: skip
def test_what_does_not_ask_is_left_as_it_is(text: str) -> None:
    assert at_moment(text, nobody, {"current_date"}) == text


def test_a_column_goes_before_a_bare_name() -> None:
    assert at_moment("current_date = 1", nobody, {"current_date"}) == "current_date = 1"
    assert at_moment("current_date() = 1", asked, {"current_date"}) == "date'2026-11-23' = 1"


@pytest.mark.parametrize("text", ["ts = timestamp'today UTC'", r"s = r'\d' and d = current_date()", "now() # 1",
                                  "t < current_time(9)", "t < current_time(x)"])  # fmt: skip
def test_what_cannot_be_told(text: str) -> None:
    with pytest.raises(UnsteadyText):
        at_moment(text, asked, ())


def test_literals_alone() -> None:
    text = "ts < timestamp'now' and d < current_date()"
    expected = "ts < timestamp'2026-11-23 00:30:00.000001' and d < current_date()"
    assert at_moment(text, asked, only_literals=True) == expected
    assert at_moment("d < current_date()", nobody, only_literals=True) == "d < current_date()"


def test_a_function_of_somebody_else_is_left() -> None:
    assert (
        at_moment("d = current_date() and t > now()", asked, (), "now".__ne__) == "d = date'2026-11-23' and t > now()"
    )
    assert at_moment("t > builtin.now()", asked, (), "now".__ne__) == f"t > {UTC}"


@pytest.mark.parametrize("name", ["now", "curdate", "unix_timestamp"])
def test_what_is_no_clock_without_its_brackets(name: str) -> None:
    """Spark takes the bare name for a column's, be there such a one or not."""
    assert at_moment(f"{name} = 1", nobody, ()) == f"{name} = 1"
    assert at_moment(f"{name}() = 1", asked, ()) != f"{name}() = 1"


@pytest.mark.parametrize("name", ["current_timestamp", "current_date", "localtimestamp", "current_time"])
def test_clocks_without_brackets(name: str) -> None:
    assert at_moment(f"x = {name}", asked, ()) == at_moment(f"x = {name}()", asked, ())
    assert at_moment(f"x = {name.upper()}", asked, ()) == at_moment(f"x = {name}()", asked, ())
    for text in (f"{name}.y = 1", f"z.{name} = 1", f"exists(a, {name} -> true)"):
        assert at_moment(text, nobody, ()) == text


def test_a_moment_by_the_clock_on_the_wall() -> None:
    assert Moment.of(1_795_390_200_000_001, 20_780, "2026-11-23T00:30:00.000001") == MOMENT
    assert Moment.of(0, 0, "1969-12-31 23:00:00").local_micros == -3_600_000_000
